"""Whole files or none: written aside, synced, then renamed to their place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.errors import ResourceError
from shoal.io.streams import Output, open_output, why

__all__ = ["ASIDE", "atomic_write", "put_in_place", "sync_folder"]

#: The ending of files that aren't whole yet; whoever reads a folder leaves them alone.
ASIDE = ".partial"


@contextmanager
def atomic_write(path: Path, *, private: bool = False, tag: str = "") -> Iterator[Output]:
    """Write a file that appears under its name when it is whole and on the disk, or never.

    What stood under the name before stays there until then. After a failure nothing is left
    behind; after a crash a file with the ending `ASIDE`, which the next attempt overwrites. Where
    several may write the same file at once, each has a ``tag`` of its own.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "state") as output:
    ...         n = output.write(b"whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['state']
    """
    aside = path.with_name(path.name + tag + ASIDE)
    output = open_output(aside, private=private)
    try:
        yield output
        output.sync()
        output.close()
    except BaseException:
        output.close()
        aside.unlink(missing_ok=True)
        raise
    put_in_place(aside, path)


def put_in_place(aside: Path, path: Path) -> None:
    """Give a file that was synced and closed the name it is for, and have the disk keep that."""
    try:
        aside.replace(path)
    except OSError as error:
        raise ResourceError(f"{path}: can't be written: {why(error)}.") from None
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the disk keep which files a folder has."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
