"""CSV, and TSV, which is CSV with tabs."""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from shoal.errors import JobError, Problem, ResourceError
from shoal.io.base import BadRow
from shoal.io.format import Format
from shoal.io.streams import Input, read_errors
from shoal.io.text.detect import DELIMITERS, likely_encoding, rows_of
from shoal.io.text.dialect import PLAIN, UTF8, Dialect
from shoal.io.text.sink import TextSink
from shoal.io.text.source import LOOK_ROWS, Header, RowParser, TextFormat, TextSource
from shoal.io.text.splitter import BOM, TextBlock, lines_of_rows, row_ends
from shoal.io.utf8 import is_utf8

__all__ = ["CsvFormat", "CsvParser", "CsvSink", "CsvSource", "parse_names"]

#: What is added to the reason of a bad row of several lines.
SEVERAL_LINES = ", in a row of several lines: is a quote never closed?"


class CsvParser(RowParser):
    r"""Parses whole rows of CSV into text columns.

    Parameters
    ----------
    names
        The columns that each row has.
    columns
        The columns to read.
    dialect
        How the rows are written; their text is UTF-8 already.
    where
        The name of the input, for messages.

    >>> parser = CsvParser(["age", "sex"], ["age"], Dialect(), "people.csv")
    >>> batch, bad = parser.parse(b"39,M\n50\n,F\n", first_row=7)
    >>> batch["age"].to_pylist(), bad
    (['39', None], [BadRow(row=8, reason='1 field where 2 are expected')])
    """

    def __init__(
        self, names: Sequence[str], columns: Sequence[str], dialect: Dialect, where: str
    ) -> None:
        self._names = tuple(names)
        self._columns = tuple(columns)
        self._delimiter, self._quote = _structure(dialect)
        self._null = pa.array(dialect.null, pa.string())
        self._broken = f"broken {'UTF-8' if dialect.is_utf8 else 'text'} in column "
        is_plain = dialect.decimal == "."
        self._numbers = () if is_plain else [n for n in dialect.numbers if n in self._columns]
        self._where = where
        self._schema = pa.schema([(name, pa.string()) for name in columns])

    @property
    def nothing(self) -> pa.RecordBatch:
        """A batch of no rows."""
        return pa.RecordBatch.from_pylist([], schema=self._schema)

    def parse(self, data: bytes, first_row: int) -> tuple[pa.RecordBatch, list[BadRow]]:
        """Return the good rows, and the bad ones in order, numbered from ``first_row``."""
        broken: dict[int, str] = {}
        if is_utf8(data):
            batch, bad = self._parse_text(data)
        else:
            # Arrow can't tell which row is broken. Decoded as Latin-1 every byte is a character,
            # and delimiters, quotes and newlines stay what they are.
            batch, bad = self._parse_text(data.decode("latin-1").encode())
            bad = [BadRow(b.row, b.reason, b.raw and b.raw.decode().encode("latin-1")) for b in bad]
            batch, broken = self._restore(batch)
        batch = self._in_plain_numbers(self._with_nulls(batch), broken)
        if broken:
            bad = self._merge(data, batch.num_rows + len(bad), bad, broken)
            keep = [place not in broken for place in range(batch.num_rows)]
            batch = batch.filter(pa.array(keep, pa.bool_()))
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
                    delimiter=self._delimiter.decode(),
                    quote_char=False if self._quote is None else self._quote.decode(),
                    newlines_in_values=self._quote is not None and self._quote in data,
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

    def _with_lines(
        self, data: bytes, bad: list[BadRow], first_row: int, first_line: int | None
    ) -> list[BadRow]:
        """Say of bad rows of several lines where they begin: most likely a quote isn't closed."""
        places = {row.row - first_row for row in bad if row.raw and b"\n" in row.raw}
        if not places:
            return bad
        lines: dict[int, int | None] = {}
        start, at, line = 0, 0, first_line
        place = -1
        for end in row_ends(data, self._delimiter, self._quote).tolist():
            place += bool(data[start:end].rstrip(b"\r\n"))
            if place in places and place not in lines:
                if line is not None:
                    line, at = line + data.count(b"\n", at, start), start
                lines[place] = line
            start = end
        return [
            BadRow(row.row, row.reason + SEVERAL_LINES, row.raw, lines.get(row.row - first_row))
            if row.row - first_row in places
            else row
            for row in bad
        ]

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
                    broken.setdefault(place, self._broken + name)
            arrays.append(pa.array(values, pa.string()))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema), broken

    def _with_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Turn the texts that stand for a missing value into null, quoted or not."""
        if not len(self._null):
            return batch
        nothing = pa.scalar(None, pa.string())
        arrays = [
            pc.if_else(pc.is_in(column, value_set=self._null), nothing, column)
            for column in batch.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _in_plain_numbers(self, batch: pa.RecordBatch, broken: dict[int, str]) -> pa.RecordBatch:
        """Write numbers with a point for the comma; note the rows where a point has no meaning.

        With a decimal comma "1.234" is most likely a thousand and something: nobody knows.
        """
        for name in self._numbers:
            column = batch.column(name)
            pointed = pc.fill_null(pc.match_substring(column, "."), False)
            for place in np.flatnonzero(np.asarray(pointed)).tolist():
                broken.setdefault(place, f"{name} has a point, and the decimal sign is a comma")
            column = pc.replace_substring(column, ",", ".")
            batch = batch.set_column(self._columns.index(name), name, column)
        return batch

    def _merge(
        self, data: bytes, n_rows: int, bad: list[BadRow], broken: dict[int, str]
    ) -> list[BadRow]:
        """Number the rows with broken text among all rows, and find their bytes."""
        invalid = {row.row for row in bad}
        parsed = [row for row in range(n_rows) if row not in invalid]
        lines = [line for line, _ in lines_of_rows(data, self._delimiter, self._quote)]
        found = [BadRow(parsed[place], why, lines[parsed[place]]) for place, why in broken.items()]
        return sorted([*bad, *found], key=lambda row: row.row)


def parse_names(line: bytes, dialect: Dialect) -> tuple[str, ...] | None:
    """Return the column names in a header line, or None if it isn't one in UTF-8."""
    try:
        return tuple(next(rows_of(line.decode(), dialect)))
    except (UnicodeDecodeError, csv.Error):
        return None


