"""A private folder beside a report for the trace of its run, which is never left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.cli.signals import removed_at_the_end

__all__ = ["TRACE", "private_folder", "remove_stale"]

#: The only file in such a folder.
TRACE = "trace.parquet"
_PREFIX = ".shoal-"


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """Make a folder that only its owner can read; remove it at the end, or when a signal comes.

    It is locked while it is in use, so that another run can tell it from one that was left behind.
    """
    made: list[Path] = []

    def remove() -> None:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)

    with removed_at_the_end(remove):
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        made.append(folder)
        number = os.open(folder, os.O_RDONLY)
        try:
            # Where folders can't be locked, nobody takes an unlocked one for left behind.
            _lock(number)
            yield folder
        finally:
            os.close(number)


def remove_stale(parent: Path) -> list[Path]:
    """Remove the folders that runs which were killed left behind; return them.

    Only what is certainly such a folder is removed: it is ours, private, not locked, and has
    nothing but a trace in it.
    """
    removed = []
    for folder in sorted(parent.glob(f"{_PREFIX}*")):
        try:
            number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if _is_ours(number) and _lock(number):
                shutil.rmtree(folder, ignore_errors=True)
                removed += [] if folder.exists() else [folder]
        finally:
            os.close(number)
    return removed


def _is_ours(number: int) -> bool:
    found = os.fstat(number)
    is_private = found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700
    # An empty one may be that of a run which hasn't locked it yet.
    return is_private and os.listdir(number) == [TRACE]


def _lock(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
