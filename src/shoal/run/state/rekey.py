"""Seal the files of a job with another key.

All files are read and opened before the first one is replaced: with files of two keys, a run could
no longer fall back from a damaged checkpoint. Then they are replaced one by one, each at once. If
it is cut off, some have the old key and some the new one; a second call finishes it, whether or not
a run has resumed in between.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from shoal.errors import CheckpointError, JobError, Problem, ResourceError
from shoal.io.files.atomic import atomic_write
from shoal.io.streams import os_reason
from shoal.run.state import checkpoint, private_files, segment
from shoal.run.state.folder import CHECKPOINT, HISTORY, LOCK, SEGMENT, locked, writing
from shoal.run.state.heading import DamagedError, read_heading
from shoal.run.state.seal import Seal
from shoal.run.state.store import read_file

__all__ = ["Rekeyed", "is_of_job", "rekey"]

_NUMBERED = re.compile(r"[a-z]+-([0-9]{10,})(\.jsonl\.sealed)?")
#: What only a state folder has, beside its lock. The last two are those of a job on Spark.
_OF_STATE = re.compile(rf"({CHECKPOINT}|{SEGMENT}|plan|commit)-[0-9]{{10,}}")
#: Files beside which nothing else is written: those of a state, and private ones.
_OF_JOB = re.compile(rf"{LOCK}|{_OF_STATE.pattern}|rows-[0-9]{{10,}}\.jsonl(\.sealed)?")
#: The most bytes of a heading that tell the kind of a file.
_FIRST = 8


class Rekeyed(NamedTuple):
    """How many files were sealed anew, had the new key already, or were removed.

    Only damaged histories of the page are removed: no run needs them.
    """

    n_changed: int
    n_there: int
    n_removed: int


def rekey(folders: Sequence[Path], old: Seal | None, new: Seal) -> Rekeyed:
    """Seal all files of a job with another key.

    Parameters
    ----------
    folders
        The state folder of the job, and its folders of sealed traces and quarantines, in any order.
        Each folder with a state is locked.
    old
        The key that they have; None: they are in clear.
    new
        The key that they get.

    Raises
    ------
    JobError
        If none of the folders has a state.
    ResourceError
        If a run uses a folder, or a file can't be read or written.
    CheckpointError
        If a folder of private files has some in clear, or a file is damaged or has neither key;
        nothing was changed then. But if a call before was cut off, all files get the new key except
        the damaged one.
    """
    where = ", ".join(map(str, folders))
    if old is not None and old.fingerprint == new.fingerprint:
        raise CheckpointError(f"{where}: both keys are the same: {new.fingerprint}.")
    for folder in folders:
        if not folder.is_dir():
            raise ResourceError(f"{folder}: isn't a folder that can be read. Check the path.")
    states = _state_folders(folders)
    if not states:
        what = "has no state of a job, so nothing tells whether a run uses its files"
        fix = "Name the folder of run.checkpoint, too"
        raise JobError(Problem("DIR", what, where, fix))
    n_changed = n_there = n_removed = 0
    with contextlib.ExitStack() as stack:
        for state in states.values():
            stack.enter_context(locked(state, to_run=False))
        _refuse_clear(folders, states)
        # Histories come last: nothing is removed before all that a job needs has the new key.
        files = sorted(_files(folders), key=lambda file: _is_history(file[0]))
        damage = _check(files, old, new)
        for path, number, kind in files:
            if path in damage:
                if _is_history(path):
                    with writing(path):
                        path.unlink()
                    n_removed += 1
                continue
            is_changed = _rekey_file(path, number, kind, old, new)
            n_changed += is_changed
            n_there += not is_changed
    needed = [error for path, error in damage.items() if not _is_history(path)]
    if needed:
        raise CheckpointError(
            f"{needed[0]} All other files have the new key, as some had it before. Go on with the "
            "new key; if it is a checkpoint, with `shoal run … --fall-back`."
        )
    return Rekeyed(n_changed, n_there, n_removed)


def is_of_job(folder: Path) -> bool:
    """Return whether a folder has files of a state, or of private rows."""
    try:
        with os.scandir(folder) as entries:
            return any(_OF_JOB.fullmatch(entry.name) and entry.is_file() for entry in entries)
    except OSError:
        return False  # whoever writes there says what is wrong


def _check(
    files: Sequence[tuple[Path, int, bytes]], old: Seal | None, new: Seal
) -> dict[Path, DamagedError]:
    """Open all files that don't have the new key; return those that are damaged.

    Raises
    ------
    CheckpointError
        If a file has neither key. If a file that a run needs is damaged, and none has the new key.
    """
    damage: dict[Path, DamagedError] = {}
    n_there = 0
    for path, number, kind in files:
        try:
            n_there += _new_blocks(path, number, kind, old, new) is None
        except DamagedError as error:
            damage[path] = error
        except CheckpointError as error:
            fix = " Nothing was changed."
            if _is_history(path):
                fix += " Or remove the file: it is only a history of the page, which no run needs."
            raise CheckpointError(f"{error}{fix}") from None
    for path, found in damage.items():
        # Where some files have the new key, a run could resume with neither: all get the new one.
        if not n_there and not _is_history(path):
            fix = "Nothing was changed."
            if path.name.startswith(f"{CHECKPOINT}-"):
                fix += (
                    " Resume first with `shoal run … --fall-back` under the present key, which "
                    "writes new checkpoints; then stop it and call this again."
                )
            raise CheckpointError(f"{found} {fix}")
    return damage


def _rekey_file(path: Path, number: int, kind: bytes, old: Seal | None, new: Seal) -> bool:
    """Seal a file anew; return False if it has the key already."""
    blocks = _new_blocks(path, number, kind, old, new)
    if blocks is None:
        return False
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


def _new_blocks(
    path: Path, number: int, kind: bytes, old: Seal | None, new: Seal
) -> list[bytes] | None:
    """Return the bytes of a file under the new key; None if it has that key already."""
    data = read_file(path)
    if read_heading(path, data, kind, _NEWEST[kind], number).key == new.fingerprint:
        return None
    if kind == checkpoint.MAGIC:
        return list(checkpoint.resealed(path, data, number, old, new))
    if kind == segment.MAGIC:
        return [segment.resealed(path, number, old, new)]
    return [private_files.resealed(path, data, number, old, new)]


def _state_folders(folders: Iterable[Path]) -> dict[Path, Path]:
    """Return the folders with a state, by their real path: each is locked once."""
    return {
        path.parent.resolve(): path.parent
        for path in _paths(folders)
        if path.name == LOCK or _OF_STATE.fullmatch(path.name)
    }


def _refuse_clear(folders: Iterable[Path], states: Collection[Path]) -> None:
    """Raise if a file that isn't of a state is in clear: no key would make it private."""
    for folder in folders:
        clear = [
            path
            for path in _paths([folder])
            if not any(state in path.resolve().parents for state in states)
            # A crash may leave a file with the beginning of a heading only.
            and not any(magic.startswith(_first_of(path)) for magic in _NEWEST)
        ]
        if clear:
            n = "1 file isn't" if len(clear) == 1 else f"{len(clear):,} files aren't"
            raise CheckpointError(
                f"{folder}: {n} sealed and would stay in clear: {clear[0].name} is the first. "
                "Nothing was changed. The rows of a job without private.seal stay in clear: leave "
                "their folders out. Move files of other kinds elsewhere."
            )


def _files(folders: Iterable[Path]) -> Iterator[tuple[Path, int, bytes]]:
    """Yield all files of Shoal in folders and their folders, with their number and kind."""
    for path in _paths(folders):
        match = _NUMBERED.fullmatch(path.name)
        if match is not None and (kind := _first_of(path)) in _NEWEST:
            yield path, int(match[1]), kind


def _paths(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield each file in folders and their folders once."""

    def refuse(error: OSError) -> None:
        raise ResourceError(f"{error.filename}: can't be read: {os_reason(error)}.") from None

    seen: set[Path] = set()
    for folder in folders:
        for place, _, names in os.walk(folder, onerror=refuse):
            for path in (Path(place, name) for name in sorted(names)):
                if (real := path.resolve()) not in seen and path.is_file():
                    seen.add(real)
                    yield path


def _first_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_FIRST)
    except OSError as error:
        raise ResourceError(f"{path}: can't be read: {os_reason(error)}.") from None
