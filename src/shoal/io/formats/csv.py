"""CSV, and its kin with tabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from shoal.errors import ResourceError
from shoal.io.base import BATCH_ROWS, BadRow, Chunk, choose_columns, chunks
from shoal.io.formats.csv_rows import CsvParser, parse_header
from shoal.io.formats.row_cutter import CHUNK_BYTES, MAX_ROW_BYTES, Block, RowCutter, row_ends
from shoal.io.formats.text import TextSink
from shoal.io.streams import Input

__all__ = ["CsvSink", "CsvSource"]


class CsvSource:
    r"""Rows of a CSV file, as columns of text.

    The first line that isn't empty is the header. Nothing is converted: a value is the text
    between two delimiters, an empty field without quotes is null, a quoted one the empty text.
    Empty lines are no rows. A row with too many or too few fields, with broken UTF-8 in a column
    that was asked for, or with a quote that stays open, is a bad row; its neighbours survive.

    Rows of a pipe are given as soon as their newline has arrived.

    Parameters
    ----------
    source
        Where the bytes come from.
    columns
        The columns to read; None for all.
    delimiter
        What is between two fields.
    batch_rows
        How many rows a chunk has at most.
    chunk_bytes, max_row_bytes
        As for `RowCutter`.

    >>> import io
    >>> source = CsvSource(Input(io.BytesIO(b"age,sex\n39,M\n50\n,F\n"), "people.csv"), ["age"])
    >>> [chunk] = source
    >>> chunk.batch["age"].to_pylist(), chunk.rows.tolist(), chunk.bad
    (['39', None], [0, 2], [BadRow(row=1, reason='1 field where 2 are expected')])
    """

    def __init__(
        self,
        source: Input,
        columns: Sequence[str] | None = None,
        *,
        delimiter: str = ",",
        batch_rows: int = BATCH_ROWS,
        chunk_bytes: int = CHUNK_BYTES,
        max_row_bytes: int = MAX_ROW_BYTES,
    ) -> None:
        self._source = source
        self._delimiter = delimiter
        self._batch_rows = batch_rows
        self._blocks = iter(
            RowCutter(
                source,
                delimiter.encode(),
                chunk_bytes=chunk_bytes,
                max_row_bytes=max_row_bytes,
            )
        )
        header, self._first = self._read_header()
        self.schema_names = tuple(header)
        chosen = choose_columns(header, columns, source.name)
        self._parser = CsvParser(header, chosen, delimiter, source.name)

    def describe(self) -> str:
        """What is read, for a message."""
        return f"{self._source.name} (CSV, {len(self.schema_names)} columns)"

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    def __iter__(self) -> Iterator[Chunk]:
        n_rows = 0
        for block in self._all_blocks():
            if block.reason is not None:
                bad = [BadRow(n_rows, block.reason, block.data.rstrip(b"\r\n"))]
                batch = self._parser.nothing
            else:
                batch, bad = self._parser.parse(block.data, n_rows)
            yield from chunks(batch, n_rows, bad, self._batch_rows)
            n_rows += batch.num_rows + len(bad)

    def _all_blocks(self) -> Iterator[Block]:
        if self._first:
            yield Block(self._first)
        yield from self._blocks

    def _read_header(self) -> tuple[list[str], bytes]:
        name = self._source.name
        for block in self._blocks:
            if block.reason is not None:
                break
            start = 0
            for end in row_ends(block.data, self._delimiter.encode()).tolist():
                line = block.data[start:end].rstrip(b"\r\n")
                if line:
                    return parse_header(line, self._delimiter, name), block.data[end:]
                start = end
        raise ResourceError(
            f"{name}: can't be read: it has no header. The first line of a CSV file names "
            "its columns."
        )


class CsvSink(TextSink):
    r"""Rows as CSV: a header, then a line for each row.

    A value is quoted only where it must be. Null is an empty field, and the empty text ``""``, so
    that the two can be told apart; a row of one single null is ``""`` as well, since an empty line
    is no row.

    Guarantee: after `flush` every row written so far has been handed to the operating system, in
    whole lines, unless the file is compressed, which is whole after `close` only. An abrupt end
    leaves the lines up to the last flush, and maybe a part of one more line.
    """

    _line_end = "\n"

    def __init__(self, output: Any, schema: pa.Schema, *, delimiter: str = ",") -> None:
        super().__init__(output, schema)
        self._separator = delimiter
        self._null = '""' if len(schema) == 1 else ""
        self._must_quote = rf'["\r\n{delimiter}]|^$|^\s|\s$'
        header = self._quoted(pa.array(schema.names, pa.string())).to_pylist()
        self._output.write((delimiter.join(header) + self._line_end).encode())

    def _before(self, place: int, name: str) -> str:
        return ""

    def _quoted(self, texts: pa.Array) -> pa.Array:
        return self._replace(texts, self._must_quote, lambda t: '"' + t.replace('"', '""') + '"')
