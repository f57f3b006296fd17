"""A folder of complete files as an output that survives the end of its process."""

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
from shoal.io.base import Mark, Sink
from shoal.io.files.append import has_rows_already, not_of_this_output
from shoal.io.files.atomic import ASIDE, put_in_place, sync_folder
from shoal.io.files.folder import files_in
from shoal.io.files.open import make_sink
from shoal.io.formats.names import tell_format
from shoal.io.streams import Output, why

__all__ = ["PartsSink"]

_NAME = re.compile(r"rows-(\d{12,})-(\d{12,})\.(.+)")
_ASIDE_NAME = re.compile(rf"rows-\d{{12,}}\..+{re.escape(ASIDE)}")


class PartsSink:
    """Rows in complete files of a folder: ``rows-<first>-<end>.csv`` by their places in the output.

    A part is written aside, synced, and then given its name, so a reader never sees an unfinished
    one. It is finished by `commit`, by `close`, when a row's place is a multiple of ``part_rows``,
    and by the first write or `flush` after it has been open for ``part_seconds``.

    Guarantee: parts are never changed, and after `commit` no loss of power takes one back. After a
    crash there are all rows up to the last commit, and maybe more; whoever goes on adds those that
    are missing, and none twice. Old parts may be taken away as far as a checkpoint knows of them,
    but for the last one.

    Parameters
    ----------
    path
        The folder, made if it isn't there.
    schema
        The columns.
    format
        The format of the parts, maybe with a compression.
    mark
        What `commit` gave; empty: from the beginning, where rows may be already; None: anew.
    private
        Whether only the owner may read folder and files.
    part_rows
        After how many rows a part is finished; None: not by rows.
    part_seconds
        After how many seconds a part is finished by the next write or flush; None: not by time.
    clock
        What tells the seconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        format: str,  # noqa: A002 - the word users know
        mark: Mark | None,
        *,
        private: bool = False,
        part_rows: int | None = None,
        part_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = os.fspath(path)
        if mark and "seq" not in mark:
            raise not_of_this_output(
                self._name, "isn't the kind of output that the checkpoint knows"
            )
        self._folder = Path(path)
        self._schema, self._private = schema, private
        self._ending = format.lower().lstrip(".")
        self._kind = tell_format(path, format)
        self._part_rows, self._part_seconds, self._clock = part_rows, part_seconds, clock
        self._seq: int = mark["seq"] if mark else 0
        self._part: _Part | None = None
        self._failure: BaseException | None = None
        self._make_folder()
        if mark is None and files_in(self._folder):
            raise has_rows_already(self._name)
        self._n_there = max(self._seq, self._look())
        if private:
            self._folder.chmod(0o700)
        for file in self._folder.iterdir():
            if _ASIDE_NAME.fullmatch(file.name):
                file.unlink()
        # Who named the last part may have been killed before the disk knew: rows that are dropped
        # because it has them must stay.
        sync_folder(self._folder)

    @property
    def n_ahead(self) -> int:
        """How many rows are in complete files that haven't been given again."""
        return max(0, self._n_there - self._seq)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows; those that complete files have already are dropped."""
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
        """Finish the part if it is old enough: its rows can be read then, and not before."""
        if self._is_old():
            self.commit()

    def commit(self) -> Mark:
        """Finish the part; give the mark to go on from."""
        if self._failure is not None:
            raise self._failure
        try:
            self._finish()
        except BaseException as error:
            self._abandon(error)
            raise
        return {"seq": self._seq}

    def abandon(self) -> None:
        """Leave nothing of the part that isn't finished."""
        self._abandon(ResourceError(f"{self._name}: was given up."))

    def close(self) -> None:
        """Finish the part. Closing twice does no harm; after a failure it is silent."""
        if self._failure is None:
            self.commit()

    # -- parts -----------------------------------------------------------------------------------

    def _write_some(self, batch: pa.RecordBatch) -> int:
        """Write what fits into the part; give how many rows that were."""
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
        aside = self._folder / f"rows-{self._seq:012d}.{self._ending}{ASIDE}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            number = os.open(aside, flags, 0o600 if self._private else 0o666)
        except OSError as error:
            raise ResourceError(f"{aside}: can't be written: {why(error)}.") from None
        output = _SyncedOutput(io.FileIO(number, "wb"), str(aside))
        try:
            sink = make_sink(output, self._schema, self._kind)
        except BaseException:
            output.drop()
            aside.unlink()
            raise
        return _Part(sink, output, aside, self._seq, self._clock())

    def _finish(self) -> None:
        part = self._part
        if part is None:
            return
        part.sink.close()
        name = f"rows-{part.first:012d}-{self._seq:012d}.{self._ending}"
        put_in_place(part.aside, self._folder / name)
        self._part, self._n_there = None, self._seq

    def _abandon(self, error: BaseException) -> None:
        """Leave nothing of a part that failed."""
        self._failure, part, self._part = error, self._part, None
        if part is not None:
            part.output.drop()
            with contextlib.suppress(ShoalError):
                part.sink.close()
            part.aside.unlink(missing_ok=True)

    # -- what is there ---------------------------------------------------------------------------

    def _make_folder(self) -> None:
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(mode=0o700 if self._private else 0o777)
                sync_folder(self._folder.absolute().parent)
        except OSError as error:
            raise ResourceError(f"{self._name}: can't be made: {why(error)}.") from None

    def _look(self) -> int:
        """Give how many rows the complete files reach to, and check that they fit together."""
        parts = sorted(
            (int(shape[1]), int(shape[2]))
            for shape in map(_NAME.fullmatch, files_in(self._folder))
            if shape is not None
        )
        if not parts and not self._seq:
            return 0
        if not parts or parts[-1][1] < self._seq or parts[0][0] > self._seq:
            raise self._unfit(f"its files don't reach to row {self._seq:,}")
        at = parts[0][0]
        for first, end in parts:
            if first != at or end <= first:
                what = "a gap" if first > at else "an overlap"
                raise self._unfit(f"its files have {what} at row {at:,}")
            at = end
        return at

    def _unfit(self, what: str) -> CheckpointError:
        return not_of_this_output(self._name, f"{what}, and the checkpoint knows of all of them")


class _Part(NamedTuple):
    """The part that is being written."""

    sink: Sink
    output: _SyncedOutput
    aside: Path
    first: int
    opened: float


class _SyncedOutput(Output):
    """A file that is on the disk when it is closed."""

    def close(self) -> None:
        if not self.closed and not self.broken:
            self.sync()
        super().close()
