"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from shoal.errors import ResourceError
from shoal.io.base import BadRow
from shoal.io.format import Format
from shoal.io.streams import Input
from shoal.io.text.sink import TextSink
from shoal.io.text.source import LOOK_ROWS, Header, RowParser, TextFormat, TextSource
from shoal.io.text.splitter import TextBlock, row_ends
from shoal.io.utf8 import is_utf8, is_utf8_text

__all__ = [
    "JsonFormat",
    "JsonParser",
    "JsonSink",
    "JsonSource",
    "NoLinesError",
    "lines_of",
    "load_object",
    "read_objects",
]

_INT64 = range(-(2**63), 2**63)
_TYPES = {
    frozenset[str](): pa.null(),
    frozenset({"bool"}): pa.bool_(),
    frozenset({"int"}): pa.int64(),
    frozenset({"float"}): pa.float64(),
    frozenset({"int", "float"}): pa.float64(),
    frozenset({"huge", "float"}): pa.float64(),
    frozenset({"int", "huge", "float"}): pa.float64(),
}


class NoLinesError(ResourceError):
    """JSON lines without a single byte: there are no rows, and nothing names the columns.

    A caller that knows the columns may treat it as an output of no rows.
    """


class JsonParser(RowParser):
    r"""Parses JSON lines.

    The types of the columns are learned from the values and only ever widened; ``kinds`` is what
    has been learned, which a reader that resumes in the middle of an input must set.

    >>> parser = JsonParser(["age"])
    >>> batch, bad = parser.parse(b'{"age": 39}\n[]\n{"age": 50.5}\n', first_row=0)
    >>> batch["age"].to_pylist(), bad
    ([39.0, 50.5], [BadRow(row=1, reason='not a JSON object')])
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._kinds: dict[str, frozenset[str]] = {name: frozenset() for name in columns}

    @property
    def kinds(self) -> dict[str, list[str]]:
        """The kinds of values that each column has had, as plain lists."""
        return {name: sorted(kinds) for name, kinds in self._kinds.items()}

    @kinds.setter
    def kinds(self, kinds: Mapping[str, Sequence[str]]) -> None:
        self._kinds = {name: frozenset(kinds.get(name, ())) for name in self._columns}

    @property
    def nothing(self) -> pa.RecordBatch:
        """A batch of no rows."""
        return pa.RecordBatch.from_pylist([], schema=self.schema())

    def parse(self, data: bytes, first_row: int) -> tuple[pa.RecordBatch, list[BadRow]]:
        """Return the good rows, and the bad ones in order, numbered from ``first_row``."""
        fast = self.parse_known(data)
        return (fast, []) if fast is not None else self._parse_lines(data, first_row)

    def nested(self, row: Mapping[str, Any]) -> str | None:
        """Return the first column in which a row has a nested value, or None."""
        return next((n for n in self._columns if isinstance(row.get(n), dict | list)), None)

    def widen(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Learn the kinds of values from good rows."""
        for name in self._columns:
            kinds = {_kind(row[name]) for row in rows if row.get(name) is not None}
            self._kinds[name] |= kinds

    def schema(self) -> pa.Schema:
        """Return the columns, in the types learned so far."""
        return pa.schema(
            [(name, _TYPES.get(self._kinds[name], pa.string())) for name in self._columns]
        )

    def parse_known(self, data: bytes) -> pa.RecordBatch | None:
        """Parse lines with Arrow, in the types learned so far.

        Returns None if a line isn't one object, or has a value of another type.
        """
        n_rows = _count_objects(data)
        if not n_rows or not is_utf8(data):
            return None
        schema = self.schema()
        return read_objects(data, schema, n_rows)

    def _parse_lines(self, data: bytes, first_row: int) -> tuple[pa.RecordBatch, list[BadRow]]:
        rows: list[dict[str, Any]] = []
        bad: list[BadRow] = []
        for place, line in enumerate(lines_of(data), first_row):
            row = load_object(line)
            if isinstance(row, str):
                bad.append(BadRow(place, row, line))
            elif reason := self._unfit(row):
                bad.append(BadRow(place, reason, line))
            else:
                rows.append(row)
        self.widen(rows)
        schema = self.schema()
        arrays = [_array([row.get(field.name) for row in rows], field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema), bad

    def _unfit(self, row: dict[str, Any]) -> str | None:
        if (name := self.nested(row)) is not None:
            return f"column {name} isn't a plain value"
        for name in self._columns:
            value = row.get(name)
            if isinstance(value, str) and not is_utf8_text(value):
                return f"broken UTF-8 in column {name}"
        return None


class JsonFormat(TextFormat):
    """How JSON lines are read: the columns are the keys of the first rows."""

    label = "JSON lines"
    has_header = False

    def find_columns(
        self, blocks: Iterable[TextBlock], where: str, n_rows: int = LOOK_ROWS
    ) -> Header | None:
        """Look at the first good rows, or return None if there is none."""
        rows: list[dict[str, Any]] = []
        for line in self._lines(blocks):
            row = load_object(line)
            if isinstance(row, dict):
                rows.append(row)
                if len(rows) == n_rows:
                    break
        names = tuple(dict.fromkeys(key for row in rows for key in row))
        return Header(names, rows=rows) if rows else None

    @staticmethod
    def _lines(blocks: Iterable[TextBlock]) -> Iterator[bytes]:
        for block in blocks:
            if block.reason is None:
                yield from lines_of(block.data)

    def no_columns(self, where: str, *, is_empty: bool) -> ResourceError:
        """Return the error for a text without an object."""
        kind = NoLinesError if is_empty else ResourceError
        return kind(
            f"{where}: can't be read: it has no line with a JSON object. "
            "JSON lines have one object a line."
        )

    def parser(self, names: Sequence[str], columns: Sequence[str], where: str) -> JsonParser:
        """Return a parser that has learned nothing yet."""
        return JsonParser(columns)

    def learn(self, parser: RowParser, rows: Sequence[Mapping[str, Any]]) -> None:
        """Learn types from the rows that can be read."""
        assert isinstance(parser, JsonParser)
        parser.widen([row for row in rows if not parser.nested(row)])


class JsonSource(TextSource):
    r"""Rows of JSON lines, as columns of the types that the values have.

    Whole numbers are int64, other numbers float64, texts stay texts, even where they look like
    dates. A key that a row doesn't have is null. Types are learned and only ever widened: numbers
    with and without a fraction are float64, any other mixture becomes text from then on, and so do
    whole numbers beyond 64 bits, to keep them exact. A line that isn't an object, or that has a
    nested value in a column that is read, is a bad row.

    JSON lines have no header, so the columns are those of the rows at the beginning: of a pipe
    the first good row, which must name every column; of a file the first thousand.

    >>> import io
    >>> lines = b'{"age": 39, "sex": "M"}\n{"age": 50.5}\n[]\n'
    >>> [chunk] = JsonSource(Input(io.BytesIO(lines), "people.jsonl"))
    >>> chunk.batch.to_pydict()
    {'age': [39.0, 50.5], 'sex': ['M', None]}
    >>> chunk.bad
    [BadRow(row=2, reason='not a JSON object')]
    """

    def __init__(self, source: Input, columns: Sequence[str] | None = None, **limits: int) -> None:
        super().__init__(source, columns, JsonFormat(), **limits)


class JsonSink(TextSink):
    """Rows as JSON lines, one object a line, missing values as null.

    Numbers that JSON doesn't have (NaN and the infinities) are null too; times and dates are texts.

    Guarantee: after `flush` every row written so far has been passed to the operating system, in
    whole lines; a compressed file is whole only after `close`. An abrupt end leaves the lines up
    to the last flush, and maybe a part of one more line.
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


def read_objects(data: bytes, schema: pa.Schema, n_rows: int) -> pa.RecordBatch | None:
    """Parse so many lines, each of which begins with ``{`` and ends with ``}``, with Arrow.

    Returns None if Arrow doesn't find so many objects, or a value is of another type.
    """
    try:
        table = pa.json.read_json(
            pa.BufferReader(data),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowException:
        return None
    # Two objects in one line are a bad row, but Arrow would take them for two rows.
    if table.num_rows != n_rows:
        return None
    return table.select(schema.names).combine_chunks().to_batches()[0]


def lines_of(data: bytes) -> Iterator[bytes]:
    """Yield the lines that aren't empty, without white space around them."""
    for line in data.split(b"\n"):
        if stripped := line.strip(b" \t\r"):
            yield stripped


def load_object(line: bytes) -> dict[str, Any] | str:
    """Return the object of a line, or the reason why there is none."""
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError:
        return "broken UTF-8"
    except (ValueError, RecursionError):
        return "not a JSON object"
    return row if isinstance(row, dict) else "not a JSON object"


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if value in _INT64 else "huge"
    return "float" if isinstance(value, float) else "text"


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        values = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    elif pa.types.is_floating(kind):
        values = [v if v is None else _float(v) for v in values]
    return pa.array(values, kind)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _count_objects(data: bytes) -> int:
    """Count the lines, if each is empty or begins with ``{`` and ends with ``}``; else return 0.

    Arrow ignores newlines between and within objects. Lines of this shape can't be parts of
    objects that span several lines, so Arrow's rows are the lines.
    """
    as_array = np.frombuffer(data, np.uint8)
    ends = row_ends(data)
    starts = np.concatenate(([0], ends[:-1]))
    last = ends - 1
    last = last - (as_array[last] == ord("\n"))
    last = last - ((last >= starts) & (as_array[last] == ord("\r")))
    full = last >= starts
    good = (as_array[starts[full]] == ord("{")) & (as_array[last[full]] == ord("}"))
    return int(full.sum()) if bool(good.all()) else 0


FORMATS = (
    Format("jsonl", ("jsonl", "ndjson", "json"), JsonSource, JsonSink, JsonFormat(), "json"),
)
