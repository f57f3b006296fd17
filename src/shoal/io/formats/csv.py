"""CSV, and TSV, which is CSV with tabs."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from shoal.errors import ResourceError
from shoal.io.base import BadRow
from shoal.io.format import Format
from shoal.io.streams import Input, read_errors
from shoal.io.text.sink import TextSink
from shoal.io.text.source import LOOK_ROWS, Header, RowParser, TextFormat, TextSource
from shoal.io.text.splitter import BOM, TextBlock, lines_of_rows
from shoal.io.utf8 import is_utf8

__all__ = ["CsvFormat", "CsvParser", "CsvSink", "CsvSource", "parse_names"]


class CsvParser(RowParser):
    r"""Parses whole rows of CSV into text columns.

    Parameters
    ----------
    names
        The columns that each row has.
    columns
        The columns to read.
    delimiter
        The delimiter between two fields.
    where
        The name of the input, for messages.

    >>> parser = CsvParser(["age", "sex"], ["age"], ",", "people.csv")
    >>> batch, bad = parser.parse(b"39,M\n50\n,F\n", first_row=7)
    >>> batch["age"].to_pylist(), bad
    (['39', None], [BadRow(row=8, reason='1 field where 2 are expected')])
    """

    def __init__(
        self, names: Sequence[str], columns: Sequence[str], delimiter: str, where: str
    ) -> None:
        self._names = tuple(names)
        self._columns = tuple(columns)
        self._delimiter = delimiter
        self._where = where
        self._schema = pa.schema([(name, pa.string()) for name in columns])

    @property
    def nothing(self) -> pa.RecordBatch:
        """A batch of no rows."""
        return pa.RecordBatch.from_pylist([], schema=self._schema)

    def parse(self, data: bytes, first_row: int) -> tuple[pa.RecordBatch, list[BadRow]]:
        """Return the good rows, and the bad ones in order, numbered from ``first_row``."""
        if is_utf8(data):
            batch, bad = self._parse_text(data)
            return batch, [BadRow(first_row + b.row, b.reason, b.raw) for b in bad]
        # Arrow can't tell which row is broken. Decoded as Latin-1 every byte is a character, and
        # delimiters, quotes and newlines stay what they are.
        batch, bad = self._parse_text(data.decode("latin-1").encode())
        bad = [BadRow(b.row, b.reason, b.raw and b.raw.decode().encode("latin-1")) for b in bad]
        batch, broken = self._restore(batch)
        if broken:
            bad = self._merge(data, batch.num_rows + len(broken) + len(bad), bad, broken)
        return batch, [BadRow(first_row + b.row, b.reason, b.raw) for b in bad]

    def _parse_text(self, data: bytes) -> tuple[pa.RecordBatch, list[BadRow]]:
        bad: list[BadRow] = []

        def note(row: Any) -> str:
            fields = f"{row.actual_columns} field{'s' * (row.actual_columns != 1)}"
            reason = f"{fields} where {row.expected_columns} are expected"
            bad.append(BadRow(row.number - 1, reason, row.text.encode()))
            return "skip"

        if data.startswith(BOM):
            # In the middle of a file it is part of a value; Arrow would drop the first one.
            data = BOM + data
        with read_errors(self._where, "it isn't CSV"):
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                # One block: the rows are whole already, and row numbers count from its start.
                read_options=pa.csv.ReadOptions(
                    use_threads=False,
                    block_size=len(data) + 1,
                    column_names=list(self._names),
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=b'"' in data,
                    invalid_row_handler=note,
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=list(self._columns),
                    column_types=self._schema,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        return _one_batch(table), bad

    def _restore(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Turn Latin-1 back into the original bytes; return also the rows that aren't UTF-8."""
        broken: dict[int, str] = {}
        arrays = []
        for name, array in zip(self._columns, batch.columns, strict=True):
            values = array.to_pylist()
            for place, value in enumerate(values):
                if value is None or value.isascii():
                    continue
                try:
                    values[place] = value.encode("latin-1").decode()
                except UnicodeDecodeError:
                    values[place] = None
                    broken.setdefault(place, f"broken UTF-8 in column {name}")
            arrays.append(pa.array(values, pa.string()))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        if broken:
            keep = [place not in broken for place in range(batch.num_rows)]
            batch = batch.filter(pa.array(keep, pa.bool_()))
        return batch, broken

    def _merge(
        self, data: bytes, n_rows: int, bad: list[BadRow], broken: dict[int, str]
    ) -> list[BadRow]:
        """Number the rows with broken text among all rows, and find their bytes."""
        invalid = {row.row for row in bad}
        parsed = [row for row in range(n_rows) if row not in invalid]
        lines = [line for line, _ in lines_of_rows(data, self._delimiter.encode())]
        found = [BadRow(parsed[place], why, lines[parsed[place]]) for place, why in broken.items()]
        return sorted([*bad, *found], key=lambda row: row.row)


