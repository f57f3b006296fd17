"""Draft the domain of a quasi attribute: a round range, a list, a mask or a hierarchy file."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path

from shoal.cli.init import words as w
from shoal.cli.init.bands import band_rows, read_bands
from shoal.cli.init.columns import FEW, MARKS, Column
from shoal.cli.init.meaning import Meaning
from shoal.job.domains import Files, quasi_domain
from shoal.job.form import QuasiForm
from shoal.job.toml import quote
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.ladder import AnyDomain

__all__ = ["DomainDraft", "draft_domain", "symbols_domain"]

ROOT = "*"
MOST_DIGITS = 5
"""The most digits of a mask over all codes; the tree of longer ones would be too large."""
MOST_LISTED = 100
MOST_YEARS = 130
MANY = 200
GROUPS = 5

Rows = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DomainDraft:
    """A domain as in a job file."""

    table: str = ""
    """The inline table, if there is no hierarchy file."""
    rows: Sequence[Sequence[str]] = ()
    """The paths of the hierarchy file, from leaf to root."""
    remark: str = ""
    n_outliers: int = 0
    """The number of rows of the sample with a number outside of the range."""
    lists_values: bool = False
    """Whether the table lists values of the sample."""

    @property
    def text(self) -> str:
        """The content of the hierarchy file."""
        out = io.StringIO()
        csv.writer(out, delimiter=";", lineterminator="\n").writerows(self.rows)
        return out.getvalue()

    @property
    def domain(self) -> AnyDomain:
        """The domain itself, as the job's reader would make it."""
        if self.rows:
            return Hierarchy.from_rows(self.rows)
        form = QuasiForm.model_validate(tomllib.loads(f"domain = {self.table}")["domain"])
        return quasi_domain("domain", form, Files(Path()))


def draft_domain(
    column: Column, meaning: Meaning, *, partial: bool, symbols: Sequence[str] = ()
) -> DomainDraft:
    """Draft the domain of a quasi attribute.

    Parameters
    ----------
    column
        The column of the sample.
    meaning
        What its values mean.
    partial
        Whether there are more rows than the sample, so that a range needs a margin.
    symbols
        All texts that a schema allows; none if it doesn't say.
    """
    if column.kind == "date":
        return _calendar(column)
    if meaning.sense == "band":
        return _bands(column)
    if listed := symbols_domain(symbols):
        return listed
    is_postcode = w.POSTCODE.match(column.name)
    labels = column.kind == "text" or meaning.sense == "code"
    if column.values and (is_postcode or (labels and not column.few)):
        masked = _mask(column)
        if masked is not None:
            return masked
    if column.values and (labels or is_postcode):
        return _flat(column) if column.n_distinct <= FEW else _alphabet(column)
    return _range(column, partial=partial)


# -- numbers ------------------------------------------------------------------------------------


def _range(column: Column, *, partial: bool) -> DomainDraft:
    """Draft a round range of the numbers that are no outliers."""
    spread = column.spread
    lo, hi = Decimal(str(spread.low)), Decimal(str(spread.high))
    if lo == hi:
        lo, hi = Decimal(str(column.lo)), Decimal(str(column.hi))
    step, unit = _round(hi - lo, 100), _round(hi - lo, 10)
    if column.whole:
        step, unit = max(step, Decimal(1)), max(unit, Decimal(1))
    low = (lo / unit).to_integral_value(ROUND_FLOOR) * unit
    high = (hi / unit).to_integral_value(ROUND_CEILING) * unit
    if partial and not column.few:
        # Other rows may lie outside the sample's range, but amounts don't become negative.
        low = low - unit if low == lo and lo != 0 else low
        high = high + unit if high == hi and hi != 0 else high
    low, high = min(low, lo), max(high, hi)
    outside = spread.n_outside(float(low), float(high))
    sides = zip(outside, ("below", "above"), strict=True)
    out = " and ".join(f"{n:,} {side}" for n, side in sides if n)
    remark = f"without outliers: of {column.n_rows:,} rows {out}, to quarantine" if out else ""
    table = f"{{ range = [{_number(low)}, {_number(high)}], step = {_number(step)} }}"
    return DomainDraft(table, remark=remark, n_outliers=sum(outside))


def _round(span: Decimal, parts: int) -> Decimal:
    """Return the least of 1, 2, 5, 10, 20, … that cuts the span into at most ``parts`` parts.

    >>> _round(Decimal(73), 10), _round(Decimal("1.2"), 100)
    (Decimal('10'), Decimal('0.02'))
    """
    least = span / parts
    power = Decimal(10) ** least.adjusted()
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def _number(number: Decimal) -> str:
    if number == number.to_integral_value() and abs(number) < 10**15:
        return str(int(number))
    return repr(float(number))


# -- labels -------------------------------------------------------------------------------------


def _flat(column: Column) -> DomainDraft:
    if ROOT in column.values:
        rows = [(value, _root(column.values)) for value in column.values]
        return DomainDraft(rows=rows, remark="flat: group related values")
    listed = ", ".join(map(quote, column.values))
    return DomainDraft(f"{{ values = [{listed}] }}", lists_values=True)


