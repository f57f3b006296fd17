import contextlib
import os
import stat

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.io import BadRow, QuarantineWriter, open_durable, open_sink
from tests.io.files.durable import SCHEMA, batch, files, run_child, run_killed

ON_DISK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def opened(path, mark, **options):
    return contextlib.closing(open_durable(path, SCHEMA, mark, **options))


def whole(tmp_path, name, n_rows):
    path = tmp_path / f"whole.{name}"
    sink = open_sink(path, SCHEMA)
    if n_rows:
        sink.write(batch(0, n_rows))
    sink.close()
    return path.read_bytes()


@ON_DISK
@given(
    st.sampled_from(["csv", "tsv", "jsonl"]),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_a_torn_file_is_gone_on_with_to_the_byte(tmp_path, name, n_first, n_more, torn, power):
    path = tmp_path / f"out.{name}"
    path.unlink(missing_ok=True)
    with opened(path, None) as sink:
        sink.write(batch(0, n_first))
        mark = sink.commit()
        sink.write(batch(n_first, n_first + n_more))
    n_bytes = path.stat().st_size
    left = n_bytes - torn % (n_bytes - mark["n_bytes"] + 1)
    os.truncate(path, left)
    if power:
        os.truncate(path, left + 5000)  # the disk knew of the length, not of the bytes
    expected = whole(tmp_path, name, n_first + n_more + 3)
    for known, first in ((mark, n_first), ({}, 0)):
        with opened(path, known) as sink:
            n_ahead = path.stat().st_size - (known["n_bytes"] if known else 0)
            n_header = len(whole(tmp_path, name, 0)) if not known else 0
            assert sink.n_ahead == max(0, n_ahead - n_header)
            sink.write(batch(first, n_first + n_more))
            sink.flush()
            sink.write(batch(n_first + n_more, n_first + n_more + 3))
            assert sink.n_ahead == 0
            sink.commit()
        assert path.read_bytes() == expected
        os.truncate(path, left)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_killed_at_any_instant_the_bytes_are_those_of_an_undisturbed_run(tmp_path, name):
    assert run_child(tmp_path / f"a.{name}", tmp_path / "a", 3000)
    n_killed = run_killed(tmp_path / f"b.{name}", tmp_path / "b", 3000, seed=len(name))
    assert n_killed
    assert (tmp_path / f"b.{name}").read_bytes() == (tmp_path / f"a.{name}").read_bytes()


def test_a_job_that_starts_again_overwrites_nothing(tmp_path):
    path = tmp_path / "out.csv"
    path.touch()
    with opened(path, None) as sink:
        sink.write(batch(0, 2))
    before = path.read_bytes()
    with pytest.raises(JobError, match=r"out\.csv: has rows already, and the job starts from"):
        open_durable(path, SCHEMA, None)
    assert path.read_bytes() == before


def test_an_output_that_isnt_what_was_decided_is_refused(tmp_path):
    path = tmp_path / "out.csv"
    with opened(path, None) as sink:
        sink.write(batch(0, 3))
        mark = sink.commit()
        sink.write(batch(3, 6))
    after = path.read_bytes()
    with opened(path, mark) as sink:
        for _ in range(2):
            with pytest.raises(CheckpointError, match="differs from what was decided; another"):
                sink.write(batch(4, 8))
    assert path.read_bytes() == after
    with pytest.raises(CheckpointError, match="differs from what was decided"):
        open_durable(path, pa.schema([("other", pa.string())]), {})
    os.truncate(path, mark["n_bytes"] - 1)
    with pytest.raises(CheckpointError, match=r"and the checkpoint expects .*: it was cut off"):
        open_durable(path, SCHEMA, mark)
    path.write_bytes(after[:10] + b"?" + after[11:])
    with pytest.raises(CheckpointError, match="isn't the file that the checkpoint belongs to"):
        open_durable(path, SCHEMA, mark)
    with pytest.raises(CheckpointError, match="isn't the kind of output"):
        open_durable(path, SCHEMA, {"seq": 3})


@pytest.mark.parametrize("private", [False, True])
def test_an_output_that_is_gone_is_refused_and_not_created(tmp_path, private):
    path = tmp_path / "out.csv"
    with opened(path, None) as sink:
        sink.write(batch(0, 3))
        mark = sink.commit()
    path.rename(tmp_path / "away.csv")
    for _ in range(2):
        with pytest.raises(
            CheckpointError, match=r"out.csv: doesn't exist, and the checkpoint expects \d+ bytes"
        ):
            open_durable(path, SCHEMA, mark, private=private)
        assert not path.exists()
    path.symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(CheckpointError, match="doesn't exist"):
        open_durable(path, SCHEMA, mark, private=private)
    assert not (tmp_path / "nowhere.csv").exists()
    # At the very beginning it may not be there yet.
    path.unlink()
    open_durable(path, SCHEMA, {}, private=private).close()
    assert path.exists()


def test_a_commit_is_on_the_disk(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda n: (synced.append(os.fstat(n).st_ino), sync(n)))
    path = tmp_path / "out.csv"
    with opened(path, None) as sink:
        sink.write(batch(0, 3))
        sink.flush()
        assert path.read_bytes() == whole(tmp_path, "csv", 3)
        assert synced == []
        mark = sink.commit()
        assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]
        assert sink.commit() == mark
        assert mark["n_bytes"] == path.stat().st_size


