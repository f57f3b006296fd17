"""Write files atomically: under a temporary name, synced, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.errors import ResourceError
from shoal.io.streams import Output, open_output, os_reason

__all__ = ["PARTIAL", "atomic_write", "rename_synced", "sync_folder"]

#: The ending of files that aren't complete yet; readers of a folder skip them.
PARTIAL = ".partial"


@contextmanager
def atomic_write(path: Path, *, private: bool = False, tag: str = "") -> Iterator[Output]:
    """Write a file that appears under its name only when it is complete and on the disk.

    A previous file of that name stays until then. A failure leaves nothing behind; a crash leaves a
    file with the ending `PARTIAL`, which the next attempt overwrites. Where several processes may
    write the same file at once, each needs its own ``tag``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "state") as output:
    ...         n = output.write(b"whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['state']
    """
    partial = path.with_name(path.name + tag + PARTIAL)
    output = open_output(partial, private=private)
    try:
        yield output
        output.sync()
        output.close()
    except BaseException:
        output.close()
        partial.unlink(missing_ok=True)
        raise
    rename_synced(partial, path)


def rename_synced(partial: Path, path: Path) -> None:
    """Rename a file that was synced and closed, and sync the folder."""
    try:
        partial.replace(path)
    except OSError as error:
        raise ResourceError(f"{path}: can't be written: {os_reason(error)}.") from None
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the list of files of a folder to the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
