"""Files that hold personal data: only their owner can read them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from types import EllipsisType

import pyarrow as pa

from shoal.errors import ParameterError
from shoal.io.base import BadRow, CommitMark, DurableSink, Sink
from shoal.io.files.durable import is_folder, open_durable
from shoal.io.files.open import make_sink
from shoal.io.formats import file_type
from shoal.io.streams import Output, open_output

__all__ = ["QuarantineWriter", "open_private"]


def open_private(path: str | os.PathLike[str]) -> Output:
    """Create or empty a file that only its owner can read and write (mode 0600)."""
    return open_output(path, private=True)


class QuarantineWriter:
    """Writes the bad rows of an input, with their numbers and reasons, to a private file.

    Columns: ``row``, ``reason`` and ``raw``, the row as it was (null where the format has no raw
    rows). In typed formats ``raw`` is bytes; in text formats it is text, in which bytes that
    aren't UTF-8 are written as ``\\xff``.

    Guarantee: in CSV, JSON lines and Arrow, uncompressed, rows are in the file when `write`
    returns. In Parquet they are there after `close`; an abrupt end loses them, so a job that must
    not lose a bad row writes one of the other formats.

    Parameters
    ----------
    path
        The file; its ending decides the format. With a mark also a folder, for CSV part files.
    mark
        Where to resume after a stop, as for `open_durable`: what `commit` returned, an empty one
        for the very beginning, None for a new file. Left out, the file is emptied, and can't be
        resumed.
    opener
        Opens another `DurableSink` for text at the mark.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mark: CommitMark | EllipsisType | None = ...,
        *,
        opener: Callable[[pa.Schema, CommitMark | None], Sink] | None = None,
    ) -> None:
        in_folder = not isinstance(mark, EllipsisType) and is_folder(path)
        form = "jsonl" if opener is not None else "csv" if in_folder else None
        kind = file_type(path, form)
        self._raw_is_text = kind.is_text
        self.n_rows = 0
        self._schema = pa.schema(
            [
                ("row", pa.int64()),
                ("reason", pa.string()),
                ("raw", pa.string() if self._raw_is_text else pa.binary()),
            ]
        )
        self._durable: DurableSink | None = None
        if opener is not None and not isinstance(mark, EllipsisType):
            opened = opener(self._schema, mark)
            assert isinstance(opened, DurableSink)
            self._durable = opened
        elif not isinstance(mark, EllipsisType):
            self._durable = open_durable(path, self._schema, mark, private=True)
        self._sink: Sink = self._durable or make_sink(open_private(path), self._schema, kind)
        self._sink.flush()

    def __repr__(self) -> str:
        return f"QuarantineWriter(n_rows={self.n_rows})"

    def write(self, rows: Iterable[BadRow]) -> None:
        """Append bad rows."""
        bad = list(rows)
        if not bad:
            return
        raw: list[bytes | str | None] = [row.raw for row in bad]
        if self._raw_is_text:
            raw = [
                None if row.raw is None else row.raw.decode(errors="backslashreplace")
                for row in bad
            ]
        columns = [[row.row for row in bad], [row.text for row in bad], raw]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
        self._sink.write(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._sink.flush()
        self.n_rows += len(bad)

    def commit(self) -> CommitMark:
        """Make all rows so far durable; return the mark to resume from."""
        if self._durable is None:
            raise ParameterError("mark", "was left out: this quarantine file can't be resumed")
        return self._durable.commit()

    @property
    def n_ahead(self) -> int:
        """How much the file has that hasn't been written again, in rows or bytes."""
        return 0 if self._durable is None else self._durable.n_ahead

    def close(self) -> None:
        """Finish the file."""
        self._sink.close()
