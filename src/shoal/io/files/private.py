"""Files that hold personal data: for their owner's eyes only."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import EllipsisType

import pyarrow as pa

from shoal.errors import ParameterError
from shoal.io.base import BadRow, Durable, Mark, Sink
from shoal.io.files.durable import is_folder, open_durable
from shoal.io.files.open import make_sink
from shoal.io.formats.names import Format, tell_format
from shoal.io.streams import Output, open_output

__all__ = ["QuarantineWriter", "open_private"]


def open_private(path: str | os.PathLike[str]) -> Output:
    """Create a file, or empty one, that only its owner can read and write (mode 0600).

    What is given has ``write``, ``flush`` and ``close``.
    """
    return open_output(path, private=True)


class QuarantineWriter:
    """The bad rows of an input, with their positions and what is wrong, in a private file.

    Columns: ``row``, ``reason`` and ``raw``, the row as it was (null where the format has no such
    thing). In Parquet and Arrow ``raw`` is bytes; in CSV and JSON lines it is text, in which
    bytes that aren't UTF-8 are written as ``\\xff``.

    Guarantee: in CSV, JSON lines and Arrow, uncompressed, rows are in the file when `write`
    returns. In Parquet they are there after `close`; an abrupt end loses them, so a job that must
    not lose a bad row writes one of the others.

    Parameters
    ----------
    path
        Where to; the ending tells the format. With a mark also a folder, for parts of CSV.
    mark
        Where to go on after a stop, as for `open_durable`: what `commit` gave, an empty one for
        the very beginning, None to start anew. Left out, the file is emptied, and can't be gone
        on with.
    """

    def __init__(
        self, path: str | os.PathLike[str], mark: Mark | EllipsisType | None = ...
    ) -> None:
        kind = (
            Format("csv")
            if not isinstance(mark, EllipsisType) and is_folder(path)
            else tell_format(path)
        )
        self._raw_is_text = kind.name in ("csv", "tsv", "jsonl")
        self.n_rows = 0
        self._schema = pa.schema(
            [
                ("row", pa.int64()),
                ("reason", pa.string()),
                ("raw", pa.string() if self._raw_is_text else pa.binary()),
            ]
        )
        self._durable: Durable | None = None
        if not isinstance(mark, EllipsisType):
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
        columns = [[row.row for row in bad], [row.reason for row in bad], raw]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
        self._sink.write(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._sink.flush()
        self.n_rows += len(bad)

    def commit(self) -> Mark:
        """Make all rows so far durable, and give the mark to go on from."""
        if self._durable is None:
            raise ParameterError("mark", "was left out: this quarantine can't be gone on with")
        return self._durable.commit()

    @property
    def n_ahead(self) -> int:
        """How much is there that hasn't been given again, in rows or bytes."""
        return 0 if self._durable is None else self._durable.n_ahead

    def close(self) -> None:
        """Finish the file."""
        self._sink.close()
