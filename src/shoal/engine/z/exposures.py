"""The exposures of the latest window: values as nodes of ladders, subjects as their entries.

A node is a level: a value (a leaf), or a more general label above it. An entry says that a subject
counts for a node: it has exposed the leaf, or a finer value that can't be published (see
`climbing`). A ring has all exposures of the window in their order; an entry refers to the latest
of its exposures, so that exposures that leave the window are found at once, and values that nobody
exposes any more are removed. Both tables are hash tables with chains, and freed entries are reused.
Adding, finding and removing an exposure take constant time.

Reference: N. Jha et al., Performance Evaluation 159 (2023), Algorithm 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints, power_of_two
from shoal.engine.kernels.counter import home
from shoal.engine.kernels.ring import wrap
from shoal.engine.z.window import LEAST

__all__ = [
    "AFTER",
    "FIRST",
    "KEY",
    "LATEST",
    "LEVEL",
    "NODE",
    "NONE",
    "N_CHILDREN",
    "N_ENTRIES",
    "N_LEAVES",
    "N_NODES",
    "N_SUBJECTS",
    "OLDEST",
    "PARENT",
    "SHOWN",
    "SUBJECT",
    "TOP_ENTRY",
    "TOP_NODE",
    "UPCOMING",
    "Exposures",
    "add_entry",
    "drop_entry",
    "drop_node",
    "empty",
    "find_entry",
    "find_node",
    "moved",
    "new_node",
    "note",
]

#: The null pointer.
NONE = -1

#: The columns of an entry: the subject; the position in the ring of its latest exposure (NONE above
#: the leaves); its node (NONE: the entry is free); for how many children it counts (1 for a leaf);
#: its neighbours in the node, where that has a parent. The last column says of a leaf that it was
#: published as it is for the subject.
SUBJECT, LATEST, NODE, N_CHILDREN, BEFORE, AFTER = range(6)
SHOWN = 7
#: The columns of a node: its key; the number of subjects behind it; the first of them; its parent;
#: its level (NONE: the node is free); the number of its children.
KEY, N_SUBJECTS, FIRST, PARENT, LEVEL, N_BELOW = range(6)
#: In both: the next one in the hash chain, or in the list of free ones. A line has eight numbers,
#: the size of a cache line.
CHAIN, WIDTH = 6, 8
#: The marks: the numbers of entries, of entries of leaves and of nodes in use; how many have ever
#: been used, and the first free one below that; the positions in the ring of the oldest exposure
#: and of the next one.
N_ENTRIES, N_LEAVES, N_NODES, TOP_ENTRY, TOP_NODE, FREE_ENTRY, FREE_NODE = range(7)
OLDEST, UPCOMING = 7, 8


class Exposures(NamedTuple):
    """The tables, the heads of their hash chains, the ring with its times, and the marks."""

    entries: Ints
    nodes: Ints
    entry_heads: Ints
    node_heads: Ints
    ring: Ints
    times: Floats
    marks: Ints


def empty(n_entries: int = LEAST, n_nodes: int = LEAST, n_exposures: int = LEAST) -> Exposures:
    """Return empty tables with room for these numbers of each."""
    marks = np.zeros(9, np.int64)
    marks[[FREE_ENTRY, FREE_NODE]] = NONE
    return Exposures(
        np.zeros((n_entries, WIDTH), np.int64),
        np.zeros((n_nodes, WIDTH), np.int64),
        np.full(power_of_two(2 * n_entries), NONE, np.int64),
        np.full(power_of_two(2 * n_nodes), NONE, np.int64),
        np.zeros(power_of_two(n_exposures), np.int64),
        np.zeros(power_of_two(n_exposures)),
        marks,
    )


def moved(table: Exposures, n_entries: int, n_nodes: int, n_exposures: int) -> Exposures:
    """Return the same exposures in tables with other room, larger or smaller."""
    other = empty(n_entries, n_nodes, n_exposures)
    _move(table, other)
    return other


# -- nodes ----------------------------------------------------------------------------------------


@kernel
def find_node(table: Exposures, key: int) -> int:
    """Return the node with a key, or `NONE`."""
    at = table.node_heads[home(0, key, len(table.node_heads))]
    while at != NONE and table.nodes[at, KEY] != key:
        at = table.nodes[at, CHAIN]
    return at


@kernel
def new_node(table: Exposures, key: int, level: int, parent: int) -> int:
    """Add a node; there must be room."""
    nodes, marks = table.nodes, table.marks
    at = marks[FREE_NODE]
    if at == NONE:
        at = marks[TOP_NODE]
        marks[TOP_NODE] += 1
    else:
        marks[FREE_NODE] = nodes[at, CHAIN]
    marks[N_NODES] += 1
    head = home(0, key, len(table.node_heads))
    nodes[at, KEY] = key
    nodes[at, N_SUBJECTS] = 0
    nodes[at, FIRST] = NONE
    nodes[at, PARENT] = parent
    nodes[at, LEVEL] = level
    nodes[at, N_BELOW] = 0
    nodes[at, CHAIN] = table.node_heads[head]
    table.node_heads[head] = at
    if parent != NONE:
        nodes[parent, N_BELOW] += 1
    return at


@kernel
def drop_node(table: Exposures, node: int) -> None:
    """Remove a node without subjects and children, and then its ancestors likewise."""
    nodes, marks = table.nodes, table.marks
    while node != NONE and nodes[node, N_SUBJECTS] == 0 and nodes[node, N_BELOW] == 0:
        head = home(0, nodes[node, KEY], len(table.node_heads))
        at, before = table.node_heads[head], NONE
        while at != node:
            at, before = nodes[at, CHAIN], at
        if before == NONE:
            table.node_heads[head] = nodes[node, CHAIN]
        else:
            nodes[before, CHAIN] = nodes[node, CHAIN]
        parent = nodes[node, PARENT]
        nodes[node, CHAIN] = marks[FREE_NODE]
        # A free node has a level that no used node has.
        nodes[node, LEVEL] = NONE
        marks[FREE_NODE] = node
        marks[N_NODES] -= 1
        if parent != NONE:
            nodes[parent, N_BELOW] -= 1
        node = parent


# -- entries --------------------------------------------------------------------------------------


@kernel
def find_entry(table: Exposures, node: int, subject: int) -> int:
    """Return the entry of a subject behind a node, or `NONE`."""
    entries = table.entries
    at = table.entry_heads[home(node, subject, len(table.entry_heads))]
    while at != NONE and (entries[at, SUBJECT] != subject or entries[at, NODE] != node):
        at = entries[at, CHAIN]
    return at


@kernel
def add_entry(table: Exposures, node: int, subject: int) -> int:
    """Add a subject to a node, first in its list; there must be room."""
    entries, nodes, marks = table.entries, table.nodes, table.marks
    at = marks[FREE_ENTRY]
    if at == NONE:
        at = marks[TOP_ENTRY]
        marks[TOP_ENTRY] += 1
    else:
        marks[FREE_ENTRY] = entries[at, CHAIN]
    marks[N_ENTRIES] += 1
    head = home(node, subject, len(table.entry_heads))
    entries[at, SUBJECT] = subject
    entries[at, LATEST] = NONE
    entries[at, NODE] = node
    entries[at, N_CHILDREN] = 1
    entries[at, SHOWN] = 0
    entries[at, CHAIN] = table.entry_heads[head]
    table.entry_heads[head] = at
    nodes[node, N_SUBJECTS] += 1
    # Only the lists of nodes with a parent are ever traversed.
    if nodes[node, PARENT] != NONE:
        first = nodes[node, FIRST]
        entries[at, BEFORE] = NONE
        entries[at, AFTER] = first
        if first != NONE:
            entries[first, BEFORE] = at
        nodes[node, FIRST] = at
    return at


@kernel
def drop_entry(table: Exposures, at: int) -> None:
    """Remove a subject from a node. The node stays, even without subjects."""
    entries, nodes, marks = table.entries, table.nodes, table.marks
    node = entries[at, NODE]
    head = home(node, entries[at, SUBJECT], len(table.entry_heads))
    other = table.entry_heads[head]
    if other == at:
        table.entry_heads[head] = entries[at, CHAIN]
    else:
        while entries[other, CHAIN] != at:
            other = entries[other, CHAIN]
        entries[other, CHAIN] = entries[at, CHAIN]
    nodes[node, N_SUBJECTS] -= 1
    if nodes[node, PARENT] != NONE:
        before, after = entries[at, BEFORE], entries[at, AFTER]
        if before == NONE:
            nodes[node, FIRST] = after
        else:
            entries[before, AFTER] = after
        if after != NONE:
            entries[after, BEFORE] = before
    entries[at, NODE] = NONE
    entries[at, LATEST] = NONE
    entries[at, CHAIN] = marks[FREE_ENTRY]
    marks[FREE_ENTRY] = at
    marks[N_ENTRIES] -= 1


@kernel
def note(table: Exposures, at: int, time: float) -> None:
    """Add an exposure of now to the ring, for the entry of a leaf; there must be room."""
    position = table.marks[UPCOMING]
    table.marks[UPCOMING] = position + 1
    place = wrap(position, len(table.ring))
    table.times[place] = time
    table.ring[place] = at
    table.entries[at, LATEST] = position


# -- moving ---------------------------------------------------------------------------------------


@kernel
def _move(table: Exposures, other: Exposures) -> None:
    entries, nodes, ring, marks = table.entries, table.nodes, table.ring, table.marks
    places = np.full(len(nodes), NONE, np.int64)
    n_levels = 0
    for node in range(marks[TOP_NODE]):
        n_levels = max(n_levels, nodes[node, LEVEL] + 1)
    # From coarse to fine, since a node is created with its parent.
    for level in range(n_levels - 1, -1, -1):
        for node in range(marks[TOP_NODE]):
            if nodes[node, LEVEL] == level:
                parent = nodes[node, PARENT]
                above = NONE if parent == NONE else places[parent]
                places[node] = new_node(other, nodes[node, KEY], level, above)
    other.marks[N_LEAVES] = marks[N_LEAVES]
    others = np.full(len(entries), NONE, np.int64)
    for at in range(marks[TOP_ENTRY]):
        if entries[at, NODE] != NONE:
            new = add_entry(other, places[entries[at, NODE]], entries[at, SUBJECT])
            other.entries[new, N_CHILDREN] = entries[at, N_CHILDREN]
            other.entries[new, SHOWN] = entries[at, SHOWN]
            others[at] = new
    for position in range(marks[OLDEST], marks[UPCOMING]):
        place = wrap(position, len(ring))
        at = ring[place]
        # An exposure that isn't the latest of its entry is obsolete.
        if entries[at, LATEST] == position:
            note(other, others[at], table.times[place])
