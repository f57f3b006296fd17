"""Parse whole rows of CSV, wherever their bytes come from."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from shoal.errors import ResourceError
from shoal.io.base import BadRow
from shoal.io.formats.row_cutter import BOM, row_ends
from shoal.io.formats.utf8 import is_utf8
from shoal.io.streams import reading

__all__ = ["CsvParser", "parse_header"]


class CsvParser:
    r"""Turns bytes of whole rows into a batch of text columns, and sets bad rows apart.

    Parameters
    ----------
    names
        The columns that each row has.
    columns
        Those that are wanted.
    delimiter
        What is between two fields.
    where
        What is read, for messages.

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
        """Parse whole rows; give the good ones, and the bad ones in order."""
        if is_utf8(data):
            batch, bad = self._parse_text(data)
            return batch, [BadRow(first_row + b.row, b.reason, b.raw) for b in bad]
        # Arrow can't tell which row is broken. Seen as Latin-1 every byte is a character, and
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
            # Amid a file it is a part of a value; Arrow would take away the one at the beginning.
            data = BOM + data
        with reading(self._where, "it isn't CSV"):
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                # One block: the rows are whole already, and positions count from its start.
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
        """Turn Latin-1 back to the bytes it stands for; give the rows that aren't UTF-8."""
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
        """Number the rows with broken text among all rows, and find what they were."""
        invalid = {row.row for row in bad}
        parsed = [row for row in range(n_rows) if row not in invalid]
        start, lines = 0, []
        for end in row_ends(data, self._delimiter.encode()).tolist():
            if line := data[start:end].rstrip(b"\r\n"):
                lines.append(line)
            start = end
        found = [BadRow(parsed[place], why, lines[parsed[place]]) for place, why in broken.items()]
        return sorted([*bad, *found], key=lambda row: row.row)


def parse_header(line: bytes, delimiter: str, where: str) -> list[str]:
    """Give the names in the first line of a CSV file; ``where`` is what is read, for messages."""
    try:
        text = io.StringIO(line.decode(), newline="")
        return next(csv.reader(text, delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error):
        raise ResourceError(
            f"{where}: can't be read: its first line isn't a header in UTF-8. "
            "Check that it is a CSV file, not compressed."
        ) from None


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    if table.num_rows == 0:
        return pa.RecordBatch.from_pylist([], schema=table.schema)
    return table.combine_chunks().to_batches()[0]
