"""Describe one column of a sample: its type, its values, how often they recur, its range."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow.columns import as_times
from shoal.cli.init.patterns import OTHER_STAMP, STAMP, are_mixed_dates, date_format
from shoal.cli.init.spread import Spread
from shoal.io.text.detect import NULLS

__all__ = ["Column", "Kind", "describe", "is_number_or_date", "names_among_values"]

Kind = Literal["number", "text", "date", "time", "other"]
#: A chunked array of any Arrow type.
Cells = Any

#: Texts that stand for a missing value.
MARKS = frozenset(
    {"-", "--", "na", "n/a", "nan", "nil", "none", "null"} | {text.lower() for text in NULLS}
)
#: From here on a number is no measurement, and sums of two could overflow.
HUGE = 1e300
#: Whole numbers up to this one are exact as floats.
EXACT = 2.0**53
NEARLY_UNIQUE = 0.9
FEW = 20

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
LEADING_ZERO = re.compile(r"[+-]?0\d")


@dataclass(frozen=True)
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
    spread: Spread = field(default_factory=Spread)
    """How the numbers are spread, and how often values recur."""
    ordered: float = 0
    """The share of numbers or times that aren't below the one before."""
    padded: bool = False
    """Whether some values have spaces at their ends."""
    values: tuple[str, ...] = ()
    """The different values as text, sorted; none for fractions and times."""
    form: str | None = None
    """The form of dates, such as ``%d.%m.%Y``."""
    readable: bool = True
    """Whether Shoal can read these times."""

    def __repr__(self) -> str:
        return f"Column({self.name!r}, {self.kind}, {self.n_distinct} of {self.n_rows} different)"

    @property
    def n_present(self) -> int:
        """The number of rows that have a value."""
        return self.n_rows - self.n_missing

    @property
    def n_gaps(self) -> int:
        """The number of empty values, without those that stand for missing."""
        return self.n_missing - (self.n_marks if self.kind == "number" else 0)

    @property
    def few(self) -> bool:
        """Whether there are few enough values to list them."""
        return self.n_distinct <= FEW

    @property
    def rising(self) -> bool:
        """Whether numbers or times never decrease."""
        return self.ordered == 1

    @property
    def nearly_unique(self) -> bool:
        """Whether nearly every row has a different value."""
        return not self.few and self.n_distinct >= NEARLY_UNIQUE * self.n_present

    @property
    def rows_each(self) -> float:
        """How many rows a value is in, on average."""
        return self.n_present / max(self.n_distinct, 1)

    @property
    def lo(self) -> float:
        """The lowest number."""
        return self.spread.least

    @property
    def hi(self) -> float:
        """The highest number."""
        return self.spread.most

    @property
    def n_real(self) -> int:
        """The number of different values without those that stand for missing."""
        return len(self.real_values) if self.values else self.n_distinct

    @cached_property
    def real_values(self) -> tuple[str, ...]:
        """The different values without those that stand for missing."""
        return tuple(value for value in self.values if value.lower() not in MARKS)


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
            ordered=_ordered(present.cast(pa.int64()).to_numpy()),
        )
    return Column(name, "other", len(column), n_missing=column.null_count)


def is_number_or_date(text: str) -> bool:
    """Return whether a text is a number, a date or a time stamp.

    >>> is_number_or_date("17,5"), is_number_or_date("2026-03-01 12:00"), is_number_or_date("age")
    (True, True, False)
    """
    text = text.strip()
    return bool(NUMBER.fullmatch(text.replace(",", "."))) or are_mixed_dates([text])


def names_among_values(table: pa.Table) -> list[str]:
    """Return the names of columns that are also a value of their column.

    Lines that repeat the header don't count, as of files that were put together.

    >>> names_among_values(pa.table({"flu": ["gout", "flu"], "age": ["31", "47"]}))
    ['flu']
    """
    columns: dict[str, Cells] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if _is_text(kind) or pa.types.is_integer(kind):
            columns[name] = pc.fill_null(pc.equal(column.cast(kind).cast(pa.string()), name), False)
    if not columns:
        return []
    is_header: Cells = functools.reduce(pc.and_, columns.values())
    if len(columns) == table.num_columns > 1:
        columns = {name: pc.and_not(found, is_header) for name, found in columns.items()}
    return [name for name, found in columns.items() if pc.any(found).as_py()]


