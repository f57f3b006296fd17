"""Private rows in files that are rotated, removed and sealed: nothing is lost, nothing doubled."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.cli.sealing import unseal
from shoal.errors import CheckpointError, JobError, ResourceError
from shoal.run.state.checkpoint import FORMAT, MAGIC
from shoal.run.state.heading import read_heading
from shoal.run.state.private_files import PrivateFiles, numbered, read_private
from shoal.run.state.rekey import rekey
from shoal.run.state.retention import Retention
from shoal.run.state.seal import Seal
from shoal.run.state.store import Checkpoint, Store
from shoal.testing.clocks import ManualClock
from tests.run.state.world import SEAL, SEALS
from tests.world import beside, shoal

SCHEMA = pa.schema([("row", pa.int64()), ("subject", pa.string())])
OTHER = Seal(bytes(range(100, 132)))
CANARY = "Canary Wharf"
UNSEALED = '{"row":0}\n'


def rows(first: int, end: int) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array(range(first, end)), pa.array([f"{CANARY} {i}" for i in range(first, end)])],
        schema=SCHEMA,
    )


def there(folder: Path, seal: Seal | None = None) -> list[int]:
    """The rows that the files have, in their order."""
    text = b"".join(read_private(folder, seal)) if numbered(folder) else b""
    return [json.loads(line)["row"] for line in text.splitlines()]


def opened(folder: Path, mark: Any = None, **options: Any) -> PrivateFiles:
    return PrivateFiles(folder, SCHEMA, mark, **options)


@SEALS
def test_rows_come_back_and_only_the_owner_can_read_them(tmp_path: Path, seal: Seal | None) -> None:
    folder = tmp_path / "trace"
    files = opened(folder, seal=seal)
    files.write(rows(0, 3))
    files.flush()
    files.write(rows(3, 5))
    files.close()
    assert there(folder, seal) == [0, 1, 2, 3, 4]
    (path,) = numbered(folder).values()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (CANARY.encode() in path.read_bytes()) == (seal is None)


@SEALS
def test_a_run_that_resumes_cuts_off_what_came_after_the_mark(
    tmp_path: Path, seal: Seal | None
) -> None:
    limits = Retention(file_bytes=200)
    files = opened(tmp_path, seal=seal, retention=limits)
    marks: list[dict[str, Any]] = [{}]
    for i in range(0, 40, 4):
        files.write(rows(i, i + 4))
        marks.append(files.commit())
    files.abandon()
    assert len(numbered(tmp_path)) > 3
    for upto in reversed(range(len(marks))):
        resumed = opened(tmp_path, marks[upto], seal=seal, retention=limits)
        assert there(tmp_path, seal) == list(range(upto * 4))
        resumed.abandon()
    last = opened(tmp_path, {}, seal=seal, retention=limits)
    last.write(rows(0, 2))
    last.close()
    assert there(tmp_path, seal) == [0, 1]


@SEALS
def test_torn_ends_of_a_crash_are_cut_off(tmp_path: Path, seal: Seal | None) -> None:
    files = opened(tmp_path, seal=seal)
    files.write(rows(0, 4))
    mark = files.commit()
    files.write(rows(4, 8))
    files.flush()
    files.abandon()
    (path,) = numbered(tmp_path).values()
    whole = path.read_bytes()
    for n in range(mark["n_bytes"], len(whole)):
        path.write_bytes(whole[:n])
        if seal is not None:
            assert there(tmp_path, seal) == [0, 1, 2, 3]
        opened(tmp_path, mark, seal=seal).abandon()
        assert there(tmp_path, seal) == [0, 1, 2, 3]
    path.write_bytes(whole[: mark["n_bytes"] - 1])
    with pytest.raises(CheckpointError, match="shorter than the checkpoint says"):
        opened(tmp_path, mark, seal=seal)


@SEALS
def test_another_file_at_the_same_place_is_refused(tmp_path: Path, seal: Seal | None) -> None:
    files = opened(tmp_path / "a", seal=seal)
    files.write(rows(0, 4))
    mark = files.commit()
    files.abandon()
    other = opened(tmp_path / "b", seal=seal)
    other.write(rows(4, 8))
    other.close()
    (path,), (foreign,) = (numbered(tmp_path / name).values() for name in "ab")
    data = bytearray(foreign.read_bytes())
    path.write_bytes(data[: mark["n_bytes"] - 3] + b"xyz")
    with pytest.raises(CheckpointError, match="isn't the file that the checkpoint belongs to"):
        opened(tmp_path / "a", mark, seal=seal)
    path.unlink()
    with pytest.raises(CheckpointError, match="can't be read"):
        opened(tmp_path / "a", mark, seal=seal)


def test_a_file_is_finished_when_it_is_large_or_old(tmp_path: Path) -> None:
    clock = ManualClock()
    files = opened(tmp_path, retention=Retention(file_seconds=60), clock=clock)
    for i in range(4):
        files.write(rows(i, i + 1))
        files.commit()
        clock.advance(40)
    files.close()
    assert [path.read_bytes().count(b"\n") for path in numbered(tmp_path).values()] == [3, 1]


def test_old_files_are_removed_but_none_that_a_checkpoint_may_need(tmp_path: Path) -> None:
    files = opened(tmp_path, retention=Retention(file_bytes=1, keep_bytes=1))
    marks = []
    for i in range(20):
        files.write(rows(i, i + 1))
        marks.append(files.commit())
        assert len(numbered(tmp_path)) <= 4
    files.abandon()
    # The two checkpoints that are kept, and one more whose saving failed.
    for mark in reversed(marks[-3:]):
        opened(tmp_path, mark).abandon()
    assert there(tmp_path)[-1] == 17


def test_a_run_that_resumes_removes_none_that_an_older_checkpoint_may_need(tmp_path: Path) -> None:
    limits = Retention(file_bytes=1, keep_bytes=1)
    files = opened(tmp_path, retention=limits)
    marks = []
    for i in range(10):
        files.write(rows(i, i + 1))
        marks.append(files.commit())
    files.abandon()
    resumed = opened(tmp_path, marks[-1], retention=limits)
    resumed.write(rows(10, 11))
    marks.append(resumed.commit())
    resumed.abandon()
    for mark in reversed(marks[-3:]):  # the newest checkpoint, then those to fall back to
        opened(tmp_path, mark).abandon()
    assert there(tmp_path)[-1] == 8


def test_files_of_some_age_are_removed(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000.0)
    limits = Retention(file_bytes=1, keep_seconds=100)
    files = opened(tmp_path, retention=limits, clock=clock)
    for i in range(10):
        files.write(rows(i, i + 1))
        files.commit()
        newest = list(numbered(tmp_path).values())[-1]
        os.utime(newest, (clock(), clock()))
        clock.advance(30)
    files.abandon()
    assert there(tmp_path) == [6, 7, 8, 9]


@pytest.mark.parametrize("at", range(3))
def test_a_changed_byte_of_a_sealed_file_is_noticed(tmp_path: Path, at: int) -> None:
    files = opened(tmp_path, seal=SEAL)
    files.write(rows(0, 4))
    files.close()
    (path,) = numbered(tmp_path).values()
    data = bytearray(path.read_bytes())
    data[[20, -30, -1][at]] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="is damaged"):
        there(tmp_path, SEAL)


def test_a_sealed_file_needs_its_key_and_its_name(tmp_path: Path) -> None:
    files = opened(tmp_path, seal=SEAL)
    files.write(rows(0, 4))
    files.close()
    with pytest.raises(CheckpointError, match="no key was given"):
        there(tmp_path)
    with pytest.raises(CheckpointError, match="sealed with another key"):
        there(tmp_path, OTHER)
    (path,) = numbered(tmp_path).values()
    moved = path.rename(tmp_path / "rows-0000000007.jsonl.sealed")
    with pytest.raises(CheckpointError, match="written under the number 1"):
        there(tmp_path, SEAL)
    moved.rename(tmp_path / "x")
    with pytest.raises(CheckpointError, match="was renamed"):
        list(read_private(tmp_path / "x", SEAL))


def test_rows_in_clear_dont_pass_as_sealed_ones(tmp_path: Path) -> None:
    """Whoever can write to the folder, but hasn't the key."""
    files = opened(tmp_path, seal=SEAL)
    files.write(rows(0, 4))
    files.close()
    (path,) = numbered(tmp_path).values()
    forged = tmp_path / "rows-0000000002.jsonl"
    forged.write_text('{"row": 4}\n')
    with pytest.raises(CheckpointError, match="isn't sealed, though a key was given"):
        there(tmp_path, SEAL)
    forged.rename(tmp_path / "rows-0000000001.jsonl")
    with pytest.raises(CheckpointError, match=r"has the number of rows-0000000001\.jsonl; a job"):
        there(tmp_path, SEAL)
    (tmp_path / "rows-0000000001.jsonl").rename(path)
    for seal in (SEAL, None):
        with pytest.raises(CheckpointError, match="is damaged: it isn't sealed, though its name"):
            there(tmp_path, seal)


