"""Count the subjects that are k-anonymous in what z-anonymity publishes, without a model.

Events are cut into consecutive windows. The first one is discarded, since nothing came before it
(Appendix C of the paper). In each of the others every subject has published a set of attributes;
subjects with the same set are an anonymity set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.engine.kernels.arrays import Floats, Ints
from shoal.errors import ParameterError
from shoal.models.z.events import Events, n_in_window

__all__ = ["AnonymitySets", "Measured", "windows_of"]

#: The seed of random numbers, one for each attribute; a set is identified by its sum.
_SALT = 0x5A0A1
#: Larger numbers of windows are not exact in floating point.
MOST_WINDOWS = 2**53


@dataclass(frozen=True, slots=True)
class AnonymitySets:
    """The number of subjects in each anonymity set, over all windows."""

    n_subjects: Ints

    def share(self, k: int) -> float:
        """Return the share of subjects in sets of at least k; 1 if there is no subject."""
        total = int(self.n_subjects.sum())
        if total == 0:
            return 1.0
        return int(self.n_subjects[self.n_subjects >= k].sum()) / total


class Measured:
    """What z-anonymity would have published of some events, for any z.

    Parameters
    ----------
    events
        What was exposed.
    window
        How far back z-anonymity counts, and how long a pseudonym lives.
    n_subjects
        How many subjects there are in each window, silent ones included. None: those that exposed
        something in it.

    >>> subjects, attributes = np.array([0, 1, 2, 3] * 2), np.array([0, 0, 0, 1] * 2)
    >>> events = Events(np.arange(8.0), subjects, attributes, end=8.0)
    >>> measured = Measured(events, window=4)
    >>> measured.n_windows, measured.anonymity_sets(z=3).share(k=2), measured.published(z=3)
    (1, 0.75, 0.75)
    """

    def __init__(self, events: Events, window: float, n_subjects: int | None = None) -> None:
        first, n_windows = windows_of(events, window)
        kept = (first >= 1) & (first < n_windows)
        self.n_windows = max(0, n_windows - 1)
        self._counts = n_in_window(events, window)[kept]
        self._silent = n_subjects
        self._place(first[kept], events.subjects[kept], events.attributes[kept])

    def _place(self, windows: Ints, subjects: Ints, attributes: Ints) -> None:
        """Sort by window and subject, and find the largest count of each subject's attributes."""
        order = np.lexsort((attributes, subjects, windows))
        columns = [column[order] for column in (windows, subjects, attributes)]
        new_subject = _changes(columns[:2])
        new = new_subject | _changes(columns[2:])
        starts = np.flatnonzero(new)
        counts = self._counts[order]
        self._best = np.maximum.reduceat(counts, starts) if len(starts) else counts
        self._subject_starts = np.flatnonzero(new_subject[starts])
        self._windows = columns[0][starts][self._subject_starts]
        names = np.random.default_rng(_SALT).integers(
            1, 2**63, int(attributes.max(initial=-1)) + 1, np.uint64
        )
        self._names = names[columns[2][starts]]

    @property
    def n_present(self) -> int:
        """The number of subjects, counted once in each window."""
        if self._silent is not None:
            return self._silent * self.n_windows
        return len(self._subject_starts)

    def published(self, z: int) -> float:
        """Return the share of events that are published."""
        return float(np.mean(self._counts >= z)) if len(self._counts) else 0.0

    def anonymity_sets(self, z: int) -> AnonymitySets:
        """Return the anonymity sets for one z."""
        if not len(self._subject_starts):
            n_silent = 0 if self._silent is None else self.n_windows
            return AnonymitySets(np.full(n_silent, self._silent or 0, np.int64))
        names = np.where(self._best >= z, self._names, np.uint64(0))
        sets = np.add.reduceat(names, self._subject_starts)
        order = np.lexsort((sets, self._windows))
        new = _changes([self._windows[order], sets[order]])
        starts = np.flatnonzero(new)
        counts = np.diff(np.append(starts, len(order)))
        if self._silent is None:
            return AnonymitySets(counts)
        return AnonymitySets(
            self._with_silent(counts, self._windows[order][starts], sets[order][starts])
        )

    def _with_silent(self, counts: Ints, windows: Ints, sets: Ints) -> Ints:
        """Add the subjects that exposed nothing to those that published nothing."""
        assert self._silent is not None
        present = np.bincount(self._windows, minlength=self.n_windows + 1)[1:]
        silent = self._silent - present
        empty = sets == 0
        joined = counts.copy()
        joined[empty] += silent[windows[empty] - 1]
        alone = np.delete(silent, windows[empty] - 1)
        return np.concatenate([joined, alone[alone > 0]])


def windows_of(events: Events, window: float) -> tuple[Ints, int]:
    """Return the window of each event, from 0, and the number of complete windows.

    >>> windows_of(Events(np.array([5.0, 7.0, 9.5, 12.0]), *np.zeros((2, 4), np.int64)), 3)
    (array([0, 0, 1, 2]), 2)

    Raises
    ------
    ParameterError
        If there are too many windows.
    """
    # In Python floats, where a quotient that is too large is infinite.
    if not events.span / window < MOST_WINDOWS:
        unit = "rows" if events.in_rows else "seconds"
        raise ParameterError(
            "window", f"is too short for the sample, which spans {events.span:,.12g} {unit}",
            got=f"{window:,.12g}",
            fix="Take a longer window, and look for times that are far from all others",
        )  # fmt: skip
    passed: Floats = np.floor((events.clock - events.start) / window)
    return passed.astype(np.int64), int(events.span // window)


def _changes(columns: list[Ints]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return where some column differs from the row before."""
    found = np.ones(len(columns[0]), np.bool_)
    if len(found):
        found[1:] = False
        for column in columns:
            found[1:] |= column[1:] != column[:-1]
    return found
