"""What a metric of a run is, and the registry from which a summary takes all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.metrics.histogram import Histogram

__all__ = [
    "GROUP",
    "REUSE",
    "SUPPRESSED",
    "Batch",
    "Counters",
    "Metric",
    "in_summary",
    "registered",
]

GROUP, REUSE, SUPPRESSED = 0, 1, 2


class Batch(NamedTuple):
    """Rows that were decided, and groups that were formed.

    Parameters
    ----------
    outcome
        Of each decided row: 0 in a new group, 1 by reuse, 2 suppressed.
    loss
        Of each decided row; that of a suppressed one means nothing.
    waited_rows, waited_s
        How long each decided row was held; no seconds where the stream has no time.
    group_rows, group_subjects
        The rows and subjects of each new group.
    reasons
        How many rows were suppressed for which reason.
    n_alone
        How many rows joined an earlier group at an instant at which fewer rows left than a group
        needs.
    """

    outcome: NDArray[np.int8]
    loss: NDArray[np.float64]
    waited_rows: NDArray[np.int64]
    waited_s: NDArray[np.float64] | None
    group_rows: NDArray[np.int64]
    group_subjects: NDArray[np.int64]
    reasons: Mapping[str, int] | None = None
    n_alone: int = 0

    @property
    def is_published(self) -> NDArray[np.bool_]:
        """Which of the decided rows were published."""
        return np.asarray(self.outcome != SUPPRESSED)

    @property
    def n_published(self) -> int:
        """How many of the decided rows were published."""
        return int(np.count_nonzero(self.is_published))

    @property
    def n_suppressed(self) -> int:
        """How many of the decided rows were suppressed."""
        return len(self.outcome) - self.n_published


class Counters:
    """Counters that can be merged, saved and restored.

    ``counters`` names the attributes by their keys in a checkpoint: each is a number, a `Histogram`
    or a `collections.Counter`.
    """

    __slots__ = ()
    counters: ClassVar[Mapping[str, str]]

    def merge(self, other: Self) -> None:
        """Add the counts of another run of the same anonymizer."""
        for name in self.counters.values():
            own, theirs = getattr(self, name), getattr(other, name)
            if isinstance(own, Histogram):
                own.merge(theirs)
            elif isinstance(own, Counter):
                own.update(theirs)
            else:
                setattr(self, name, own + theirs)

    def state(self) -> dict[str, Any]:
        """Return all counts, exactly, as values that JSON can carry."""
        return {key: _plain(getattr(self, name)) for key, name in self.counters.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace all counts by those of a state."""
        for key, name in self.counters.items():
            own = getattr(self, name)
            if isinstance(own, Histogram):
                own.restore(state[key])
            else:
                setattr(self, name, Counter(state[key]) if isinstance(own, Counter) else state[key])


def _plain(counter: Any) -> Any:
    if isinstance(counter, Histogram):
        return counter.state()
    return dict(counter) if isinstance(counter, Counter) else counter


class Metric(Counters, ABC):
    """A figure of a run, counted batch by batch in bounded memory.

    ``name`` is its key in reports and checkpoints; in a summary, metrics stand in the order of
    ``place``.
    """

    __slots__ = ()
    name: ClassVar[str]
    place: ClassVar[int] = 100

    @abstractmethod
    def add_batch(self, batch: Batch) -> None:
        """Count a batch of decisions."""

    @abstractmethod
    def as_dict(self) -> Mapping[str, object]:
        """Return the figures as plain values, for JSON; None where there is nothing to average."""

    @abstractmethod
    def lines(self) -> list[str]:
        """Return the figures in words, for a terminal; no line where there is nothing to say."""


M = TypeVar("M", bound=type[Metric])

_METRICS: dict[str, type[Metric]] = {}


def in_summary(metric: M) -> M:
    """Register the decorated class: every `Summary` that is made from now on has one of it.

    Raises
    ------
    ValueError
        If another metric has that name.
    """
    if metric.name in _METRICS:
        raise ValueError(f"there is a metric called {metric.name}")
    _METRICS[metric.name] = metric
    return metric


def registered() -> list[type[Metric]]:
    """Return the metrics of a summary, in their order."""
    return sorted(_METRICS.values(), key=lambda metric: (metric.place, metric.name))
