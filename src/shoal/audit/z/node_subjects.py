"""Who stood behind a cell in its window, and at which level the rule publishes it: row by row.

Effective times never fall, so that a window is a stretch of rows which moves on: each row comes in
once and leaves once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["NodeSubjects", "redecide"]


class NodeSubjects:
    """Who stands behind each node of an attribute, in a window that moves.

    Behind a leaf are those who exposed it. Behind a parent are those behind its children, but only
    behind those which one more person wouldn't make public: a label beside them would tell that it
    isn't one of theirs. Nor does anybody count there whose leaf was shown: they hide nobody.

    Parameters
    ----------
    parents
        For each node its parent, which has a lower number; -1 if it has none.
    z
        How many people a node needs to be published. Infinity: behind each node are all who exposed
        anything under it, unless it was shown.

    Two people at 1 are one short of being public, so that only the one at 2 is left for 0:

    >>> crowds = NodeSubjects([-1, 0, 0], z=3)
    >>> for leaf, subject in [(1, 7), (1, 8), (2, 9)]:
    ...     crowds.add(leaf, subject)
    >>> [crowds.n_subjects(node, 9) for node in range(3)]
    [1, 3, 1]
    """

    __slots__ = ("_counts", "_inner", "_parents", "_people", "_shown", "z")

    def __init__(self, parents: Sequence[int], z: float) -> None:
        self._parents = parents
        self._inner = sorted({parent for parent in parents if parent >= 0})
        # Of a leaf: how many rows each subject has in it. Of a parent: behind how many children
        # that count each subject is.
        self._people: list[dict[int, int]] = [{} for _ in parents]
        # Of a leaf: whose cells of it were published as they are.
        self._shown: list[set[int]] = [set() for _ in parents]
        self._counts = [z >= 2] * len(parents)
        self.z = z

    def n_subjects(self, node: int, subject: int) -> int:
        """How many people are behind a node now, together with this one."""
        people = self._people[node]
        return len(people) + (subject not in people)

    def add(self, node: int, subject: int) -> None:
        """Somebody exposes a leaf, or comes to stand behind a parent."""
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
        """An exposure of a leaf leaves the window, or somebody no longer stands behind a parent."""
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
        """A cell of somebody who exposed this leaf is published as it is."""
        if subject in self._shown[leaf]:
            return
        self._shown[leaf].add(subject)
        if self._counts[leaf] and (parent := self._parents[leaf]) >= 0:
            self.drop(parent, subject)

    def need(self, z: float) -> None:
        """Change how many people a node needs to be published."""
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
    """The level at which the rule publishes each cell, and how many are behind what was published.

    A label says no more than a finer one of the same cell: behind it are as many as behind the
    label, among it and the finer ones, which has the most.

    Parameters
    ----------
    nodes
        For each value its nodes from fine to coarse.
    parents
        For each node its parent, as `NodeSubjects` takes it.
    value, subject
        What each row exposes, in the order of arrival, -1 if nothing, and who.
    starts
        For each row the first one that is still in the window.
    z
        How many people a node needs to be published, at each row.
    level
        At which level the cell was really published; -1: at none.
    residual
        Whether only those stand behind a parent whose own value is neither public nor nearly so.

    Returns
    -------
    tuple
        For each row the finest level allowed, or the number of levels if none is; and how many
        people were behind the level at which it was published, 0 if it has no such level.
    """
    crowds = NodeSubjects(parents, z=math.inf)
    n_levels = nodes.shape[1]
    allowed = np.full(len(value), n_levels, dtype=np.int64)
    behind = np.zeros(len(value), dtype=np.int64)
    ladders, values, people = nodes.tolist(), value.tolist(), subject.tolist()
    needed, levels = z.tolist(), level.tolist()
    begin = 0
    for i, start in enumerate(starts.tolist()):
        while begin < start:
            if values[begin] >= 0:
                crowds.drop(ladders[values[begin]][0], people[begin])
            begin += 1
        if values[i] < 0:
            continue
        if residual:
            crowds.need(needed[i])
        ladder, who = ladders[values[i]], people[i]
        # The row itself isn't counted yet, so that its own value changes nothing for its rungs.
        for rung, node in enumerate(ladder):
            n = crowds.n_subjects(node, who)
            if n >= needed[i]:
                allowed[i] = min(allowed[i], rung)
            if rung <= levels[i] < n_levels:
                behind[i] = max(behind[i], n)
        crowds.add(ladder[0], who)
        if residual and levels[i] == 0:
            crowds.show(ladder[0], who)
    return allowed, behind
