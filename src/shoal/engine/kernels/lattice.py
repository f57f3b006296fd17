"""Full-domain generalization: one level for each attribute, the same for all rows.

All combinations of levels are a lattice, from exact values to the full domains. It is searched as
in Incognito (LeFevre, DeWitt, Ramakrishnan, 2005): what holds at some levels holds above them,
and what fails for a subset of the attributes fails for all of them together.

Rows that share an *interval* in each attribute are a group, and these intervals are its box.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.array_tools import by_first, distinct, picked, picked_rows, tally
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.boxes import Sides, points, row_loss
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts, in_parts
from shoal.engine.kernels.predicate import Limits, meets, needed
from shoal.errors import UnsupportedError

__all__ = ["MOST_LEVELS", "Lattice", "check_lattice", "lattice_parts"]

#: The most halvings of a range.
MOST_LEVELS = 16
#: The most nodes of a lattice; most of them aren't checked, but each needs memory.
MOST_NODES = 1_000_000
#: Keys are renumbered before they would exceed this and overflow.
LARGEST = 1 << 62


class Lattice(NamedTuple):
    """The intervals of rows at every level.

    ``tops`` are the highest levels by attribute, and ``strides`` the differences of the numbers of
    two nodes that differ by one level in it: nodes are numbered in the lexicographic order of their
    levels. ``values`` is, by attribute and row, the number of its value among the
    ``n_values`` different ones. ``intervals``, ``lo`` and ``hi`` are the number of an interval and
    its two ends, attribute by attribute from ``begins`` on, by level and value; ``n_intervals`` is
    the number of different intervals by attribute and level.
    """

    tops: Ints
    strides: Ints
    values: Ints
    n_values: Ints
    begins: Ints
    intervals: Ints
    lo: Floats
    hi: Floats
    n_intervals: Ints


@kernel
def _top_levels(sides: Sides, levels: int) -> Ints:
    """Return the highest level of each attribute: ``levels`` for numbers, the height for a tree."""
    tops = np.full(len(sides.attributes), levels)
    for d in range(len(tops)):
        first = sides.attributes["first_leaf"][d]
        if first < 0:
            continue
        tops[d] = 0
        for leaf in range(np.int64(sides.attributes["highest"][d]) + 1):
            node, height = sides.leaf_node[first + leaf], 0
            while sides.nodes["parent"][node] != node:
                node = sides.nodes["parent"][node]
                height += 1
            tops[d] = max(tops[d], height)
    return tops


def check_lattice(name: str, sides: Sides, levels: int) -> None:
    """Refuse quasi attributes with too many combinations of levels; ``name`` is the algorithm."""
    n_nodes = math.prod(int(top) + 1 for top in _top_levels(sides, levels))
    if n_nodes > MOST_NODES:
        raise UnsupportedError(
            f"'{name}' searches all combinations of levels of the {len(sides.attributes)} quasi "
            f"attributes; there are {n_nodes:,} of them, and it takes at most {MOST_NODES:,}",
            fix="Name fewer quasi attributes, set fewer levels, or choose another algorithm",
        )


def lattice_parts(sides: Sides, limits: Limits, rows: RowArrays, levels: int) -> Parts:
    """Return parts of rows with equal intervals, at the best of the lowest levels that are valid.

    Best is the least loss. Parts are in the order of their first row. Where not even the highest
    levels meet the limits, all rows are one part.
    """
    lattice = _lattice(sides, rows, levels)
    monotone = _is_monotone(limits)
    lowest = _lowest(limits, rows, lattice, _order(lattice, monotone), monotone)
    return _parts(lattice, _best(sides, rows, lattice, lowest))


# -- intervals ------------------------------------------------------------------------------------


@kernel
def _lattice(sides: Sides, rows: RowArrays, levels: int) -> Lattice:
    d, n = rows.lo.shape
    tops = _top_levels(sides, levels)
    strides = np.ones(d, np.int64)
    for a in range(d - 2, -1, -1):
        strides[a] = strides[a + 1] * (tops[a + 1] + 1)
    values, firsts = np.empty((d, n), np.int64), np.empty((d, n), np.int64)
    n_values, begins, room = np.empty(d, np.int64), np.empty(d, np.int64), 0
    for a in range(d):
        numbers = _values(rows, a)
        for i in range(n - 1, -1, -1):
            values[a, i] = numbers[i]
            firsts[a, numbers[i]] = i
        n_values[a], begins[a] = distinct(numbers), room
        room += (tops[a] + 1) * n_values[a]
    lattice = Lattice(
        tops, strides, values, n_values, begins,
        np.empty(room, np.int64), np.empty(room), np.empty(room),
        np.zeros((d, tops.max() + 1), np.int64),
    )  # fmt: skip
    for a in range(d):
        _write_intervals(sides, rows, a, firsts[a, : n_values[a]], lattice)
    return lattice


@kernel
def _place(lattice: Lattice, a: int, level: int) -> int:
    """Return where the intervals of an attribute at a level begin."""
    return lattice.begins[a] + level * lattice.n_values[a]


@kernel
def _values(rows: RowArrays, a: int) -> Ints:
    """Number the different values of an attribute; a missing one counts as a value."""
    low, high = _same(rows.lo[a]), _same(rows.hi[a])
    keys = np.empty(len(low), np.int64)
    for i in range(len(keys)):
        keys[i] = (low[i] * len(keys) + high[i]) * 2 + ((rows.gaps[i] >> a) & 1)
    return by_first(keys)


@kernel
def _same(numbers: Floats) -> Ints:
    """Number the different numbers."""
    # Adding zero turns minus zero, which has other bits, into zero.
    return by_first((numbers + 0.0).view(np.int64))


@kernel
def _write_intervals(sides: Sides, rows: RowArrays, a: int, firsts: Ints, lattice: Lattice) -> None:
    """Write the intervals of the values of an attribute, given a row with each of them."""
    attribute, top = sides.attributes[a], lattice.tops[a]
    is_tree = attribute["first_leaf"] >= 0
    for level in range(top + 1):
        edges, lows, highs = _intervals(sides, a, 0 if is_tree or level == 0 else top - level)
        at = _place(lattice, a, level)
        numbers = np.empty(len(firsts), np.int64)
        for v in range(len(firsts)):
            low, high = rows.lo[a, firsts[v]], rows.hi[a, firsts[v]]
            interval = -1
            if level == top:
                interval, low, high = 0, attribute["lowest"], attribute["highest"]
            elif (rows.gaps[firsts[v]] >> a) & 1:
                low, high = attribute["lowest"], attribute["highest"]
            elif is_tree:
                interval = _ancestor(sides, a, low, level)
                low, high = sides.nodes["lo"][interval], sides.nodes["hi"][interval]
            elif level == 0:
                interval = v
            else:
                interval = _interval(edges, (low + high) / 2.0)
                low, high = lows[interval], highs[interval]
            numbers[v], lattice.lo[at + v], lattice.hi[at + v] = interval, low, high
        numbers = by_first(numbers)
        lattice.n_intervals[a, level] = distinct(numbers)
        for v in range(len(firsts)):
            lattice.intervals[at + v] = numbers[v]


@kernel
def _ancestor(sides: Sides, a: int, leaf: float, level: int) -> int:
    """Return the node ``level`` levels above a leaf, or the root where the branch is shorter."""
    node = sides.leaf_node[sides.attributes["first_leaf"][a] + np.int64(leaf)]
    for _ in range(level):
        node = sides.nodes["parent"][node]
    return node


@kernel
def _intervals(sides: Sides, a: int, halvings: int) -> tuple[Floats, Floats, Floats]:
    """Halve a range ``halvings`` times; return its edges and the published bounds of intervals."""
    n = 1 << halvings
    lowest, highest = sides.attributes["lowest"][a], sides.attributes["highest"][a]
    width = (highest - lowest) / n
    edges = np.full((n + 1, len(sides.attributes)), np.nan)
    for i in range(n):
        edges[i, a] = lowest + i * width
    edges[n, a] = highest
    lo, hi = np.empty_like(edges), np.empty_like(edges)
    points(sides, edges, True, lo, hi)
    return edges[:, a].copy(), lo[:-1, a].copy(), hi[1:, a].copy()


@kernel
def _interval(edges: Floats, centre: float) -> int:
    """Return the interval in which a number lies; the last one includes its upper edge."""
    low, high = 0, len(edges) - 2
    while low < high:
        middle = (low + high + 1) // 2
        if edges[middle] <= centre:
            low = middle
        else:
            high = middle - 1
    return low


# -- the search -----------------------------------------------------------------------------------


@kernel
def _is_monotone(limits: Limits) -> bool:
    """Whether unions of groups that meet the limits meet them: not for entropy and recursive."""
    for j in range(len(limits.diversity)):
        if limits.diversity["entropy"][j] > 0.0 or limits.diversity["c"][j] > 0.0:
            return False
    return True


def _order(lattice: Lattice, monotone: bool) -> Ints:
    """Return the nodes in the order in which they are checked, from the bottom up.

    If monotone: first single attributes, then two of them, and so on, with all others at the top,
    since a node fails if a subset of its attributes does.
    """
    nodes = np.arange(int(lattice.strides[0] * (lattice.tops[0] + 1)))
    height, detailed = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    for top, stride in zip(lattice.tops, lattice.strides, strict=True):
        level = nodes // stride % (top + 1)
        height += level
        detailed += level < top
    return np.lexsort((height, detailed)) if monotone else np.argsort(height, kind="stable")


@kernel
def _levels(lattice: Lattice, node: int) -> Ints:
    levels = np.empty(len(lattice.tops), np.int64)
    for a in range(len(levels)):
        levels[a] = node // lattice.strides[a] % (lattice.tops[a] + 1)
    return levels


@kernel
def _lowest(
    limits: Limits, rows: RowArrays, lattice: Lattice, order: Ints, monotone: bool
) -> Bools:
    """Return the nodes that meet the limits and have none below them that does."""
    # Whether a node, or one below it, meets the limits.
    reached, lowest = np.zeros(len(order), np.bool_), np.zeros(len(order), np.bool_)
    for node in order:
        levels = _levels(lattice, node)
        if _is_above(lattice, levels, node, reached):
            reached[node] = True
        elif not monotone or _may_hold(lattice, levels, node, reached):
            reached[node] = lowest[node] = _holds(limits, rows, lattice, levels)
    for node in order:
        if lowest[node] and _is_above(lattice, _levels(lattice, node), node, reached):
            lowest[node] = False
    return lowest


@kernel
def _is_above(lattice: Lattice, levels: Ints, node: int, reached: Bools) -> bool:
    """Whether a node lies above one that meets the limits."""
    for a in range(len(levels)):  # noqa: SIM110 - Numba compiles no generator expressions
        if levels[a] > 0 and reached[node - lattice.strides[a]]:
            return True
    return False


@kernel
def _may_hold(lattice: Lattice, levels: Ints, node: int, reached: Bools) -> bool:
    """Whether the limits are met with each single attribute raised to the top."""
    for a in range(len(levels)):
        climb = lattice.tops[a] - levels[a]
        if climb > 0 and not reached[node + climb * lattice.strides[a]]:
            return False
    return True


@kernel
def _groups(lattice: Lattice, levels: Ints) -> Ints:
    """Return the group of each row: rows with equal intervals, numbered by their first row."""
    keys, n_keys = np.zeros(lattice.values.shape[1], np.int64), 1
    for a in range(len(levels)):
        n_intervals = lattice.n_intervals[a, levels[a]]
        if n_intervals == 1:
            continue
        if n_keys > LARGEST // n_intervals:
            keys = by_first(keys)
            n_keys = distinct(keys)
        n_keys *= n_intervals
        at = _place(lattice, a, levels[a])
        for i in range(len(keys)):
            keys[i] = keys[i] * n_intervals + lattice.intervals[at + lattice.values[a, i]]
    return by_first(keys)


@kernel
def _holds(limits: Limits, rows: RowArrays, lattice: Lattice, levels: Ints) -> bool:
    """Whether every group of rows with equal intervals meets the limits."""
    groups = _groups(lattice, levels)
    fewest = needed(limits)
    counts = tally(groups)
    for count in counts:
        if count < fewest:
            return False
    order, starts = in_parts(groups, len(counts))
    for p in range(len(counts)):
        members = order[starts[p] : starts[p + 1]]
        subjects, sensitive = picked(rows.subjects, members), picked_rows(rows.sensitive, members)
        if not meets(limits, subjects, sensitive):
            return False
    return True


# -- the choice -----------------------------------------------------------------------------------


@kernel
def _best(sides: Sides, rows: RowArrays, lattice: Lattice, lowest: Bools) -> int:
    """Return the node that loses least, of equal ones the first; the highest if there is none."""
    best, least = len(lowest) - 1, np.inf
    for node in range(len(lowest)):
        if lowest[node]:
            loss = _loss(sides, rows, lattice, _levels(lattice, node))
            if loss < least:
                best, least = node, loss
    return best


@kernel
def _loss(sides: Sides, rows: RowArrays, lattice: Lattice, levels: Ints) -> float:
    """Return the sum of the losses of all rows."""
    lo, hi = np.empty(len(levels)), np.empty(len(levels))
    loss = 0.0
    for i in range(len(rows.gaps)):
        _write_box(lattice, levels, i, lo, hi)
        loss += row_loss(sides, lo, hi, rows.gaps[i])
    return loss


@kernel
def _write_box(lattice: Lattice, levels: Ints, i: int, lo: Floats, hi: Floats) -> None:
    """Write the intervals of a row as a box."""
    for a in range(len(levels)):
        at = _place(lattice, a, levels[a]) + lattice.values[a, i]
        lo[a], hi[a] = lattice.lo[at], lattice.hi[at]


@kernel
def _parts(lattice: Lattice, node: int) -> Parts:
    levels = _levels(lattice, node)
    groups = _groups(lattice, levels)
    order, starts = in_parts(groups, distinct(groups))
    n = len(starts) - 1
    lo, hi = np.empty((n, len(levels))), np.empty((n, len(levels)))
    for p in range(n):
        _write_box(lattice, levels, order[starts[p]], lo[p], hi[p])
    return Parts(order, starts, lo, hi)
