"""JSON lines: one object a line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import ResourceError
from shoal.io.base import BATCH_ROWS, BadRow, Chunk, choose_columns, chunks
from shoal.io.formats.jsonl_rows import JsonParser, lines_of, load
from shoal.io.formats.row_cutter import CHUNK_BYTES, MAX_ROW_BYTES, Block, RowCutter
from shoal.io.formats.text import TextSink
from shoal.io.streams import Input

__all__ = ["JsonSink", "JsonSource", "NoLinesError"]

_LOOK_ROWS = 1000


class NoLinesError(ResourceError):
    """JSON lines without a single byte: there are no rows, and nothing names the columns.

    Whoever knows the columns may take it for what it is, an output of no rows.
    """


class JsonSource:
    r"""Rows of JSON lines, as columns of the types that the values have.

    Whole numbers are int64, other numbers float64, texts stay texts, even where they look like
    dates. A key that a row doesn't have is null. Types are learned and only ever widened: numbers
    with and without a fraction are float64, any other mixture becomes text from then on, and so do
    whole numbers beyond 64 bits, to keep them exact. A line that isn't an object, or
    that has something nested in a column that was asked for, is a bad row.

    JSON lines have no header, so the columns are those of the rows at the beginning: of a pipe
    the first good row, which must name every column; of a file the first thousand.

    Rows of a pipe are given as soon as their newline has arrived.

    Parameters
    ----------
    source
        Where the bytes come from.
    columns
        The columns to read; None for all.
    batch_rows
        How many rows a chunk has at most.
    chunk_bytes, max_row_bytes
        As for `RowCutter`.

    >>> import io
    >>> lines = b'{"age": 39, "sex": "M"}\n{"age": 50.5}\n[]\n'
    >>> [chunk] = JsonSource(Input(io.BytesIO(lines), "people.jsonl"))
    >>> chunk.batch.to_pydict()
    {'age': [39.0, 50.5], 'sex': ['M', None]}
    >>> chunk.bad
    [BadRow(row=2, reason='not a JSON object')]
    """

    def __init__(
        self,
        source: Input,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
        chunk_bytes: int = CHUNK_BYTES,
        max_row_bytes: int = MAX_ROW_BYTES,
    ) -> None:
        self._source = source
        self._batch_rows = batch_rows
        self._blocks = iter(RowCutter(source, chunk_bytes=chunk_bytes, max_row_bytes=max_row_bytes))
        self._seen: list[Block] = []
        looked = self._look()
        self.schema_names = tuple(dict.fromkeys(key for row in looked for key in row))
        chosen = choose_columns(self.schema_names, columns, source.name)
        self._parser = JsonParser(chosen)
        self._parser.widen([row for row in looked if not self._parser.nested(row)])

    def describe(self) -> str:
        """What is read, for a message."""
        return f"{self._source.name} (JSON lines, {len(self.schema_names)} columns)"

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    def __iter__(self) -> Iterator[Chunk]:
        n_rows = 0
        # Popped, so that what has been looked at isn't held while the rest is read.
        waiting = (self._seen.pop(0) for _ in range(len(self._seen)))
        for block in itertools.chain(waiting, self._blocks):
            bad: list[BadRow] = []
            if block.reason is not None:
                bad = [BadRow(n_rows, block.reason, block.data.rstrip(b"\r\n"))]
                batch = self._parser.nothing
            else:
                batch, bad = self._parser.parse(block.data, n_rows)
            yield from chunks(batch, n_rows, bad, self._batch_rows)
            n_rows += batch.num_rows + len(bad)

    # -- what columns there are ----------------------------------------------------------------

    def _look(self) -> list[dict[str, Any]]:
        """Read ahead to the first good rows."""
        rows: list[dict[str, Any]] = []
        for block in self._blocks:
            self._seen.append(block)
            if block.reason is not None:
                continue
            for line in lines_of(block.data):
                row = load(line)
                if isinstance(row, dict):
                    rows.append(row)
                    if len(rows) == _LOOK_ROWS or self._source.live:
                        return rows
        if not rows:
            kind = ResourceError if self._seen else NoLinesError
            raise kind(
                f"{self._source.name}: can't be read: it has no line with a JSON object. "
                "JSON lines have one object a line."
            )
        return rows


class JsonSink(TextSink):
    """Rows as JSON lines, one object a line, missing values as null.

    Numbers that JSON hasn't (NaN and the infinities) are null too; times and dates are texts.

    Guarantee: after `flush` every row written so far has been handed to the operating system, in
    whole lines, unless the file is compressed, which is whole after `close` only. An abrupt end
    leaves the lines up to the last flush, and maybe a part of one more line.
    """

    _null = "null"
    _separator = ", "
    _line_end = "}\n"

    def _before(self, place: int, name: str) -> str:
        return ("" if place else "{") + json.dumps(name, ensure_ascii=False) + ": "

    def _quoted(self, texts: pa.Array) -> pa.Array:
        texts = self._replace(
            texts, r'["\\\x00-\x1f]', lambda text: json.dumps(text, ensure_ascii=False)[1:-1]
        )
        return pc.binary_join_element_wise('"', texts, '"', "")

    def _finite(self, numbers: pa.Array) -> pa.Array:
        return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, numbers.type))