def symbols_domain(symbols: Sequence[str]) -> DomainDraft | None:
    """Return the domain of an enumeration; None if it can't be one."""
    if not 1 < len(symbols) <= MOST_LISTED or ROOT in symbols:
        return None
    listed = ", ".join(map(quote, symbols))
    return DomainDraft(f"{{ values = [{listed}] }}", remark="all symbols of the schema")


def _mask(column: Column) -> DomainDraft | None:
    """Mask digits from the right, if all values are codes of one length."""
    codes = [value for value in column.values if value.lower() not in MARKS]
    widths = {len(code) for code in codes}
    if len(widths) != 1 or len(codes) < len(column.values):
        return None
    (width,) = widths
    is_code = all(re.fullmatch(r"[0-9A-Z]*[0-9][0-9A-Z]*", code) for code in codes)
    if not is_code or width < 2:
        return None
    if width <= MOST_DIGITS and all(re.fullmatch(r"[0-9]+", code) for code in codes):
        return DomainDraft(f"{{ mask = {width} }}", remark=f"all codes of {width} digits")
    if len(codes) <= MOST_LISTED:
        return DomainDraft(f"{{ mask = [{', '.join(map(quote, codes))}] }}", lists_values=True)
    rows = [
        tuple(code[: width - hidden] + "*" * hidden for hidden in range(width + 1))
        for code in codes
    ]
    return DomainDraft(rows=rows, remark="digits masked from the right")


def _bands(column: Column) -> DomainDraft:
    """Make a tree in which neighbouring bands are joined two by two."""
    bands = read_bands(column.real_values) or []
    known = {band.text for band in bands}
    others = [value for value in column.values if value not in known]
    rows = band_rows(bands, others, _root(column.values))
    return DomainDraft(rows=rows, remark="neighbours joined two by two")


def _calendar(column: Column) -> DomainDraft:
    """Make a hierarchy of day, month, year and decade, for all days of the sample's years."""
    form = column.form or "%Y-%m-%d"
    written = {value: _day(value, form) for value in column.values}
    days = {day for day in written.values() if day is not None}
    if days and max(days).year - min(days).year < MOST_YEARS:
        first = datetime.date(min(days).year, 1, 1).toordinal()
        last = datetime.date(max(days).year, 12, 31).toordinal()
        for day in map(datetime.date.fromordinal, range(first, last + 1)):
            written.setdefault(day.strftime(form), day)
    dated = sorted((day, text) for text, day in written.items() if day is not None)
    rows: Rows = [
        (text, f"{day:%Y-%m}", f"{day:%Y}", f"{day:%Y}"[:3] + "0s", ROOT) for day, text in dated
    ]
    strange = [text for text, day in written.items() if day is None]
    rows += [(value, "no date", "no date", "no date", ROOT) for value in strange]
    return DomainDraft(rows=rows, remark="day, month, year, decade")


def _day(text: str, form: str) -> datetime.date | None:
    try:
        return datetime.datetime.strptime(text, form).date()
    except ValueError:
        return None


def _alphabet(column: Column) -> DomainDraft:
    """Group values by their first letters: a start, to be replaced by a meaningful grouping."""
    values = sorted(
        column.values, key=lambda value: (_letters(value, 1), _letters(value, 2), value)
    )
    firsts = [first for first, _ in itertools.groupby(_letters(value, 1) for value in values)]
    counts = [sum(_letters(value, 1) == first for value in values) for first in firsts]
    group_of: dict[str, str] = {}
    for members in _even(firsts, counts):
        label = members[0] if len(members) == 1 else f"{members[0]}–{members[-1]}"
        group_of |= dict.fromkeys(members, f"{label}…")
    rows: Rows = []
    taken, root = set(values), _root(values)
    for value in values:
        path = [group_of[_letters(value, 1)], f"{_letters(value, 1)}…"]
        if len(values) > MANY:
            path.append(f"{_letters(value, 2)}…")
        rows.append((value, *(_free(label, taken) for label in reversed(path)), root))
    return DomainDraft(rows=rows, remark="by first letters, to be improved: group related values")


def _letters(value: str, n: int) -> str:
    plain = unicodedata.normalize("NFKD", value)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return (plain.strip() or value).upper()[:n].strip()


def _even(letters: Sequence[str], counts: Sequence[int]) -> Iterable[list[str]]:
    """Cut sorted letters into a few groups with about the same number of values."""
    share = sum(counts) / GROUPS
    before = itertools.accumulate(counts, initial=0)
    placed = zip(letters, before, strict=False)
    for _, members in itertools.groupby(placed, key=lambda pair: int(pair[1] / share)):
        yield [letter for letter, _ in members]


def _free(label: str, taken: set[str]) -> str:
    """Lengthen a label until it isn't a value of the column."""
    while label in taken:
        label += "…"
    return label


def _root(values: Sequence[str]) -> str:
    return ROOT if ROOT not in values else _free("any value", set(values))
