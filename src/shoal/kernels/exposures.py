"""Who has exposed what in the latest window: values as nodes of ladders, subjects as their entries.

A node is a rung: a value (a leaf), or a more general label above it. An entry says that a subject
stands behind a node: it has exposed the leaf, or a finer value that can't be published (see
`climb`). All entries of leaves are in one list by their latest exposure, the oldest first, so that
whatever leaves the window is found at once, and a value that nobody exposes again is forgotten too.
Both tables are hashed with chains; what is freed is used again. An exposure, a look-up and an entry
that is forgotten take constant time.

Reference: N. Jha et al., Performance Evaluation 159 (2023), Algorithm 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal._jit import kernel
from shoal.kernels.arrays import Records, power_of_two
from shoal.kernels.counter import home

__all__ = [
    "LEAST",
    "NONE",
    "Exposures",
    "add_entry",
    "drop_entry",
    "drop_node",
    "empty",
    "find_entry",
    "find_node",
    "moved",
    "new_node",
    "touch",
]

#: What points nowhere.
NONE = -1
#: Tables have room for at least so many.
LEAST = 64

ENTRY = np.dtype(
    [
        ("subject", "i8"),
        # When a leaf was exposed last; 0 above the leaves.
        ("time", "f8"),
        ("node", "i4"),
        # Of how many children the entry comes; 1 for a leaf.
        ("n_children", "i4"),
        # Neighbours by time, among leaves; neighbours in the node; the next of the hash chain.
        ("older", "i4"),
        ("newer", "i4"),
        ("before", "i4"),
        ("after", "i4"),
        ("chain", "i4"),
    ]
)
NODE = np.dtype(
    [
        ("key", "i8"),
        ("n_subjects", "i4"),
        ("first", "i4"),
        ("parent", "i4"),
        ("level", "i4"),
        # How many nodes there are right below; a node that has none and no entry goes.
        ("n_below", "i4"),
        ("chain", "i4"),
    ]
)
MARKS = np.dtype(
    [
        # How many entries and nodes are in use, of them the entries of leaves; how many there have
        # ever been, and the first free one before that.
        ("n_entries", "i8"),
        ("n_leaves", "i8"),
        ("n_nodes", "i8"),
        ("top_entry", "i8"),
        ("top_node", "i8"),
        ("free_entry", "i8"),
        ("free_node", "i8"),
        ("oldest", "i8"),
        ("newest", "i8"),
    ]
)


class Exposures(NamedTuple):
    """The tables, the heads of their hash chains, and where they stand."""

    entries: Records
    nodes: Records
    entry_heads: NDArray[np.int32]
    node_heads: NDArray[np.int32]
    marks: Records


def empty(n_entries: int = LEAST, n_nodes: int = LEAST) -> Exposures:
    """Nobody has exposed anything; there is room for so many entries and nodes."""
    marks = np.zeros(1, MARKS)
    for name in ("free_entry", "free_node", "oldest", "newest"):
        marks[name] = NONE
    return Exposures(
        np.zeros(n_entries, ENTRY),
        np.zeros(n_nodes, NODE),
        np.full(power_of_two(n_entries), NONE, np.int32),
        np.full(power_of_two(n_nodes), NONE, np.int32),
        marks,
    )


def moved(table: Exposures, n_entries: int, n_nodes: int) -> Exposures:
    """The same exposures in tables with room for so many: larger ones, or smaller ones."""
    other = empty(n_entries, n_nodes)
    _move(table, other)
    return other


# -- nodes ----------------------------------------------------------------------------------------


@kernel
def find_node(table: Exposures, key: int) -> int:
    """The node with a key, or `NONE`."""
    at = table.node_heads[home(0, key, len(table.node_heads))]
    while at != NONE and table.nodes["key"][at] != key:
        at = table.nodes["chain"][at]
    return at


@kernel
def new_node(table: Exposures, key: int, level: int, parent: int) -> int:
    """Make a node; there must be room."""
    nodes, marks = table.nodes, table.marks
    at = marks["free_node"][0]
    if at == NONE:
        at = marks["top_node"][0]
        marks["top_node"][0] += 1
    else:
        marks["free_node"][0] = nodes["chain"][at]
    marks["n_nodes"][0] += 1
    head = home(0, key, len(table.node_heads))
    nodes["key"][at] = key
    nodes["n_subjects"][at] = 0
    nodes["first"][at] = NONE
    nodes["parent"][at] = parent
    nodes["level"][at] = level
    nodes["n_below"][at] = 0
    nodes["chain"][at] = table.node_heads[head]
    table.node_heads[head] = at
    if parent != NONE:
        nodes["n_below"][parent] += 1
    return at


@kernel
def drop_node(table: Exposures, node: int) -> None:
    """Forget a node behind which nobody stands and that has none below; then those above it."""
    nodes, marks = table.nodes, table.marks
    while node != NONE and nodes["n_subjects"][node] == 0 and nodes["n_below"][node] == 0:
        head = home(0, nodes["key"][node], len(table.node_heads))
        at, before = table.node_heads[head], NONE
        while at != node:
            at, before = nodes["chain"][at], at
        if before == NONE:
            table.node_heads[head] = nodes["chain"][node]
        else:
            nodes["chain"][before] = nodes["chain"][node]
        parent = nodes["parent"][node]
        nodes["chain"][node] = marks["free_node"][0]
        # What is free has a level that no node has.
        nodes["level"][node] = NONE
        marks["free_node"][0] = node
        marks["n_nodes"][0] -= 1
        if parent != NONE:
            nodes["n_below"][parent] -= 1
        node = parent


# -- entries --------------------------------------------------------------------------------------


@kernel
def find_entry(table: Exposures, node: int, subject: int) -> int:
    """The entry of a subject behind a node, or `NONE`."""
    entries = table.entries
    at = table.entry_heads[home(int(node), subject, len(table.entry_heads))]
    while at != NONE and (entries["subject"][at] != subject or entries["node"][at] != node):
        at = entries["chain"][at]
    return at


@kernel
def add_entry(table: Exposures, node: int, subject: int) -> int:
    """Put a subject behind a node, first in its list; there must be room."""
    entries, nodes, marks = table.entries, table.nodes, table.marks
    at = marks["free_entry"][0]
    if at == NONE:
        at = marks["top_entry"][0]
        marks["top_entry"][0] += 1
    else:
        marks["free_entry"][0] = entries["chain"][at]
    marks["n_entries"][0] += 1
    head = home(int(node), subject, len(table.entry_heads))
    first = nodes["first"][node]
    entries["subject"][at] = subject
    entries["time"][at] = 0.0
    entries["node"][at] = node
    entries["n_children"][at] = 1
    entries["older"][at] = NONE
    entries["newer"][at] = NONE
    entries["before"][at] = NONE
    entries["after"][at] = first
    entries["chain"][at] = table.entry_heads[head]
    table.entry_heads[head] = at
    if first != NONE:
        entries["before"][first] = at
    nodes["first"][node] = at
    nodes["n_subjects"][node] += 1
    return at


@kernel
def drop_entry(table: Exposures, at: int) -> None:
    """Take a subject away from a node. The node stays, even with nobody behind it."""
    entries, nodes, marks = table.entries, table.nodes, table.marks
    node = entries["node"][at]
    head = home(int(node), entries["subject"][at], len(table.entry_heads))
    other, previous = table.entry_heads[head], NONE
    while other != at:
        other, previous = entries["chain"][other], other
    if previous == NONE:
        table.entry_heads[head] = entries["chain"][at]
    else:
        entries["chain"][previous] = entries["chain"][at]
    before, after = entries["before"][at], entries["after"][at]
    if before == NONE:
        nodes["first"][node] = after
    else:
        entries["after"][before] = after
    if after != NONE:
        entries["before"][after] = before
    nodes["n_subjects"][node] -= 1
    entries["chain"][at] = marks["free_entry"][0]
    marks["free_entry"][0] = at
    marks["n_entries"][0] -= 1


@kernel
def touch(table: Exposures, at: int, time: float, is_new: bool) -> None:
    """Note that the entry of a leaf is the latest; a new one isn't in the list by time yet."""
    entries, marks = table.entries, table.marks
    entries["time"][at] = time
    if marks["newest"][0] == at:
        return
    if is_new:
        marks["n_leaves"][0] += 1
    else:
        unlink(table, at)
    entries["older"][at] = marks["newest"][0]
    entries["newer"][at] = NONE
    if marks["newest"][0] == NONE:
        marks["oldest"][0] = at
    else:
        entries["newer"][marks["newest"][0]] = at
    marks["newest"][0] = at


