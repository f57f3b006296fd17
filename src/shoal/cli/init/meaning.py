"""Tell what the values of a column mean, by their form, by how they recur, and by its name.

Every meaning comes with its reason. Where values recur as ids do, they are taken for ids: a column
that is wrongly left out can be added again, a published id can't be taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.cli.init import words as w
from shoal.cli.init.bands import read_bands
from shoal.cli.init.columns import Column
from shoal.cli.init.patterns import (
    are_grouped_numbers,
    are_mixed_dates,
    find_pattern,
    is_diagnosis,
    shape_share,
)
from shoal.cli.init.words import split

__all__ = ["IDENTIFYING", "Meaning", "Sense", "contact_by_name", "id_score", "meaning_of"]

Sense = Literal[
    "nothing", "contact", "person id", "record id", "free text", "time", "date", "band",
    "code", "count", "measurement", "place", "diagnosis", "category",
]  # fmt: skip

#: What identifies people or rows: never published.
IDENTIFYING: frozenset[Sense] = frozenset({"contact", "person id", "record id", "free text"})

#: Ids have many values; one in this share of the rows, or more, isn't the id of a person.
LEAST_IDS, MOST_OF_ONE = 50, 0.1
#: In a small sample there are fewer values; a guest, who stands for many, has at most this share.
LEAST_OF_FEW, MOST_OF_GUEST = 12, 0.4
#: The share of the values that have one shape, where they are ids or codes.
ONE_SHAPE = 0.9
#: From here on a number would be in too many rows to tell ids from codes.
MOST_ROWS_EACH = 200
#: Up to here a value recurs a few times.
FEW_ROWS_EACH = 5.0
#: Above this a value isn't different in every row.
RECURS = 1.02
#: Numbers up to here are as likely amounts as ids.
SMALL_NUMBER = 1000
#: How even ids recur over their range, at least.
EVEN = 0.4
#: Where more numbers than this are multiples of ten, they were rounded: amounts, no ids.
ROUNDED = 0.3
MOST_CODES = 60
#: Below this share of the numbers in between, a few numbers are codes.
SPARSE = 0.5
#: 1990 and 2100, in seconds since 1970.
EPOCH = (631_152_000, 4_102_444_800)
#: Between these, whole numbers are years.
YEARS = (1850, 2150)
LONG_TEXT = 4.0


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the values of a column mean, and why it is thought so."""

    sense: Sense
    reason: str
    by_name: bool = False
    """Whether the name of the column says so; else its values do."""

    @property
    def identifies(self) -> bool:
        """Whether the column identifies people or rows."""
        return self.sense in IDENTIFYING


def meaning_of(column: Column) -> Meaning:
    """Return what the values of a column mean.

    >>> import pyarrow as pa
    >>> from shoal.cli.init.columns import describe
    >>> meaning_of(describe("age", pa.chunked_array([["[0-10)", "[10-20)", "[20-30)"]]))).sense
    'band'
    """
    for rule in (_nothing, _named_id, _form, _named_contact, _clear_form, _ids):
        if (found := rule(column)) is not None:
            return found
    return _number(column) if column.kind == "number" else _text(column)


def id_score(name: str) -> float:
    """Return how surely a column's name means the id of a person; 0 or less: not at all."""
    tokens = split(name)
    if not tokens:
        return 0
    if w.STRONG_ID.match(name):
        return 4
    found = w.words(name)
    who = not w.WHO.words.isdisjoint(found)
    # "Customer number" identifies people, "number of customers" is a count.
    is_id = not w.ID.words.isdisjoint(tokens[1:]) or tokens[0] in w.FIRST_ID
    ends = tokens[-1].endswith(w.ID_ENDS)
    if (who and is_id) or ((who or w.WHO.stem(name)) and ends):
        return 3
    if w.WHO.words.issuperset(found):
        return 2
    if (is_id or ends) and w.OWNED.match(name):
        return 1.5
    return 1 if w.BARE_ID.issuperset(found) else 0


# -- rules, each of which may know ----------------------------------------------------------------


def _nothing(column: Column) -> Meaning | None:
    if column.kind == "other":
        return Meaning("nothing", "values of this type can't be generalized")
    if column.n_distinct == 0:
        return Meaning("nothing", "it has no value in the sample")
    if column.n_distinct == 1:
        return Meaning("nothing", "it has only one value in the sample")
    if any(len(value.splitlines()) > 1 for value in column.values):
        return Meaning("free text", "it has values with line breaks")
    return None


