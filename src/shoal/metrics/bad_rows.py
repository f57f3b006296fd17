"""Why rows couldn't be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar, Self

from shoal.metrics.base import Counters

__all__ = ["OTHER", "BadRowCounts", "hint", "listed"]

#: The most different reasons that are counted; further ones are counted together.
MOST = 100
#: The most reasons that are listed on a terminal.
LISTED = 8
OTHER = "another reason"


class BadRowCounts(Counters):
    """How many rows were quarantined for which reason.

    Reasons name columns and counts. Hostile input could make up new ones without end, such as
    another number of fields in each row, so the number of different ones is bounded.

    >>> counts = BadRowCounts()
    >>> counts.add(["age is missing", "town is missing", "age is missing"])
    >>> counts.as_dict()
    {'age is missing': 2, 'town is missing': 1}
    """

    __slots__ = ("reasons",)
    counters: ClassVar[dict[str, str]] = {"reasons": "reasons"}

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def add(self, reasons: Iterable[str]) -> None:
        """Count bad rows by their reasons, in the order of the rows."""
        for reason in reasons:
            known = reason in self.reasons or len(self.reasons) < MOST
            self.reasons[reason if known else OTHER] += 1

    def merge(self, other: Self) -> None:
        """Add the counts of another run."""
        for reason, n in other.reasons.items():
            known = reason in self.reasons or len(self.reasons) < MOST
            self.reasons[reason if known else OTHER] += n

    def as_dict(self) -> dict[str, int]:
        """Return the counts by reason, the most frequent first."""
        return dict(self.reasons.most_common())


def listed(reasons: Mapping[str, int]) -> str:
    """Return reasons with their counts in words, the most frequent first.

    >>> listed({"town is missing": 1, "age is missing": 2})
    'age is missing (2), town is missing (1)'
    """
    ranked = Counter(reasons).most_common()
    words = [f"{reason} ({n:,})" for reason, n in ranked[:LISTED]]
    more = len(ranked) - LISTED
    return ", ".join(words) + (f", and {more:,} more reasons" if more > 0 else "")


def hint(reasons: Iterable[str]) -> str:
    """Return a sentence about the encoding if reasons suggest that it is another one, else "".

    >>> hint(["age is missing", "broken UTF-8 in column town"])
    'If the file has another encoding than UTF-8, set input.encoding; `shoal init` finds it.'
    """
    if not any(reason.startswith("broken UTF-8") for reason in reasons):
        return ""
    return "If the file has another encoding than UTF-8, set input.encoding; `shoal init` finds it."
