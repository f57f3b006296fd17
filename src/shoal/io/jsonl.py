"""JSON lines: one object a line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from shoal.errors import ResourceError
from shoal.io.base import BATCH_ROWS, BadRow, Chunk, choose_columns, chunks
from shoal.io.rows import CHUNK_BYTES, MAX_ROW_BYTES, Block, RowCutter, row_ends
from shoal.io.streams import Input
from shoal.io.text import TextSink
from shoal.io.utf8 import is_utf8, is_utf8_text

__all__ = ["JsonSink", "JsonSource"]

_LOOK_ROWS = 1000
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
        self._columns = choose_columns(self.schema_names, columns, source.name)
        self._kinds: dict[str, frozenset[str]] = {name: frozenset() for name in self._columns}
        self._widen([row for row in looked if not self._nested(row)])

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
                batch = pa.RecordBatch.from_pylist([], schema=self._schema())
            else:
                fast = self._parse_fast(block.data)
                batch, bad = (fast, []) if fast else self._parse_lines(block.data, n_rows)
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
            for line in _lines(block.data):
                row = _load(line)
                if isinstance(row, dict):
                    rows.append(row)
                    if len(rows) == _LOOK_ROWS or self._source.live:
                        return rows
        if not rows:
            raise ResourceError(
                f"{self._source.name}: can't be read: it has no line with a JSON object. "
                "JSON lines have one object a line."
            )
        return rows

    def _nested(self, row: dict[str, Any]) -> str | None:
        return next((n for n in self._columns if isinstance(row.get(n), dict | list)), None)

    def _widen(self, rows: list[dict[str, Any]]) -> None:
        for name in self._columns:
            kinds = {_kind(row[name]) for row in rows if row.get(name) is not None}
            self._kinds[name] |= kinds

    def _schema(self) -> pa.Schema:
        return pa.schema(
            [(name, _TYPES.get(self._kinds[name], pa.string())) for name in self._columns]
        )

    # -- parsing -------------------------------------------------------------------------------

    def _parse_fast(self, data: bytes) -> pa.RecordBatch | None:
        """Let Arrow parse the lines, if they are as they should be; else give None."""
        n_rows = _count_objects(data)
        if not n_rows or not is_utf8(data):
            return None
        schema = self._schema()
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
        # Two objects in one line are no row, but Arrow would take them for two.
        if table.num_rows != n_rows:
            return None
        return table.select(list(self._columns)).combine_chunks().to_batches()[0]

    def _parse_lines(self, data: bytes, first_row: int) -> tuple[pa.RecordBatch, list[BadRow]]:
        rows: list[dict[str, Any]] = []
        bad: list[BadRow] = []
        for place, line in enumerate(_lines(data), first_row):
            row = _load(line)
            if isinstance(row, str):
                bad.append(BadRow(place, row, line))
            elif reason := self._unfit(row):
                bad.append(BadRow(place, reason, line))
            else:
                rows.append(row)
        self._widen(rows)
        schema = self._schema()
        arrays = [_array([row.get(field.name) for row in rows], field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema), bad

    def _unfit(self, row: dict[str, Any]) -> str | None:
        if (name := self._nested(row)) is not None:
            return f"column {name} isn't a plain value"
        for name in self._columns:
            value = row.get(name)
            if isinstance(value, str) and not is_utf8_text(value):
                return f"broken UTF-8 in column {name}"
        return None


def _lines(data: bytes) -> Iterator[bytes]:
    for line in data.split(b"\n"):
        if stripped := line.strip(b" \t\r"):
            yield stripped


def _load(line: bytes) -> dict[str, Any] | str:
    """Give the object of a line, or why there is none."""
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
    """Count the lines, if each is empty or goes from ``{`` to ``}``; else give 0.

    Arrow doesn't care for newlines between or within objects. Lines of this shape can't be parts
    of objects that go over several lines, so its rows are the lines.
    """
    octets = np.frombuffer(data, np.uint8)
    ends = row_ends(data)
    starts = np.concatenate(([0], ends[:-1]))
    last = ends - 1
    last = last - (octets[last] == ord("\n"))
    last = last - ((last >= starts) & (octets[last] == ord("\r")))
    full = last >= starts
    good = (octets[starts[full]] == ord("{")) & (octets[last[full]] == ord("}"))
    return int(full.sum()) if bool(good.all()) else 0


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
