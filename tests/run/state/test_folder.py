"""The state folder: names, modes, and that only one process uses it."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.errors import ResourceError
from shoal.run.state.folder import (
    CHECKPOINT,
    SEGMENT,
    drop,
    drop_leftovers,
    locked,
    make_folder,
    numbers_of,
    path_of,
)

HOLD = """
import sys
from pathlib import Path
from shoal.run.state.folder import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""
FORK = """
import os, sys, time
from pathlib import Path
from shoal.run.state.folder import locked
there, here = os.pipe(), os.pipe()
with locked(Path(sys.argv[1])):
    child = os.fork()
    if child == 0:
        # It leaves the context only when the parent is done, and must do no harm then.
        os.write(here[1], b"x")
        os.read(there[0], 1)
    else:
        os.read(here[0], 1)
if child:
    with locked(Path(sys.argv[1])):
        os.write(there[1], b"x")
        os.waitpid(child, 0)
        assert (Path(sys.argv[1]) / "lock").read_text().split()[0] == str(os.getpid())
        print("again", flush=True)
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_names_are_numbers_and_nothing_else_is_taken_for_one(tmp_path) -> None:
    for number in (7, 12, 3, 10**11):
        path_of(tmp_path, CHECKPOINT, number).touch()
    for name in ("checkpoint-7", "checkpoint-0000000009.partial", "checkpoint-000000000x", "lock"):
        (tmp_path / name).touch()
    assert numbers_of(tmp_path, CHECKPOINT) == [3, 7, 12, 10**11]
    assert numbers_of(tmp_path, SEGMENT) == []


def test_a_folder_is_made_for_its_owner_only(tmp_path) -> None:
    mask = os.umask(0)
    try:
        make_folder(tmp_path / "state")
    finally:
        os.umask(mask)
    assert mode(tmp_path / "state") == 0o700
    make_folder(tmp_path / "state")


def test_a_folder_that_cant_be_made(tmp_path) -> None:
    with pytest.raises(ResourceError, match="doesn't exist"):
        make_folder(tmp_path / "none" / "state")
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match="isn't a folder"):
        make_folder(tmp_path / "file")
    with pytest.raises(ResourceError, match="can't be read"):
        numbers_of(tmp_path / "none", SEGMENT)


def test_what_cant_be_removed(tmp_path) -> None:
    path_of(tmp_path, SEGMENT, 1).mkdir()
    with pytest.raises(ResourceError, match="journal-0000000001: can't be removed"):
        drop(tmp_path, SEGMENT, [1])
    drop(tmp_path, SEGMENT, [2])


def test_leftovers_of_a_crash_are_removed_but_for_those_in_the_making(tmp_path) -> None:
    for name in ("checkpoint-0000000004", "journal-0000000004", "journal-0000000005"):
        (tmp_path / f"{name}.partial").touch()
    drop_leftovers(tmp_path, before=5)
    assert [path.name for path in tmp_path.iterdir()] == ["journal-0000000005.partial"]


def test_a_second_process_is_kept_out_and_a_kill_leaves_no_lock(tmp_path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        who = rf"another process \(pid {process.pid}\) runs this job"
        with pytest.raises(ResourceError, match=who) as caught, locked(tmp_path):
            pass
        assert caught.value.exit_code == 4
        assert mode(tmp_path / "lock") == 0o600
        process.kill()
    lock = tmp_path / "lock"
    with locked(tmp_path):
        assert lock.read_text() == f"{os.getpid()} {lock.stat().st_ino}\n"
    assert lock.read_text() == f"- {lock.stat().st_ino}\n"


def test_a_process_doesnt_lock_twice(tmp_path) -> None:
    with locked(tmp_path), pytest.raises(ResourceError, match="two at once"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_forked_child_doesnt_hold_the_lock(tmp_path) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout == "again\n", done.stderr


def test_a_started_child_doesnt_hold_the_lock(tmp_path) -> None:
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with locked(tmp_path):
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
        )
        assert child.stdout is not None
        child.stdout.readline()
    with child, locked(tmp_path):
        assert child.poll() is None


def test_a_lock_that_cant_be_had(tmp_path, monkeypatch) -> None:
    with pytest.raises(ResourceError, match="lock: can't be written"), locked(tmp_path / "none"):
        pass

    def fail(number: int, operation: int) -> None:
        raise OSError(37, "")

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(ResourceError, match="lock: can't be locked"), locked(tmp_path):
        pass


@pytest.mark.parametrize("is_in_use", [False, True])
def test_a_copy_of_the_folder_is_told_once(tmp_path, caplog, is_in_use) -> None:
    """The locks of a folder and of its copy know nothing of each other."""
    folder, copied = tmp_path / "state", tmp_path / "copied"
    folder.mkdir()
    with locked(folder):
        if is_in_use:
            shutil.copytree(folder, copied)
    if not is_in_use:
        shutil.copytree(folder, copied)
    for _ in range(2):
        with locked(folder):
            pass
    assert caplog.records == []
    with caplog.at_level(logging.WARNING, "shoal"), locked(copied):
        pass
    assert [record.event for record in caplog.records] == ["folder copied"]
    with locked(copied):
        pass
    assert len(caplog.records) == 1


@pytest.mark.parametrize("said", ["", "41\n", "- x\n", "\u00e9 \u00e9", "1 2 3"])
def test_whatever_a_lock_says_it_can_be_taken(tmp_path, said) -> None:
    (tmp_path / "lock").write_text(said)
    with locked(tmp_path):
        pass
    assert (tmp_path / "lock").read_text() == f"- {(tmp_path / 'lock').stat().st_ino}\n"
