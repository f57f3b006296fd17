"""Drafts are measured on a sample: the algorithm and the promise are those that lose least."""

from __future__ import annotations

import tomllib

import pyarrow as pa
import pytest

from shoal.algorithms import names
from shoal.algorithms.registry import DEFAULT
from shoal.cli.init import measure as measuring
from shoal.cli.init.draft import draft
from shoal.cli.init.measure import CANDIDATES, anonymizer_of
from shoal.metrics import uniqueness
from tests.cli.init.worlds import WORLDS


@pytest.fixture
def table() -> pa.Table:
    return WORLDS["app"].table(1).slice(0, 300)


def test_candidates_and_default_are_algorithms_without_reuse() -> None:
    assert {*CANDIDATES, DEFAULT} <= set(names())
    assert all(getattr(anonymizer_of(name), "kept", 0) == 0 for name in CANDIDATES)


def test_the_candidate_that_loses_least_is_drafted(table: pa.Table, monkeypatch) -> None:
    losses = {"tide": 0.5, "castle": 0.4}
    monkeypatch.setattr(measuring, "_loss", lambda *given: losses[given[-2]] + 0.01 * given[-1].l)
    result = draft(table, name="x.csv", measured_rows=100)
    job = tomllib.loads(result.job)
    assert job["algorithm"]["name"] == "castle"
    assert job["algorithm"]["kept"] == 0
    assert job["policy"]["l"] == {"entropy": 2}
    assert "#   castle, l = { entropy = 2 }: loss 0.420" in result.job
    assert "#   tide, l = 3: loss 0.530" in result.job


def test_what_a_column_adds_is_measured(table: pa.Table) -> None:
    result = draft(table, name="x.csv", measured_rows=60)
    quasi = list(tomllib.loads(result.job)["schema"]["quasi"])
    before = uniqueness(table, quasi, "account_no").share
    after = uniqueness(table, [*quasi, "battery"], "account_no").share
    assert before is not None
    assert after is not None
    unwrapped = result.job.replace("\n# ", " ")
    assert f"and {100 * before:.1f} % of the people are unique on them" in unwrapped
    line = next(line for line in result.job.splitlines() if line.startswith("# battery ="))
    assert f"unique {100 * after:.1f} %; measurement" in line
    assert "# loss +" in line or "# loss -" in line
    assert any(text.startswith("measured on 60 rows") for text in result.remarks)


def test_a_draft_is_the_same_every_time(table: pa.Table) -> None:
    one, two = (draft(table, name="x.csv", measured_rows=60).job for _ in range(2))
    assert one == two


def test_without_measuring_the_default_is_drafted(table: pa.Table) -> None:
    result = draft(table, name="x.csv")
    assert tomllib.loads(result.job)["algorithm"]["name"] == DEFAULT
    assert "loses least" not in result.job
    assert "# battery = {" in result.job
    assert not any("measured" in text for text in result.remarks)


def test_too_few_rows_are_not_measured(table: pa.Table) -> None:
    result = draft(table.slice(0, 40), name="x.csv", measured_rows=100)
    assert tomllib.loads(result.job)["algorithm"]["name"] == DEFAULT
    assert any("too few rows to measure" in text for text in result.remarks)


def test_only_so_many_columns_are_measured(table: pa.Table, monkeypatch) -> None:
    monkeypatch.setattr(measuring, "MOST_COLUMNS", 1)
    monkeypatch.setattr(measuring, "_loss", lambda *given: 0.5)
    result = draft(table, name="x.csv", measured_rows=100)
    assert "# not measured; " in result.job


def test_progress_says_what_is_waited_for(table: pa.Table, monkeypatch) -> None:
    monkeypatch.setattr(measuring, "_loss", lambda *given: 0.5)
    monkeypatch.setattr(measuring, "is_cold", lambda module: True)
    notes: list[str] = []
    draft(table, name="x.csv", measured_rows=100, note=notes.append)
    assert (
        "measuring castle on 100 rows: compiling its kernels first, up to half a minute …" in notes
    )
    assert any("further columns add" in text for text in notes)