@pytest.mark.parametrize("n_bytes", [0, 3])
def test_a_file_that_was_just_begun_has_no_rows(tmp_path: Path, n_bytes: int) -> None:
    files = opened(tmp_path, seal=SEAL)
    files.write(rows(0, 4))
    files.close()
    (path,) = numbered(tmp_path).values()
    (tmp_path / "rows-0000000002.jsonl.sealed").write_bytes(path.read_bytes()[:n_bytes])
    assert there(tmp_path, SEAL) == [0, 1, 2, 3]


def test_a_new_job_writes_to_no_folder_with_rows(tmp_path: Path) -> None:
    opened(tmp_path).close()
    files = opened(tmp_path)
    files.write(rows(0, 1))
    files.close()
    with pytest.raises(JobError, match="has rows already"):
        opened(tmp_path)
    with pytest.raises(CheckpointError, match="isn't the kind of output"):
        opened(tmp_path, {"seq": 3})


def test_a_full_disk_is_an_error_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = opened(tmp_path)
    files.write(rows(0, 1))

    def full(*_: object) -> int:
        raise OSError(28, "")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(ResourceError, match="the disk is full"):
            files.flush()
    files.write(rows(1, 2))
    with pytest.raises(ResourceError, match="the disk is full"):
        files.commit()
    files.close()


