"""The state folder of a job: the names of its files, and its lock."""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.errors import ResourceError
from shoal.events import sentence
from shoal.io.files.atomic import PARTIAL, sync_folder
from shoal.io.streams import os_reason

__all__ = [
    "CHECKPOINT",
    "HISTORY",
    "SEGMENT",
    "drop",
    "locked",
    "make_folder",
    "numbers_of",
    "path_of",
    "writing",
]

#: The kinds of numbered files. Segment n of the journal follows checkpoint n.
CHECKPOINT, SEGMENT = "checkpoint", "journal"
#: On Spark, the history of the page: the one kind of file that no job needs.
HISTORY = "history"
LOCK = "lock"
#: The most bytes of a lock: a process id, and the number that the file system gave to the file.
MOST_LOCK = 64
#: The digits of a number in a name: enough for names to sort by age.
DIGITS = 10
_log = logging.getLogger(__name__)
#: Locks of this process. A forked child must not hold them, too: it may outlive the parent.
_locks: set[int] = set()


def _close_in_child() -> None:
    # Closed, not unlocked: unlocking would release the parent's lock, too.
    for number in _locks:
        os.close(number)
    _locks.clear()


os.register_at_fork(after_in_child=_close_in_child)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise failures of writing as `ResourceError`."""
    try:
        yield
    except OSError as error:
        raise ResourceError(f"{path}: can't be written: {os_reason(error)}.") from None


def make_folder(folder: Path) -> None:
    """Create a folder that only its owner can enter, unless it exists."""
    with writing(folder):
        try:
            folder.mkdir(0o700)
        except FileExistsError:
            if not folder.is_dir():
                raise NotADirectoryError(20, "") from None
            return
        sync_folder(folder.parent)


def path_of(folder: Path, kind: str, number: int) -> Path:
    """Return the path of a numbered file.

    >>> path_of(Path("state"), CHECKPOINT, 7).as_posix()
    'state/checkpoint-0000000007'
    """
    return folder / f"{kind}-{number:0{DIGITS}}"


def numbers_of(folder: Path, kind: str, ending: str = "") -> list[int]:
    """Return the numbers of all files of a kind, sorted."""
    name = re.compile(rf"{kind}-([0-9]{{{DIGITS},}}){re.escape(ending)}")
    try:
        found = [name.fullmatch(entry.name) for entry in folder.iterdir()]
    except OSError as error:
        raise ResourceError(f"{folder}: can't be read: {os_reason(error)}.") from None
    return sorted(int(match[1]) for match in found if match)


def drop(folder: Path, kind: str, numbers: Iterable[int], ending: str = "") -> None:
    """Remove numbered files; missing ones are ignored."""
    for number in numbers:
        path = path_of(folder, kind, number)
        path = path.with_name(path.name + ending)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ResourceError(f"{path}: can't be removed: {os_reason(error)}.") from None


def drop_leftovers(folder: Path, before: int) -> None:
    """Remove half-written files of a crash. Later ones may be in use, so they stay."""
    for kind in (CHECKPOINT, SEGMENT):
        drop(folder, kind, [n for n in numbers_of(folder, kind, PARTIAL) if n < before], PARTIAL)


@contextmanager
def locked(folder: Path, *, to_run: bool = True) -> Iterator[None]:
    """Lock the folder for this process, until the end of the context or of the process.

    The operating system releases the lock when the process ends, however it ends. Child processes
    don't hold it. If the folder is a copy, a warning says so: the lock of a copy keeps out nobody
    who uses the original.

    Parameters
    ----------
    folder
        The folder.
    to_run
        Whether the job runs. If it doesn't, the warning is left to its next run.

    Raises
    ------
    ResourceError
        If another process has it.
    """
    path = folder / LOCK
    with writing(path):
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.fchmod(number, 0o600)
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder, _ = _words(number)
        os.close(number)
        who = f"another process (pid {holder})" if holder.isdigit() else "another process"
        raise ResourceError(
            f"{folder}: {who} runs this job with this folder, and two at once would publish rows "
            "twice. Stop it first, or wait until it ends."
        ) from None
    except OSError as error:
        os.close(number)
        raise ResourceError(f"{path}: can't be locked: {os_reason(error)}.") from None
    _locks.add(number)
    owner = str(os.fstat(number).st_ino)
    try:
        if to_run:
            _warn_of_copy(folder, number)
        else:
            owner = _words(number)[1] or owner
        _write(number, str(os.getpid()), owner)
        yield
    finally:
        if number in _locks:
            _locks.discard(number)
            _write(number, "-", owner)
            os.close(number)


def _words(number: int) -> tuple[str, str]:
    """Return what a lock says: who holds it, and which file it is; empty where it says nothing."""
    words = os.pread(number, MOST_LOCK, 0).decode("ascii", "replace").split()
    return (*words, "", "")[0], (*words, "", "")[1]


def _write(number: int, holder: str, owner: str) -> None:
    # Only for people and for the warning of a copy; a full disk is no reason to fail.
    with suppress(OSError):
        text = f"{holder} {owner}\n"
        os.ftruncate(number, 0)
        os.pwrite(number, text.encode(), 0)


def _warn_of_copy(folder: Path, number: int) -> None:
    """Warn if the lock was written as another file: the folder is a copy, or was moved."""
    _, owner = _words(number)
    if owner.isdigit() and int(owner) != os.fstat(number).st_ino:
        text = (
            f"{folder}: was copied, or moved from another disk, since the job ran last. If the "
            "folder that it was copied from is still there, remove it: a job that goes on with "
            "both publishes the same people twice, and no promise holds for the two outputs "
            "together"
        )
        sentence(_log, logging.WARNING, "folder copied", text)
