"""Which subjects count for a cell in its window, and at which level the rule publishes it.

Effective times never decrease, so a window is a range of rows that moves forward: each row enters
once and leaves once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["NodeSubjects", "redecide"]


class NodeSubjects:
    """The subjects that count for each node of an attribute, in a window that moves.

    For a leaf, those who exposed it. For a parent, those who count for its children, but only for
    children that one more subject wouldn't make public: else the label of the parent would tell
    that a row is of none of those. Nor does a subject count there whose leaf was shown.

    Parameters
    ----------
    parents
        For each node its parent, which has a lower number; -1 if it has none.
    z
        How many subjects a node needs to be published. Infinity: all count who exposed anything
        under a node, unless it was shown.

    Two subjects at 1 are one short of being public, so only the one at 2 counts for 0:

    >>> subjects = NodeSubjects([-1, 0, 0], z=3)
    >>> for leaf, subject in [(1, 7), (1, 8), (2, 9)]:
    ...     subjects.add(leaf, subject)
    >>> [subjects.n_subjects(node, 9) for node in range(3)]
    [1, 3, 1]
    """

    __slots__ = ("_counts", "_inner", "_parents", "_people", "_shown", "z")

    def __init__(self, parents: Sequence[int], z: float) -> None:
        self._parents = parents
        self._inner = sorted({parent for parent in parents if parent >= 0})
        # For a leaf: how many rows each subject has in it. For a parent: for how many of its
        # children that count each subject counts.
        self._people: list[dict[int, int]] = [{} for _ in parents]
        # For a leaf: the subjects whose cells were published at it.
        self._shown: list[set[int]] = [set() for _ in parents]
        self._counts = [z >= 2] * len(parents)
        self.z = z

    def n_subjects(self, node: int, subject: int) -> int:
        """Return how many subjects count for a node now, together with this one."""
        people = self._people[node]
        return len(people) + (subject not in people)

    def add(self, node: int, subject: int) -> None:
        """Add an exposure of a leaf, or a subject to a parent."""
        while node >= 0:
            people = self._people[node]
            n = people.get(subject, 0)
            people[subject] = n + 1
            if n or not self._counts[node]:
                return
            parent = self._parents[node]
            if len(people) > self.z - 2:
                self._counts[node] = False
                if parent >= 0:
                    for other in people.keys() - self._shown[node] - {subject}:
                        self.drop(parent, other)
                return
            node = parent

    def drop(self, node: int, subject: int) -> None:
        """Remove an exposure of a leaf, or a subject from a parent."""
        while node >= 0:
            people, shown = self._people[node], self._shown[node]
            if people[subject] > 1:
                people[subject] -= 1
                return
            del people[subject]
            was_shown = subject in shown
            shown.discard(subject)
            parent = self._parents[node]
            if not self._counts[node]:
                if len(people) <= self.z - 2:
                    self._counts[node] = True
                    if parent >= 0:
                        for other in people.keys() - shown:
                            self.add(parent, other)
                return
            if was_shown:
                return
            node = parent

    def show(self, leaf: int, subject: int) -> None:
        """Record that a cell of a subject was published at its leaf."""
        if subject in self._shown[leaf]:
            return
        self._shown[leaf].add(subject)
        if self._counts[leaf] and (parent := self._parents[leaf]) >= 0:
            self.drop(parent, subject)

    def need(self, z: float) -> None:
        """Change how many subjects a node needs to be published."""
        if z == self.z:
            return
        self.z = z
        for node in self._inner:
            self._people[node] = {}
        # Children have higher numbers than their parents.
        for node in range(len(self._parents) - 1, -1, -1):
            people = self._people[node]
            self._counts[node] = len(people) <= z - 2
            if self._counts[node] and (parent := self._parents[node]) >= 0:
                above = self._people[parent]
                for subject in people.keys() - self._shown[node]:
                    above[subject] = above.get(subject, 0) + 1


def redecide(
    nodes: NDArray[np.int64],
    parents: Sequence[int],
    value: NDArray[np.int64],
    subject: NDArray[np.int64],
    starts: NDArray[np.int64],
    z: NDArray[np.int64],
    level: NDArray[np.int64],
    *,
    residual: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Decide every cell again, and count the subjects of what was published.

    A label discloses no more than a finer one of the same cell: it has as many subjects as the one
    of these labels that has the most.

    Parameters
    ----------
    nodes
        For each value its nodes from fine to coarse.
    parents
        For each node its parent, as `NodeSubjects` takes it.
    value, subject
        What each row exposes, in the order of arrival, -1 if nothing, and its subject.
    starts
        For each row the first one that is still in the window.
    z
        How many subjects a node needs to be published, at each row.
    level
        At which level the cell was published; -1: at none.
    residual
        Whether a subject counts for a parent only if its own value is neither public nor nearly so.

    Returns
    -------
    tuple
        For each row the finest level allowed, or the number of levels if none is; and how many
        subjects the level had at which it was published, 0 if there is no such level.
    """
    subjects = NodeSubjects(parents, z=math.inf)
    n_levels = nodes.shape[1]
    allowed = np.full(len(value), n_levels, dtype=np.int64)
    behind = np.zeros(len(value), dtype=np.int64)
    ladders, values, people = nodes.tolist(), value.tolist(), subject.tolist()
    needed, levels = z.tolist(), level.tolist()
    begin = 0
    for i, start in enumerate(starts.tolist()):
        while begin < start:
            if values[begin] >= 0:
                subjects.drop(ladders[values[begin]][0], people[begin])
            begin += 1
        if values[i] < 0:
            continue
        if residual:
            subjects.need(needed[i])
        ladder, who = ladders[values[i]], people[i]
        # The row itself doesn't count yet, so its own value changes nothing for its levels.
        for at, node in enumerate(ladder):
            n = subjects.n_subjects(node, who)
            if n >= needed[i]:
                allowed[i] = min(allowed[i], at)
            if at <= levels[i] < n_levels:
                behind[i] = max(behind[i], n)
        subjects.add(ladder[0], who)
        if residual and levels[i] == 0:
            subjects.show(ladder[0], who)
    return allowed, behind
