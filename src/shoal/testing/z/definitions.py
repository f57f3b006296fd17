"""Which subjects count for a cell, straight from the definitions of z-anonymity, with sets.

Everything is computed from scratch for each row from all rows before it. It shares no code with
`shoal.engine.z.exposures` and `shoal.engine.z.climbing`, whose errors it has to find.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from shoal.spec.policy import Window
from shoal.testing.streams import Stream
from shoal.testing.z.codes import Keys, cells_of

__all__ = [
    "Alike",
    "Count",
    "ExposureHistory",
    "Node",
    "NodeSubjects",
    "alike",
    "behind",
    "finest",
    "path",
]

Count: TypeAlias = Literal["residual", "plain"]
#: An attribute, and the keys from a level up to the coarsest.
Node: TypeAlias = tuple[int, tuple[int, ...]]
#: The subjects that count for each node.
NodeSubjects: TypeAlias = dict[Node, set[int]]


def path(leaf: Node) -> list[Node]:
    """Return the nodes from a leaf up; the position in the list is the level.

    >>> path((0, (5, 6, 7)))
    [(0, (5, 6, 7)), (0, (6, 7)), (0, (7,))]
    """
    attribute, keys = leaf
    return [(attribute, keys[level:]) for level in range(len(keys))]


def behind(
    leaves: NodeSubjects, z: int, count: Count, shown: NodeSubjects | None = None
) -> NodeSubjects:
    """Return the subjects that count for every node, given those who exposed each leaf.

    ``"plain"``: all who exposed a leaf below. ``"residual"``: those of a child that another subject
    wouldn't make publishable, since at most z - 2 count for it; of a leaf without those who are
    ``shown`` there, because their leaf was published.

    >>> turin, aosta = (0, (1, 9)), (0, (2, 9))
    >>> exposed = {turin: {1, 2}, aosta: {3}}
    >>> behind(exposed, 3, "residual")[0, (9,)], behind(exposed, 3, "plain")[0, (9,)]
    ({3}, {1, 2, 3})
    >>> behind(exposed, 4, "residual", shown={turin: {2}})[0, (9,)]
    {1, 3}
    """
    known = {} if shown is None else shown
    found: NodeSubjects = {}
    # From fine to coarse: a node has more keys than the one above it.
    level = {leaf: set(subjects) for leaf, subjects in leaves.items()}
    while level:
        found |= level
        above: NodeSubjects = defaultdict(set)
        for (attribute, keys), subjects in level.items():
            if len(keys) == 1:
                continue
            counted = subjects
            if count == "residual":
                # Nobody is shown at a node above the leaves.
                hiding = subjects - known.get((attribute, keys), set())
                counted = hiding if len(subjects) + 1 < z else set()
            above[attribute, keys[1:]] |= counted
        level = dict(above)
    return found


def finest(leaf: Node, subject: int, crowds: NodeSubjects, z: int) -> int | None:
    """Return the finest level at which a leaf of a subject may be published, or None.

    The subject counts at every level.

    >>> finest((0, (1, 9)), 1, {(0, (1, 9)): {1}, (0, (9,)): {2, 3}}, z=3)
    1
    """
    for level, node in enumerate(path(leaf)):
        if len(crowds.get(node, set()) | {subject}) >= z:
            return level
    return None


class Alike(NamedTuple):
    """The number of subjects, the share of those who look like k - 1 others, and the entropy."""

    n_subjects: int
    share: float
    entropy: float


def alike(leaves: NodeSubjects, z: int, k: int, shown: NodeSubjects | None = None) -> Alike:
    """Return how many subjects show the same nodes as others, if all were published now.

    >>> alike({(0, (1,)): {1, 2}, (0, (2,)): {3}}, z=2, k=2)[:2]
    (3, 0.6666666666666666)
    """
    crowds = behind(leaves, z, "residual", shown)
    public: dict[int, set[Node]] = defaultdict(set)
    for leaf, subjects in leaves.items():
        for subject in subjects:
            level = finest(leaf, subject, crowds, z)
            public[subject] |= set() if level is None else {path(leaf)[level]}
    if not public:
        return Alike(0, 1.0, 0.0)
    n = len(public)
    together = Counter(map(frozenset[Any], public.values())).values()
    entropy = math.fsum(-each / n * math.log(each / n) for each in together)
    return Alike(n, sum(each for each in together if each >= k) / n, entropy)


class ExposureHistory:
    """What was exposed and shown in the window that ends with each row of a stream."""

    def __init__(self, stream: Stream) -> None:
        assert isinstance(stream.policy.window, Window)
        self._window = stream.policy.window
        self._times = np.maximum.accumulate(stream.codes.times).tolist()
        self.subjects: list[int] = stream.codes.subjects.tolist()
        self.cells: list[list[Keys]] = cells_of(stream.schema, stream.codes)

    def leaves(self, row: int, *, included: bool = True) -> NodeSubjects:
        """Return the subjects that exposed each leaf in the window of a row, with or without it."""
        found: NodeSubjects = defaultdict(set)
        for each in range(row + included):
            if self._reaches(row, each):
                for leaf in self._leaves_of(each):
                    found[leaf].add(self.subjects[each])
        return dict(found)

    def shown(self, row: int, levels: Mapping[int, Sequence[int]]) -> NodeSubjects:
        """Return the subjects of each leaf whose leaf is public when a row comes.

        Their leaf was published as it is, by the ``levels`` of the rows before, and they never
        left the window since: each time they exposed the leaf, the time before was still in it.
        """
        found: NodeSubjects = defaultdict(set)
        latest: dict[tuple[Node, int], int] = {}
        for each in range(row):
            subject = self.subjects[each]
            for leaf in self._leaves_of(each):
                if not self._reaches(each, latest.get((leaf, subject), each)):
                    found[leaf].discard(subject)
                latest[leaf, subject] = each
                if each in levels and levels[each][leaf[0]] == 0:
                    found[leaf].add(subject)
        for (leaf, subject), last in latest.items():
            if not self._reaches(row, last):
                found[leaf].discard(subject)
        return {leaf: subjects for leaf, subjects in found.items() if subjects}

    def _leaves_of(self, row: int) -> list[Node]:
        return [(a, keys) for a, keys in enumerate(self.cells[row]) if keys is not None]

    def _reaches(self, row: int, earlier: int) -> bool:
        """Return whether the window of a row includes an earlier one, or the row itself."""
        if self._window.seconds is None:
            return earlier > row - self._window.rows
        return bool(self._times[earlier] >= self._times[row] - self._window.seconds)