def _structure(dialect: Dialect) -> tuple[bytes, bytes | None]:
    """Return the bytes of the delimiter and the quote."""
    return (dialect.delimiter or ",").encode(), dialect.quote.encode() or None


class CsvFormat(TextFormat):
    """How CSV is read: the first line that isn't empty is the header."""

    label = "CSV"
    has_header = True

    def __init__(self, dialect: Dialect = PLAIN) -> None:
        self._dialect = dialect.with_default(",")
        self.delimiter, self.quote = _structure(dialect)

    def find_columns(
        self, blocks: Iterable[TextBlock], where: str, n_rows: int = LOOK_ROWS
    ) -> Header | None:
        """Read the header, or return None if it hasn't arrived."""
        n_before = 0
        delimiter, quote = _structure(self._dialect)
        for block in blocks:
            if block.reason is not None:
                raise self.no_columns(where, is_empty=False)
            for line, end in lines_of_rows(block.data, delimiter, quote):
                names = parse_names(line, self._dialect)
                if names is None or "\0" in names[0]:
                    raise self._no_header(line, where)
                return Header(names, n_before + end)
            n_before += block.n_bytes
        return None

    def _no_header(self, line: bytes, where: str) -> ResourceError:
        likely = likely_encoding(line) if self._dialect.is_utf8 else UTF8
        # Control characters: not a text in whatever encoding.
        is_binary = not likely.startswith("utf-16") and any(byte < 8 for byte in line)
        fix = "Check that it is a CSV file, not compressed."
        if likely != UTF8 and not is_binary:
            fix = (
                f'If it is text in {likely}, set encoding = "{likely}" in [input]; else check that '
                "it is a CSV file, not compressed."
            )
        return ResourceError(
            f"{where}: can't be read: its first line isn't a header in "
            f"{self._dialect.encoding.upper()}. {fix}"
        )

    def choose_columns(
        self, header: Header, asked: Sequence[str] | None, where: str
    ) -> tuple[str, ...]:
        """Check that the requested columns exist; if none does, name the likely delimiter."""
        if asked and not set(asked) & set(header.names):
            likely = self._likely_delimiter(header.names, asked)
            if likely is not None:
                shown = json.dumps(likely)
                raise JobError(
                    Problem(
                        "input.delimiter",
                        f"isn't {json.dumps(self._dialect.delimiter)}: with it none of the "
                        f"{len(asked)} columns of the job is in the header",
                        None,
                        f"The header has them with {shown}: set delimiter = {shown} in [input]",
                    ),
                    where=where,
                )
        return super().choose_columns(header, asked, where)

    def _likely_delimiter(self, names: Sequence[str], asked: Sequence[str]) -> str | None:
        """Return the delimiter with which most of the requested columns are there, if any."""
        text = (self._dialect.delimiter or "").join(names)
        found = {
            delimiter: len(set(asked) & set(next(rows_of(text, Dialect(delimiter)), ())))
            for delimiter in DELIMITERS
        }
        best = max(found, key=lambda delimiter: found[delimiter])
        return best if found[best] else None

    def no_columns(self, where: str, *, is_empty: bool) -> ResourceError:
        """Return the error for a text without a header."""
        return ResourceError(
            f"{where}: can't be read: it has no header. The first line of a CSV file names "
            "its columns."
        )

    def parser(self, names: Sequence[str], columns: Sequence[str], where: str) -> CsvParser:
        """Return a parser of the rows after the header."""
        return CsvParser(names, columns, self._dialect, where)


class CsvSource(TextSource):
    r"""Rows of a CSV file, as columns of text.

    The first line that isn't empty is the header. Nothing is converted but what the dialect says: a
    value is the text between two delimiters, an empty field without quotes is null, a quoted one
    the empty text.
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
        dialect: Dialect = PLAIN,
        **limits: int,
    ) -> None:
        super().__init__(source, columns, CsvFormat(dialect), **limits)


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


def _format(name: str, delimiter: str, dialect: Dialect = PLAIN) -> Format:
    """Return the format as a file in a dialect is read. What is written has no dialect."""
    read = dialect.with_default(delimiter)
    return Format(
        name,
        (name,),
        functools.partial(CsvSource, dialect=read),
        functools.partial(CsvSink, delimiter=delimiter),
        CsvFormat(read),
        "csv",
        _SPARK | ({} if delimiter == "," else {"sep": delimiter}),
        functools.partial(_format, name, delimiter),
    )


FORMATS = (_format("csv", ","), _format("tsv", "\t"))
