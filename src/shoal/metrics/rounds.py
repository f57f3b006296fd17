"""How many rounds of decisions a row takes part in until it is decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.metrics.histogram import Histogram
from shoal.metrics.trace_lines import by_shard, decided_lines, numbers

__all__ = ["Rounds"]

_NONE = np.empty(0, np.int64)


class Rounds:
    """How many rounds rows take part in, the one that decides them included (FAST, Figure 8).

    A round is an instant at which something was decided: a row count ``published`` of the trace. A
    row takes part in the rounds from its arrival on, and in at least one.

    Only rounds that an undecided row may have taken part in are remembered, so the memory is
    bounded by the delay.

    >>> rounds = Rounds()
    >>> rounds.add(arrived=np.array([0, 2]), published=np.array([3, 3]))
    >>> rounds.add(arrived=np.array([1, 3]), published=np.array([5, 5]))
    >>> rounds.as_dict()
    {'mean': 1.25, 'p50': 1.0, 'p99': 2.0, 'max': 2.0}
    >>> rounds.share_above(1)
    0.25
    """

    __slots__ = ("_ahead", "_instants", "_upcoming", "counts")

    def __init__(self) -> None:
        self.counts = Histogram()
        """How many rounds each decided row took part in."""
        # Every row before this one is decided; `_ahead` are decided rows after it.
        self._upcoming = 0
        self._ahead = _NONE
        self._instants = _NONE

    @classmethod
    def from_trace(cls, trace: pa.Table) -> Rounds:
        """Count the rounds of a run from its trace; each of several shards has its own."""
        rounds = cls()
        for lines in by_shard(decided_lines(trace, "arrived", "published")):
            of_shard = cls()
            of_shard.add(
                numbers(lines, "arrived").astype(np.int64),
                numbers(lines, "published").astype(np.int64),
            )
            rounds.counts.merge(of_shard.counts)
        return rounds

    def add(self, arrived: NDArray[np.int64], published: NDArray[np.int64]) -> None:
        """Count decided rows, suppressed ones too; later calls bring no earlier instants."""
        if len(arrived) == 0:
            return
        self._instants = np.union1d(self._instants, published)
        seen = np.searchsorted(self._instants, published, side="right")
        before = np.searchsorted(self._instants, arrived, side="right")
        self.counts.add(np.maximum(seen - before, 1))
        self._forget(arrived)

    def _forget(self, arrived: NDArray[np.int64]) -> None:
        """Drop the rounds that are older than every undecided row."""
        ahead = np.sort(np.concatenate([self._ahead, arrived]))
        gap = np.flatnonzero(ahead != self._upcoming + np.arange(len(ahead)))
        n_without_gap = int(gap[0]) if len(gap) else len(ahead)
        self._upcoming += n_without_gap
        self._ahead = ahead[n_without_gap:]
        # The latest stays: rows of the same round may follow in the next call.
        keep = self._instants > self._upcoming
        keep[-1] = True
        self._instants = self._instants[keep]

    def share_above(self, n: int) -> float | None:
        """Return the share of rows that took part in more than n rounds; None if there is no row.

        Exact up to n = 250.
        """
        if not self.counts.count:
            return None
        (within,) = self.counts.fold([n])
        return 1 - within / self.counts.count

    def as_dict(self) -> dict[str, float | None]:
        """Return mean, median, 99th percentile and maximum."""
        return self.counts.figures()

    def state(self) -> dict[str, Any]:
        """Return all counts, exactly, as values that JSON can carry."""
        return {
            "counts": self.counts.state(),
            "upcoming": self._upcoming,
            "ahead": self._ahead.tolist(),
            "instants": self._instants.tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace all counts by those of a state."""
        self.counts.restore(state["counts"])
        self._upcoming = state["upcoming"]
        self._ahead = np.array(state["ahead"], np.int64)
        self._instants = np.array(state["instants"], np.int64)