# -- another key ----------------------------------------------------------------------------------


@SEALS
def test_a_folder_that_is_gone_is_refused_and_not_created(
    tmp_path: Path, seal: Seal | None
) -> None:
    folder = tmp_path / "trace"
    files = opened(folder, seal=seal)
    files.write(rows(0, 3))
    mark = files.commit()
    files.abandon()
    shutil.rmtree(folder)
    with pytest.raises(CheckpointError, match=r"trace: rows-\S+ can't be read: it doesn't exist"):
        opened(folder, mark, seal=seal)
    assert not folder.exists()


def sealed_job(folder: Path) -> tuple[Path, Path, dict[str, Any]]:
    """A state folder with two checkpoints, and private files with a mark."""
    state, trace = folder / "state", folder / "trace"
    store = Store(state, job={"policy": "ab"}, seal=SEAL)
    files = opened(trace, seal=SEAL, retention=Retention(file_bytes=1))
    mark: dict[str, Any] = {}
    for number in range(2):
        files.write(rows(number, number + 1))
        mark = files.commit()
        store.save(Checkpoint(number, {"mark": mark}))
    files.write(rows(2, 3))
    mark = files.commit()
    files.abandon()
    return state, trace, mark


def test_the_command_that_changes_the_key_says_what_the_job_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    monkeypatch.setenv("NEW_KEY", bytes(range(100, 132)).hex())
    words = ["checkpoint", "rekey", "--seal", "env:THE_KEY", "--new-seal", "env:NEW_KEY", state]
    (state / "checkpoint-0000000000").unlink()
    needs = "The job needs this key from now on: run.checkpoint.seal must name it"
    assert shoal(monkeypatch, *words) == 0
    said = capsys.readouterr().err
    assert f"1 file is sealed with key {OTHER.fingerprint} now. {needs}" in said
    assert shoal(monkeypatch, *words, trace) == 0
    said = capsys.readouterr().err
    assert f"3 files are sealed with key {OTHER.fingerprint} now; 1 had it already. {needs}" in said


