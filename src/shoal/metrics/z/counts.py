"""Count cells that are published on their own, and how well they hide their subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.engine.decisions import MISSING
from shoal.errors import ParameterError

__all__ = ["ZCounts"]

#: The figures of the latest estimate.
_ESTIMATED = ("n_subjects", "share", "entropy")


class ZCounts:
    """Count cells by attribute and level, and keep the latest estimate of the window.

    Parameters
    ----------
    n_levels
        How many levels each attribute has.
    z
        The z that is promised; the one in force may be larger.

    >>> cells = ZCounts([2], z=20)
    >>> cells.add(np.array([[0], [1], [-1], [-1]]))
    >>> cells.shares()
    [[0.25, 0.25]]
    >>> cells.published
    0.5
    """

    place: ClassVar[int] = 34

    def __init__(self, n_levels: Sequence[int], z: int) -> None:
        self._counts = [np.zeros(n + 2, np.int64) for n in n_levels]
        self.z = z
        self.z_least = self.z_most = z
        self.n_estimates = 0
        self.n_changes = 0
        #: By the latest estimate: how many subjects were in the window, which share of them looks
        #: like k - 1 others, and the entropy of what is shown of them.
        self.n_subjects: int | None = None
        self.share: float | None = None
        self.entropy: float | None = None

    def add(self, levels: NDArray[np.int64]) -> None:
        """Count the cells of rows."""
        for counts, column in zip(self._counts, levels.T, strict=True):
            counts += np.bincount(column - MISSING, minlength=len(counts))

    def look(self, estimates: NDArray[np.void]) -> None:
        """Add estimates of the window."""
        for estimate in estimates:
            self.n_estimates += 1
            self.n_changes += int(estimate["z"] != estimate["before"])
            self.z = int(estimate["z"])
            self.z_least, self.z_most = min(self.z_least, self.z), max(self.z_most, self.z)
            self.n_subjects = int(estimate["n_subjects"])
            self.share = float(estimate["share"])
            self.entropy = float(estimate["entropy"])

    def merge(self, other: ZCounts) -> None:
        """Add the counts of another run of the same anonymizer.

        The cells of the runs are different ones, and add up. Estimates don't: each is about the
        people of all runs together, and the z that it finds holds in all of them. So those of the
        run that has seen the most are kept.

        Raises
        ------
        ParameterError
            If the other one has other attributes.

        >>> some, others = ZCounts([1], z=2), ZCounts([1], z=2)
        >>> some.add(np.array([[0], [-1]]))
        >>> others.add(np.array([[0]]))
        >>> some.merge(others)
        >>> (some.n_published, some.n_cells, some.z)
        (2, 3, 2)
        """
        if [len(counts) for counts in other._counts] != [len(counts) for counts in self._counts]:
            raise ParameterError("ZCounts.n_levels", "must be those of the other run")
        for own, theirs in zip(self._counts, other._counts, strict=True):
            own += theirs
        self.z_least = min(self.z_least, other.z_least)
        self.z_most = max(self.z_most, other.z_most)
        if other.n_estimates > self.n_estimates:
            for name in ("z", "n_estimates", "n_changes", *_ESTIMATED):
                setattr(self, name, getattr(other, name))

    @property
    def n_cells(self) -> int:
        """How many values there were."""
        return int(sum(counts[1:].sum() for counts in self._counts))

    @property
    def n_published(self) -> int:
        """How many of them were published."""
        return int(sum(counts[2:].sum() for counts in self._counts))

    @property
    def published(self) -> float | None:
        """The share of values that were published."""
        return self.n_published / self.n_cells if self.n_cells else None

    def shares(self) -> list[list[float]]:
        """Return, for each attribute, the share of its values that was published at each level."""
        return [(counts[2:] / max(1, int(counts[1:].sum()))).tolist() for counts in self._counts]

    def state(self) -> dict[str, Any]:
        """Return all counts, as values that JSON can carry."""
        plain = ("z", "z_least", "z_most", "n_estimates", "n_changes")
        known = {name: getattr(self, name) for name in (*plain, *_ESTIMATED)}
        return known | {"counts": [counts.tolist() for counts in self._counts]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace all counts by those of a state."""
        known = dict(state)
        counts = known.pop("counts")
        if [len(given) for given in counts] != [len(own) for own in self._counts]:
            raise ValueError("other attributes")
        self._counts = [np.array(given, np.int64) for given in counts]
        for name in self.state():
            if name != "counts":
                setattr(self, name, known[name])

    def as_dict(self) -> dict[str, object]:
        """Return the figures as plain values, for JSON."""
        return {
            "cells": self.n_cells,
            "published": self.n_published,
            "share": self.published,
            "by_rung": self.shares(),
            "z": {"now": self.z, "least": self.z_least, "most": self.z_most,
                  "changes": self.n_changes},
            "window": {"subjects": self.n_subjects, "k_anonymous": self.share,
                       "entropy": self.entropy},
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return the figures in words."""
        if not self.n_cells:
            return []
        lines = [
            f"values: {self.n_published:,} of {self.n_cells:,} published, "
            f"{100 * (self.published or 0.0):.1f} %"
        ]
        most = max(len(counts) for counts in self._counts) - 2
        if most > 1:
            by_level = [sum(int(c[2 + i]) for c in self._counts if len(c) > 2 + i)
                       for i in range(most)]  # fmt: skip
            lines[0] += "; by rung " + ", ".join(f"{n:,}" for n in by_level)
        if self.share is not None:
            lines.append(
                f"window: {self.n_subjects:,} subjects at the latest look, "
                f"{100 * self.share:.1f} % of them indistinguishable from others; z = {self.z:,}"
                + (f" ({self.z_least:,} to {self.z_most:,}, changed {self.n_changes:,} times)"
                   if self.n_changes else "")
            )  # fmt: skip
        return lines
