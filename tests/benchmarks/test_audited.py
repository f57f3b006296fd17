"""Promises about sensitive values, over the grids: who is run, and that a flaw is told."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from benchmarks.audited import DATA, Sizes, cases, judge, report_of

from benchmarks import audited
from shoal.algorithms import find, names
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.policy import EnhancedLikeness, KAnonymity, Policy, TCloseness
from tests.benchmarks.test_commands import run

needs_data = pytest.mark.skipif(
    not all(path.exists() for paths in DATA.values() for path in paths),
    reason="../shared/data has no Adult, hierarchies or salaries",
)
QUICK = Sizes.quick()


def test_every_algorithm_that_can_is_run():
    found = {(case.algorithm, case.promise) for case in cases("adult", QUICK)}
    for name in names():
        enforces = find(name).enforces
        assert ((name, "t-closeness") in found) == issubclass(TCloseness, enforces)
        assert ((name, "enhanced likeness") in found) == issubclass(EnhancedLikeness, enforces)
    assert ("burel", "semantic likeness") in found
    assert ("d-mondrian", "disclosure") in found
    assert ("burel-w", "range-based likeness") in {
        (case.algorithm, case.promise) for case in cases("salaries", QUICK)
    }


def test_every_bound_of_a_grid_is_promised():
    sizes = replace(QUICK, ts=(0.1, 0.2, 0.3))
    case = next(case for case in cases("adult", sizes) if case.promise == "t-closeness")
    assert [policy.measured[0].t for policy in case.policies] == [0.1, 0.2, 0.3]
    assert {policy.k for policy in case.policies} == {2}


@needs_data
def test_salaries_are_the_table_of_their_codes():
    rows = audited._data("salaries", QUICK)[1]
    assert rows.num_rows == QUICK.salary_rows
    assert rows.column_names == ["age", "sex", "salary"]
    assert set(rows["sex"].to_pylist()) == {"female", "male"}
    assert 0 <= min(rows["salary"].to_pylist()) < max(rows["salary"].to_pylist()) <= 49


@needs_data
def test_a_broken_promise_is_reported(monkeypatch):
    case = next(c for c in cases("salaries", QUICK) if c.algorithm == "l-mondrian")
    kept = judge(case, QUICK)
    assert kept.others == ()
    assert kept.kept > 3
    # The engine is asked for less than the audit judges by.
    strict = replace(case, policies=(Policy(KAnonymity(2), EnhancedLikeness(0.01), window="all"),))
    anonymize = audited.shoal.anonymize

    def careless(frame, schema, policy, algorithm, **options):
        return anonymize(frame, schema, case.policies[0], algorithm, **options)

    monkeypatch.setattr(audited.shoal, "anonymize", careless)
    found = judge(strict, QUICK)
    assert len(found.others) == 1
    assert "l-mondrian, EnhancedLikeness" in found.others[0]
    assert "broken" in found.others[0]
    text = report_of([found], QUICK)
    assert "and 1 *broken* or *unverifiable*" in text
    assert f"- {found.others[0]}" in text


def small(data, sizes, n_quasi=None):
    """A table of nobody, for what is made of many runs."""
    schema = audited.Schema(
        None,
        [audited.shoal.Quasi("sex", Hierarchy.flat(["f", "m"]))],
        [audited.Sensitive("work", Hierarchy.flat(["a", "b"]))],
    )
    return schema, pa.table({"sex": ["f", "m"] * 10, "work": ["a", "a", "b", "b"] * 5})


@pytest.mark.parametrize("fails", [False, True])
def test_the_command_fails_if_something_is_not_kept(monkeypatch, capsys, fails):
    monkeypatch.setattr(audited, "_data", small)
    monkeypatch.setattr(audited, "DATA", {"adult": ()})
    one = next(case for case in cases("adult", QUICK) if case.algorithm == "l-mondrian")
    monkeypatch.setattr(audited, "cases", lambda data, sizes: [one])
    if not fails:
        audited.main(["--quick"])
        assert "none *broken*" in capsys.readouterr().out
        return
    reported = replace(judge(one, QUICK), others=("l-mondrian: broken",))
    monkeypatch.setattr(audited, "judge", lambda case, sizes: reported)
    with pytest.raises(SystemExit, match="broken"):
        audited.main(["--quick"])


def test_data_that_is_not_there_is_left_out(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(audited, "DATA", {"adult": (tmp_path / "adult.csv",)})
    audited.main(["--quick"])
    reported = capsys.readouterr()
    assert "has no adult.csv" in reported.err
    assert reported.out.startswith("0 runs")


@needs_data
def test_audited(tmp_path):
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- audited:begin -->\n<!-- audited:end -->\nend\n")
    done = run("benchmarks.audited", "--quick", "--json", values, "--write", page)
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())["audited"]
    assert {one["data"] for one in found} == {"adult", "salaries"}
    assert all(one["groups"] > 0 and one["kept"] > 0 and not one["others"] for one in found)
    assert done.stdout.strip() in page.read_text()