def test_all_files_get_another_key_and_go_on(tmp_path: Path) -> None:
    state, trace, mark = sealed_job(tmp_path)
    assert rekey([state, trace], SEAL, OTHER) == (5, 0, 0)
    store = Store(state, job={"policy": "ab"}, seal=OTHER)
    assert store.latest() is not None
    with pytest.raises(CheckpointError, match="another key"):
        Store(state, job={"policy": "ab"}, seal=SEAL).latest()
    assert there(trace, OTHER) == [0, 1, 2]
    resumed = opened(trace, mark, seal=OTHER)
    resumed.write(rows(3, 4))
    resumed.close()
    assert there(trace, OTHER) == [0, 1, 2, 3]


@pytest.mark.parametrize("is_cut_off", [False, True])
def test_another_key_keeps_the_warning_of_a_copied_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
    is_cut_off: bool,
) -> None:  # fmt: skip
    state, trace, _ = sealed_job(tmp_path)
    with Store(state, job={"policy": "ab"}, seal=SEAL).lock():
        pass
    copied = tmp_path / "copied"
    shutil.copytree(state, copied)
    with caplog.at_level(logging.WARNING, "shoal"):
        if is_cut_off:
            with monkeypatch.context() as patched:
                patched.setattr(Path, "replace", None)
                with pytest.raises(TypeError):
                    rekey([copied], SEAL, OTHER)
        rekey([copied], SEAL, OTHER)
        assert (copied / "lock").read_text() == (state / "lock").read_text()
        store = Store(copied, job={"policy": "ab"}, seal=OTHER)
        for _ in range(2):
            with store.lock():
                pass
        assert [record.event for record in caplog.records] == ["folder copied"]
        # Where it isn't a copy, nothing is said.
        rekey([state, trace], SEAL, OTHER)
        with Store(state, job={"policy": "ab"}, seal=OTHER).lock():
            pass
    assert len(caplog.records) == 1


def test_another_key_makes_no_file_younger(tmp_path: Path) -> None:
    state, trace, mark = sealed_job(tmp_path)
    for file in trace.iterdir():
        os.utime(file, (1000.0, 1000.0))
    rekey([state, trace], SEAL, OTHER)
    assert {file.stat().st_mtime for file in trace.iterdir()} == {1000.0}
    limits = Retention(keep_seconds=60)
    resumed = opened(trace, mark, seal=OTHER, retention=limits, clock=lambda: 1060.0)
    resumed.write(rows(3, 4))
    for _ in range(3):  # until no checkpoint that is kept needs the files of before
        resumed.commit()
    resumed.close()
    assert there(trace, OTHER) == [3]


def test_nothing_is_unsealed_onto_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    before = {file: file.read_bytes() for file in trace.iterdir()}
    *_, last = sorted(before)
    for path in (trace, last):
        with pytest.raises(JobError, match=r"-o: (is the same file as|lies in the folder of)"):
            unseal(path, seal="env:THE_KEY", output=last, force=True)
    assert {file: file.read_bytes() for file in trace.iterdir()} == before


@pytest.mark.parametrize("force", [False, True])
def test_unsealed_rows_overwrite_no_file_of_a_job(tmp_path: Path, force: bool) -> None:
    state, trace, _ = sealed_job(tmp_path)
    key, published = tmp_path / "key", tmp_path / "published.jsonl"
    key.write_text(bytes(range(32)).hex())
    published.write_text(UNSEALED)
    (tmp_path / "empty.csv").touch(0o644)
    (tmp_path / "note").write_text("mine")
    (tmp_path / "note").chmod(0o600)
    (tmp_path / "link.jsonl").symlink_to(state / "checkpoint-0000000001")
    (tmp_path / "key.link").hardlink_to(key)
    (state / "shard-0").mkdir()
    (tmp_path / "clear").mkdir()
    (tmp_path / "clear" / "rows-0000000001.jsonl").write_text(UNSEALED)
    (tmp_path / "clear" / "rows-0000000001.jsonl").chmod(0o600)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for name, said in {
        "key": "is the same file as the key of the seal",
        "key.link": "is the same file as the key of the seal",
        "published.jsonl": "isn't a file of unsealed rows",
        "empty.csv": "isn't a file of unsealed rows",
        "note": "isn't a file of unsealed rows",
        "link.jsonl": "which has files of a job",
        "state/lock": "which has files of a job",
        "state/new.jsonl": "which has files of a job",
        "state/new/": "which has files of a job",
        "state/shard-0/new.jsonl": "which has files of a job",
        "clear/rows-0000000001.jsonl": "which has files of a job",
        "trace/inner.jsonl": "lies in the folder of the PRIVATE",
        "trace/inner/": "lies in the folder of the PRIVATE",
    }.items():
        with pytest.raises(JobError, match=said):
            unseal(trace, seal=f"file:{key}", output=f"{tmp_path}/{name}", force=force)
    with pytest.raises(JobError, match="which has files of a job"):
        unseal(numbered(trace)[1], seal=f"file:{key}", output=f"{tmp_path}/trace/one/", force=force)
    now = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert now == before