def _form(column: Column) -> Meaning | None:
    """Know contact data and diagnoses by their form."""
    if column.kind not in ("number", "text"):
        return None
    pattern = find_pattern(column.real_values)
    if pattern is not None:
        return Meaning("contact", f"values have the form of {pattern}")
    if column.kind == "text" and is_diagnosis(column.real_values):
        return Meaning("diagnosis", "values have the form of diagnoses (ICD)")
    return None


def _named_contact(column: Column) -> Meaning | None:
    return contact_by_name(column.name)


def contact_by_name(name: str) -> Meaning | None:
    """Return whether a column's name says that its values identify people directly."""
    found = w.words(name)
    is_name = not w.GENERIC_NAME.isdisjoint(found) and (
        len(found) == 1 or not (w.OF_PERSON | w.WHO.words).isdisjoint(found)
    )
    if is_name or w.IDENTIFIER.match(name):
        return Meaning("contact", "by its name it identifies people directly", by_name=True)
    return None


def _named_id(column: Column) -> Meaning | None:
    if column.kind not in ("number", "text") or id_score(column.name) <= 0:
        return None
    reason = f"its name is that of an id of people; {_recurrence(column)}"
    return Meaning("person id", reason, by_name=True)


def _clear_form(column: Column) -> Meaning | None:
    """Know times, dates, bands and long texts."""
    if column.kind == "time":
        return Meaning("time", "time stamps")
    if _is_epoch(column):
        return Meaning("time", "seconds since 1970, by the name and the size")
    if column.kind == "date":
        return Meaning("date", "dates")
    if column.kind == "text" and are_mixed_dates(column.real_values):
        return Meaning("nothing", "dates in several forms: write all of them in one")
    if column.kind == "text" and are_grouped_numbers(column.real_values):
        return Meaning("nothing", "numbers with separated thousands: leave the separator out")
    bands = read_bands(column.real_values)
    if bands is not None:
        return Meaning("band", f"{len(bands)} bands in order")
    if column.kind == "text" and not column.few:
        n_words = sum(len(value.split()) for value in column.values) / len(column.values)
        if n_words >= LONG_TEXT or (n_words > 2 and w.NOTE.match(column.name)):
            return Meaning("free text", f"free text, of {n_words:.0f} words on average")
    return None


def _is_epoch(column: Column) -> bool:
    """Return whether numbers are seconds since 1970, of years from 1990 on."""
    if column.kind != "number" or column.few or w.BIRTH.match(column.name):
        return False
    named = w.INSTANT.match(column.name) or w.CALENDAR.match(column.name)
    return named and EPOCH[0] <= column.lo and column.hi <= EPOCH[1]


def _ids(column: Column) -> Meaning | None:
    """Know ids by how their values recur, unless the name means something that does so too."""
    too_often = column.kind == "number" and column.rows_each > MOST_ROWS_EACH
    if column.n_distinct < _least_ids(column) or too_often:
        return _few_ids(column)
    if column.spread.top_share > MOST_OF_ONE and not _has_guest(column):
        return _few_ids(column)
    if any(known.match(column.name) for known in (w.BIRTH, w.POSTCODE)):
        return None
    is_id = _number_ids(column) if column.kind == "number" else _text_ids(column)
    if not is_id:
        return None
    if column.rows_each <= RECURS:
        what = "different in every row: it identifies rows"
        return Meaning("record id", what)
    return Meaning("person id", f"values recur as ids of people do: {_recurrence(column)}")


