"""Events that were seen: who exposed what and when, and how many others had exposed it by then."""

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
        When each was: times that never go back, or positions of rows where there is no time.
    subjects, attributes
        Who and what, as numbers from 0.
    in_rows
        Whether the clock counts rows.
    begin, end
        From when to when was watched, if not from the first event to the last.
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
        """When the watch began."""
        if self.begin is not None or not len(self):
            return self.begin or 0.0
        return float(self.clock[0])

    @property
    def span(self) -> float:
        """How long was watched; of rows, how many there are."""
        if self.end is not None:
            return self.end - self.start
        if not len(self):
            return 0.0
        return float(self.clock[-1]) - self.start + (1.0 if self.in_rows else 0.0)


def n_in_window(events: Events, window: float) -> Ints:
    """For each event, how many subjects have exposed its attribute in the window up to it.

    This is the counter of Algorithm 1, which doesn't depend on z: an event is published if it is
    at least z. An exposure is in the window as long as it isn't older than the window is long;
    of rows, the window has so many of the latest ones.

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
    # An event counts from its own place on, until its subject exposes the same again or it is too
    # old; both are places in the order of events. Within an attribute, starts minus ends is the
    # number that counts.
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
    """The place of the next event of the same subject and attribute; behind the last if none."""
    n = len(events)
    order = np.lexsort((events.attributes, events.subjects))
    same: Bools = (np.diff(events.subjects[order]) == 0) & (np.diff(events.attributes[order]) == 0)
    found = np.full(n, n, np.int64)
    found[order[:-1][same]] = order[1:][same]
    return found