def test_rows_are_unsealed_into_a_file_of_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    clear = tmp_path / "clear.jsonl"
    assert unseal(trace, seal="env:THE_KEY", output=clear) == 0
    assert [json.loads(line)["row"] for line in clear.read_text().splitlines()] == [0, 1, 2]
    assert stat.S_IMODE(clear.stat().st_mode) == 0o600


def test_a_wrong_key_overwrites_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(32).hex())
    clear = tmp_path / "clear.jsonl"
    clear.write_text(UNSEALED)
    clear.chmod(0o600)
    with pytest.raises(CheckpointError):
        unseal(trace, seal="env:THE_KEY", output=clear, force=True)
    assert clear.read_text() == UNSEALED


def test_a_file_that_exists_is_overwritten_only_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    clear = tmp_path / "clear.jsonl"
    clear.write_text(UNSEALED)
    clear.chmod(0o600)
    with pytest.raises(JobError, match=r"exists already.*--force"):
        unseal(trace, seal="env:THE_KEY", output=clear)
    assert clear.read_text() == UNSEALED
    assert unseal(trace, seal="env:THE_KEY", output=clear, force=True) == 0
    assert clear.read_bytes() == b"".join(read_private(trace, SEAL))
    assert stat.S_IMODE(clear.stat().st_mode) == 0o600


def test_a_damaged_file_in_the_middle_leaves_no_half_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    *_, last = numbered(trace).values()
    last.write_bytes(last.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match="is damaged"):
        unseal(trace, seal="env:THE_KEY", output=tmp_path / "clear.jsonl")
    assert not list(tmp_path.glob("clear*"))


def test_what_has_no_private_rows_isnt_unsealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state, _, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    (tmp_path / "empty").mkdir()
    clear = tmp_path / "clear.jsonl"
    words = ["--seal", "env:THE_KEY", "-o", clear]
    for path in (state, tmp_path / "empty", *state.iterdir()):
        assert shoal(monkeypatch, "unseal", path, *words) == 2
        assert "rows-0000000001.jsonl.sealed" in capsys.readouterr().err
        assert shoal(monkeypatch, "unseal", path) == 2
    assert shoal(monkeypatch, "unseal", tmp_path / "none", *words) == 4
    assert not clear.exists()


def test_rows_are_unsealed_into_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert unseal(trace, seal="env:THE_KEY", output=pipe) == 0
    assert os.read(reader, 10_000) == b"".join(read_private(trace, SEAL))
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["clear/", "clear.jsonl"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_unsealed_rows_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: signal.Signals
) -> None:
    _, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    # Nobody writes to it: the command waits there, with the rows of other files written.
    last = numbered(trace)[3]
    last.unlink()
    os.mkfifo(last)
    before = sorted(tmp_path.rglob("*"))
    words = ("unseal", trace, "--seal", "env:THE_KEY", "-o", f"{tmp_path}/{name}")
    with beside(*words) as process:
        end = time.monotonic() + 60
        done = "clear.partial/rows-0000000003.jsonl.partial" if "/" in name else "*.partial"
        while not list(tmp_path.glob(done)):
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(number)
        code = -number if number == signal.SIGHUP else 128 + number
        assert process.wait(60) == code
    assert sorted(tmp_path.rglob("*")) == before