def _is_text(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _number(name: str, column: Cells, n_marks: int = 0, n_rows: int = 0) -> Column:
    """Describe numbers; the two counts include values that were removed before."""
    values: tuple[str, ...] = ()
    if pa.types.is_integer(column.type):
        present = column.drop_null()
        numbers = present.to_numpy()
        values = tuple(map(str, sorted(present.unique().to_pylist())))
    else:
        numbers = column.drop_null().cast(pa.float64()).to_numpy()
        numbers = numbers[np.isfinite(numbers) & (np.abs(numbers) < HUGE)]
    n_rows = n_rows or len(column)
    if not len(numbers):
        return Column(name, "number", n_rows, n_missing=n_rows, n_marks=n_marks)
    whole = bool((numbers == np.floor(numbers)).all())
    distinct, counts = np.unique(numbers, return_counts=True)
    if whole and not values and np.abs(numbers).max() <= EXACT:
        values = tuple(str(int(number)) for number in distinct)
    return Column(
        name,
        "number",
        n_rows,
        n_missing=n_rows - len(numbers),
        n_distinct=len(distinct),
        n_marks=n_marks,
        whole=whole,
        spread=Spread.of_numbers(distinct, counts),
        ordered=_ordered(numbers),
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
    described = Column(
        name,
        "text",
        len(column),
        n_missing=column.null_count + n_blank,
        n_distinct=len(values),
        n_marks=n_marks,
        spread=Spread.of_counts([counts[value] for value in counts if value.strip() in set(real)]),
        padded=any(value != value.strip() for value in counts if value.strip()),
        values=tuple(sorted(values)),
    )
    if real and all(map(STAMP.fullmatch, real)):
        return _stamps(described, column)
    if real and all(map(OTHER_STAMP.fullmatch, real)):
        return replace(described, kind="time", readable=False, values=())
    form = date_format(real)
    if form is None:
        return described
    # Dates of other forms don't sort as text does.
    ordered = _ordered_text(column) if form == "%Y-%m-%d" else 0
    return replace(described, kind="date", form=form, ordered=ordered)


def _stamps(described: Column, column: Cells) -> Column:
    """Describe time stamps as text; those that aren't in the calendar can't be read."""
    wrong = np.zeros(len(column), np.bool_)
    seconds = as_times(column.combine_chunks(), described.name, lambda rows, why: None)
    wrong |= np.isnan(seconds)
    readable = int(wrong.sum()) <= described.n_missing + described.n_marks
    return replace(
        described, kind="time", ordered=_ordered(seconds[~wrong]), readable=readable, values=()
    )


def _ordered_text(column: Cells) -> float:
    cells = [cell.strip() for cell in column.drop_null().to_pylist()]
    present = [cell for cell in cells if cell and cell.lower() not in MARKS]
    n_ordered = sum(a <= b for a, b in itertools.pairwise(present))
    return float(n_ordered) / max(len(present) - 1, 1)


def _numeric_text(name: str, column: Cells, n_marks: int) -> Column:
    cells = [cell.strip() for cell in column.drop_null().to_pylist()]
    numbers = [cell for cell in cells if NUMBER.fullmatch(cell)]
    parsed: Cells
    try:
        parsed = pa.array([int(number) for number in numbers], pa.int64())
    except (ValueError, OverflowError):
        parsed = pa.array([float(number) for number in numbers])
    return _number(name, parsed, n_marks, len(column))


def _ordered(numbers: Any) -> float:
    return float((numbers[1:] >= numbers[:-1]).mean()) if len(numbers) > 1 else 1.0
