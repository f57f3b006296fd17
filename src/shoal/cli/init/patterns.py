"""Recognize values by their form: contact data, numbers of people and devices, codes, dates."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable, Sequence

__all__ = [
    "DATES",
    "STAMP",
    "are_grouped_numbers",
    "are_mixed_dates",
    "date_format",
    "find_pattern",
    "is_diagnosis",
    "shape_share",
]

#: The share of the values that must have a form.
MOST = 0.9
#: How many different values are looked at.
LOOKED_AT = 2000

#: Forms of dates other than 2026-03-01.
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y%m%d", "%d-%m-%Y")
DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}|(19|20)\d{6}")
#: A time stamp that Shoal reads.
STAMP = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?")
#: A time stamp in another form.
OTHER_STAMP = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?[T ]+\d{1,2}:\d{2}(:\d{2})?.{0,6}")
#: A number whose thousands may be separated: by points or blanks before a comma, or the reverse.
GROUPED = re.compile(
    r"[+-]?(\d{1,3}([. \u00a0\u202f']\d{3})+|\d{1,3}),\d{1,2}"
    r"|[+-]?(\d{1,3}([, \u00a0\u202f']\d{3})+|\d{1,3})\.\d{1,2}"
)
DIAGNOSIS = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?|[EV]?\d{2,3}(\.\d{1,2})?")
LETTER_DIAGNOSIS = re.compile(r"[A-TV-Z]\d[0-9A-Z](\.[0-9A-Z]{1,4})?")


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_phone(text: str) -> bool:
    digits = sum(letter.isdigit() for letter in text)
    if not 8 <= digits <= 15:
        return False
    international = re.fullmatch(r"(\+|00)[1-9][\d ()/.-]+", text)
    local = re.fullmatch(r"\(?0[1-9]\d{1,4}\)?[ /-]?\d[\d -]{4,}", text)
    american = re.fullmatch(r"(1[ .-])?\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}", text)
    return bool(international or local or american)


def _is_card(text: str) -> bool:
    """Return whether a number of 13 to 19 digits ends in its check digit, as cards and IMEIs do.

    >>> _is_card("4539 1488 0343 6467"), _is_card("4539 1488 0343 6468")
    (True, False)
    """
    digits = re.sub(r"[ -]", "", text)
    if not re.fullmatch(r"\d{13,19}", digits):
        return False
    doubled = [int(digit) * (2 if i % 2 else 1) for i, digit in enumerate(reversed(digits))]
    return sum(digit - 9 if digit > 9 else digit for digit in doubled) % 10 == 0


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


#: What values may be, and how to tell; the first that fits counts.
PATTERNS: dict[str, Callable[[str], bool]] = {
    "e-mail addresses": _matches(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}"),
    "UUIDs": _matches(r"\{?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?"),
    "IP addresses": _is_ip,
    "MAC addresses": _matches(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}"),
    "web addresses": _matches(r"(https?://|www\.)\S+"),
    "IBANs": _matches(r"[A-Z]{2}\d{2} ?([A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}"),
    "national ids": _matches(
        r"\d{3}-\d{2}-\d{4}|\d{6}[-+A]\d{3,4}[0-9A-Z]?|756\.\d{4}\.\d{4}\.\d{2}"
        r"|[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]|[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]"
        r"|\d{3}\.\d{3}\.\d{3}-\d{2}|[12] ?\d{2} ?(0[1-9]|1[0-2]) ?\d{2} ?\d{3} ?\d{3}( ?\d{2})?"
        r"|\d{8}[A-HJ-NP-TV-Z]|[XYZ]\d{7}[A-Z]"
    ),
    "phone numbers": _is_phone,
    "numbers of cards or devices": _is_card,
    "hashes": _matches(r"(?=.*[a-fA-F])(?=.*\d)[0-9a-fA-F]{16,128}"),
}


def find_pattern(values: Sequence[str]) -> str | None:
    """Return what the values are by their form: an identifier of people or devices, or None.

    >>> find_pattern(["ann@example.org", "bob@example.org"])
    'e-mail addresses'
    >>> find_pattern(["Ann", "Bob"])
    """
    looked_at = values[:LOOKED_AT]
    if not looked_at:
        return None
    for name, is_it in PATTERNS.items():
        # A few values by chance are no evidence.
        if _share(looked_at, is_it) >= MOST and (len(looked_at) > 1 or "@" in looked_at[0]):
            return name
    return None


def is_diagnosis(values: Sequence[str]) -> bool:
    """Return whether values are codes of the ICD: most fit its form, and some have its letters.

    >>> is_diagnosis(["E11.9", "I10", "J45", "M54.5", "K21.9", "F32.1", "N39.0", "R07.4"])
    True
    >>> is_diagnosis(["A12", "A13", "A14", "A15", "A16", "A17", "A18", "A19"])
    False
    """
    looked_at = values[:LOOKED_AT]
    if len(looked_at) < 8 or _share(looked_at, lambda v: bool(DIAGNOSIS.fullmatch(v))) < MOST:
        return False
    # Shelf numbers look the same: a diagnosis has several chapters, and points or three digits.
    lettered = [value for value in looked_at if LETTER_DIAGNOSIS.fullmatch(value)]
    chapters = {value[0] for value in lettered}
    pointed = sum("." in value for value in looked_at)
    return len(chapters) >= 5 and pointed >= 0.2 * len(looked_at)


def date_format(values: Sequence[str]) -> str | None:
    """Return the form of dates that all values have, or None.

    >>> date_format(["31.12.1980", "01.02.1990"]), date_format(["1980-02-31", "1980-05-17"])
    ('%d.%m.%Y', '%Y-%m-%d')
    """
    looked_at = values[:LOOKED_AT]
    if not looked_at or not all(map(DATE.fullmatch, looked_at)):
        return None
    shares = {form: _share(looked_at, lambda v, f=form: _is_date(v, f)) for form in DATES}  # type: ignore[misc]
    best = max(shares, key=lambda form: shares[form])
    if all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", value) for value in looked_at):
        return "%Y-%m-%d"
    return best if shares[best] >= MOST else None


def are_mixed_dates(values: Sequence[str]) -> bool:
    """Return whether nearly all values are dates or time stamps; of one form they are known before.

    >>> are_mixed_dates(["31.12.1980", "1990-02-01", "3/4/2026 6:24"])
    True
    >>> are_mixed_dates(["99-99-1980", "Bonn"])
    False
    """
    looked_at = values[:LOOKED_AT]
    return bool(looked_at) and _share(looked_at, _is_any_date) >= MOST


def are_grouped_numbers(values: Sequence[str]) -> bool:
    """Return whether nearly all values are amounts, and some have separated thousands.

    >>> are_grouped_numbers(["1.334,39", "912,50"]), are_grouped_numbers(["1,334.39", "912.50"])
    (True, True)
    >>> are_grouped_numbers(["912,50", "13,00"]), are_grouped_numbers(["1.334", "2.500"])
    (False, False)
    """
    looked_at = values[:LOOKED_AT]
    amounts = [groups for groups in map(GROUPED.fullmatch, looked_at) if groups]
    is_separated = any(found[2] or found[4] for found in amounts)
    return is_separated and len(amounts) >= MOST * len(looked_at)


def _is_any_date(text: str) -> bool:
    if STAMP.fullmatch(text) or OTHER_STAMP.fullmatch(text):
        return True
    return bool(DATE.fullmatch(text)) and any(_is_date(text, form) for form in DATES)


def _is_date(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def shape_share(values: Sequence[str]) -> float:
    """Return the share of the values of the most frequent shape that has digits.

    Letters and digits are alike in a shape, and runs of them count once, except in short values.

    >>> shape_share(["P-0012", "P-0345", "Q-12", "no id"])
    0.75
    """
    looked_at = values[:LOOKED_AT]
    shapes = [re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "A", value)) for value in looked_at]
    with_digits = [shape for shape in shapes if "9" in shape and " " not in shape]
    if not with_digits:
        return 0.0
    return max(map(with_digits.count, set(with_digits))) / len(shapes)


def _share(values: Sequence[str], is_it: Callable[[str], bool]) -> float:
    return sum(map(is_it, values)) / len(values)
