"""The benchmark of tables and windows, and the pages of their figures, tiny, in plain Python."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.figures.salaries import NEEDS
from benchmarks.workloads import Workload, acs_income

from benchmarks import tables
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Quasi, Schema
from tests.benchmarks.test_commands import run

needs_salaries = pytest.mark.skipif(
    not all(path.exists() for path in NEEDS),
    reason="../shared/data has no acs_gov_employees_2018 or its hierarchies",
)
needs_income = pytest.mark.skipif(
    acs_income() is None, reason="../shared/data has no acs_income_2018 or its hierarchies"
)


@needs_salaries
@needs_income
def test_tables(tmp_path):
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- tables:begin -->\n<!-- tables:end -->\nend\n")
    done = run(
        "benchmarks.tables", "--quick", "--data", tmp_path, "--json", values, "--write", page
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(values.read_text())
    found = results["tables"]
    assert (found["n_rows"], found["n_quasi"]) == (120, 7)
    assert {name: one["target"] for name, one in found["gains"].items()} == tables.RIVALS
    for one in found["gains"].values():
        assert one["met"] == (one["median"] >= one["target"])
    assert found["growth"]["n_rows"] == [30, 60, 120]
    stream = results["streams"]
    assert stream["met"] == (stream["ratio"]["median"] <= 6)
    assert stream["growth"]["n_rows"] == [30, 60, 120]
    assert 0 < stream["loss"]["published"] < 1
    assert done.stdout.strip() in page.read_text()
    assert page.read_text().endswith("<!-- tables:end -->\nend\n")
    assert not list(tmp_path.glob("published-*"))


def test_what_is_not_there_is_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "NEEDS", (tmp_path / "nothing",))
    monkeypatch.setattr(tables, "acs_income", lambda: None)
    tables.main(["--quick", "--data", str(tmp_path)])
    printed = capsys.readouterr()
    assert "tables are left out" in printed.err
    assert "streams are left out" in printed.err
    assert "###" not in printed.out


def test_the_first_rows_of_a_file(tmp_path):
    path = tmp_path / "all.parquet"
    pq.write_table(pa.table({"age": range(10)}), path)
    schema = Schema(None, [Quasi("age", Range(0, 9))])
    whole = Workload("ages", path, schema, 10)
    assert tables.prefix(whole, 10, tmp_path) is whole
    part = tables.prefix(whole, 4, tmp_path)
    assert part.n_rows == 4
    assert pq.read_table(part.path).column("age").to_pylist() == [0, 1, 2, 3]
    modified = part.path.stat().st_mtime_ns
    assert tables.prefix(whole, 4, tmp_path).path.stat().st_mtime_ns == modified


@needs_salaries
@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("sabre", ["3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]),
        ("sliding", ["6.4", "6.5", "6.6", "6.7"]),
    ],
)
def test_figures_of_closeness(tmp_path, page, names):
    done = run("benchmarks.figures", page, "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.glob("*.md")] == [f"{page}.md"]
    text = (tmp_path / f"{page}.md").read_text()
    for name in names:
        section = text.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
        assert section.lstrip().startswith(f"## Figure {name}: ")
        assert "none breaks its promise." in section
        assert "| the thesis " in section
        assert "<svg" in (tmp_path / f"{page}-{name.replace('.', '-')}.svg").read_text()
    assert ("## Loss by the order of groups" in text) == (page == "sabre")
