"""Turn rows into columns and back, where Arrow's columns meet the rows of an engine.

A table of rows is read or written once, a few rows at a time: column by column, each of its cache
lines would be loaded once for every column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Any1, Floats, Ints

__all__ = ["Domains", "as_rows", "distinct_pairs", "look_up", "published_sides"]


class Domains(NamedTuple):
    """The domains of attributes: their codes, and the trees of categories, one after the other.

    ``first_leaf`` and ``first_node`` say where the tree of an attribute begins in ``leaf_nodes``
    and in ``highs`` and ``parents`` (-1: it has none). Nodes are numbered inside their own tree.
    """

    lowest: Floats
    highest: Floats
    first_leaf: Ints
    first_node: Ints
    leaf_nodes: Ints
    highs: Ints
    parents: Ints


@kernel
def as_rows(columns: Floats) -> Floats:
    """Return a table of rows from one of columns."""
    n_columns, n = columns.shape
    rows = np.empty((n, n_columns))
    for i in range(n):
        for d in range(n_columns):
            rows[i, d] = columns[d, i]
    return rows


@kernel
def look_up(table: Any1, places: NDArray[np.int32], out: Any1) -> None:
    """Write the entry of a table at each place."""
    for i in range(len(places)):
        out[i] = table[places[i]]


@kernel
def published_sides(
    domains: Domains, lo: Floats, hi: Floats, nodes: NDArray[np.int32], low: Floats, high: Floats
) -> None:
    """Write, attribute by attribute, what is published of boxes.

    For a category that is the lowest node that covers the side, in ``nodes``; for a number both of
    its ends, in ``low`` and ``high``. An empty side means that all rows of the box lack the value:
    they have null there, or the whole domain, which reveals nothing.
    """
    n, n_quasi = lo.shape
    for begin in range(0, n, 256):
        end = min(n, begin + 256)
        for d in range(n_quasi):
            leaf, root = domains.first_leaf[d], domains.first_node[d]
            for i in range(begin, end):
                first, last = lo[i, d], hi[i, d]
                if first > last:
                    first, last = domains.lowest[d], domains.highest[d]
                if leaf < 0:
                    # Adding 0.0 makes -0.0 to 0.0: both are one number.
                    low[d, i], high[d, i] = first + 0.0, last + 0.0
                    continue
                node = domains.leaf_nodes[leaf + np.int64(first)]
                while domains.highs[root + node] < last:
                    node = domains.parents[root + node]
                nodes[d, i] = node


@kernel
def distinct_pairs(
    first: Ints, second: Ints, table: Ints, places: NDArray[np.int32], found: Ints
) -> int:
    """Number equal pairs alike, in the order of their first appearance; return how many there are.

    ``places`` gets the number of each pair, ``found`` where each of them appears first. ``table``
    is room for a hash table: a power of two, larger than the number of pairs.
    """
    mask = len(table) - 1
    for slot in range(len(table)):
        table[slot] = -1
    n = 0
    for i in range(len(first)):
        a, b = first[i], second[i]
        # Bits from everywhere: those of small whole numbers, as floats, are all at the top.
        mixed = ((a ^ (a >> 32)) & 0x7FFFFFFF) * 0x2545F491
        mixed += ((b ^ (b >> 32)) & 0x7FFFFFFF) * 0x1F83D9AB
        slot = ((mixed >> 13) ^ (mixed >> 37)) & mask
        while table[slot] >= 0:
            at = found[table[slot]]
            if first[at] == a and second[at] == b:
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = n
            found[n] = i
            n += 1
        places[i] = table[slot]
    return n
