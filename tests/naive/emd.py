"""The Earth Mover's Distance of the thesis, §3.2: its two formulas, and what they stand for.

All in fractions: groups lie exactly at a threshold more often than one would think.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

from shoal.spec.hierarchy import Domain, Hierarchy

__all__ = [
    "emd",
    "heights",
    "least_work",
    "ordered_distances",
    "ordered_emd",
    "shares",
    "tree_distances",
    "tree_emd",
]


def shares(values: Iterable[Hashable]) -> dict[Hashable, Fraction]:
    """The share of each value among some."""
    counts = Counter(values)
    return {value: Fraction(count, counts.total()) for value, count in counts.items()}


def ordered_emd(q: Sequence[Fraction], p: Sequence[Fraction]) -> Fraction:
    """Of numbers: q and p are the shares of the m values there are, in their order."""
    m = len(p)
    if m == 1:
        return Fraction(0)
    nothing = Fraction(0)
    moved = (abs(sum(q[:i], nothing) - sum(p[:i], nothing)) for i in range(1, m))
    return sum(moved, nothing) / (m - 1)


def heights(tree: Hierarchy) -> list[int]:
    """h(n): 0 for a leaf, else one more than the highest child; in order of the nodes."""
    height = [0] * len(tree.labels)
    for node in range(len(height) - 1, 0, -1):
        above = tree.parents[node]
        height[above] = max(height[above], height[node] + 1)
    return height


def children(tree: Hierarchy, node: int) -> list[int]:
    """The children of a node, in their order."""
    return [child for child in range(1, len(tree.labels)) if tree.parents[child] == node]


def tree_emd(tree: Hierarchy, q: Sequence[Fraction], p: Sequence[Fraction]) -> Fraction:
    """Of categories: q and p are the shares of all leaves, in pre-order."""
    height = heights(tree)
    if height[0] == 0:
        return Fraction(0)

    def extra(node: int) -> Fraction:
        codes = range(tree.lows[node], tree.highs[node] + 1)
        return sum((q[code] - p[code] for code in codes), Fraction(0))

    def cost(node: int) -> Fraction:
        extras = [extra(child) for child in children(tree, node)]
        pos = sum((e for e in extras if e > 0), Fraction(0))
        neg = sum((-e for e in extras if e < 0), Fraction(0))
        return Fraction(height[node], height[0]) * min(pos, neg)

    return sum((cost(node) for node in range(len(height))), Fraction(0))


def emd(
    domain: Domain | None, group: Sequence[Hashable], window: Sequence[Hashable]
) -> Fraction | None:
    """Of the values of a group from those of its window; None if the window lacks one of them.

    Numbers are ranked among the values of the window, categories have their whole tree.
    """
    q, p = shares(group), shares(window)
    if not q.keys() <= p.keys():
        return None
    nothing = Fraction(0)
    if isinstance(domain, Hierarchy):
        codes = range(len(domain))
        return tree_emd(
            domain,
            [q.get(code, nothing) for code in codes],
            [p.get(code, nothing) for code in codes],
        )
    values = sorted(p)  # type: ignore[type-var]
    return ordered_emd([q.get(value, nothing) for value in values], [p[value] for value in values])


# -- what the formulas stand for: the least work, over all ways to move the earth ------------------


def ordered_distances(m: int) -> list[list[Fraction]]:
    """The ground distances of m numbers: by how many places they are apart."""
    return [[Fraction(abs(i - j), max(1, m - 1)) for j in range(m)] for i in range(m)]


def tree_distances(tree: Hierarchy) -> list[list[Fraction]]:
    """The ground distances of the leaves: how high their lowest common ancestor is."""
    height, n = heights(tree), len(tree)
    return [
        [Fraction(height[tree.cover(min(i, j), max(i, j))], max(1, height[0])) for j in range(n)]
        for i in range(n)
    ]


def least_work(
    q: Sequence[Fraction], p: Sequence[Fraction], distances: Sequence[Sequence[Fraction]]
) -> Fraction:
    """The least sum of distance times earth that makes p of q: a flow of least cost.

    Earth takes the cheapest way that is left, which may be to send other earth elsewhere, until
    every hole is full. For a handful of values only.
    """
    n, m = len(q), len(p)
    flow = [[Fraction(0)] * m for _ in range(n)]
    piles, holes = list(q), list(p)
    while any(piles):
        way = _cheapest(piles, holes, flow, distances)
        amount = min(piles[way[0]], holes[way[-1]])
        # Along the way piles and holes take turns: there earth is sent, back it is taken.
        for i, j in zip(way[2::2], way[1::2], strict=False):
            amount = min(amount, flow[i][j])
        for i, j in zip(way[::2], way[1::2], strict=True):
            flow[i][j] += amount
        for i, j in zip(way[2::2], way[1::2], strict=False):
            flow[i][j] -= amount
        piles[way[0]] -= amount
        holes[way[-1]] -= amount
    return sum((distances[i][j] * flow[i][j] for i in range(n) for j in range(m)), Fraction(0))


def _cheapest(
    piles: Sequence[Fraction],
    holes: Sequence[Fraction],
    flow: Sequence[Sequence[Fraction]],
    distances: Sequence[Sequence[Fraction]],
) -> list[int]:
    """The cheapest way from a pile that is left to a hole that is open: pile, hole, pile, …, hole.

    Bellman and Ford: look at all edges as long as that makes something cheaper.
    """
    n, m = len(piles), len(holes)
    to_pile: dict[int, tuple[Fraction, list[int]]] = {
        i: (Fraction(0), [i]) for i in range(n) if piles[i]
    }
    to_hole: dict[int, tuple[Fraction, list[int]]] = {}
    changed = True
    while changed:
        changed = False
        for i in range(n):
            for j in range(m):
                if i in to_pile:
                    cost = to_pile[i][0] + distances[i][j]
                    if j not in to_hole or cost < to_hole[j][0]:
                        to_hole[j], changed = (cost, [*to_pile[i][1], j]), True
                if j in to_hole and flow[i][j]:
                    cost = to_hole[j][0] - distances[i][j]
                    if i not in to_pile or cost < to_pile[i][0]:
                        to_pile[i], changed = (cost, [*to_hole[j][1], i]), True
    return min((to_hole[j] for j in range(m) if holes[j]), key=lambda found: found[0])[1]
