"""Events: who exposed which attribute when, and how many others had exposed it by then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.engine.kernels.arrays import Bools, Floats, Ints

__all__ = ["Events", "n_in_window"]


@dataclass(frozen=True, slots=True, repr=False)
class Events:
    """Exposures in the order of their arrival; a row with several attributes is several events.

    Parameters
    ----------
    clock
        When each happened: non-decreasing times, or positions of rows where there is no time.
    subjects, attributes
        Numbers from 0.
    in_rows
        Whether the clock counts rows.
    begin, end
        The period of observation; by default from the first event to the last.
    """

    clock: Floats
    subjects: Ints
    attributes: Ints
    in_rows: bool = False
    begin: float | None = None
    end: float | None = None

    def __len__(self) -> int:
        return len(self.clock)

    def __repr__(self) -> str:
        return f"Events(n_events={len(self)})"

    @property
    def start(self) -> float:
        """When the observation began."""
        if self.begin is not None or not len(self):
            return self.begin or 0.0
        return float(self.clock[0])

    @property
    def span(self) -> float:
        """The length of the observation; in rows, their number."""
        if self.end is not None:
            return self.end - self.start
        if not len(self):
            return 0.0
        return float(self.clock[-1]) - self.start + (1.0 if self.in_rows else 0.0)


def n_in_window(events: Events, window: float) -> Ints:
    """Return, for each event, how many subjects exposed its attribute in the window up to it.

    This is the counter of Algorithm 1, which doesn't depend on z: an event is published if its
    count is at least z. An exposure that is exactly as old as the window is long is still in it; a
    window in rows has that many of the latest rows.

    >>> story = Events(
    ...     clock=np.array([0.0, 2.0, 4.0, 7.0, 16.0]),
    ...     subjects=np.array([0, 1, 0, 2, 3]),
    ...     attributes=np.zeros(5, np.int64),
    ... )
    >>> n_in_window(story, window=10).tolist()  # Figure 1 of the paper, with z = 3
    [1, 2, 2, 3, 2]
    """
    n = len(events)
    clock = events.clock
    reach = window - 1.0 if events.in_rows else window
    # An event counts from its own place until its subject exposes the same attribute again or the
    # event is too old; both are places in the order of events. Within an attribute, the count is
    # the number of starts minus the number of ends.
    too_old = np.searchsorted(clock - reach, clock, side="right")
    by_attribute = np.argsort(events.attributes, kind="stable")
    keys = events.attributes[by_attribute] * (n + 1) + by_attribute
    replaced = _next_same(events)
    end = np.minimum(too_old, replaced)[by_attribute]
    ends_at = np.searchsorted(keys, events.attributes[by_attribute] * (n + 1) + end)
    ended = np.cumsum(np.bincount(ends_at, minlength=n + 1)[:n])
    counts = np.empty(n, np.int64)
    # Every event of an earlier attribute has ended where its attribute ends.
    counts[by_attribute] = np.arange(1, n + 1) - ended
    return counts


def _next_same(events: Events) -> Ints:
    """Return the place of the next event of the same subject and attribute; n if there is none."""
    n = len(events)
    order = np.lexsort((events.attributes, events.subjects))
    same: Bools = (np.diff(events.subjects[order]) == 0) & (np.diff(events.attributes[order]) == 0)
    found = np.full(n, n, np.int64)
    found[order[:-1][same]] = order[1:][same]
    return found
