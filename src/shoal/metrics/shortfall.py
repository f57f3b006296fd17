"""Which part of a promise no group could keep, and what the rows would have allowed.

Nothing here decides anything: it counts what came in, to explain a run that publishes nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict

import numpy as np

from shoal.engine.kernels.arrays import Floats
from shoal.engine.space import Codes
from shoal.spec.criteria import Criterion
from shoal.spec.policy import KAnonymity, Policy, Window
from shoal.spec.schema import Schema

__all__ = ["Shortfall", "promise_of", "span_of", "suppression_reason"]

#: The number of a row, and its time.
Arrival = tuple[int, float]


class Shortfall:
    """Count, until it is known to be enough, how many people and values came within the delay.

    Its memory is bounded by k (or z) and l. It stops counting as soon as enough came together.

    Parameters
    ----------
    schema, policy
        The columns, and what is promised.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.policy import Delay, KAnonymity
    >>> from shoal.spec.schema import Quasi
    >>> schema = Schema("who", [Quasi("age", Range(0, 120))])
    >>> shortfall = Shortfall(schema, Policy(KAnonymity(3), delay=Delay(rows=1)))
    >>> people = np.array([7, 8, 7, 9])
    >>> shortfall.add(Codes(np.zeros((4, 1)), people, np.zeros((4, 0), int), np.full(4, np.nan)))
    >>> print(*shortfall.sentences())  # doctest: +NORMALIZE_WHITESPACE
    At most 2 different people came within 1 row: with this delay k can be at most 2, and k = 3
    needs a delay of at least 2 rows.
    """

    def __init__(self, schema: Schema, policy: Policy) -> None:
        self._policy = policy
        self._key, self._least = ("z", policy.z) if policy.per_value else ("k", policy.k)
        self._rows, self._seconds = _span(policy)
        # The latest arrival of each of the k latest people, and of those within the delay; the
        # oldest first.
        self._latest: OrderedDict[int, Arrival] = OrderedDict()
        self._together: OrderedDict[int, Arrival] = OrderedDict()
        self._most = 0
        self._nearest: tuple[float, float] = (math.inf, math.inf)
        self._n_rows = 0
        self._time = -math.inf
        self._values: dict[str, set[int]] = {a.name: set() for a in schema.sensitive}
        self._l = {
            name: max(
                (math.ceil(c.l) for c in policy.diversity if c.attribute in (None, name)), default=0
            )
            for name in self._values
        }
        self._is_whole = True

    def miss(self) -> None:
        """Take note that rows were read before that aren't counted here: less is known then."""
        self._is_whole = False

    def add(self, codes: Codes, times: Floats | None = None) -> None:
        """Count valid rows; ``times`` are their arrivals, if not those of the codes."""
        for j, (name, seen) in enumerate(self._values.items()):
            if len(seen) < self._l[name]:
                new = np.unique(codes.sensitive[:, j])
                seen.update(new[: self._l[name] + len(seen)].tolist())
        arrivals = codes.times if times is None else times
        for subject, time in zip(codes.subjects.tolist(), arrivals.tolist(), strict=True):
            if self._most >= self._least:
                return
            self._arrive(subject, time)

    def _arrive(self, subject: int, time: float) -> None:
        # Time doesn't run backwards; without any, every row is within all seconds.
        self._time = max(self._time, time) if time == time else self._time
        now = self._n_rows, self._time
        self._n_rows += 1
        for kept in (self._latest, self._together):
            kept.pop(subject, None)
            kept[subject] = now
        if len(self._latest) > self._least:
            self._latest.popitem(last=False)
        if len(self._latest) == self._least:
            row, begin = next(iter(self._latest.values()))
            seconds = now[1] - begin if math.isfinite(begin) else 0.0
            self._nearest = min(self._nearest[0], now[0] - row), min(self._nearest[1], seconds)
        while True:
            row, begin = next(iter(self._together.values()))
            if now[0] - row <= self._rows and not now[1] - begin > self._seconds:
                break
            self._together.popitem(last=False)
        self._most = max(self._most, len(self._together))

    def sentences(self) -> list[str]:
        """Return what was short, as facts of the rows that came; for a run that published nothing.

        What isn't known isn't said: that there were enough people for k doesn't mean that the other
        promises could be kept with them.
        """
        if not self._is_whole:
            return []
        found = []
        if self._most < self._least:
            found.append(self._people())
        for name, seen in self._values.items():
            if 0 < len(seen) < self._l[name]:
                n = f"{len(seen):,} different value" + "s" * (len(seen) != 1)
                found.append(f"{name} had only {n}: l can be at most {len(seen):,} there.")
        return found or [self._enough()]

    def _people(self) -> str:
        key, least, most = self._key, self._least, self._most
        n_all = len(self._latest)
        within = f"within {span_of(self._policy)}"
        if math.isinf(self._rows) and math.isinf(self._seconds):
            return f"Only {_people(n_all)} came: {key} can be at most {n_all:,}."
        if n_all < least:
            some = f", at most {most:,} of them {within}" if most < n_all else ""
            return f"Only {_people(n_all)} came{some}: {key} can be at most {most:,}."
        span = "window" if self._policy.per_value else "delay"
        return (
            f"At most {_people(most)} came {within}: with this {span} {key} can be at most "
            f"{most:,}, and {key} = {least:,} needs a {span} of at least {self._needed()}."
        )

    def _needed(self) -> str:
        rows, seconds = self._nearest
        # A window counts its last row, a delay doesn't.
        rows += self._policy.per_value
        parts = []
        if math.isfinite(self._rows):
            parts.append(_count(rows, "row"))
        if math.isfinite(self._seconds):
            parts.append(_count(math.ceil(seconds * 1e3) / 1e3, "second"))
        return " and ".join(parts)

    def _enough(self) -> str:
        if self._policy.per_value:
            return "Enough people came, but no value was exposed by enough of them in one window."
        others = [c for c in self._policy.criteria if not isinstance(c, KAnonymity)]
        enough = f"Enough different people came for k = {self._least:,}"
        if others:
            rest = ", ".join(map(_words, others))
            return f"{enough}, but no group that formed kept {rest} as well."
        return f"{enough}, but the algorithm formed no group of them in time."


