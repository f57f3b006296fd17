"""The store of checkpoints: private, two at a time, refused for every reason there is."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shoal.errors import CheckpointError, ResourceError
from shoal.run.state import checkpoint as form
from shoal.run.state.checkpoint import FORMAT
from shoal.run.state.folder import CHECKPOINT, SEGMENT, path_of
from shoal.run.state.heading import DamagedError
from shoal.run.state.journal import Flush, Journal, read_journal
from shoal.run.state.seal import Seal
from shoal.run.state.store import Checkpoint, Store, read_file
from tests.run.state.world import (
    BATCH,
    JOB,
    SEAL,
    KilledError,
    killed_after,
    names,
    new_store,
    no_file_longer_than,
    path,
    same,
    small,
)

# -- private -------------------------------------------------------------------------------------


def test_files_are_for_their_owner_only(tmp_path) -> None:
    mask = os.umask(0)
    try:
        store = new_store(tmp_path / "state")
        with store.lock():
            store.save(small())
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "state").iterdir()}
    assert modes == {0o600}


def test_a_seal_hides_all_values_and_the_names_of_columns(tmp_path) -> None:
    checkpoint = Checkpoint(0, {"codec": ["canary"]}, {"canary": np.zeros(1)}, {"held": BATCH})
    for seal, found in ((None, True), (SEAL, False)):
        folder = tmp_path / str(found)
        new_store(folder, seal).save(checkpoint)
        data = path(folder, 0).read_bytes()
        assert (b"canary" in data) == (b"ward" in data) == found


def test_a_repr_shows_numbers_and_names_only(tmp_path) -> None:
    checkpoint = Checkpoint(4, {"codec": "canary"}, {"lo": np.array([987.5])}, {"held": BATCH})
    text = repr(checkpoint)
    assert text == "Checkpoint(number=4, facts=['codec'], arrays=['lo'], batches={'held': 3})"
    store = new_store(tmp_path, SEAL)
    store.save(checkpoint)
    assert repr(store) == f"Store('{tmp_path}', numbers=[4])"


# -- keeping two ---------------------------------------------------------------------------------


def with_journal(folder: Path, seal: Seal | None, numbers: range) -> Store:
    """Checkpoints and segments as a run makes them: rolled, then saved."""
    store = new_store(folder, seal)
    journal = Journal(folder, numbers[0], seal)
    for number in numbers:
        if number > numbers[0]:
            journal.roll(number)
        store.save(small(number))
        journal.append(Flush(float(number)))
    journal.close()
    return store


def test_two_are_kept_with_their_segments(tmp_path) -> None:
    store = with_journal(tmp_path, None, range(5))
    assert store.numbers() == [3, 4]
    kept = [f"{kind}-000000000{number}" for kind in (CHECKPOINT, SEGMENT) for number in (3, 4)]
    assert names(tmp_path) == kept
    assert list(read_journal(tmp_path, 3, None)) == [Flush(3.0), Flush(4.0)]


def test_a_store_that_has_read_none_keeps_the_newest(tmp_path) -> None:
    with_journal(tmp_path, None, range(3))
    store = new_store(tmp_path)
    store.save(small(3))
    assert store.numbers() == [2, 3]


def test_a_number_that_is_there_or_older_is_refused(tmp_path) -> None:
    store = new_store(tmp_path)
    store.save(small(0))
    Journal(tmp_path, 4, None).close()
    for number in (0, -1):
        with pytest.raises(ValueError, match="is there, or a newer one"):
            store.save(small(number))


def test_after_a_crash_half_written_ones_are_removed(tmp_path) -> None:
    (tmp_path / "checkpoint-0000000001.partial").write_bytes(b"canary")
    store = new_store(tmp_path)
    assert store.latest() is None
    store.save(small(2))
    assert names(tmp_path) == ["checkpoint-0000000002"]


@pytest.mark.parametrize("n_bytes", [0, 10, 700])
def test_a_full_disk_leaves_the_older_ones_as_they_were(tmp_path, n_bytes) -> None:
    store = with_journal(tmp_path, None, range(3))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert path(tmp_path, 2).stat().st_size > 700
    with no_file_longer_than(n_bytes), pytest.raises(ResourceError, match="can't be written"):
        store.save(small(3))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    same(small(2), store.latest())
    store.save(small(4))
    assert store.numbers() == [2, 4]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_disk_that_cant_sync(tmp_path, monkeypatch, failing) -> None:
    """First the file, then the folder."""
    store = with_journal(tmp_path, None, range(2))
    n_calls = 0

    def fsync(number: int) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == failing:
            raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(ResourceError, match="the disk is full"):
        store.save(small(2))
    monkeypatch.undo()
    assert store.numbers() == [0, 1, 2][: failing + 1]
    same(small(failing), store.latest())


def test_a_crash_at_any_step_of_saving_leaves_one_to_resume_from(tmp_path) -> None:
    for n_steps in range(100):
        folder = tmp_path / str(n_steps)
        store = with_journal(folder, None, range(3))
        journal = Journal(folder, 2, None)
        journal.roll(3)
        journal.close()
        steps = [(os, "open"), (os, "fsync"), (os, "close"), (Path, "replace"), (Path, "unlink")]
        try:
            with killed_after(n_steps, steps):
                store.save(small(3))
            break
        except KilledError:
            pass
        again = new_store(folder)
        checkpoint = again.latest()
        assert checkpoint is not None
        same(small(checkpoint.number), checkpoint)
        assert checkpoint.number in (2, 3)
        expected = [Flush(2.0)] if checkpoint.number == 2 else []
        assert list(read_journal(folder, checkpoint.number, None)) == expected
        again.save(small(4))
        assert again.numbers() == [checkpoint.number, 4]
        assert not list(folder.glob("*.partial"))
    assert 5 < n_steps < 99


def test_a_kill_leaves_one_to_resume_from(tmp_path) -> None:
    program = (
        "import sys; import numpy as np; from pathlib import Path\n"
        "from shoal.run.state.store import Checkpoint, Store\n"
        "store = Store(Path(sys.argv[1]), job={}, seal=None)\n"
        "for i in range(10**9):\n"
        "    store.save(Checkpoint(i, {'seq': i}, {'a': np.full(50_000, i)}))\n"
        "    print(i, flush=True)\n"
    )
    for n_lines in (1, 5, 12):
        folder = tmp_path / str(n_lines)
        command = [sys.executable, "-c", program, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(n_lines):
                reported = int(process.stdout.readline())
            process.kill()
        checkpoint = Store(folder, job={}, seal=None).latest()
        assert checkpoint is not None
        assert checkpoint.number >= reported
        assert (checkpoint.arrays["a"] == checkpoint.facts["seq"]).all()


# -- falling back -------------------------------------------------------------------------------


def test_a_damaged_newest_one_names_the_one_before_and_falls_back_to_it(tmp_path) -> None:
    store = with_journal(tmp_path, None, range(1, 4))
    data = path(tmp_path, 3).read_bytes()
    path(tmp_path, 3).write_bytes(data[:-40])
    with pytest.raises(CheckpointError) as caught:
        store.latest()
    assert str(caught.value) == (
        f"{path(tmp_path, 3)}: is damaged: its checksum doesn't match. Checkpoint 2, of "
        "1970-01-02 00:00:00 UTC, is undamaged: `shoal run … --fall-back` resumes from it, "
        "with nothing lost and nothing duplicated."
    )
    same(small(2), store.latest(fall_back=True))
    # What comes next replaces the damaged one, not the one that was whole.
    journal = Journal(tmp_path, 3, None)
    journal.roll(4)
    journal.close()
    store.save(small(4))
    assert store.numbers() == [2, 4]
    assert list(read_journal(tmp_path, 2, None)) == [Flush(2.0), Flush(3.0)]
    store.save(small(5))
    assert store.numbers() == [4, 5]


def test_a_whole_newest_one_isnt_fallen_back_from(tmp_path) -> None:
    same(small(2), with_journal(tmp_path, None, range(3)).latest(fall_back=True))


def test_nothing_to_fall_back_to(tmp_path) -> None:
    store = with_journal(tmp_path, None, range(3))
    path(tmp_path, 2).write_bytes(b"")
    whole = path(tmp_path, 1).read_bytes()
    path(tmp_path, 1).write_bytes(whole[:50])
    for fall_back in (False, True):
        with pytest.raises(CheckpointError, match=r"None before it .* Start again with another"):
            store.latest(fall_back=fall_back)
    path(tmp_path, 1).write_bytes(whole)
    # Without the journal since then, going back would decide anew.
    path_of(tmp_path, SEGMENT, 1).unlink()
    with pytest.raises(CheckpointError, match="None before it"):
        store.latest(fall_back=True)


def test_of_a_damaged_one_it_is_said_why_the_one_before_cant_be_opened(tmp_path) -> None:
    with_journal(tmp_path, SEAL, range(3))
    path(tmp_path, 2).write_bytes(path(tmp_path, 2).read_bytes()[:-1])
    for fall_back in (False, True):
        with pytest.raises(CheckpointError) as caught:
            new_store(tmp_path, Seal(bytes(32))).latest(fall_back=fall_back)
        text = str(caught.value)
        assert text.startswith(f"{path(tmp_path, 2)}: is damaged: its checksum doesn't match. ")
        assert f"The one before can't be used: {path(tmp_path, 1)}: is sealed with another" in text


def with_three(tmp_path) -> Store:
    """Checkpoints 1 to 3, as a crash before the oldest was removed leaves them."""
    store = with_journal(tmp_path, None, range(3))
    older = [path(tmp_path, 1), path_of(tmp_path, SEGMENT, 1)]
    whole = [file.read_bytes() for file in older]
    journal = Journal(tmp_path, 2, None)
    journal.roll(3)
    journal.close()
    store.save(small(3))
    for file, data in zip(older, whole, strict=True):
        file.write_bytes(data)
    return store


def test_a_gap_in_the_journal_isnt_stepped_over(tmp_path) -> None:
    store = with_three(tmp_path)
    path(tmp_path, 3).write_bytes(b"")
    same(small(2), store.latest(fall_back=True))
    # Checkpoint 1 has its segment, but what followed that is gone.
    path_of(tmp_path, SEGMENT, 2).unlink()
    with pytest.raises(CheckpointError, match="None before it"):
        store.latest(fall_back=True)


def test_several_damaged_ones_are_passed_over(tmp_path) -> None:
    store = with_three(tmp_path)
    for number in (2, 3):
        path(tmp_path, number).write_bytes(b"")
    same(small(1), store.latest(fall_back=True))
    assert list(read_journal(tmp_path, 1, None)) == [Flush(1.0), Flush(2.0)]


def test_a_refusal_isnt_fixed_by_falling_back(tmp_path) -> None:
    with_journal(tmp_path, None, range(3))
    with pytest.raises(CheckpointError, match="was taken under another job"):
        new_store(tmp_path, job={}).latest(fall_back=True)


def test_a_journal_without_a_checkpoint_is_refused(tmp_path) -> None:
    store = new_store(tmp_path)
    journal = Journal(tmp_path, 0, None)
    assert store.latest() is None
    journal.append(Flush(1.0))
    journal.close()
    with pytest.raises(CheckpointError, match="has a journal, but no checkpoint"):
        store.latest()


# -- refusals ------------------------------------------------------------------------------------


def test_something_else_is_no_checkpoint(tmp_path) -> None:
    path(tmp_path, 0).write_bytes(b"person,age\ncanary,7\n" * 100)
    with pytest.raises(CheckpointError, match="it doesn't begin with the heading of such a file"):
        new_store(tmp_path).load(0)


def test_a_renamed_one_is_refused(tmp_path) -> None:
    store = new_store(tmp_path)
    store.save(small(1))
    path(tmp_path, 1).rename(path(tmp_path, 2))
    with pytest.raises(CheckpointError, match="written under the number 1"):
        store.load(2)


def test_a_newer_format_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form, "FORMAT", FORMAT + 1)
    store = new_store(tmp_path)
    monkeypatch.setattr("shoal.run.state.heading.__version__", "9.9.9")
    store.save(small())
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=r"has format 3, of Shoal 9\.9\.9.*that version or a"):
        store.latest()


def test_an_older_format_is_refused_and_not_misread(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form, "FORMAT", FORMAT - 1)
    store = new_store(tmp_path)
    store.save(small())
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=r"has format 1, .*resume from format 2.*Drain"):
        store.latest()


def test_seals_are_as_they_should_be_or_refused(tmp_path) -> None:
    sealed, open_ = tmp_path / "sealed", tmp_path / "open"
    new_store(sealed, SEAL).save(small())
    new_store(open_).save(small())
    with pytest.raises(CheckpointError, match=f"sealed with key {SEAL.fingerprint}, and no key"):
        new_store(sealed).latest()
    other = Seal(bytes(32))
    fingerprints = f"{SEAL.fingerprint}; got key {other.fingerprint}"
    with pytest.raises(CheckpointError, match=f"with another key: {fingerprints}"):
        new_store(sealed, other).latest()
    with pytest.raises(CheckpointError, match="isn't sealed, but the job has a seal"):
        new_store(open_, SEAL).latest()


@pytest.mark.parametrize(
    ("job", "what"),
    [
        ({"schema": "aa11", "policy": "cc"}, r"\[policy\] is not as it was"),
        ({"schema": "x", "policy": "y"}, r"\[policy\] and \[schema\] are not as"),
        ({**JOB, "algorithm": "z"}, r"\[algorithm\] is not"),
        ({}, r"\[policy\] and \[schema\] are not"),
        ({"a": "", "b": "", **JOB, "schema": ""}, r"\[a\], \[b\] and \[schema\] are not"),
    ],
)
def test_a_changed_job_is_reported_by_its_sections(tmp_path, job, what) -> None:
    new_store(tmp_path).save(small())
    with pytest.raises(CheckpointError, match=what + r".*Restore that job, or drain") as caught:
        new_store(tmp_path, job=job).latest()
    assert caught.value.exit_code == 5


@pytest.mark.parametrize("name", ["input", "output", "algorithm"])
def test_only_of_endpoints_it_is_said_how_they_are_compared(tmp_path, name) -> None:
    new_store(tmp_path).save(small())
    with pytest.raises(CheckpointError) as caught:
        new_store(tmp_path, job={**JOB, name: "z"}).latest()
    assert ("are compared by format and by their place" in str(caught.value)) == (
        name != "algorithm"
    )


def test_what_the_disk_cant_read_any_more_is_damaged(tmp_path, monkeypatch) -> None:
    def fail(self: Path) -> bytes:
        raise OSError(errno.EIO, "")

    with pytest.raises(ResourceError, match="doesn't exist"):
        read_file(tmp_path / "none")
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(DamagedError, match="the disk can't read it any more"):
        read_file(tmp_path / "bad")


def test_the_lock_is_that_of_the_folder(tmp_path) -> None:
    one, two = new_store(tmp_path), new_store(tmp_path)
    with one.lock(), pytest.raises(ResourceError, match="runs this job"), two.lock():
        pass
