"""Keep what was measured, so that a grid can grow without running its cells again.

An entry has figures and no value of a person. It is found by a digest of all that the figures
depend on: the rows, the schema, the policy, the algorithm and its knobs, the seed, and the code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
from pathlib import Path

import pyarrow as pa

from shoal.attacks import find
from shoal.compare.cells import Cell
from shoal.compare.measure import ATTACK, Figures, Rows
from shoal.engine.sources import closure, digest_of, path_of
from shoal.errors import ResourceError
from shoal.io.files.atomic import atomic_write

__all__ = ["MOST_ENTRIES", "ResultCache", "cache_folder"]

#: The most results that are kept; the oldest are removed.
MOST_ENTRIES = 5000


def cache_folder() -> Path:
    """Return where results are kept: beside the compiled kernels."""
    base = os.environ.get("SHOAL_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "shoal" / "compare"


class ResultCache:
    """Results of cells on some rows, in private files.

    Where the folder can't be written, or others can write to it, nothing is kept.

    Parameters
    ----------
    rows
        The data of the comparison.
    folder
        Where results are kept; None: nowhere.
    """

    def __init__(self, rows: Rows, folder: Path | None) -> None:
        self._folder = folder if folder is not None and _is_ours(folder) else None
        self._rows = b"" if self._folder is None else _digest_of_rows(rows)

    def get(self, cell: Cell) -> Figures | None:
        """Return the figures of a cell, or None if they aren't known."""
        path = self._path(cell)
        if path is None:
            return None
        try:
            return Figures.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            # It isn't there, or is damaged: it is measured again.
            return None

    def put(self, cell: Cell, figures: Figures) -> None:
        """Keep the figures of a cell; a full disk is no reason to fail."""
        path = self._path(cell)
        if path is None:
            return
        with contextlib.suppress(OSError, ResourceError):
            text = json.dumps(figures.as_dict())
            with atomic_write(path, private=True, tag=f".{os.getpid()}") as output:
                output.write(text.encode())
            self._prune(path.parent)

    def _path(self, cell: Cell) -> Path | None:
        module = type(cell.anonymizer).__module__
        # What was typed in has no file to compare, so it is never the same.
        if self._folder is None or path_of(module) is None:
            return None
        # An attack is found by its name, so no import of this module leads to it.
        attack = find(ATTACK).__module__
        code = digest_of(closure([__name__, module, attack]))
        digest = hashlib.blake2b(self._rows, digest_size=20)
        digest.update(repr((code, cell.policy, cell.anonymizer, cell.repeat)).encode())
        return self._folder / f"{digest.hexdigest()}.json"

    @staticmethod
    def _prune(folder: Path) -> None:
        entries = list(folder.glob("*.json"))
        if len(entries) > MOST_ENTRIES:
            entries.sort(key=lambda entry: entry.stat().st_mtime)
            for entry in entries[: len(entries) - MOST_ENTRIES]:
                entry.unlink(missing_ok=True)


def _is_ours(folder: Path) -> bool:
    """Create the folder; return whether it is this user's, and nobody else can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _digest_of_rows(rows: Rows) -> bytes:
    """Return a digest of the rows as they were read, their schema and the seed."""
    digest = hashlib.blake2b(digest_size=20)
    digest.update(repr(rows.seed).encode())
    # Everything that a schema has, the trees of its hierarchies included.
    digest.update(pickle.dumps(rows.schema))
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, rows.table.schema) as stream:
        # However the rows were cut into batches, they are the same rows.
        stream.write_table(rows.table.combine_chunks())
    digest.update(buffer.getvalue())
    return digest.digest()
