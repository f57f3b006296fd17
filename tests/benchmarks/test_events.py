"""The benchmark of z-anonymity: its streams, its yardstick, and all of it, tiny."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.events_data import LEVELS, MSNBC, RETAIL, Case, Stream, as_codes, as_tuples
from benchmarks.events_peer import has_peer, of_peer
from benchmarks.events_runs import pass_through, publish
from benchmarks.passthrough import PassThroughCells, cell_by_cell

from benchmarks import events, events_data, events_growth, events_peer
from shoal.arrow.codec import Codec
from shoal.engine.space import Codes
from shoal.spec.ladder import Open
from shoal.spec.policy import Window
from shoal.spec.schema import Quasi, Schema
from tests.benchmarks.test_commands import run

needs_data = pytest.mark.skipif(
    not (RETAIL.exists() and MSNBC.exists()),
    reason="../shared/data has no online_retail or msnbc_events",
)
needs_peer = pytest.mark.skipif(not has_peer(), reason="the package zanon isn't installed")
SMALL = Stream(n_rows=90, n_subjects=8, n_values=12)


# -- the streams -----------------------------------------------------------------------------------


def test_a_longer_stream_begins_as_a_shorter_one():
    assert as_tuples(Stream(300, 8, 12))[:90] == as_tuples(SMALL)
    assert as_tuples(SMALL)[0][0] == 1.0  # the peer takes 0 for no time


def test_popularity_is_one_by_rank():
    (piece,) = events_data.drawn(Stream(100_000, 50, 4))
    shares = np.bincount(piece.values) / 100_000
    np.testing.assert_allclose(shares, 12 / 25 / np.arange(1, 5), atol=0.01)
    assert np.bincount(piece.subjects).min() > 0.8 * 100_000 / 50


def test_codes_tell_apart_what_the_texts_do():
    names = {}
    codes = as_codes(SMALL, 40, ladders=False)
    assert [len(one.subjects) for one in codes] == [40, 40, 10]
    reported = zip(
        np.concatenate([one.subjects for one in codes]).tolist(),
        np.concatenate([one.keys[:, 0] for one in codes]).tolist(),
        strict=True,
    )
    for (_, user, value), (subject, key) in zip(as_tuples(SMALL), reported, strict=True):
        assert names.setdefault(user, subject) == subject
        assert names.setdefault(value, key) == key
    assert len(set(names.values())) == len(names)


def test_levels_of_codes_are_those_of_the_file(tmp_path):
    stream = Stream(n_rows=400, n_subjects=8, n_values=600)
    workload = events_data.paths(stream, tmp_path)
    codec = Codec(workload.schema, key=bytes(8), per_value=True)
    (batch,) = pq.ParquetFile(workload.path).iter_batches()
    of_file, ours = codec.encode(batch).codes.keys, as_codes(stream, 400, ladders=True)[0].keys
    assert of_file.shape == ours.shape == (400, LEVELS)
    for of_level, ours_of_level in zip(of_file.T, ours.T, strict=True):
        first = np.unique(of_level, return_inverse=True)[1]
        assert len(set(zip(first, ours_of_level, strict=True))) == len(set(first))
        assert len(set(ours_of_level)) == len(set(first))


@needs_data
def test_real_events_are_in_the_order_that_is_said(tmp_path):
    (day, week), (rows,) = (
        events_data.retail(tmp_path, every=50), events_data.msnbc(tmp_path, 100, every=50),
    )  # fmt: skip
    assert (day.window.seconds, week.window.seconds) == (86_400, 604_800)
    bought = pq.read_table(day.workload.path)
    assert bought["customer_id"].null_count == 0
    assert (np.diff(bought["invoice_date"].to_numpy()) >= np.timedelta64(0)).all()
    assert day.workload.n_rows == bought.num_rows == -(-406_829 // 50)
    seen = pq.read_table(rows.workload.path)["user_id"].to_numpy()
    assert len(seen) == -(-4_698_794 // 50)
    # All users have a first view, and fewer and fewer a further one: each turn ends where it falls.
    turns = np.split(seen, np.flatnonzero(np.diff(seen) <= 0) + 1)
    assert len(turns[0]) == -(-989_818 // 50)
    assert all(len(a) >= len(b) - 1 for a, b in pairwise(turns[:10]))


def test_a_file_is_made_once(tmp_path, monkeypatch):
    path = events_data.stream_file(SMALL, tmp_path)
    monkeypatch.setattr(events_data, "drawn", None)
    assert events_data.stream_file(SMALL, tmp_path) == path


# -- the yardstick ---------------------------------------------------------------------------------


def test_every_cell_leaves_at_once_as_it_is():
    schema = Schema("user", [Quasi("site", Open()), Quasi("shop", Open())])
    policy = cell_by_cell(Window(rows=10), "maybe")
    engine = PassThroughCells().start(schema, policy, seed=b"1")
    none = np.empty((3, 0))
    cells = np.array([[5, 6], [0, 7], [0, 0]])
    codes = Codes(none, np.arange(3), none.astype(np.int64), np.full(3, np.nan), cells)
    for first in (0, 3):
        decided = engine.push(codes)
        assert decided.rows.tolist() == decided.published.tolist() == [first, first + 1, first + 2]
        assert decided.levels.tolist() == [[0, 0], [-2, 0], [-2, -2]]
        assert decided.losses.tolist() == [0, 0, 1]
    assert engine.n_held == len(engine.flush().rows) == len(engine.advance(1.0).rows) == 0


@pytest.mark.parametrize("kind", [events_data.plain, events_data.paths])
def test_a_file_comes_out_as_it_went_in(tmp_path, kind):
    case = Case("small", kind(SMALL, tmp_path), Window(seconds=9.0))
    output = tmp_path / "out.parquet"
    summary = pass_through(case, output, pseudonyms=True)
    assert (summary.n_in, summary.n_published) == (90, 90)
    name = case.workload.schema.quasi[0].name
    before, after = pq.read_table(case.workload.path), pq.read_table(output)
    assert after[name].to_pylist() == before[name].to_pylist()
    assert after.column_names == ["pseudonym", name]
    assert publish(case, 3, output).n_published < 90


# -- what is found ---------------------------------------------------------------------------------


@needs_peer
def test_a_different_output_is_reported(monkeypatch):
    options = {"z": 3, "window": 20.0, "batch_rows": 40, "repeats": 2, "peer_repeats": 2}
    found = of_peer(SMALL, **options)
    assert found["alike"]
    assert len(found["gain"]["values"]) == len(found["seconds"]["z-anonymity"]["values"]) == 8
    assert found["met"] == (found["gain"]["median"] >= 100)
    monkeypatch.setattr(events_peer._Theirs, "published", lambda self: np.arange(9))
    assert not of_peer(SMALL, **options)["alike"]


def test_what_a_child_says(tmp_path, capsys):
    events_growth.main(
        ["90", "8", "12", str(tmp_path), "--z", "3", "--window", "20", "--warm", "30"]
    )
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"seconds", "peak", "growth", "steady", "tables"}
    assert 0 < report["tables"] < report["peak"]
    assert not list(tmp_path.glob("published-*"))


def test_a_child_that_fails_is_reported(tmp_path):
    with pytest.raises(SystemExit, match="a run of 90 rows failed"):
        events_growth._call(SMALL, tmp_path, z=0, window=20.0, warm=30)


def test_what_is_not_there_is_left_out(tmp_path, monkeypatch, capsys):
    for name in ("RETAIL", "MSNBC"):
        monkeypatch.setattr(events_data, name, tmp_path / "nothing")
    monkeypatch.setattr(events, "has_peer", lambda: False)
    events.main(["--quick", "--data", str(tmp_path)])
    reported = capsys.readouterr()
    assert reported.err.count("left out") == 3
    assert "zanon`" not in reported.out
    assert "from file to file\n" not in reported.out
    assert "### Events: values with ladders" in reported.out


@needs_data
@needs_peer
def test_events(tmp_path):
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- events:begin -->\n<!-- events:end -->\nend\n")
    done = run(
        "benchmarks.events", "--quick", "--data", tmp_path, "--json", values, "--write", page
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())
    assert found["peer"]["alike"]
    assert 0 < found["peer"]["published"] < 1
    assert len(found["files"]) == 3
    for one in found["files"]:
        assert one["verdict"] == "kept"
        assert 0 <= one["k_anonymous"] <= 1
        assert 0 <= one["modelled"] <= 1
        for speed in one["pseudonyms"].values():
            assert speed["met"] == (speed["ratio"]["median"] <= 2)
    assert 0 < found["files"][2]["published"] < 1
    assert len(found["ladders"]["published"]["ladders"]) == LEVELS
    growth = found["growth"]
    assert [one["n_rows"] for one in growth["lengths"]] == [200, 800, 2000]
    assert [one["window"] for one in growth["windows"]] == [20, 80, 320]
    assert {one["n_rows"] for one in growth["windows"]} == {800}
    tables = [one["tables"]["median"] for one in growth["windows"]]
    assert tables[0] < tables[2]
    assert done.stdout.strip() in page.read_text()
    assert page.read_text().endswith("<!-- events:end -->\nend\n")
    assert not list(tmp_path.glob("published-*"))
