"""Seal the files of a job with another key.

Files are replaced one by one, each at once. If it is cut off, some have the old key and some the
new one; then no run resumes, and a second call finishes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from shoal.errors import CheckpointError, ResourceError
from shoal.io.files.atomic import atomic_write
from shoal.io.streams import os_reason
from shoal.run.state import checkpoint, private_files, segment
from shoal.run.state.folder import HISTORY, LOCK, locked, writing
from shoal.run.state.heading import read_heading
from shoal.run.state.seal import Seal
from shoal.run.state.store import read_file

__all__ = ["rekey"]

_NUMBERED = re.compile(r"[a-z]+-([0-9]{10,})(\.jsonl\.sealed)?")
#: The most bytes of a heading that tell the kind of a file.
_FIRST = 8


def rekey(folder: Path, others: Sequence[Path], old: Seal | None, new: Seal) -> tuple[int, int]:
    """Seal all files of a state folder, and of other folders of private files, with another key.

    Parameters
    ----------
    folder
        The folder of the checkpoints. No run may use it meanwhile.
    others
        Folders of sealed traces and quarantines.
    old
        The key that they have; None: they are in clear.
    new
        The key that they get.

    Returns
    -------
    tuple
        How many files were sealed anew, and how many had the new key already.

    Raises
    ------
    ResourceError
        If a run uses the folder, or a file can't be read or written.
    CheckpointError
        If a file is damaged, or has neither key. Those before it have the new key already.
    """
    if old is not None and old.fingerprint == new.fingerprint:
        raise CheckpointError(f"{folder}: both keys are the same: {new.fingerprint}.")
    if not folder.is_dir():
        raise ResourceError(f"{folder}: isn't a folder that can be read. Check the path.")
    n_changed = n_there = 0
    with locked(folder):
        # Histories come last: nothing is removed before the key has opened all that a job needs.
        files = sorted(_files([folder, *others]), key=lambda file: _is_history(file[0]))
        for path, number, kind in files:
            try:
                is_changed = _rekey_file(path, number, kind, old, new)
            except CheckpointError:
                if not _is_history(path):
                    raise
                # No job needs it, and each run would ignore it.
                with writing(path):
                    path.unlink()
                continue
            n_changed += is_changed is True
            n_there += is_changed is False
    return n_changed, n_there


def _rekey_file(path: Path, number: int, kind: bytes, old: Seal | None, new: Seal) -> bool | None:
    """Seal a file anew; return False if it has the key, None if it is to stay in clear."""
    data = read_file(path)
    key = read_heading(path, data, kind, _NEWEST[kind], number).key
    if key == new.fingerprint:
        return False
    if key is None and kind == private_files.MAGIC:
        return None
    blocks = _resealed(path, data, number, kind, old, new)
    # All of it is made before the first byte is written: a damaged file changes nothing.
    with writing(path):
        written = path.stat()
        with atomic_write(path, private=True) as output:
            for block in blocks:
                output.write(block)
        # Private files are removed by their age, which a new key doesn't change.
        os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    return True


def _is_history(path: Path) -> bool:
    return path.name.startswith(f"{HISTORY}-")


_NEWEST = {
    checkpoint.MAGIC: checkpoint.FORMAT,
    segment.MAGIC: segment.FORMAT,
    private_files.MAGIC: private_files.FORMAT,
}


def _resealed(
    path: Path, data: bytes, number: int, kind: bytes, old: Seal | None, new: Seal
) -> list[bytes]:
    if kind == checkpoint.MAGIC:
        return list(checkpoint.resealed(path, data, number, old, new))
    if kind == segment.MAGIC:
        return [segment.resealed(path, number, old, new)]
    assert old is not None
    return [private_files.resealed(path, data, number, old, new)]


def _files(folders: Sequence[Path]) -> Iterator[tuple[Path, int, bytes]]:
    """Yield all files of Shoal in folders and their folders, with their number and kind."""
    for folder in folders:
        try:
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
        except OSError as error:
            raise ResourceError(f"{folder}: can't be read: {os_reason(error)}.") from None
        for path in paths:
            match = _NUMBERED.fullmatch(path.name)
            if match is None or path.name == LOCK:
                continue
            try:
                with path.open("rb") as file:
                    kind = file.read(_FIRST)
            except OSError as error:
                raise ResourceError(f"{path}: can't be read: {os_reason(error)}.") from None
            if kind in _NEWEST:
                yield path, int(match[1]), kind
