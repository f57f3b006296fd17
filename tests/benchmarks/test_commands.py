"""The commands from beginning to end, tiny, in plain Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from benchmarks.figures.idea.data import INFORMS, TREES
from benchmarks.figures.streams import ADULT
from benchmarks.workloads import ROOT

from benchmarks import by_kernel

needs_adult = pytest.mark.skipif(not ADULT.exists(), reason="../shared/data/adult.csv isn't there")
needs_all = pytest.mark.skipif(
    not (ADULT.exists() and INFORMS.exists() and TREES.exists()),
    reason="../shared/data has no Adult, INFORMS or hierarchies",
)


def run(*arguments):
    env = dict(os.environ) | {"NUMBA_DISABLE_JIT": "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), env.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_throughput(tmp_path):
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- results:begin -->\n<!-- results:end -->\nend\n")
    done = run(
        "benchmarks.throughput", "--quick", "--data", tmp_path, "--json", values, "--write", page
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())
    (census,) = found["end_to_end"]
    assert census["n_rows"] == 150
    assert len(census["ratio"]["values"]) == 2
    assert census["met"] == (census["ratio"]["median"] <= census["target"])
    assert 0 < census["loss"]["published"] < 1
    assert found["twin"]["alike"]
    short, long = (one["n_rows"] for one in found["linearity"]["runs"])
    assert long == 10 * short
    assert found["starts"]["first"] > 0
    assert done.stdout.strip() in page.read_text()
    assert page.read_text().endswith("<!-- results:end -->\nend\n")
    assert not list(tmp_path.glob("published-*"))


def test_changes():
    pytest.importorskip("fastavro")
    done = run("benchmarks.changes", "--rows", 50, "--repeats", 1)
    assert done.returncode == 0, done.stderr
    names = [line.split("|")[1].strip() for line in done.stdout.splitlines()[2:]]
    assert names == [
        "rows in JSON", "changes in JSON", "changes in JSON with a schema", "changes in Avro",
    ]  # fmt: skip


def test_limit(tmp_path):
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- limit:begin -->\n<!-- limit:end -->\nend\n")
    done = run("benchmarks.limit", "--quick", "--data", tmp_path, "--json", values, "--write", page)
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())
    assert [one["format"] for one in found["files"]] == ["parquet", "csv", "jsonl"]
    assert [one["n_rows"] for one in found["files"]] == [150, 60, 60]
    for one in found["files"]:
        assert len(one["of_arrow"]["values"]) == len(one["processor"]["Arrow"]["values"]) == 2
        times = one["seconds"]
        expected = times["pass-through"]["values"][0] / times["Arrow"]["values"][0]
        assert one["of_arrow"]["values"][0] == pytest.approx(expected)
    assert len(found["files"][0]["of_pass_through"]["values"]) == 2
    # The census has subjects, so no part is empty.
    assert all(part["median"] > 0 for part in found["parts"].values())
    assert done.stdout.strip() in page.read_text()
    assert [path.name for path in tmp_path.glob("limit-*")] == []


def test_memory_of_the_parent_does_not_count():
    large = b"x" * (300 << 20)
    code = (
        "from benchmarks.child import peak; before = peak(); "
        "some = b'x' * (100 << 20); print(peak() - before)"
    )
    command = [sys.executable, "-c", code]
    env = dict(os.environ) | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert 90 << 20 < int(done.stdout) < 120 << 20
    assert len(large) == 300 << 20


def test_throughput_refuses_no_rows():
    done = run("benchmarks.throughput", "--rows", "0")
    assert done.returncode == 2
    assert "at least 1" in done.stderr


@needs_adult
def test_on_deadline(tmp_path):
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- on-deadline:begin -->\n<!-- on-deadline:end -->\nend\n")
    done = run(
        "benchmarks.on_deadline", "--quick", "--data", tmp_path, "--json", values, "--write", page
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())
    complete, with_gaps = found["files"]
    names = ["fads", "idea", "fast", "k-varp", "iot", "castle"]
    assert [line["algorithm"] for line in complete["algorithms"]] == names
    assert [line["algorithm"] for line in with_gaps["algorithms"]] == ["idea"]
    for line in complete["algorithms"] + with_gaps["algorithms"]:
        assert len(line["ratio"]["values"]) == 2
        judged = line["algorithm"] in ("fads", "idea")
        assert line["met"] == (line["ratio"]["median"] <= 4 if judged else None)
        assert 0 < line["loss"]["published"] < 1
    for line in found["workers"]:
        assert line["alike"]
        assert line["met"] == (line["gain"]["median"] >= 1.5)
    assert [line["kept"] for line in found["workers"]] == [50, 0]
    assert [line["algorithm"] for line in found["twins"]] == ["fads", "fast", "idea"]
    assert [line["algorithm"] for line in found["gaps"]] == ["idea", "k-varp", "iot"]
    for line in found["twins"] + found["gaps"]:
        assert line["alike"]
        assert line["met"] == (line["ratio"]["median"] >= 100)
    assert [line["algorithm"] for line in found["growth"]] == ["fads", "idea"]
    for line in found["growth"]:
        assert [one["n_rows"] for one in line["runs"]] == [40, 400]
    assert done.stdout.strip() in page.read_text()
    assert page.read_text().endswith("<!-- on-deadline:end -->\nend\n")
    assert not list(tmp_path.glob("published-*"))


@needs_adult
def test_one_part_of_the_on_deadline_family(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- on-deadline:begin -->\n\n### Other\n\n1\n\n<!-- on-deadline:end -->\n")
    done = run(
        "benchmarks.on_deadline", "--quick", "--only", "workers", "--data", tmp_path,
        "--write", page,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("### ") == 1
    assert "workers of FAST" in done.stdout
    assert page.read_text().startswith("<!-- on-deadline:begin -->\n\n### Other\n\n1\n\n###")
    assert done.stdout.strip() in page.read_text()


@needs_adult
def test_by_kernel(tmp_path):
    small = ("--rows", 200, "--k", 3, "--delay", 20, "--gaps", 2, "--repeats", 1)
    done = run("benchmarks.by_kernel", "idea", *small, "--data", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "idea: " in done.stdout
    assert "µs a row" in done.stdout
    assert "nothing is compiled" in done.stdout


def test_names_of_kernels_are_read_from_symbols():
    assert [*by_kernel._words("_ZN5shoal6engine5boxes3addB2v1E")] == [
        "shoal", "engine", "boxes", "add",
    ]  # fmt: skip


def test_on_deadline_refuses_no_rows():
    done = run("benchmarks.on_deadline", "--rows", "0")
    assert done.returncode == 2
    assert "at least 1" in done.stderr


@needs_adult
def test_search(tmp_path):
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- search:begin -->\n<!-- search:end -->\nend\n")
    done = run(
        "benchmarks.search", "--quick", "--data", tmp_path, "--json", values, "--write", page
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())["search"]
    assert [(one["delay"], one["k"]) for one in found] == [(40, 3), (60, 4)]
    for one in found:
        assert one["alike"]
        assert len(one["gain"]["values"]) == 2
        assert one["microseconds"]["all rows"]["median"] > 0
    assert "Both decide the same." in done.stdout
    assert done.stdout.strip() in page.read_text()


def test_gaps(tmp_path):
    values, pages = tmp_path / "values.json", [tmp_path / "algorithms/idea.md"]
    pages.append(tmp_path / "missing.md")
    pages[0].parent.mkdir()
    for page in pages:
        page.write_text("# Page\n<!-- gaps:begin -->\n<!-- gaps:end -->\nend\n")
    done = run("benchmarks.gaps", "--quick", "--json", values, "--write", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())
    names = {"idea", "fads", "fast", "castle"}
    assert list(found["loss"]) == ["0", "1"]
    for by_name in found["loss"].values():
        assert names < set(by_name)
        assert all(0 < loss < 1 for losses in by_name.values() for loss in losses)
    assert list(found["apart"]) == ["1"]
    reported = {name: sum(shares) for name, shares in found["apart"]["1"].items()}
    assert min(reported, key=reported.get) == "idea"
    exact = {name: sum(one["exact"]) for name, one in found["complete"].items()}
    assert exact["castle"] > 10 * max(exact[name] for name in ("fads", "fast", "idea"))
    assert exact["castle"] > exact["tide"]
    for page in pages:
        text = page.read_text()
        assert text.endswith("<!-- gaps:end -->\nend\n")
        assert text.partition("begin -->")[2].partition("<!--")[0].strip() in done.stdout


@needs_adult
def test_figures(tmp_path):
    done = run("benchmarks.figures", "castle", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "castle.md").read_text()
    for name in ("5.5", "5.6", "5.7", "5.8"):
        picture = f"castle-{name.replace('.', '-')}.svg"
        assert f"## Figure {name}: " in page
        assert picture in page
        assert "mean information loss" in (tmp_path / picture).read_text()
    for name, axis in (("5.10", "mean information loss"), ("5.11", "median relative error, %")):
        section = page.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
        assert "dynamicGroup" in section
        assert "| the thesis " in section
        assert axis in (tmp_path / f"castle-{name.replace('.', '-')}.svg").read_text()
    assert "kept: 10 of 10 promises" in page


@needs_all
@pytest.mark.parametrize(("paper", "names"), [("fast", "345678"), ("idea", "456789")])
def test_figures_of_other_papers(tmp_path, paper, names):
    done = run("benchmarks.figures", paper, "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.glob("*.md")] == [f"{paper}.md"]
    page = (tmp_path / f"{paper}.md").read_text()
    assert done.stdout.strip() == page.strip()
    for name in names:
        section = page.partition(f"<!-- {paper}-{name}:begin -->")[2]
        section = section.partition(f"<!-- {paper}-{name}:end -->")[0]
        assert section.lstrip().startswith(f"## Figure {name}: ")
        assert f"({paper}-{name}.svg)" in section
        assert "| the paper " in section
        assert "<svg" in (tmp_path / f"{paper}-{name}.svg").read_text()
    if paper == "idea":
        assert "at most 0 in " in page  # missing pollution of IDEA, in any run
    else:
        assert "0 late rows in " in page
        assert "## What safe reuse costs" in page


def test_one_figure_leaves_the_others_alone(tmp_path):
    done = run("benchmarks.figures", "5.7", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.glob("*.svg")] == ["castle-5-7.svg"]
    page = (tmp_path / "castle.md").read_text()
    assert page.count("## ") == 1
    assert "<!-- 5.5:begin -->\n<!-- 5.5:end -->" in page


def test_an_unknown_figure_is_refused(tmp_path):
    done = run("benchmarks.figures", "5.99", "--out", tmp_path)
    assert done.returncode == 2
    assert "choose from 5.5" in done.stderr


def test_stays():
    done = run("benchmarks.stays", "--quick")
    assert done.returncode == 0, done.stderr
    table, target = done.stdout.split("\n\n")
    assert [line.split(" | ")[0].strip("| ") for line in table.splitlines()[2:]] == [
        "castle",
        "idea",
    ]
    assert "at most 1.1: " in target


def test_workload():
    done = run("benchmarks.workload", "--quick")
    assert done.returncode == 0, done.stderr
    assert "| castle |" in done.stdout


def test_which():
    """Only the promises: comparing algorithms in plain Python takes minutes."""
    done = run("benchmarks.which", "--quick", "--only", "promises", "--rows", "200")
    assert done.returncode == 0, done.stderr
    assert "| `t = 0.2`" in done.stdout
    assert "linking" in done.stdout
