import contextlib
import os
import stat

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io import open_durable, open_source
from shoal.io.files.part_files import PartFilesSink
from tests.io.files.durable import SCHEMA, batch, files, run_child, run_killed

ON_DISK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def names(folder):
    """The parts of a folder, as (first, end)."""
    found = [name.split(".")[0].split("-")[1:] for name in files(folder)]
    return [(int(first), int(end)) for first, end in found]


def numbers(folder):
    with contextlib.closing(open_source(folder, ["n"])) as source:
        return [int(row["n"]) for chunk in source for row in chunk.batch.to_pylist()]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def opened(out, mark, **options):
    return contextlib.closing(open_durable(f"{out}/", SCHEMA, mark, **options))


@pytest.mark.parametrize("form", [None, "csv.gz", "jsonl", "parquet", "parquet.zst", "arrow"])
def test_parts_are_finished_by_commit_rows_and_close(out, form):
    with opened(out, None, format=form, part_rows=10) as sink:
        sink.write(batch(0, 4))
        sink.flush()
        assert list(files(out)) == [f"rows-000000000000.{form or 'csv'}.partial"]
        sink.write(batch(4, 32))
        assert sink.commit() == {"seq": 32}
        assert sink.commit() == {"seq": 32}
        sink.write(batch(32, 32))
        sink.write(batch(32, 45))
    assert names(out) == [(0, 10), (10, 20), (20, 30), (30, 32), (32, 40), (40, 45)]
    assert numbers(out) == list(range(45))


def test_a_part_is_finished_by_the_write_after_its_time(out):
    now = 100.0
    sink = PartFilesSink(out, SCHEMA, "csv", None, part_seconds=5, clock=lambda: now)
    sink.write(batch(0, 1))
    now = 104.9
    sink.write(batch(1, 2))
    now = 105.0
    assert len(files(out)) == 1
    sink.write(batch(2, 3))
    assert names(out) == [(0, 3)]
    sink.close()
    sink.close()
    assert names(out) == [(0, 3)]


@ON_DISK
@given(
    st.lists(st.integers(1, 12), max_size=8),
    st.integers(0, 8),
    st.sampled_from([None, 5]),
    st.data(),
)
def test_rows_that_are_there_are_dropped(tmp_path, cuts, n_known, part_rows, draw):
    """Batches, some commits; then the end comes, and another run begins from one of the marks."""
    out = tmp_path / "out"
    for file in out.iterdir() if out.exists() else ():
        file.unlink()
    marks, at = [{}], 0
    with opened(out, None, part_rows=part_rows) as sink:
        for n_rows in cuts:
            sink.write(batch(at, at + n_rows))
            at += n_rows
            if draw.draw(st.booleans()):
                marks.append(sink.commit())
        before = files(out)
        unfinished = [name for name in before if name.endswith(".partial")]
    for name in files(out).keys() - before.keys():
        (out / name).unlink()  # what only close has finished
    for name in unfinished:
        (out / name).write_bytes(before[name])
    known = marks[n_known % len(marks)]
    first = known.get("seq", 0)
    with opened(out, known, part_rows=part_rows) as sink:
        assert not [name for name in files(out) if name.endswith(".partial")]
        assert sink.n_ahead == max((int(name[18:30]) for name in files(out)), default=0) - first
        sink.write(batch(first, at + 3))
        assert sink.n_ahead == 0
    assert numbers(out) == list(range(at + 3))


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_killed_at_any_instant_the_files_are_those_of_an_undisturbed_run(tmp_path, form):
    options = {"format": form, "part_rows": 30}
    assert run_child(f"{tmp_path}/a/", tmp_path / "state-a", 1500, **options)
    n_killed = run_killed(f"{tmp_path}/b/", tmp_path / "state-b", 1500, seed=3, **options)
    assert n_killed
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert numbers(tmp_path / "b") == list(range(1500))