@kernel
def unlink(table: Exposures, at: int) -> None:
    """Take the entry of a leaf out of the list by time."""
    entries, marks = table.entries, table.marks
    older, newer = entries["older"][at], entries["newer"][at]
    if older == NONE:
        marks["oldest"][0] = newer
    else:
        entries["newer"][older] = newer
    if newer == NONE:
        marks["newest"][0] = older
    else:
        entries["older"][newer] = older


# -- moving ---------------------------------------------------------------------------------------


@kernel
def _move(table: Exposures, other: Exposures) -> None:
    entries, nodes = table.entries, table.nodes
    places = np.full(len(nodes), NONE, np.int32)
    # From coarse to fine, for a node is made with its parent.
    level = 0
    for node in range(table.marks["top_node"][0]):
        level = max(level, nodes["level"][node])
    while level >= 0:
        for node in range(table.marks["top_node"][0]):
            if nodes["level"][node] == level:
                parent = nodes["parent"][node]
                above = NONE if parent == NONE else places[parent]
                places[node] = new_node(other, nodes["key"][node], level, above)
                at = nodes["first"][node] if level > 0 else NONE
                while at != NONE:
                    new = add_entry(other, places[node], entries["subject"][at])
                    other.entries["n_children"][new] = entries["n_children"][at]
                    at = entries["after"][at]
        level -= 1
    at = table.marks["oldest"][0]
    while at != NONE:
        new = add_entry(other, places[entries["node"][at]], entries["subject"][at])
        touch(other, new, entries["time"][at], True)
        at = entries["newer"][at]