def test_rows_that_a_killed_command_left_in_clear_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trace, _ = sealed_job(tmp_path)
    monkeypatch.setenv("THE_KEY", bytes(range(32)).hex())
    left = tmp_path / "clear.partial"
    left.mkdir()
    (left / "rows-0000000001.jsonl").write_text(UNSEALED)
    with pytest.raises(
        JobError, match=r"clear\.partial was left .*interrupted.* in clear.* Remove it"
    ):
        unseal(trace, seal="env:THE_KEY", output=f"{tmp_path}/clear/")
    assert (left / "rows-0000000001.jsonl").read_text() == UNSEALED
    # One file is written anew.
    (tmp_path / "clear.jsonl.partial").write_text(UNSEALED)
    assert unseal(trace, seal="env:THE_KEY", output=tmp_path / "clear.jsonl") == 0
    assert not (tmp_path / "clear.jsonl.partial").exists()


def test_a_change_of_key_that_was_cut_off_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, trace, _ = sealed_job(tmp_path)
    real, n_left = Path.replace, 2

    def dying(self: Path, target: Path) -> Path:
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            rekey([state, trace], SEAL, OTHER)
    assert rekey([state, trace], SEAL, OTHER) == (3, 2, 0)
    assert there(trace, OTHER) == [0, 1, 2]


def test_rekey_refuses(tmp_path: Path) -> None:
    state, trace, _ = sealed_job(tmp_path)
    with pytest.raises(CheckpointError, match="both keys are the same"):
        rekey([state], SEAL, SEAL)
    with pytest.raises(CheckpointError, match="sealed with another key"):
        rekey([state, trace], OTHER, Seal(bytes(32)))
    with pytest.raises(CheckpointError, match="no key was given"):
        rekey([state, trace], None, OTHER)
    with pytest.raises(ResourceError, match="isn't a folder"):
        rekey([tmp_path / "none"], SEAL, OTHER)
    store = Store(state, job={"policy": "ab"}, seal=SEAL)
    with store.lock(), pytest.raises(ResourceError, match="runs this job"):
        rekey([state, trace], SEAL, OTHER)
    assert store.latest() is not None


