"""A run ends at the same bad row however rows are cut into chunks, and goes on from before it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.run.bad_row_limit import LEAST, is_above
from tests.examples import examples
from tests.world import people, read, shoal, write, write_job


def test_a_limit_is_passed_clearly_or_not_at_all() -> None:
    assert not is_above(1, 10, 0.05)
    assert not is_above(LEAST - 1, LEAST - 1, 0.05)
    assert is_above(LEAST, LEAST, 0.05)
    # As many as the limit allows, and some more by chance.
    assert not is_above(50, 1000, 0.05)
    assert not is_above(65, 1000, 0.05)
    assert is_above(75, 1000, 0.05)
    assert is_above(1, 1_000_000, 0)
    assert not is_above(0, 10, 0)
    assert not is_above(1000, 1000, 1)


@settings(max_examples=examples(50))
@given(rate=st.floats(0.01, 0.2), seed=st.integers(0, 2**32 - 1))
def test_a_limit_twice_as_high_as_the_rate_isnt_passed_by_chance(rate: float, seed: int) -> None:
    bad = np.random.default_rng(seed).random(3000) < rate
    n_bad = np.cumsum(bad)
    assert not any(is_above(int(n), i + 1, 2 * rate) for i, n in enumerate(n_bad))


def spoilt(folder: Path, wrong: set[int], n_rows: int) -> list[dict[str, object]]:
    rows = people(n_rows).to_pylist()
    for place in wrong:
        rows[place]["age"] = 999
    return rows


@settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cuts=st.lists(st.integers(1, 199), max_size=6))
def test_it_is_the_same_row_however_the_input_is_cut(cuts, tmp_path_factory, monkeypatch, capfd):
    folder = tmp_path_factory.mktemp("job")
    wrong = {3 * i for i in range(60)}
    rows = spoilt(folder, wrong, 200)
    job = write_job(folder)
    (folder / "in").mkdir()
    borders = sorted({0, 200, *cuts})
    for n, (begin, end) in enumerate(itertools.pairwise(borders)):
        lines = [",".join(map(str, row.values())) for row in rows[begin:end]]
        text = "\n".join([",".join(rows[0]), *lines]) + "\n"
        (folder / "in" / f"{n}.csv").write_text(text)
    words = ("run", job, "-i", folder / "in", "-o", folder / "out.csv", "-q")
    assert shoal(monkeypatch, *words) == 3
    err = capfd.readouterr().err
    counted = re.search(r"(\d+) of the first (\d+) rows can't be used", err)
    assert counted is not None, err
    assert counted.groups() == ("20", "58")
    assert "bad_rows.limit = 0.05" in err
    assert "age is out of its range (20)" in err


def test_with_checkpoints_nothing_is_lost_and_a_higher_limit_goes_on(tmp_path, monkeypatch, capfd):
    run = 'seed = 7\ncheckpoint = { folder = "state", every = 1 }'
    job = write_job(tmp_path, run=run)
    wrong = set(range(100, 160))
    rows = spoilt(tmp_path, wrong, 300)
    (tmp_path / "in").mkdir()

    def give(begin: int, end: int) -> None:
        lines = [",".join(map(str, row.values())) for row in rows[begin:end]]
        text = "\n".join([",".join(rows[0]), *lines]) + "\n"
        (tmp_path / "in" / f"{begin:03}.csv").write_text(text)

    out = tmp_path / "out.csv"
    words = ("run", job, "-i", tmp_path / "in", "-o", out)
    for begin in (0, 100, 200):
        give(begin, begin + 100)
    for _ in range(2):
        # As often as it is started, it ends at the same row.
        assert shoal(monkeypatch, *words) == 3
        err = capfd.readouterr().err
        assert "20 of the first 120 rows can't be used" in err
        assert "Traceback" not in err
    write_job(tmp_path, run=run, bad_rows="limit = 0.5")
    assert shoal(monkeypatch, *words, "--json") == 0
    resumed = capfd.readouterr()
    whole = tmp_path / "whole"
    whole.mkdir()
    again = write_job(whole, bad_rows="limit = 0.5")
    words = ("run", again, "-i", tmp_path / "in", "-o", whole / "out.csv", "--json")
    assert shoal(monkeypatch, *words) == 0
    assert capfd.readouterr().out.partition('"seconds"')[0].startswith('{"rows": {"in": 300')
    assert '"quarantined": 60' in resumed.out
    assert read(out).num_rows == read(whole / "out.csv").num_rows
    n_bad = len((tmp_path / "job.quarantine.jsonl").read_text().splitlines())
    assert n_bad == 60


def test_the_bad_rows_can_be_looked_at(tmp_path, monkeypatch, capfd):
    job = write_job(tmp_path)
    rows = people(100).to_pylist()
    for place in range(40):
        rows[place]["town"] = "CANARY"
    data = write(pa.Table.from_pylist(rows), tmp_path / "in.csv")
    out = tmp_path / "out.csv"
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", out) == 3
    err = capfd.readouterr().err
    assert "CANARY" not in err
    assert "town has a category that its hierarchy lacks (20)" in err
    assert "rows were published" not in err
    assert not out.exists()
    assert len((tmp_path / "job.quarantine.jsonl").read_text().splitlines()) == 40


def test_a_limit_isnt_for_a_job_that_stops_at_the_first_bad_row(tmp_path, monkeypatch, capfd):
    job = write_job(tmp_path, bad_rows='action = "stop"\nlimit = 0.5')
    rows = people(100).to_pylist()
    for place in range(40, 90):
        rows[place]["age"] = 999
    data = write(pa.Table.from_pylist(rows), tmp_path / "in.csv")
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", tmp_path / "out.csv") == 3
    assert "row 40: age is out of its range" in capfd.readouterr().err
