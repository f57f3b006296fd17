"""The benchmark of TIDE, tiny, in plain Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.tide.losses import Compared
from benchmarks.tide.page import PARTS, SECTIONS
from benchmarks.tide.runs import OTHERS, OWN, TABLES, Case, Seen, anonymizer_of
from benchmarks.tide.store import Store

from tests.benchmarks.test_commands import run


def test_tide_is_compared_with_the_others() -> None:
    done = run("benchmarks.tide", "loss", "tables", "--quick", "--data-set", "census")
    assert done.returncode == 0, done.stderr
    for title in ("loss over k", "ratios", "loss over the delay", "Whole tables"):
        assert title in done.stdout
    assert "at most 0.75 at k ≥ 50" in done.stdout
    for method in (*OWN, *OTHERS, "tide-table", *TABLES):
        assert f": {method}\n" in done.stderr


def test_what_each_part_gives_and_how_fast_it_is() -> None:
    done = run("benchmarks.tide", "ablation", "speed", "utility", "--quick", "--data-set", "census")
    assert done.returncode == 0, done.stderr
    assert "without it" in done.stdout
    assert "they decide alike" in done.stdout
    assert "times the pass-through" in done.stdout
    assert "median error of COUNT queries" in done.stdout


def test_an_unknown_part_is_refused() -> None:
    done = run("benchmarks.tide", "beauty")
    assert done.returncode == 2
    assert "there is no beauty" in done.stderr


def test_results_are_kept_and_measured_again_on_request(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "tide.json"
    store = Store(path)
    assert store.get("case", "tide", lambda: 1) == 1
    assert store.get("case", "tide", lambda: 2) == 1
    assert store.get("case", "castle, none", lambda: None) is None
    assert json.loads(path.read_text()) == {"case; tide": 1, "case; castle, none": None}
    again = Store(path, again=("tide",))
    assert again.get("case", "castle, none", lambda: 3) is None
    assert again.get("case", "tide", lambda: 3) == 3
    assert again.get("case", "tide", lambda: 4) == 3


def test_a_ratio_is_that_to_the_best_of_the_others() -> None:
    def seen(*losses: float) -> Seen:
        return Seen(losses, (0.0, 0.0), (1.0, 1.0))

    found = Compared(
        Case("adult", 100, 10, 20),
        {"tide": seen(0.1, 0.3)},
        {"fads, none": seen(0.2, 0.4), "idea, best": seen(0.5, 0.5)},
    )
    assert found.best == "fads, none"
    assert found.ratio("tide").values == pytest.approx((0.5, 0.75))


def test_a_method_of_the_tables_is_an_anonymizer_with_its_knobs() -> None:
    for method in (*OWN, *OTHERS, *TABLES):
        assert method.startswith(anonymizer_of(method).name)
    assert anonymizer_of("tide rolling").release == "rolling"
    assert anonymizer_of("castle, none").kept == 0


def test_all_sections_are_on_the_page() -> None:
    assert list(SECTIONS) == [name for part in PARTS.values() for name in part]
