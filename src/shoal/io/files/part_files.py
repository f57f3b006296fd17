"""Write rows to a folder of complete files, and resume after a stop."""

from __future__ import annotations

import contextlib
import io
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from shoal.errors import CheckpointError, ResourceError, ShoalError
from shoal.io.base import CommitMark, Sink
from shoal.io.files.append import has_rows_already, wrong_output
from shoal.io.files.atomic import PARTIAL, rename_synced, sync_folder
from shoal.io.files.folder import files_in
from shoal.io.files.open import make_sink
from shoal.io.formats import file_type
from shoal.io.streams import Output, os_reason

__all__ = ["PartFilesSink", "remove_parts"]

_NAME = re.compile(r"rows-(\d{12,})-(\d{12,})\.(.+)")
_PARTIAL_NAME = re.compile(rf"rows-\d{{12,}}\..+{re.escape(PARTIAL)}")


def remove_parts(folder: Path) -> None:
    """Remove the files that a `PartFilesSink` wrote to a folder, and no others."""
    for file in folder.iterdir() if folder.is_dir() else ():
        if _NAME.fullmatch(file.name) or _PARTIAL_NAME.fullmatch(file.name):
            file.unlink()


class PartFilesSink:
    """Rows in complete files of a folder, ``rows-<first>-<end>.csv``, by row number in the output.

    A part file is written under a temporary name, synced, and then renamed, so a reader never sees
    an unfinished one. It is finished by `commit`, by `close`, when a row number is a multiple of
    ``part_rows``, and by the first write or `flush` after it has been open for ``part_seconds``.

    Guarantee: part files never change, and after `commit` they survive a loss of power. After a
    crash there are all rows up to the last commit, and maybe more; a resumed run adds those that
    are missing, and none twice. Old part files may be removed once a checkpoint includes them,
    except the last one.

    Parameters
    ----------
    path
        The folder; created if it doesn't exist.
    schema
        The columns.
    format
        The format of the part files, maybe with a compression.
    mark
        What `commit` returned; empty: from the beginning, where rows may exist already; None: a new
        output, which must have no rows.
    private
        Whether only the owner may read folder and files.
    part_rows
        The number of rows after which a part file is finished; None: not by rows.
    part_seconds
        The seconds after which the next write or flush finishes a part file; None: not by time.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        format: str,  # noqa: A002 - the word users know
        mark: CommitMark | None,
        *,
        private: bool = False,
        part_rows: int | None = None,
        part_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = os.fspath(path)
        if mark and "seq" not in mark:
            raise wrong_output(
                self._name, "isn't the kind of output that the checkpoint belongs to"
            )
        self._folder = Path(path)
        self._schema, self._private = schema, private
        self._ending = format.lower().lstrip(".")
        self._kind = file_type(path, format)
        self._part_rows, self._part_seconds, self._clock = part_rows, part_seconds, clock
        self._seq: int = mark["seq"] if mark else 0
        self._part: _Part | None = None
        self._failure: BaseException | None = None
        self._make_folder()
        if mark is None and files_in(self._folder):
            raise has_rows_already(self._name)
        self._n_there = max(self._seq, self._scan())
        try:
            if private:
                self._folder.chmod(0o700)
            for file in self._folder.iterdir():
                if _PARTIAL_NAME.fullmatch(file.name):
                    file.unlink()
        except OSError as error:
            raise ResourceError(f"{self._name}: can't be written: {os_reason(error)}.") from None
        # The writer of the last part may have been killed before the sync: rows that are dropped
        # because the part has them must be on the disk.
        sync_folder(self._folder)

    @property
    def name(self) -> str:
        """The folder, as messages call it."""
        return self._name

    @property
    def n_ahead(self) -> int:
        """The number of rows in complete files that haven't been written again."""
        return max(0, self._n_there - self._seq)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows; those that complete files have already are dropped."""
        if self._failure is not None:
            raise self._failure
        n_known = min(batch.num_rows, self.n_ahead)
        self._seq += n_known
        batch = batch.slice(n_known)
        try:
            while batch.num_rows:
                batch = batch.slice(self._write_some(batch))
            if self._is_old():
                self._finish()
        except BaseException as error:
            self._abandon(error)
            raise

    def flush(self) -> None:
        """Finish the part file if it is old enough: only then can its rows be read."""
        if self._is_old():
            self.commit()

    def commit(self) -> CommitMark:
        """Finish the part file; return the mark to resume from."""
        if self._failure is not None:
            raise self._failure
        try:
            self._finish()
        except BaseException as error:
            self._abandon(error)
            raise
        return {"seq": self._seq}

    def abandon(self) -> None:
        """Remove the part file that isn't finished."""
        self._abandon(ResourceError(f"{self._name}: was given up."))

    def close(self) -> None:
        """Finish the part file. Closing twice does no harm; after a failure it is silent."""
        if self._failure is None:
            self.commit()

    # -- part files ------------------------------------------------------------------------------

    def _write_some(self, batch: pa.RecordBatch) -> int:
        """Write what fits into the part file; return the number of rows."""
        if self._part is None:
            self._part = self._open()
        n_rows: int = batch.num_rows
        if self._part_rows is not None:
            n_rows = min(n_rows, self._part_rows - self._seq % self._part_rows)
        self._part.sink.write(batch.slice(0, n_rows))
        self._seq += n_rows
        if self._part_rows is not None and self._seq % self._part_rows == 0:
            self._finish()
        return n_rows

    def _is_old(self) -> bool:
        if self._part is None or self._part_seconds is None:
            return False
        return self._clock() - self._part.opened >= self._part_seconds

    def _open(self) -> _Part:
        partial = self._folder / f"rows-{self._seq:012d}.{self._ending}{PARTIAL}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            number = os.open(partial, flags, 0o600 if self._private else 0o666)
        except OSError as error:
            raise ResourceError(f"{partial}: can't be written: {os_reason(error)}.") from None
        output = _SyncedOutput(io.FileIO(number, "wb"), str(partial))
        try:
            sink = make_sink(output, self._schema, self._kind)
        except BaseException:
            output.drop()
            partial.unlink()
            raise
        return _Part(sink, output, partial, self._seq, self._clock())

    def _finish(self) -> None:
        part = self._part
        if part is None:
            return
        part.sink.close()
        name = f"rows-{part.first:012d}-{self._seq:012d}.{self._ending}"
        rename_synced(part.partial, self._folder / name)
        self._part, self._n_there = None, self._seq

    def _abandon(self, error: BaseException) -> None:
        """Remove a part file that failed."""
        self._failure, part, self._part = error, self._part, None
        if part is not None:
            part.output.drop()
            with contextlib.suppress(ShoalError):
                part.sink.close()
            part.partial.unlink(missing_ok=True)

    # -- existing files --------------------------------------------------------------------------

    def _make_folder(self) -> None:
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(mode=0o700 if self._private else 0o777)
                sync_folder(self._folder.absolute().parent)
        except OSError as error:
            raise ResourceError(f"{self._name}: can't be created: {os_reason(error)}.") from None

    def _scan(self) -> int:
        """Return the row up to which complete files exist, and check that they are contiguous."""
        parts = sorted(
            (int(shape[1]), int(shape[2]))
            for shape in map(_NAME.fullmatch, files_in(self._folder))
            if shape is not None
        )
        if not parts and not self._seq:
            return 0
        if not parts or parts[-1][1] < self._seq or parts[0][0] > self._seq:
            raise self._wrong(f"its files don't reach to row {self._seq:,}")
        at = parts[0][0]
        for first, end in parts:
            if first != at or end <= first:
                what = "a gap" if first > at else "an overlap"
                raise self._wrong(f"its files have {what} at row {at:,}")
            at = end
        return at

    def _wrong(self, what: str) -> CheckpointError:
        return wrong_output(self._name, f"{what}, and the checkpoint includes all of them")


class _Part(NamedTuple):
    """The part file that is being written."""

    sink: Sink
    output: _SyncedOutput
    partial: Path
    first: int
    opened: float


class _SyncedOutput(Output):
    """A file that is synced to the disk when it is closed."""

    def close(self) -> None:
        if not self.closed and not self.broken:
            self.sync()
        super().close()