def parse_names(line: bytes, delimiter: str) -> tuple[str, ...] | None:
    """Return the column names in a header line, or None if it isn't one in UTF-8."""
    try:
        return tuple(next(csv.reader(io.StringIO(line.decode(), newline=""), delimiter=delimiter)))
    except (UnicodeDecodeError, csv.Error):
        return None


class CsvFormat(TextFormat):
    """How CSV is read: the first line that isn't empty is the header."""

    label = "CSV"
    has_header = True

    def __init__(self, delimiter: str = ",") -> None:
        self._delimiter = delimiter
        self.delimiter = delimiter.encode()

    def find_columns(
        self, blocks: Iterable[TextBlock], where: str, n_rows: int = LOOK_ROWS
    ) -> Header | None:
        """Read the header, or return None if it hasn't arrived."""
        n_before = 0
        for block in blocks:
            if block.reason is not None:
                raise self.no_columns(where, is_empty=False)
            for line, end in lines_of_rows(block.data, self._delimiter.encode()):
                names = parse_names(line, self._delimiter)
                if names is None:
                    raise ResourceError(
                        f"{where}: can't be read: its first line isn't a header in UTF-8. "
                        "Check that it is a CSV file, not compressed."
                    )
                return Header(names, n_before + end)
            n_before += block.n_bytes
        return None

    def no_columns(self, where: str, *, is_empty: bool) -> ResourceError:
        """Return the error for a text without a header."""
        return ResourceError(
            f"{where}: can't be read: it has no header. The first line of a CSV file names "
            "its columns."
        )

    def parser(self, names: Sequence[str], columns: Sequence[str], where: str) -> CsvParser:
        """Return a parser of the rows after the header."""
        return CsvParser(names, columns, self._delimiter, where)


class CsvSource(TextSource):
    r"""Rows of a CSV file, as columns of text.

    The first line that isn't empty is the header. Nothing is converted: a value is the text
    between two delimiters, an empty field without quotes is null, a quoted one the empty text.
    Empty lines are no rows. A row with too many or too few fields, with broken UTF-8 in a column
    that is read, or with a quote that stays open, is a bad row; the rows around it are read.

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
        **limits: int,
    ) -> None:
        super().__init__(source, columns, CsvFormat(delimiter), **limits)


class CsvSink(TextSink):
    r"""Rows as CSV: a header, then a line for each row.

    A value is quoted only where it must be. Null is an empty field, and the empty text ``""``, so
    that the two differ; a row of one single null is ``""`` as well, since an empty line is no row.

    Guarantee: after `flush` every row written so far has been passed to the operating system, in
    whole lines; a compressed file is whole only after `close`. An abrupt end leaves the lines up
    to the last flush, and maybe a part of one more line.
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


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    if table.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=table.schema)
    return table.combine_chunks().to_batches()[0]


# Spark must check the header of every file: where columns stand in another order, it would take one
# for another, and publish a column that the job doesn't name.
_SPARK = {"header": True, "escape": '"', "enforceSchema": False}

FORMATS = (
    Format("csv", ("csv",), CsvSource, CsvSink, CsvFormat(), "csv", _SPARK),
    Format(
        "tsv",
        ("tsv",),
        functools.partial(CsvSource, delimiter="\t"),
        functools.partial(CsvSink, delimiter="\t"),
        CsvFormat("\t"),
        "csv",
        _SPARK | {"sep": "\t"},
    ),
)