@pytest.mark.parametrize("path", ["-", "/dev/null", "x.parquet", "x.csv.gz", "x.arrow"])
def test_what_cant_be_continued_is_refused(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JobError, match=r"can't be resumed after a stop\. Write to a folder"):
        open_durable(path, SCHEMA, None, format="csv" if "." not in path else None)


def test_an_output_that_cant_be_written(tmp_path):
    with pytest.raises(ResourceError, match=r"out\.csv: can't be written: it doesn't exist"):
        open_durable(tmp_path / "none" / "out.csv", SCHEMA, None)
    with pytest.raises(JobError, match="holds bytes"):
        open_durable(tmp_path / "x.csv", pa.schema([("b", pa.binary())]), None)


@pytest.mark.parametrize("name", ["q.csv", "q.jsonl", "q/"])
def test_a_quarantine_that_survives(tmp_path, name):
    path = f"{tmp_path}/{name}"
    bad = [BadRow(row, "broken", b"\xffraw") for row in range(4)]
    writer = QuarantineWriter(path, mark=None)
    writer.write(bad[:2])
    mark = writer.commit()
    writer.write(bad[2:3])
    writer.close()
    writer = QuarantineWriter(path, mark=mark)
    assert writer.n_ahead > 0
    writer.write(bad[2:])
    assert writer.n_ahead == 0
    writer.commit()
    writer.close()
    whole = QuarantineWriter(tmp_path / f"w.{'jsonl' if 'json' in name else 'csv'}")
    whole.write(bad)
    whole.close()
    with pytest.raises(JobError, match="was left out"):
        whole.commit()
    assert whole.n_ahead == 0
    if name == "q/":
        assert stat.S_IMODE((tmp_path / "q").stat().st_mode) == 0o700
        ends = ["000000000002.csv", "000000000003.csv", "000000000004.csv"]
        assert [file[-16:] for file in files(tmp_path / "q")] == ends
    else:
        assert (tmp_path / name).read_bytes() == (tmp_path / f"w.{name[2:]}").read_bytes()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    with pytest.raises(JobError, match="can't be resumed"):
        QuarantineWriter(tmp_path / "q.parquet", mark=None)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])
def test_a_hole_that_a_loss_of_power_has_left_is_filled(tmp_path, name):
    path = tmp_path / name
    rows = pa.record_batch({"age": [f"[{i}, {i + 10})" for i in range(1000)]})
    sink = open_durable(path, rows.schema, None)
    sink.write(rows.slice(0, 300))
    mark = sink.commit()
    sink.write(rows.slice(300))
    sink.flush()
    sink.abandon()
    whole = path.read_bytes()
    # The page after the next one was written back, and the next one wasn't.
    page = (mark["n_bytes"] // 4096 + 1) * 4096
    path.write_bytes(whole[:page] + bytes(4096) + whole[page + 4096 :])
    sink = open_durable(path, rows.schema, mark)
    sink.write(rows.slice(300))
    sink.commit()
    assert sink.n_ahead == 0
    sink.close()
    assert path.read_bytes() == whole


def test_zeros_in_what_was_synced_are_damage(tmp_path):
    path = tmp_path / "out.csv"
    rows = pa.record_batch({"age": ["[0, 10)"] * 1000})
    sink = open_durable(path, rows.schema, None)
    sink.write(rows)
    mark = sink.commit()
    sink.close()
    damaged = bytes(2) + path.read_bytes()[2:]
    path.write_bytes(damaged)
    with pytest.raises(CheckpointError, match="differs"):
        open_durable(path, rows.schema, mark)
    assert path.read_bytes() == damaged


def test_two_jobs_dont_write_to_one_file(tmp_path):
    first = open_durable(tmp_path / "out.csv", SCHEMA, {})
    with pytest.raises(ResourceError, match="another process writes to it"):
        open_durable(tmp_path / "out.csv", SCHEMA, {})
    first.write(batch(0, 3))
    first.close()
    open_durable(tmp_path / "out.csv", SCHEMA, {}).close()


def test_what_is_abandoned_is_as_after_a_crash(tmp_path):
    for name in ("out.csv", "out/"):
        sink = open_durable(f"{tmp_path}/{name}", SCHEMA, {})
        sink.write(batch(0, 3))
        mark = sink.commit()
        sink.write(batch(3, 5))
        sink.abandon()
        sink = open_durable(f"{tmp_path}/{name}", SCHEMA, mark)
        assert sink.n_ahead == 0
        sink.write(batch(3, 5))
        sink.close()
    assert (tmp_path / "out.csv").read_bytes().count(b"\n") == 6
    assert sorted(files(tmp_path / "out")) == [
        "rows-000000000000-000000000003.csv",
        "rows-000000000003-000000000005.csv",
    ]
