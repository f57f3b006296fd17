"""The invariants of an active R-tree."""

from __future__ import annotations

import numpy as np

from shoal.engine.rtree.tree import FAN_OUT, FEWEST, RTree


def check_tree(tree: RTree) -> None:
    """Numbers are in use or free, leaves are where their nodes say, nodes cover their leaves."""
    marks = {name: int(tree.marks[name][0]) for name in tree.marks.dtype.names}
    living = np.flatnonzero(tree.leaves["birth"] >= 0)
    free = tree.free[: marks["free_leaves"]]
    assert len(living) == marks["n_leaves"]
    assert sorted([*living, *free]) == list(range(marks["leaf_numbers"]))
    nodes = np.flatnonzero(tree.nodes["birth"] >= 0)
    free = tree.free_nodes[: marks["free_nodes"]]
    assert len(nodes) == marks["n_nodes"]
    assert sorted([*nodes, *free]) == list(range(marks["node_numbers"]))
    births = [*tree.leaves["birth"][living], *tree.nodes["birth"][nodes]]
    assert len(set(births)) == len(births)
    assert all(birth < marks["births"] for birth in births)
    found: list[int] = []
    for node in nodes:
        n = tree.nodes["n_leaves"][node]
        assert (1 if len(nodes) == 1 else FEWEST) <= n <= FAN_OUT
        inside = tree.members[node, :n]
        found += inside.tolist()
        assert (tree.leaves["node"][inside] == node).all()
        assert (tree.leaves["place"][inside] == np.arange(n)).all()
        assert (tree.node_lo[:, [node]] <= tree.lo[:, inside]).all()
        assert (tree.node_hi[:, [node]] >= tree.hi[:, inside]).all()
    assert sorted(found) == living.tolist()
    for los, his, losses, used in (
        (tree.lo, tree.hi, tree.loss, living),
        (tree.node_lo, tree.node_hi, tree.node_loss, nodes),
    ):
        unused = np.setdiff1d(np.arange(len(losses)), used)
        assert (los[:, unused] == np.inf).all()
        assert (his[:, unused] == -np.inf).all()
        assert (losses[unused] == -np.inf).all()
        assert (losses[used] >= 0.0).all()
