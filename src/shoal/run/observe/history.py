"""The figures of the last hours, in bounded memory: fine for minutes, coarse for hours."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.events import event
from shoal.run.observe.figures import Buckets, Figures

__all__ = ["RANGES", "History", "Range"]

log = logging.getLogger("shoal.run.observe")

#: Samples further apart than this many steps have a gap between them.
_GAP = 2.5
#: What is kept at each instant, in this order.
_SAMPLE = (
    "n_in", "n_published", "n_suppressed", "n_quarantined", "n_late", "n_held", "lag", "loss_sum",
    "z", "k_anonymous",
)  # fmt: skip
#: The counters of which the page shows rates, by name.
_RATES = {
    "in": "n_in", "out": "n_published", "suppressed": "n_suppressed",
    "quarantined": "n_quarantined", "late": "n_late",
}  # fmt: skip
#: The figures that are shown as they are.
_LEVELS = {"held": "n_held", "lag": "lag", "z": "z", "k_anonymous": "k_anonymous"}
_PLACES = 4
#: Samples closer than this, in seconds, have no rates.
_LEAST = 1e-3
#: No figure is larger.
_MOST = 1e18

#: A time, and the figures of `_SAMPLE`.
Sample = tuple[float, tuple[float | None, ...]]
#: The figures where nothing is known: in a gap, or between two runs.
_UNKNOWN: tuple[float | None, ...] = (None,) * len(_SAMPLE)


@dataclass(frozen=True, slots=True)
class Range:
    """How far back samples reach: one for each so many intervals, and at most so many."""

    every: int
    n_samples: int


#: By name. With an interval of 10 seconds: 30 minutes, and 12 hours.
RANGES = {"recent": Range(1, 180), "long": Range(12, 360)}
#: Buckets are kept once for each so many intervals, and so often: an hour.
_BUCKETS = Range(30, 13)


class History:
    """Keep the figures that were shown, and return them as series.

    Only what was shown once is kept, so that a history tells no more than someone who has looked at
    each instant knows.

    Parameters
    ----------
    interval
        The seconds between two samples.

    >>> history = History(10.0)
    >>> history.series("recent")["t"]
    []
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._lock = threading.Lock()
        self._ranges: dict[str, deque[Sample]] = {
            name: deque(maxlen=kept.n_samples) for name, kept in RANGES.items()
        }
        # The ranges that have only samples of runs before this one.
        self._restored: set[str] = set()
        self._buckets: deque[tuple[float, Buckets, Buckets, tuple[int, ...]]] = deque(
            maxlen=_BUCKETS.n_samples
        )

    def add(self, figures: Figures, at: float) -> None:
        """Keep the figures that are shown from this time on, in seconds since the epoch."""
        sample = at, tuple(getattr(figures, name) for name in _SAMPLE)
        with self._lock:
            for name, kept in self._ranges.items():
                # The clock may have been set back, between two runs or in this one.
                while kept and kept[-1][0] > at:
                    if kept.pop()[1] == _UNKNOWN:
                        self._restored.add(name)
                if not kept or at - kept[-1][0] >= self._step(RANGES[name]):
                    if kept and name in self._restored:
                        kept.append(_between(kept[-1][0], at))
                    self._restored.discard(name)
                    kept.append(sample)
            if not self._buckets or at - self._buckets[-1][0] >= self._step(_BUCKETS):
                delay = _delay(figures)
                self._buckets.append((at, figures.group_subjects, delay, _rows_in(figures)))

    def _step(self, kept: Range) -> float:
        # Instants of two processes aren't a whole number of intervals apart.
        return kept.every * self._interval * 0.99

    def series(self, name: str) -> dict[str, list[float | None]]:
        """Return the series of a range: times, rates a second, levels, and the mean loss.

        A rate or a loss is that of the time since the sample before. It is None at the first one of
        each run, after a gap, and where a counter has fallen. In the middle of a gap, and between
        two runs, is an instant at which nothing is known.
        """
        with self._lock:
            samples = _with_gaps(self._ranges[name], _GAP * RANGES[name].every * self._interval)
        found: dict[str, list[float | None]] = {"t": [at for at, _ in samples]}
        places = {key: _SAMPLE.index(key) for key in _SAMPLE}
        for key, figure in _LEVELS.items():
            found[key] = [values[places[figure]] for _, values in samples]
        for key in (*_RATES, "loss"):
            found[key] = [None] * len(samples)
        for i, ((before, old), (at, new)) in enumerate(itertools.pairwise(samples), 1):
            if at - before < _LEAST:
                # Only a restored history that was made in another way has such samples. Their
                # rates could be infinite, which JSON can't say.
                continue
            for key, figure in _RATES.items():
                n = _risen(old[places[figure]], new[places[figure]])
                found[key][i] = None if n is None else round(n / (at - before), 3)
            rows = _risen(old[places["n_published"]], new[places["n_published"]])
            lost = _risen(old[places["loss_sum"]], new[places["loss_sum"]])
            if rows and lost is not None:
                found["loss"][i] = round(min(lost / rows, 1.0), _PLACES)
        return found

    def lately(self, figures: Figures) -> dict[str, Any]:
        """Return how buckets, and the rows of each shard, have grown in the last hour.

        In the first hour of a run, all of them are returned.
        """
        groups, delay, shards = figures.group_subjects, _delay(figures), _rows_in(figures)
        with self._lock:
            if len(self._buckets) < _BUCKETS.n_samples:
                return {"since": None, "groups": groups, "delay": delay, "shards": shards}
            since, old_groups, old_delay, old_shards = self._buckets[0]
        return {
            "since": since,
            "groups": _grown(old_groups, groups),
            "delay": _grown(old_delay, delay),
            "shards": _grown_shards(old_shards, shards),
        }

    def state(self) -> dict[str, Any]:
        """Return all samples as values that JSON can carry: for a checkpoint."""
        with self._lock:
            return {
                "samples": {
                    name: [[at, *v] for at, v in kept] for name, kept in self._ranges.items()
                }
            }

    def restore(self, state: object) -> None:
        """Continue the history of a checkpoint; one that can't be read is left out.

        A history is no part of what is published: without it a run must resume as well.
        """
        samples = state.get("samples") if isinstance(state, Mapping) else None
        found: dict[str, Any] = {}
        if isinstance(samples, Mapping):
            found = {name: samples.get(name) for name in RANGES}
        if not found or not all(_are_samples(each) for each in found.values()):
            event(log, logging.WARNING, "history ignored")
            return
        with self._lock:
            for name, kept in self._ranges.items():
                kept.clear()
                kept.extend((float(at), tuple(values)) for at, *values in found[name])
            self._restored = set(RANGES)


