"""The Earth Mover's Distance between the values of a group and those of its window.

Both forms are fractions of whole numbers, returned as numerator and denominator without a division
(thesis, §3.2). Sums are floats, which don't overflow; the rounding is far smaller than the slack of
the comparison with t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints, Records

__all__ = ["NODE", "TREE", "Trees", "node_sums", "ordered_emd", "tree_emd"]

#: One entry for each sensitive attribute: where its nodes and leaves begin (no nodes: no tree).
TREE = np.dtype([("first_node", "i8"), ("n_nodes", "i8"), ("first_leaf", "i8")])
#: One entry for each node of each tree, in pre-order; a root is its own parent. Leaves have height
#: 0, roots have depth 0.
NODE = np.dtype([("parent", "i8"), ("height", "i8"), ("depth", "i8")])


class Trees(NamedTuple):
    """The hierarchies of the sensitive attributes, laid end to end."""

    trees: Records
    nodes: Records
    leaf_node: Ints


@kernel
def ordered_emd(counts: Ints, n: int, of: Ints, n_all: int) -> tuple[float, float]:
    """Return the distance between n rows and the window, for values in ascending order."""
    moved, carried = 0.0, 0
    for i in range(len(of) - 1):
        carried += counts[i] * n_all - of[i] * n
        moved += float(abs(carried))
    return moved, float(max(len(of) - 1, 1)) * n * n_all


@kernel
def node_sums(trees: Trees, j: int, values: Ints, counts: Ints) -> Ints:
    """Return the count of each node of attribute j, given the counts of some of its leaves."""
    tree = trees.trees[j]
    first = tree["first_node"]
    sums = np.zeros(tree["n_nodes"], np.int64)
    for i in range(len(counts)):
        sums[trees.leaf_node[tree["first_leaf"] + values[i]] - first] += counts[i]
    for node in range(tree["n_nodes"] - 1, 0, -1):
        sums[trees.nodes["parent"][first + node] - first] += sums[node]
    return sums


@kernel
def tree_emd(
    trees: Trees, j: int, values: Ints, counts: Ints, n: int, of: Ints, n_all: int
) -> tuple[float, float]:
    """Return the distance between n rows and the window, by the hierarchy of attribute j."""
    tree = trees.trees[j]
    first, n_nodes = tree["first_node"], tree["n_nodes"]
    there, here = node_sums(trees, j, values, of), node_sums(trees, j, values, counts)
    more, less = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    for node in range(1, n_nodes):
        parent = trees.nodes["parent"][first + node] - first
        extra = here[node] * n_all - there[node] * n
        if extra > 0:
            more[parent] += extra
        else:
            less[parent] -= extra
    moved = 0.0
    for node in range(n_nodes):
        moved += float(trees.nodes["height"][first + node]) * min(more[node], less[node])
    return moved, float(max(trees.nodes["height"][first], 1)) * n * n_all
