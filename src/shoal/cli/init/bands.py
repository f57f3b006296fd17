"""Bands such as ``[0-10)``, ``18-25`` and ``65+``: read them, and build a tree of intervals."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Band", "band_rows", "read_band", "read_bands"]

NUMBER = r"-?\d+(?:[.,]\d+)?"
BETWEEN = re.compile(
    rf"(?P<open>[\[(]?)\s*(?P<lo>{NUMBER})\s*(?P<sep>-|–|—|\.\.|,|;|to|bis|à|a)\s*"
    rf"(?P<hi>{NUMBER})\s*(?P<close>[\])]?)\s*(?P<unit>[^\d\[\]()]*)"
)
ABOVE = re.compile(
    rf"(?:(?:>=?|≥|over|above|from|ab|über|plus de|more than)\s*(?P<a>{NUMBER})"
    rf"|(?P<b>{NUMBER})\s*(?:\+|and over|and above|or more|or older|and older|plus|und mehr))"
    r"\s*(?P<unit>[^\d]*)",
    re.IGNORECASE,
)
BELOW = re.compile(
    rf"(?:(?:<=?|≤|under|below|up to|unter|bis|moins de|less than)\s*(?P<a>{NUMBER})"
    rf"|(?P<b>{NUMBER})\s*(?:and under|or less|or younger|and younger))\s*(?P<unit>[^\d]*)",
    re.IGNORECASE,
)
#: How many bands there must be, and how many other values there may be, such as "unknown".
LEAST, MOST_OTHERS = 3, 2


@dataclass(frozen=True, slots=True)
class Band:
    """One band: its edges, and how it is written."""

    text: str
    lo: float
    hi: float
    separator: str = "-"
    brackets: str = ""


def read_band(text: str) -> Band | None:
    """Read a band, or return None if it is none.

    >>> read_band("[0-10)"), read_band("65+")
    (Band(text='[0-10)', lo=0.0, hi=10.0, separator='-', brackets='[)'), Band(text='65+', lo=65.0, \
hi=inf, separator='-', brackets=''))
    """
    if found := BETWEEN.fullmatch(text):
        lo, hi = _number(found["lo"]), _number(found["hi"])
        if lo <= hi:
            return Band(text, lo, hi, found["sep"], found["open"] + found["close"])
    elif found := ABOVE.fullmatch(text):
        return Band(text, _number(found["a"] or found["b"]), math.inf)
    elif found := BELOW.fullmatch(text):
        return Band(text, -math.inf, _number(found["a"] or found["b"]))
    return None


def read_bands(values: Sequence[str]) -> list[Band] | None:
    """Return the bands of a column in their order, or None if its values are no bands.

    Nearly all values must be bands, and the bands must not overlap.

    >>> [band.text for band in read_bands(["65+", "18-39", "40-64", "?"]) or ()]
    ['18-39', '40-64', '65+']
    >>> read_bands(["2020-01", "2020-02", "2020-03"])
    """
    bands = [band for band in map(read_band, values) if band is not None]
    if len(bands) < LEAST or len(values) - len(bands) > MOST_OTHERS:
        return None
    bands.sort(key=lambda band: (band.lo, band.hi))
    pairs = itertools.pairwise(bands)
    return bands if all(a.hi <= b.lo and a.lo < b.hi for a, b in pairs) else None


def band_rows(bands: Sequence[Band], others: Sequence[str], root: str) -> list[tuple[str, ...]]:
    """Return the paths of a tree in which neighbours are joined two by two, from leaf to root.

    ``others`` are values that are no bands; they lie apart, directly under the root.

    >>> bands = read_bands(["0-9", "10-19", "20-29", "30+"]) or []
    >>> for path in band_rows(bands, ["?"], "*"):
    ...     print(";".join(path))
    0-9;0-19;*
    10-19;0-19;*
    20-29;20+;*
    30+;20+;*
    ?;?;*
    """
    taken = {band.text for band in bands} | set(others) | {root}
    paths = [[band.text] for band in bands]
    width = 2
    while width < len(bands):
        for start in range(0, len(bands), width):
            members = range(start, min(start + width, len(bands)))
            # One that is left over stays itself for one more level.
            label = paths[start][-1]
            if len(members) > width // 2:
                label = _free(_joined(bands[members[0]], bands[members[-1]]), taken)
                taken.add(label)
            for member in members:
                paths[member].append(label)
        width *= 2
    depth = len(paths[0]) if paths else 1
    return [(*path, root) for path in paths] + [(*[other] * depth, root) for other in others]


def _joined(first: Band, last: Band) -> str:
    """Return the label from the first band to the last, written as they are."""
    if math.isinf(first.lo):
        return f"<{_text(last.hi)}" if not math.isinf(last.hi) else "all bands"
    if math.isinf(last.hi):
        return f"{_text(first.lo)}+"
    opening = first.brackets[:1] if len(first.brackets) == 2 else ""
    closing = last.brackets[-1:] if len(last.brackets) == 2 else ""
    separator = first.separator if not first.separator.isalpha() else f" {first.separator} "
    return f"{opening}{_text(first.lo)}{separator}{_text(last.hi)}{closing}"


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _text(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _free(label: str, taken: set[str]) -> str:
    while label in taken:
        label += "…"
    return label