def _with_gaps(samples: Iterable[Sample], most: float) -> list[Sample]:
    """Return samples, and one of nothing between two that are further apart than that."""
    found: list[Sample] = []
    for at, values in samples:
        if found and at - found[-1][0] > most and _UNKNOWN not in (found[-1][1], values):
            found.append(_between(found[-1][0], at))
        found.append((at, values))
    return found


def _between(before: float, at: float) -> Sample:
    """Return that nothing is known in the middle between two instants."""
    return (before + at) / 2, _UNKNOWN


def _are_samples(found: object) -> bool:
    return isinstance(found, list) and all(
        isinstance(each, list)
        and len(each) == len(_SAMPLE) + 1
        and _is_number(each[0])
        and all(value is None or _is_number(value) for value in each)
        for each in found
    )


def _is_number(value: object) -> bool:
    # Neither NaN, which no page could be told, nor a whole number too large to reckon with.
    return isinstance(value, int | float) and abs(value) <= _MOST


def _risen(old: float | None, new: float | None) -> float | None:
    return None if old is None or new is None or new < old else new - old


def _delay(figures: Figures) -> Buckets:
    """Return the delays in seconds, where the stream has time, else in rows."""
    return figures.delay_rows if figures.delay_seconds is None else figures.delay_seconds


def _rows_in(figures: Figures) -> tuple[int, ...]:
    """Return how many rows came to each shard."""
    return tuple(n_in for n_in, *_ in figures.shards)


def _grown_shards(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """Return the rows since ``old``; all of them if the shards are others."""
    if len(old) != len(new):
        return new
    grown = tuple(n - m for n, m in zip(new, old, strict=True))
    return new if min(grown, default=0) < 0 else grown


def _grown(old: Buckets, new: Buckets) -> Buckets:
    """Return the counts since ``old``; all of them if the buckets are others, or have fallen."""
    if [bound for bound, _ in old] != [bound for bound, _ in new]:
        return new
    grown = tuple((bound, n - m) for (bound, n), (_, m) in zip(new, old, strict=True))
    return new if any(n < 0 for _, n in grown) else grown