def test_a_job_that_starts_again_needs_an_empty_folder(out):
    out.mkdir()
    (out / ".keep").touch()
    (out / "rows-000000000000.csv.partial").write_text("half a row of somebody")
    with opened(out, None) as sink:
        assert list(files(out)) == [".keep"]
        sink.write(batch(0, 1))
    with pytest.raises(JobError, match="has rows already, and the job starts from the beginning"):
        open_durable(out, SCHEMA, None)


@pytest.mark.parametrize(
    ("there", "mark", "message"),
    [
        ([(0, 5), (6, 9)], 5, "a gap at row 5"),
        ([(0, 5), (4, 9)], 5, "an overlap at row 5"),
        ([(0, 5), (5, 5)], 5, "an overlap at row 5"),
        ([(0, 5)], 6, "don't reach to row 6"),
        ([], 1, "don't reach to row 1"),
        ([(3, 5)], 0, "don't reach to row 0"),
    ],
)
def test_files_that_dont_fit_are_refused(out, there, mark, message):
    out.mkdir()
    for first, end in there:
        (out / f"rows-{first:012d}-{end:012d}.csv").touch()
    with pytest.raises(CheckpointError, match=message):
        open_durable(out, SCHEMA, {"seq": mark})
    with pytest.raises(CheckpointError, match="isn't the kind of output"):
        open_durable(out, SCHEMA, {"n_bytes": 4})


def test_old_parts_may_be_taken_away(out):
    with opened(out, None, part_rows=5) as sink:
        sink.write(batch(0, 15))
        mark = sink.commit()
    (out / "rows-000000000000-000000000005.csv").unlink()
    with opened(out, mark) as sink:
        sink.write(batch(15, 17))
    assert names(out) == [(5, 10), (10, 15), (15, 17)]


def test_private_parts_are_their_owners_only(out):
    with opened(out, None, private=True) as sink:
        sink.write(batch(0, 1))
    [file] = out.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    out.chmod(0o755)
    with opened(out, {}, private=True):
        assert stat.S_IMODE(out.stat().st_mode) == 0o700


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "arrow"])
@pytest.mark.parametrize("moment", ["write", "commit", "rename"])
def test_a_part_that_fails_leaves_nothing(out, monkeypatch, form, moment):
    sink = open_durable(f"{out}/", SCHEMA, None, format=form, part_rows=100)
    sink.write(batch(0, 100))
    sink.write(batch(100, 110))

    def full(*_):
        raise OSError(28, "full")

    monkeypatch.setattr("pathlib.Path.replace" if moment == "rename" else "os.fsync", full)
    with pytest.raises(ResourceError, match="the disk is full"):
        if moment == "write":
            sink.write(batch(110, 500))
        else:
            sink.commit()
    for attempt in (sink.commit, lambda: sink.write(batch(110, 111))):
        with pytest.raises(ResourceError):
            attempt()
    sink.close()
    monkeypatch.undo()
    assert names(out) == [(0, 100)]
    with opened(out, {}, format=form) as sink:
        sink.write(batch(0, 110))
    assert numbers(out) == list(range(110))


def test_a_folder_that_cant_be_made_or_written(out, monkeypatch):
    with pytest.raises(ResourceError, match="can't be created: it doesn't exist"):
        open_durable(f"{out}/deeper/", SCHEMA, None)
    sink = open_durable(f"{out}/", pa.schema([("b", pa.binary())]), None)
    with pytest.raises(JobError, match="holds bytes"):
        sink.write(pa.record_batch({"b": pa.array([b"x"])}))
    assert files(out) == {}
    with opened(out, None) as sink:
        out.rmdir()
        with pytest.raises(ResourceError, match="can't be written: it doesn't exist"):
            sink.write(batch(0, 1))


def test_the_name_of_a_part_is_on_the_disk_before_its_rows_are_dropped(out, monkeypatch):
    with opened(out, None) as sink:
        sink.write(batch(0, 3))
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_ino))
    with opened(out, {}):
        assert synced == [out.stat().st_ino]
