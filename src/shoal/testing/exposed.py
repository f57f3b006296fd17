"""Who stands behind a cell, straight from the definitions of z-anonymity, with sets of subjects.

Everything is found anew for each row from all rows before it. It shares no code with
`shoal.kernels.exposures` and `shoal.kernels.climbing`, which it is to catch when they are wrong.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from shoal.policy import Window
from shoal.testing.cells import Keys, cells_of
from shoal.testing.streams import Stream

__all__ = ["Alike", "Count", "Crowds", "Node", "Windows", "alike", "behind", "finest", "path"]

Count: TypeAlias = Literal["residual", "plain"]
#: An attribute, and the keys from a rung up to the coarsest.
Node: TypeAlias = tuple[int, tuple[int, ...]]
#: The subjects behind each node.
Crowds: TypeAlias = dict[Node, set[int]]


def path(leaf: Node) -> list[Node]:
    """The nodes from a leaf up; the place in the list is the level.

    >>> path((0, (5, 6, 7)))
    [(0, (5, 6, 7)), (0, (6, 7)), (0, (7,))]
    """
    attribute, keys = leaf
    return [(attribute, keys[level:]) for level in range(len(keys))]


def behind(leaves: Crowds, z: int, count: Count) -> Crowds:
    """The subjects behind every node, given those who exposed each leaf.

    ``"plain"``: all who exposed a leaf below. ``"residual"``: those behind a node right below that
    can't be published, since fewer than z subjects stand behind it.

    >>> turin, aosta = (0, (1, 9)), (0, (2, 9))
    >>> exposed = {turin: {1, 2}, aosta: {3}}
    >>> behind(exposed, 2, "residual")[0, (9,)], behind(exposed, 2, "plain")[0, (9,)]
    ({3}, {1, 2, 3})
    """
    found: Crowds = {}
    # From fine to coarse: a node has more keys than the one above it.
    level = {leaf: set(subjects) for leaf, subjects in leaves.items()}
    while level:
        found |= level
        above: Crowds = defaultdict(set)
        for (attribute, keys), subjects in level.items():
            if len(keys) > 1:
                is_out = count == "residual" and len(subjects) >= z
                above[attribute, keys[1:]] |= set() if is_out else subjects
        level = dict(above)
    return found


def finest(leaf: Node, crowds: Crowds, z: int) -> int | None:
    """The finest level at which a leaf may be published, or None.

    >>> finest((0, (1, 9)), {(0, (1, 9)): {1}, (0, (9,)): {1, 2}}, z=2)
    1
    """
    for level, node in enumerate(path(leaf)):
        if len(crowds[node]) >= z:
            return level
    return None


class Alike(NamedTuple):
    """How many subjects there are, the share in crowds of at least k, the entropy of the crowds."""

    n_subjects: int
    share: float
    entropy: float


def alike(leaves: Crowds, z: int, k: int) -> Alike:
    """Who shows the same nodes as others, if everything that is exposed were published now.

    >>> alike({(0, (1,)): {1, 2}, (0, (2,)): {3}}, z=2, k=2)[:2]
    (3, 0.6666666666666666)
    """
    crowds = behind(leaves, z, "residual")
    shown: dict[int, set[Node]] = defaultdict(set)
    for leaf, subjects in leaves.items():
        level = finest(leaf, crowds, z)
        nodes = set() if level is None else {path(leaf)[level]}
        for subject in subjects:
            shown[subject] |= nodes
    if not shown:
        return Alike(0, 1.0, 0.0)
    n = len(shown)
    together = Counter(map(frozenset[Any], shown.values())).values()
    entropy = math.fsum(-each / n * math.log(each / n) for each in together)
    return Alike(n, sum(each for each in together if each >= k) / n, entropy)


class Windows:
    """What was exposed in the window that ends with a row of a stream."""

    def __init__(self, stream: Stream) -> None:
        assert isinstance(stream.policy.window, Window)
        self._window = stream.policy.window
        self._times = np.maximum.accumulate(stream.codes.times).tolist()
        self._subjects = stream.codes.subjects.tolist()
        self.cells: list[list[Keys]] = cells_of(stream.schema, stream.codes)

    def leaves(self, row: int, *, included: bool = True) -> Crowds:
        """The subjects that exposed each leaf in the window of a row, itself included or not."""
        found: Crowds = defaultdict(set)
        for each in self._rows(row, row + included):
            for attribute, keys in enumerate(self.cells[each]):
                if keys is not None:
                    found[attribute, keys].add(self._subjects[each])
        return dict(found)

    def _rows(self, row: int, end: int) -> Iterable[int]:
        if self._window.seconds is None:
            return range(max(0, row - self._window.rows + 1), end)
        horizon = self._times[row] - self._window.seconds
        return [each for each in range(end) if self._times[each] >= horizon]
