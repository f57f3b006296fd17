"""Numbered state files of one kind, each of which may be written again.

A file that is computed again after a failure overwrites the former one with the same bytes, but for
the seal. Several processes may do so at once; writes are atomic.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from shoal.io.files.atomic import PARTIAL, atomic_write
from shoal.run.state.checkpoint import Checkpoint, checkpoint_bytes
from shoal.run.state.folder import drop, numbers_of, path_of, writing
from shoal.run.state.seal import Seal
from shoal.run.state.store import read_checkpoint

__all__ = ["Versions"]

#: What to do about a changed job. Only Spark's states are kept in such files.
_FIX = (
    "A job on Spark can't change while it lives. Restore that job; or drain with it, and start the "
    "new one with another folder and another output."
)


class Versions:
    """Save and load the files of one kind in a folder.

    Parameters
    ----------
    folder
        Where they are; it must exist before one is written.
    kind
        The prefix of their names.
    job
        A digest of each section of the job that they depend on.
    seal
        Seals them; None: they are in clear.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     states = Versions(Path(name), "state", job={"policy": "ab12"}, seal=None)
    ...     n_bytes = states.save(7, {"seq": 12})
    ...     states.load(7).facts, states.numbers()
    ({'seq': 12}, [7])
    """

    def __init__(
        self, folder: Path, kind: str, *, job: Mapping[str, str], seal: Seal | None
    ) -> None:
        self._folder, self._kind, self._job, self._seal = folder, kind, dict(job), seal

    def __repr__(self) -> str:
        return f"Versions({str(self._folder)!r}, {self._kind!r})"

    def numbers(self) -> list[int]:
        """Return the existing numbers, sorted."""
        return numbers_of(self._folder, self._kind) if self._folder.is_dir() else []

    def has(self, number: int) -> bool:
        """Return whether there is one with this number."""
        return path_of(self._folder, self._kind, number).is_file()

    def save(
        self,
        number: int,
        facts: dict[str, Any],
        arrays: Mapping[str, NDArray[Any]] | None = None,
        batches: Mapping[str, pa.RecordBatch] | None = None,
    ) -> int:
        """Write one, overwriting any of this number; return its size in bytes."""
        checkpoint = Checkpoint(number, facts, dict(arrays or {}), dict(batches or {}))
        path = path_of(self._folder, self._kind, number)
        tag = f".{os.getpid()}-{secrets.token_hex(4)}"
        with writing(path), atomic_write(path, private=True, tag=tag) as output:
            return sum(
                output.write(block)
                for block in checkpoint_bytes(checkpoint, self._job, time.time(), self._seal)
            )

    def load(self, number: int) -> Checkpoint:
        """Read one.

        Raises
        ------
        CheckpointError
            If it must not be used: damaged, of a newer format, of another job, sealed otherwise.
        ResourceError
            If it can't be read.
        """
        path = path_of(self._folder, self._kind, number)
        return read_checkpoint(path, number, self._job, self._seal, fix=_FIX)[1]

    def stamp(self, number: int) -> tuple[int, ...]:
        """Return the identity of a file: it changes when the file is written again.

        It doesn't depend on the content; it is empty if there is no file.
        """
        try:
            found = path_of(self._folder, self._kind, number).stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size

    def drop_before(self, number: int) -> None:
        """Remove those before a number, and their half-written files of a crash."""
        before = [other for other in self.numbers() if other < number]
        drop(self._folder, self._kind, before)
        if not self._folder.is_dir():
            return
        for left in self._folder.glob(f"{self._kind}-*{PARTIAL}"):
            digits = left.name.removeprefix(f"{self._kind}-").split(".")[0]
            if digits.isdigit() and int(digits) < number:
                left.unlink(missing_ok=True)
