"""The table of first starts."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.start import BEFORE, RUN, WARM, main, measure, report

from shoal import algorithms


def test_the_report_has_the_figures_of_before_where_there_are_any() -> None:
    now = {
        "castle": {"empty": 17.5, "next": 4.0, "again": 1.7, "measured": 3.0},
        "fads": {"empty": 12.0, "next": 6.0, "again": 1.6, "measured": 3.1},
    }
    text = report(now, {"castle": {"empty": 75.5}})
    lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    assert ["", "castle", "75.5", "17.5", "4.0", "1.7", "3.0", ""] in lines
    assert ["", "fads", "", "12.0", "6.0", "1.6", "3.1", ""] in lines
    assert "empty cache: at most 17.5 s (`castle`), target 20 s met (2 of 2" in text
    assert "after another: at most 6.0 s (`fads`), target 5 s **not met** (1 of 2" in text
    assert "shared kernels: at most" not in text
    assert "before" not in report(now, {}).split("\n\n")[1]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """The starts that were asked for: nothing is started."""
    found = []

    def seconds_of(
        name: str,
        cache: Path,
        promise: str = "basic",
        sources: Path = Path(),
        shared: Path | None = None,
    ) -> float:
        cache.mkdir(exist_ok=True)
        found.append((name, cache.name, promise if shared is None else shared.name))
        return 2.0

    monkeypatch.setattr("benchmarks.start.seconds_of", seconds_of)
    return found


def test_a_shared_cache_stands_before_an_empty_one(asked: list[tuple[str, str, str]]) -> None:
    found = dict(measure(["tide"], shared=Path("made"), is_short=True))
    assert found == {"tide": {"shared": 2.0, "empty": 2.0, "next": 2.0}}
    assert asked[1:] == [("tide", "cold", "made"), *[("tide", "cold", "basic")] * 2]
    assert "shared kernels: at most 2.0 s (`tide`), target 5 s met" in report(found, {})


def test_figures_are_added_to_those_of_other_algorithms(
    asked: list[tuple[str, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    kept = tmp_path / "kept.json"
    for name in ("tide", "castle"):
        monkeypatch.setattr(sys, "argv", ["start", name, "--short", "--json", str(kept)])
        main()
    assert json.loads(kept.read_text()).keys() == {"castle", "tide"}
    assert "| tide " in capfd.readouterr().out.rpartition("Seconds of processor time")[2]


def test_a_short_measurement_has_two_figures(asked: list[tuple[str, str, str]]) -> None:
    found = dict(measure(["castle", "tide"], is_short=True))
    assert found == {name: {"empty": 2.0, "next": 2.0} for name in ("castle", "tide")}
    first, runs = sorted(asked[:2]), asked[2:]
    assert first == [("castle", "castle", "basic"), ("fads", "fads", "basic")]
    assert runs == [(name, "cold", "basic") for name in ("castle", "castle", "tide", "tide")]
    text = report(found, {})
    assert [c.strip() for c in text.splitlines()[4].split("|")[2:]] == ["2.0", "2.0", ""]


def test_the_figures_of_before_are_of_algorithms() -> None:
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    assert before.keys() <= set(algorithms.names())
    assert all(figures.keys() <= {"empty", "next"} for figures in before.values())


def test_a_process_that_is_measured_runs_the_sources_that_were_named() -> None:
    code = f"import sys; sys.argv[1:] = [{str(RUN)!r}, 'castle', 'basic']; {WARM}; import shoal"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print(shoal.__file__)"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(RUN.parents[2])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(done.stdout.strip()) == RUN.parents[1] / "__init__.py"


def test_what_earlier_sources_run_imports_nothing_of_the_command_line() -> None:
    tree = ast.parse(RUN.read_bytes())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in modules if name and name.startswith("shoal.cli")]