def contents(folder: Path) -> dict[Path, bytes]:
    """All files below a folder, but for locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize("names", ["state trace", "trace state", "."])
def test_a_folder_that_a_run_uses_is_refused_wherever_it_is_named(
    tmp_path: Path, names: str
) -> None:
    state, trace, _ = sealed_job(tmp_path)
    before = contents(tmp_path)
    folders = [tmp_path / name for name in names.split()]
    with Store(state, job={"policy": "ab"}, seal=SEAL).lock():
        with pytest.raises(ResourceError, match="runs this job"):
            rekey(folders, SEAL, OTHER)
        assert contents(tmp_path) == before
    assert rekey(folders, SEAL, OTHER) == (5, 0, 0)
    assert there(trace, OTHER) == [0, 1, 2]


def test_of_two_states_neither_may_be_in_use(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    first, second = (sealed_job(folder)[0] for folder in folders)
    for state in (first, second):
        with (
            Store(state, job={"policy": "ab"}, seal=SEAL).lock(),
            pytest.raises(ResourceError, match="runs this job"),
        ):
            rekey([first, second], SEAL, OTHER)
    # A folder that is named twice isn't in use for that.
    assert rekey([first, second, first], SEAL, OTHER) == (4, 0, 0)


def test_private_files_without_a_state_are_refused(tmp_path: Path) -> None:
    _, trace, _ = sealed_job(tmp_path)
    (tmp_path / "empty").mkdir()
    before = contents(trace)
    for folders in ([trace], [tmp_path / "empty", trace]):
        with pytest.raises(JobError, match=r"has no state of a job.*run\.checkpoint"):
            rekey(folders, SEAL, OTHER)
    assert contents(trace) == before


def test_a_sealed_trace_asks_for_its_key_also_if_the_state_is_in_clear(tmp_path: Path) -> None:
    _, trace, _ = sealed_job(tmp_path)
    clear = tmp_path / "clear"
    with Store(clear, job={"policy": "ab"}, seal=None).lock():
        pass  # a run that was stopped before its first checkpoint
    with pytest.raises(CheckpointError, match=rf"sealed with key {SEAL.fingerprint}.*--seal"):
        rekey([trace, clear], None, OTHER)


def test_files_that_would_stay_in_clear_are_refused_before_anything_is_changed(
    tmp_path: Path,
) -> None:
    state, trace, _ = sealed_job(tmp_path)
    bad = tmp_path / "bad"
    files = opened(bad, retention=Retention(file_bytes=1))
    for number in range(2):
        files.write(rows(number, number + 1))
        files.commit()
    files.close()
    before = contents(tmp_path)
    with pytest.raises(CheckpointError, match="bad: 2 files aren't sealed and would stay in clear"):
        rekey([state, trace, bad], SEAL, OTHER)
    assert contents(tmp_path) == before
    (trace / "trace.jsonl").write_text("{}  of shoal unseal")
    with pytest.raises(CheckpointError, match="trace: 1 file isn't sealed"):
        rekey([state, trace], SEAL, OTHER)
    (trace / "trace.jsonl").unlink()
    assert rekey([state, trace], SEAL, OTHER) == (5, 0, 0)


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)


def test_a_damaged_checkpoint_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    state, trace, _ = sealed_job(tmp_path)
    damage(state / "checkpoint-0000000001")
    before = contents(tmp_path)
    with pytest.raises(CheckpointError, match=r"is damaged.*Nothing was changed.*--fall-back"):
        rekey([state, trace], SEAL, OTHER)
    assert contents(tmp_path) == before


def test_a_damaged_private_file_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    state, trace, _ = sealed_job(tmp_path)
    damage(list(numbered(trace).values())[1])
    before = contents(tmp_path)
    with pytest.raises(CheckpointError, match=r"is damaged.*Nothing was changed") as caught:
        rekey([state, trace], SEAL, OTHER)
    assert "fall-back" not in str(caught.value)
    assert contents(tmp_path) == before


def test_a_wrong_key_of_one_file_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    state, trace, _ = sealed_job(tmp_path)
    third = tmp_path / "third"
    files = opened(third, seal=Seal(bytes(32)))
    files.write(rows(0, 1))
    files.close()
    before = contents(tmp_path)
    with pytest.raises(CheckpointError, match=r"sealed with another key.*Nothing was changed"):
        rekey([state, trace, third], SEAL, OTHER)
    assert contents(tmp_path) == before


def test_a_change_of_key_that_was_cut_off_goes_round_a_damaged_file(tmp_path: Path) -> None:
    """Half of the files have the new key already, so with neither key the job could fall back."""
    state, trace, _ = sealed_job(tmp_path)
    whole, damaged = sorted(path for path in state.iterdir() if path.name != "lock")
    damage(damaged)
    kept = damaged.read_bytes()
    damaged.unlink()
    rekey([state], SEAL, OTHER)
    damaged.write_bytes(kept)
    with pytest.raises(CheckpointError, match=r"is damaged.*All other files have the new key"):
        rekey([state, trace], SEAL, OTHER)
    assert damaged.read_bytes() == kept
    assert there(trace, OTHER) == [0, 1, 2]
    assert read_heading(whole, whole.read_bytes(), MAGIC, FORMAT, 0).key == OTHER.fingerprint


def test_what_a_crash_leaves_isnt_in_the_way_of_another_key(tmp_path: Path) -> None:
    state, trace, _ = sealed_job(tmp_path)
    data = next(iter(numbered(trace).values())).read_bytes()
    (trace / "rows-0000000004.jsonl.sealed").write_bytes(data[:5])
    (trace / "rows-0000000001.jsonl.sealed.partial").write_bytes(data[:50])
    assert rekey([state, trace], SEAL, OTHER) == (5, 0, 0)


def test_a_folder_that_cant_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, trace, _ = sealed_job(tmp_path)
    real = os.scandir

    def closed(path: Any) -> Any:
        if Path(path) == trace:
            raise PermissionError(13, "", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(ResourceError, match="trace: can't be read"):
        rekey([state, trace], SEAL, OTHER)


def test_a_state_in_clear_can_be_sealed(tmp_path: Path) -> None:
    store = Store(tmp_path, job={"policy": "ab"}, seal=None)
    store.save(Checkpoint(0, {"seq": 12}))
    assert rekey([tmp_path], None, OTHER) == (1, 0, 0)
    found = Store(tmp_path, job={"policy": "ab"}, seal=OTHER).latest()
    assert found is not None
    assert found.facts == {"seq": 12}
