"""Parse whole JSON lines, wherever their bytes come from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from shoal.io.base import BadRow
from shoal.io.formats.row_cutter import row_ends
from shoal.io.formats.utf8 import is_utf8, is_utf8_text

__all__ = ["JsonParser", "lines_of", "load"]

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


class JsonParser:
    r"""Turns JSON lines into batches, and sets bad rows apart.

    The types of the columns are learned from the values and only ever widened; ``kinds`` is what
    has been learned, which whoever goes on in the middle of an input must know.

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
        """What kinds of values each column has had, as plain lists."""
        return {name: sorted(kinds) for name, kinds in self._kinds.items()}

    @kinds.setter
    def kinds(self, kinds: Mapping[str, Sequence[str]]) -> None:
        self._kinds = {name: frozenset(kinds.get(name, ())) for name in self._columns}

    @property
    def nothing(self) -> pa.RecordBatch:
        """A batch of no rows."""
        return pa.RecordBatch.from_pylist([], schema=self.schema())

    def parse(self, data: bytes, first_row: int) -> tuple[pa.RecordBatch, list[BadRow]]:
        """Parse whole lines; give the good rows, and the bad ones in order."""
        fast = self._parse_fast(data)
        return (fast, []) if fast is not None else self._parse_lines(data, first_row)

    def nested(self, row: dict[str, Any]) -> str | None:
        """The first column in which a row has something nested."""
        return next((n for n in self._columns if isinstance(row.get(n), dict | list)), None)

    def widen(self, rows: list[dict[str, Any]]) -> None:
        """Learn the kinds of values that good rows have."""
        for name in self._columns:
            kinds = {_kind(row[name]) for row in rows if row.get(name) is not None}
            self._kinds[name] |= kinds

    def schema(self) -> pa.Schema:
        """The columns, in the types learned so far."""
        return pa.schema(
            [(name, _TYPES.get(self._kinds[name], pa.string())) for name in self._columns]
        )

    def _parse_fast(self, data: bytes) -> pa.RecordBatch | None:
        """Let Arrow parse the lines, if they are as they should be; else give None."""
        n_rows = _count_objects(data)
        if not n_rows or not is_utf8(data):
            return None
        schema = self.schema()
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
        for place, line in enumerate(lines_of(data), first_row):
            row = load(line)
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


def lines_of(data: bytes) -> Iterator[bytes]:
    """Give the lines that aren't empty, without white space around them."""
    for line in data.split(b"\n"):
        if stripped := line.strip(b" \t\r"):
            yield stripped


def load(line: bytes) -> dict[str, Any] | str:
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
    byte_ranges = np.frombuffer(data, np.uint8)
    ends = row_ends(data)
    starts = np.concatenate(([0], ends[:-1]))
    last = ends - 1
    last = last - (byte_ranges[last] == ord("\n"))
    last = last - ((last >= starts) & (byte_ranges[last] == ord("\r")))
    full = last >= starts
    good = (byte_ranges[starts[full]] == ord("{")) & (byte_ranges[last[full]] == ord("}"))
    return int(full.sum()) if bool(good.all()) else 0
