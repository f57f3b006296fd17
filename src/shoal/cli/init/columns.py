"""Describe one column of a sample: its kind, its range, its different values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Column", "Kind", "describe"]

Kind = Literal["number", "text", "date", "time", "other"]
#: A chunked array of any Arrow type.
Cells = Any

#: Texts that stand for a missing value.
MARKS = frozenset({"?", "-", "--", "na", "n/a", "nan", "nil", "none", "null"})
#: From here on a number is no measurement, and sums of two could overflow.
HUGE = 1e300
NEARLY_UNIQUE = 0.9
FEW = 20

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
LEADING_ZERO = re.compile(r"[+-]?0\d")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Column:
    """The description of one column. Its repr shows no value of a person."""

    name: str
    kind: Kind
    n_rows: int
    n_missing: int = 0
    n_distinct: int = 0
    n_marks: int = 0
    """The number of values that stand for missing, such as ``?``."""
    whole: bool = False
    lo: float = 0
    hi: float = 0
    rising: bool = False
    """Whether numbers or times never decrease."""
    padded: bool = False
    """Whether some values have spaces at their ends."""
    values: tuple[str, ...] = ()
    """The different values as text, sorted; none for fractions and times."""

    def __repr__(self) -> str:
        return f"Column({self.name!r}, {self.kind}, {self.n_distinct} of {self.n_rows} different)"

    @property
    def n_present(self) -> int:
        """The number of rows that have a value."""
        return self.n_rows - self.n_missing

    @property
    def few(self) -> bool:
        """Whether there are few enough values to list them."""
        return self.n_distinct <= FEW

    @property
    def nearly_unique(self) -> bool:
        """Whether nearly every row has a different value."""
        return not self.few and self.n_distinct >= NEARLY_UNIQUE * self.n_present


def describe(name: str, column: Cells) -> Column:
    """Describe a column of any Arrow type; numbers as text are numbers.

    >>> describe("age", pa.chunked_array([["31", "47", None, "?"]]))
    Column('age', number, 2 of 4 different)
    >>> describe("zip", pa.chunked_array([["01067", "10115"]])).kind
    'text'
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_boolean(kind) or _is_text(kind):
        return _text(name, column.cast(pa.string()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _number(name, column)
    if pa.types.is_date(kind):
        return _text(name, column.cast(pa.date32()).cast(pa.string()))
    if pa.types.is_timestamp(kind):
        present = column.drop_null()
        return Column(
            name,
            "time",
            len(column),
            n_missing=column.null_count,
            n_distinct=pc.count_distinct(present).as_py(),
            rising=_rising(present.cast(pa.int64()).to_numpy()),
        )
    return Column(name, "other", len(column), n_missing=column.null_count)


def _is_text(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _number(name: str, column: Cells, n_marks: int = 0, n_rows: int = 0) -> Column:
    """Describe numbers; the two counts include values that were removed before."""
    if pa.types.is_integer(column.type):
        present = column.drop_null()
        numbers = present.to_numpy()
        values = tuple(map(str, sorted(present.unique().to_pylist())))
    else:
        numbers = column.drop_null().cast(pa.float64()).to_numpy()
        numbers = numbers[np.isfinite(numbers) & (np.abs(numbers) < HUGE)]
        values = ()
    n_rows = n_rows or len(column)
    if not len(numbers):
        return Column(name, "number", n_rows, n_missing=n_rows, n_marks=n_marks)
    return Column(
        name,
        "number",
        n_rows,
        n_missing=n_rows - len(numbers),
        n_distinct=len(np.unique(numbers)),
        n_marks=n_marks,
        whole=bool((numbers == np.floor(numbers)).all()),
        lo=numbers.min().item(),
        hi=numbers.max().item(),
        rising=_rising(numbers),
        values=values,
    )


def _text(name: str, column: Cells) -> Column:
    entries: Cells = pc.value_counts(column.drop_null())
    counts: dict[str, int] = {entry["values"]: entry["counts"] for entry in entries.to_pylist()}
    n_marks = sum(n for value, n in counts.items() if value.strip().lower() in MARKS)
    real = [value.strip() for value in counts if value.strip().lower() not in {"", *MARKS}]
    if real and all(NUMBER.fullmatch(v) and not LEADING_ZERO.match(v) for v in real):
        return _numeric_text(name, column, n_marks)
    n_blank = sum(n for value, n in counts.items() if not value.strip())
    values = {value.strip() for value in counts} - {""}
    return Column(
        name,
        "date" if real and all(map(DAY.fullmatch, real)) else "text",
        len(column),
        n_missing=column.null_count + n_blank,
        n_distinct=len(values),
        n_marks=n_marks,
        padded=any(value != value.strip() for value in counts if value.strip()),
        values=tuple(sorted(values)),
    )


def _numeric_text(name: str, column: Cells, n_marks: int) -> Column:
    cells = [cell.strip() for cell in column.drop_null().to_pylist()]
    numbers = [cell for cell in cells if NUMBER.fullmatch(cell)]
    parsed: Cells
    try:
        parsed = pa.array([int(number) for number in numbers], pa.int64())
    except (ValueError, OverflowError):
        parsed = pa.array([float(number) for number in numbers])
    return _number(name, parsed, n_marks, len(column))


def _rising(numbers: Any) -> bool:
    return bool((numbers[1:] >= numbers[:-1]).all())
