"""How many people stood behind a cell in its window: counted row by row, as time goes by.

Effective times never fall, so that a window is a stretch of rows which moves on: each row comes in
once and leaves once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Crowds", "crowds_behind"]


class Crowds:
    """Who stands behind each node of an attribute, in a window that moves.

    Behind a leaf are those who exposed it. Behind a parent are those behind its children that can't
    be published themselves: a child with z people or more keeps them.

    Parameters
    ----------
    parents
        For each node its parent, which has a lower number; -1 if it has none.
    z
        How many people a node needs to be published. Infinity: none is, so that behind each node
        are all who exposed anything under it.

    Two of three people under the parent 0 can be published as 1, so that one is left for it:

    >>> crowds = Crowds([-1, 0, 0], z=2)
    >>> for leaf, subject in [(1, 7), (1, 8), (2, 9)]:
    ...     crowds.add(leaf, subject)
    >>> [crowds.n_subjects(node) for node in range(3)]
    [1, 2, 1]
    """

    __slots__ = ("_inner", "_is_shown", "_parents", "_people", "z")

    def __init__(self, parents: Sequence[int], z: float) -> None:
        self._parents = parents
        self._inner = sorted({parent for parent in parents if parent >= 0})
        # Of a leaf: how many rows each subject has in it. Of a parent: behind how many children
        # that aren't shown each subject is.
        self._people: list[dict[int, int]] = [{} for _ in parents]
        self._is_shown = [False] * len(parents)
        self.z = z

    def n_subjects(self, node: int) -> int:
        """How many people are behind a node now."""
        return len(self._people[node])

    def add(self, node: int, subject: int) -> None:
        """Somebody exposes a leaf, or comes to stand behind a parent."""
        while node >= 0:
            people = self._people[node]
            n = people.get(subject, 0)
            people[subject] = n + 1
            if n or self._is_shown[node]:
                return
            if len(people) >= self.z:
                self._is_shown[node] = True
                if (parent := self._parents[node]) >= 0:
                    for other in people:
                        if other != subject:
                            self.drop(parent, other)
                return
            node = self._parents[node]

    def drop(self, node: int, subject: int) -> None:
        """An exposure of a leaf leaves the window, or somebody no longer stands behind a parent."""
        while node >= 0:
            people = self._people[node]
            if people[subject] > 1:
                people[subject] -= 1
                return
            del people[subject]
            if self._is_shown[node]:
                if len(people) < self.z:
                    self._is_shown[node] = False
                    if (parent := self._parents[node]) >= 0:
                        for other in people:
                            self.add(parent, other)
                return
            node = self._parents[node]

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
            self._is_shown[node] = len(people) >= z
            if not self._is_shown[node] and (parent := self._parents[node]) >= 0:
                above = self._people[parent]
                for subject in people:
                    above[subject] = above.get(subject, 0) + 1


def crowds_behind(
    nodes: NDArray[np.int64],
    parents: Sequence[int],
    leaf: NDArray[np.int64],
    subject: NDArray[np.int64],
    starts: NDArray[np.int64],
    z: NDArray[np.int64],
    *,
    residual: bool,
) -> NDArray[np.int64]:
    """How many people are behind a node at each row, after the row has come in.

    Parameters
    ----------
    nodes
        For each row, in the order of arrival, the node to be counted; -1: none.
    parents
        For each node its parent, as `Crowds` takes it.
    leaf, subject
        What each row exposes, -1 if nothing, and who.
    starts
        For each row the first one that is still in the window.
    z
        How many people a node needs to be published, at each row.
    residual
        Whether a child that can be published keeps its people.
    """
    crowds = Crowds(parents, z=math.inf)
    found = np.zeros(len(nodes), dtype=np.int64)
    leaves, people, needed = leaf.tolist(), subject.tolist(), z.tolist()
    begin = 0
    for i, (node, start) in enumerate(zip(nodes.tolist(), starts.tolist(), strict=True)):
        while begin < start:
            if leaves[begin] >= 0:
                crowds.drop(leaves[begin], people[begin])
            begin += 1
        if node >= 0 and residual:
            crowds.need(needed[i])
        if leaves[i] >= 0:
            crowds.add(leaves[i], people[i])
        if node >= 0:
            found[i] = crowds.n_subjects(node)
    return found
