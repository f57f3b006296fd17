"""The active R-tree, slowly: nodes of leaves of held rows (Zhou et al., section 4.1).

Inserting and splitting are Guttman's, by loss instead of volume. A leaf has rows of different
subjects only; it splits as soon as both halves keep the promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tests.naive.space import Box, Row, Space

__all__ = ["Leaf", "NaiveRTree", "Node", "halves"]


@dataclass(eq=False)
class Leaf:
    """Rows that may become a group, in the order in which they joined.

    ``next_try`` is how many rows it must have to be split. ``copies`` and ``due`` are the paper's:
    the samples that were copied to it, and the instant (or the second) at which it will be
    published.
    """

    number: int
    birth: int
    rows: list[Row]
    box: Box
    next_try: int
    copies: set[int] = field(default_factory=set)
    due: float | None = None


@dataclass(eq=False)
class Node:
    """Leaves near each other."""

    birth: int
    leaves: list[Leaf]


def halves(space: Space, boxes: Sequence[Box], least: int) -> tuple[list[int], list[int]]:
    """Guttman's quadratic split, by loss: which boxes go to the first half and which to the second.

    Each half gets at least ``least``.
    """

    def lost_by_joining(i: int, j: int) -> float:
        joined = space.spread(space.join([boxes[i], boxes[j]]))
        return joined - space.spread(boxes[i]) - space.spread(boxes[j])

    pairs = [(i, j) for i in range(len(boxes)) for j in range(i + 1, len(boxes))]
    first, second = max(pairs, key=lambda pair: lost_by_joining(*pair))  # the first of equals
    parts = ([first], [second])
    rest = [i for i in range(len(boxes)) if i not in (first, second)]

    def growth(part: list[int], i: int) -> float:
        box = space.join([boxes[j] for j in part])
        return space.spread(space.join([box, boxes[i]])) - space.spread(box)

    while rest:
        needy = next((part for part in parts if len(part) + len(rest) <= least), None)
        if needy is not None:
            needy += rest
            break
        i = max(rest, key=lambda i: abs(growth(parts[0], i) - growth(parts[1], i)))
        rest.remove(i)
        min(
            parts,
            key=lambda part, i=i: (  # type: ignore[misc]
                growth(part, i),
                space.spread(space.join([boxes[j] for j in part])),
                len(part),
            ),
        ).append(i)
    return sorted(parts[0]), sorted(parts[1])


class NaiveRTree:
    """Leaves, in nodes of at most ``fan_out``; all nodes hang below one root.

    Parameters
    ----------
    people
        How many subjects a group needs at least, the paper's k.
    meets
        Whether rows may be published as one group.
    """

    def __init__(
        self, space: Space, people: int, meets: Callable[[Sequence[Row]], bool], fan_out: int
    ) -> None:
        self.space, self.people, self.meets, self.fan_out = space, people, meets, fan_out
        self.nodes: list[Node] = []
        self.n_born = 0
        self.n_numbers = 0
        self.free: list[int] = []

    @property
    def leaves(self) -> list[Leaf]:
        """All leaves, by number."""
        found = [leaf for node in self.nodes for leaf in node.leaves]
        return sorted(found, key=lambda leaf: leaf.number)

    def leaf_of(self, row: Row) -> Leaf:
        return next(leaf for leaf in self.leaves if row in leaf.rows)

    def node_of(self, leaf: Leaf) -> Node:
        return next(node for node in self.nodes if leaf in node.leaves)

    def box(self, node: Node) -> Box:
        return self.space.join([leaf.box for leaf in node.leaves])

    # -- rows come ---------------------------------------------------------------------------------

    def insert(self, row: Row) -> None:
        """Put a row where it costs least."""
        if not self.nodes:
            self.nodes.append(Node(self._birth(), [self._leaf([row])]))
            return
        node = self._nearest_node(row.box)
        leaf = self._nearest_leaf(node.leaves, row) or self._nearest_leaf(self.leaves, row)
        if leaf is None:
            node.leaves.append(self._leaf([row]))
            self._limit(node)
            return
        leaf.rows.append(row)
        leaf.box = self.space.box(leaf.rows)
        if len(leaf.rows) >= leaf.next_try:
            self._try_to_split(leaf)

    def _cost(self, box: Box, birth: int, other: Box) -> tuple[float, float, int]:
        """How much a box grows by another; of equals the one that loses less, then the older."""
        joined, own = self.space.spread(self.space.join([box, other])), self.space.spread(box)
        return joined - own, own, birth

    def _nearest_node(self, box: Box) -> Node:
        return min(self.nodes, key=lambda node: self._cost(self.box(node), node.birth, box))

    def _nearest_leaf(self, leaves: Iterable[Leaf], row: Row) -> Leaf | None:
        open_to_it = [
            leaf
            for leaf in leaves
            if len(leaf.rows) < 4 * self.people
            and all(other.subject != row.subject for other in leaf.rows)
        ]
        return min(
            open_to_it, key=lambda leaf: self._cost(leaf.box, leaf.birth, row.box), default=None
        )

    def _try_to_split(self, leaf: Leaf) -> None:
        parts = halves(self.space, [row.box for row in leaf.rows], self.people)
        rows = [[leaf.rows[i] for i in part] for part in parts]
        if not all(self.meets(half) for half in rows):
            leaf.next_try = len(leaf.rows) + max(1, self.people // 2)
            return
        node = self.node_of(leaf)
        self._take_out(leaf, node)
        for half in rows:
            new = self._leaf(half)
            new.copies = set(leaf.copies)
            node.leaves.append(new)
        self._limit(node)

    def _limit(self, node: Node) -> None:
        """Split a node of too many leaves."""
        if len(node.leaves) <= self.fan_out:
            return
        parts = halves(self.space, [leaf.box for leaf in node.leaves], self.fan_out * 2 // 5)
        self.nodes.remove(node)
        self.nodes += [Node(self._birth(), [node.leaves[i] for i in part]) for part in parts]

    def _leaf(self, rows: list[Row]) -> Leaf:
        if not self.free:
            self.free.append(self.n_numbers)
            self.n_numbers += 1
        number = self.free.pop()
        return Leaf(number, self._birth(), rows, self.space.box(rows), 2 * self.people)

    def _birth(self) -> int:
        self.n_born += 1
        return self.n_born

    # -- rows go -----------------------------------------------------------------------------------

    def drop(self, row: Row) -> None:
        """Take one row out of its leaf."""
        leaf = self.leaf_of(row)
        leaf.rows.remove(row)
        if leaf.rows:
            leaf.box = self.space.box(leaf.rows)
        else:
            self.remove(leaf)

    def remove(self, leaf: Leaf) -> None:
        """Take out a leaf; of a node with too few leaves those go to other nodes."""
        node = self.node_of(leaf)
        self._take_out(leaf, node)
        if not node.leaves:
            self.nodes.remove(node)
        elif len(node.leaves) < self.fan_out // 8 and len(self.nodes) > 1:
            self.nodes.remove(node)
            for moved in node.leaves:
                other = self._nearest_node(moved.box)
                other.leaves.append(moved)
                self._limit(other)

    def _take_out(self, leaf: Leaf, node: Node) -> None:
        at = node.leaves.index(leaf)
        node.leaves[at] = node.leaves[-1]
        node.leaves.pop()
        self.free.append(leaf.number)