def _least_ids(column: Column) -> int:
    """Return how many values an id has at least: fewer in a small sample, if they look like ids."""
    values = column.real_values
    is_long = (
        column.spread.low >= SMALL_NUMBER
        if column.whole
        else len(min(values, key=len, default="")) > 3
    )
    if is_long and (column.whole or shape_share(values) >= ONE_SHAPE):
        return min(LEAST_IDS, max(LEAST_OF_FEW, column.n_present // 10))
    return LEAST_IDS


def _has_guest(column: Column) -> bool:
    """Return whether one id stands for many, such as 0 for everybody without an account."""
    spread = column.spread
    if column.kind == "text":
        return shape_share(column.real_values) >= ONE_SHAPE and spread.top_share < MOST_OF_GUEST
    return spread.high >= SMALL_NUMBER and spread.evenness >= EVEN


def _few_ids(column: Column) -> Meaning | None:
    """Know ids of a small sample by their names; one with few values is a code."""
    tokens = split(column.name)
    if column.few or not tokens or column.rows_each > LEAST_IDS or column.kind == "other":
        return None
    if not _ends_as_id(column.name):
        return None
    if tokens[0] in w.FIRST_COUNT or w.CODE.match(column.name):
        return None
    sense: Sense = "record id" if column.rows_each <= RECURS else "person id"
    return Meaning(sense, f"by its name an id; {_recurrence(column)}", by_name=True)


def _number_ids(column: Column) -> bool:
    spread = column.spread
    if not column.whole or spread.low < 0 or spread.round_share > ROUNDED:
        return False
    if w.AMOUNT.match(column.name) or w.WELL_KNOWN.match(column.name) or _is_count(column):
        return False
    if _ends_as_id(column.name):
        return True
    if w.SENSITIVE.match(column.name):
        return False
    if column.nearly_unique:
        return True
    if column.rows_each <= FEW_ROWS_EACH and spread.high >= SMALL_NUMBER:
        # Years are the numbers of this size that recur by themselves.
        return not _are_years(column)
    many = column.n_distinct >= 2 * LEAST_IDS or spread.high >= SMALL_NUMBER
    return many and spread.evenness >= EVEN


def _ends_as_id(name: str) -> bool:
    tokens = split(name)
    return bool(tokens) and (
        tokens[-1] in w.ENDING_ID or (tokens[-1].endswith("id") and tokens[-1] not in w.NO_ID)
    )


def _text_ids(column: Column) -> bool:
    values = column.real_values
    known = w.PLACE.match(column.name) or w.SENSITIVE.match(column.name)
    known = known or (w.WELL_KNOWN.match(column.name) and column.rows_each > FEW_ROWS_EACH)
    if _ends_as_id(column.name):
        return True
    if shape_share(values) >= ONE_SHAPE:
        return not known
    # Many texts, none of them frequent: names, nicknames, tokens. Categories are fewer.
    return not (known or w.WELL_KNOWN.match(column.name) or w.QUASI.match(column.name))


# -- numbers and texts that are no ids ------------------------------------------------------------


def _are_years(column: Column) -> bool:
    return YEARS[0] <= column.spread.low and column.spread.high <= YEARS[1]


def _is_count(column: Column) -> bool:
    tokens = split(column.name)
    counted = len(tokens) > 1 and tokens[0] in w.FIRST_COUNT and tokens[-1] not in w.ENDING_ID
    return counted or w.COUNT.match(column.name)


def _number(column: Column) -> Meaning:
    name, spread = column.name, column.spread
    if w.POSTCODE.match(name):
        return Meaning("place", "postcodes, by the name", by_name=True)
    if not column.whole:
        named = w.PLACE.match(name)
        what = "a position, by the name" if named else "numbers with fractions"
        return Meaning("place" if named else "measurement", what, by_name=named)
    if _are_years(column):
        return Meaning("measurement", "years")
    if w.WELL_KNOWN.match(name) and not w.CATEGORY.match(name):
        return Meaning("measurement", "numbers in order, by the name", by_name=True)
    if w.CATEGORY.match(name) or w.PLACE.match(name):
        return Meaning("code", "numbers that are labels, by the name", by_name=True)
    if _is_count(column):
        return Meaning("count", "a count, by the name", by_name=True)
    if column.n_distinct == 2:
        return Meaning("code", "two values")
    if column.n_distinct <= MOST_CODES and (_ends_as_id(name) or w.CODE.match(name)):
        return Meaning("code", f"{column.n_distinct} codes, by the name", by_name=True)
    sparse = column.n_present >= 2 * MOST_CODES and spread.density < SPARSE
    if (sparse and column.few) or (spread.n_peaks > 2 and not w.AMOUNT.match(name)):
        what = "whole numbers with gaps or jumps: without meaning in between"
        return Meaning("code", f"{column.n_distinct} {what}")
    if w.AMOUNT.match(name) or spread.low < 0 or column.n_distinct > MOST_CODES:
        return Meaning("measurement", "whole numbers")
    return Meaning("count", "small whole numbers, dense and with one peak")


def _text(column: Column) -> Meaning:
    if w.POSTCODE.match(column.name):
        return Meaning("place", "postcodes, by the name", by_name=True)
    if w.PLACE.match(column.name):
        return Meaning("place", "places, by the name", by_name=True)
    if column.nearly_unique and not (w.QUASI.match(column.name) or w.BIRTH.match(column.name)):
        return Meaning("free text", "nearly every row has a different value, like an identifier")
    if shape_share(column.real_values) >= ONE_SHAPE:
        return Meaning("code", f"{column.n_distinct} codes")
    return Meaning("category", f"{column.n_distinct} different texts")


def _recurrence(column: Column) -> str:
    if column.rows_each <= RECURS:
        return "every row has another value"
    return f"{column.n_distinct:,} values, each in {column.rows_each:.1f} rows on average"