def promise_of(policy: Policy) -> str:
    """Return what a policy promises of every group, in the words of the job file.

    >>> from shoal.spec.policy import Delay, KAnonymity, TCloseness
    >>> promise_of(Policy(KAnonymity(10), TCloseness(0.2, attribute="pay"), window="all"))
    'k = 10, t = 0.2 of pay'
    """
    return ", ".join(map(_words, policy.criteria))


def span_of(policy: Policy) -> str:
    """Return within what k people must come, in words: the delay, or for z the window.

    >>> from shoal.spec.policy import Delay, KAnonymity
    >>> span_of(Policy(KAnonymity(10), delay=Delay(rows=100, seconds=2.5)))
    '100 rows and 2.5 seconds'
    """
    window = policy.window
    if policy.per_value and isinstance(window, Window):
        given = (window.rows or None, window.seconds)
    else:
        given = (None, None) if policy.delay is None else (policy.delay.rows, policy.delay.seconds)
    words = [_count(n, unit) for n, unit in zip(given, ("row", "second"), strict=True) if n]
    return " and ".join(words) or "the input"


def suppression_reason(policy: Policy, *, is_end: bool) -> str:
    """Return in words why rows are suppressed, when they are due or at the end of the input.

    >>> from shoal.spec.policy import Delay, KAnonymity
    >>> suppression_reason(Policy(KAnonymity(10), delay=Delay(rows=100)), is_end=False)
    'found no group that keeps k = 10 within the delay'
    """
    if policy.per_value:
        return "had no value that enough people share"
    when = "before the input ended" if is_end else "within the delay"
    where = "" if policy.delay is None else f" {when}"
    return f"found no group that keeps {promise_of(policy)}{where}"


def _span(policy: Policy) -> tuple[float, float]:
    """Return how far apart, in rows and in seconds, two rows may arrive and leave in one group."""
    window, delay = policy.window, policy.delay
    if policy.per_value and isinstance(window, Window):
        return (window.rows - 1 if window.rows else math.inf), window.seconds or math.inf
    # Windows and tables are published as a whole: no delay holds their rows.
    if delay is None or policy.window is not None:
        return math.inf, math.inf
    return delay.rows or math.inf, delay.seconds or math.inf


def _words(criterion: Criterion) -> str:
    # A criterion from elsewhere may have no key, or no number.
    key = getattr(criterion, "key", criterion.name)
    attribute = getattr(criterion, "attribute", None)
    kind = f"{criterion.form} " if criterion.form and not criterion.default else ""
    values = [getattr(criterion, field.name) for field in dataclasses.fields(criterion)]
    number = next((f" = {value:g}" for value in values if isinstance(value, int | float)), "")
    return f"{kind}{key}{number}" + (f" of {attribute}" if attribute else "")


def _people(n: int) -> str:
    return "1 person" if n == 1 else f"{n:,} different people"


def _count(n: float, unit: str) -> str:
    return f"{n:,.10g} {unit}" + "s" * (n != 1)
