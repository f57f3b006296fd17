"""Which level of its ladder a value is published at: the finest with z subjects behind it.

Behind a leaf are the subjects that exposed it. Behind a higher level are the subjects that exposed
a value below it that can't be published, not even if one more subject exposed it, and that wasn't
published: only then could anybody who is published there have exposed any of these values. (If all
subjects below counted, a level that is popular because of one value would be published for another,
and reveal that it is a rare one.) So subjects are added to a level when one below it drops below
z - 1 subjects, and removed when that reaches z - 1. Such a move concerns fewer than z subjects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.ring import wrap
from shoal.engine.z.exposures import (
    AFTER,
    FIRST,
    LATEST,
    LEVEL,
    N_CHILDREN,
    N_LEAVES,
    N_SUBJECTS,
    NODE,
    NONE,
    OLDEST,
    PARENT,
    SHOWN,
    SUBJECT,
    TOP_ENTRY,
    TOP_NODE,
    Exposures,
    add_entry,
    drop_entry,
    drop_node,
    find_entry,
    find_node,
    new_node,
    note,
)

__all__ = ["CountingRule", "climb", "expose", "forget", "level_of", "rebuild", "show"]


class CountingRule(NamedTuple):
    """How subjects are counted: against which z, and if all below a level count (``plain``)."""

    z: int
    plain: bool


@kernel
def climb(table: Exposures, rule: CountingRule, node: int, subject: int) -> int:
    """Return the finest level at which an exposed value would be published, from its leaf upwards.

    `NONE` if there is none. The subject itself counts at every level.
    """
    while node != NONE:
        n = table.nodes[node, N_SUBJECTS]
        if n >= rule.z or (n == rule.z - 1 and find_entry(table, node, subject) == NONE):
            return node
        node = table.nodes[node, PARENT]
    return NONE


@kernel
def level_of(table: Exposures, rule: CountingRule, keys: Ints, subject: int) -> tuple[int, int]:
    """Return the level at which a subject's value is published now, and the subjects behind it.

    The value isn't counted yet: so the subjects behind a level are the same, whichever value below
    it the subject exposes. `NONE` if no level may be published.
    """
    for level in range(len(keys)):
        node = find_node(table, keys[level])
        n = 1
        if node != NONE:
            n = table.nodes[node, N_SUBJECTS] + (find_entry(table, node, subject) == NONE)
        if n >= rule.z:
            return level, n
    return NONE, 0


@kernel
def show(table: Exposures, leaf: int, subject: int) -> None:
    """Note that a value was published as it is: its subject doesn't count at higher levels."""
    table.entries[find_entry(table, leaf, subject), SHOWN] = 1


@kernel
def expose(
    table: Exposures, rule: CountingRule, keys: Ints, subject: int, time: float, changed: Ints
) -> int:
    """Count a value that a subject exposes now, by the keys of its levels from fine to coarse.

    Return its leaf. ``changed`` is scratch space for subjects.
    """
    leaf = find_node(table, keys[0])
    if leaf == NONE:
        for level in range(len(keys) - 1, -1, -1):
            parent, leaf = leaf, find_node(table, keys[level])
            if leaf == NONE:
                leaf = new_node(table, keys[level], level, parent)
    at = find_entry(table, leaf, subject)
    if at != NONE:
        note(table, at, time)
        return leaf
    note(table, add_entry(table, leaf, subject), time)
    table.marks[N_LEAVES] += 1
    if table.nodes[leaf, PARENT] != NONE:
        changed[0] = subject
        _pass_on(table, rule, leaf, True, changed, 1)
    return leaf


@kernel
def forget(table: Exposures, rule: CountingRule, changed: Ints) -> None:
    """Remove the oldest exposure; there must be one."""
    marks, entries = table.marks, table.entries
    position = marks[OLDEST]
    marks[OLDEST] = position + 1
    at = table.ring[wrap(position, len(table.ring))]
    if entries[at, LATEST] != position:
        # The subject has exposed the value again since, or the entry has been reused.
        return
    leaf = entries[at, NODE]
    changed[0] = entries[at, SUBJECT]
    n_above = 0 if entries[at, SHOWN] == 1 and not rule.plain else 1
    drop_entry(table, at)
    marks[N_LEAVES] -= 1
    if table.nodes[leaf, PARENT] != NONE:
        _pass_on(table, rule, leaf, False, changed, n_above)
    if table.nodes[leaf, N_SUBJECTS] == 0:
        drop_node(table, leaf)


@kernel
def _pass_on(
    table: Exposures, rule: CountingRule, node: int, is_more: bool, changed: Ints, n_above: int
) -> None:
    """Propagate to the nodes above that subjects were added to or removed from a node.

    ``changed`` are those of them that count above it. They are added or removed there too; or,
    where the node reached z - 1 or dropped below it, all subjects behind it, in the opposite way.
    """
    nodes, entries = table.nodes, table.entries
    n_changed = 1
    while nodes[node, PARENT] != NONE:
        now = nodes[node, N_SUBJECTS]
        before = now - n_changed if is_more else now + n_changed
        if not rule.plain:
            if before >= rule.z - 1 and now >= rule.z - 1:
                return
            if before >= rule.z - 1 or now >= rule.z - 1:
                # Subjects that were just added are first in the list, and not counted above yet.
                at = nodes[node, FIRST]
                for _ in range(n_changed if is_more else 0):
                    at = entries[at, AFTER]
                n_above = 0
                while at != NONE:
                    if entries[at, SHOWN] == 0:
                        changed[n_above] = entries[at, SUBJECT]
                        n_above += 1
                    at = entries[at, AFTER]
                is_more = not is_more
        node = nodes[node, PARENT]
        n_changed = n_above = _apply(table, node, is_more, changed, n_above)
        if n_changed == 0:
            return


@kernel
def _apply(table: Exposures, node: int, is_more: bool, changed: Ints, n: int) -> int:
    """Add or remove n subjects for one child each; keep in ``changed`` those new or gone."""
    entries = table.entries
    kept = 0
    for i in range(n):
        subject = changed[i]
        at = find_entry(table, node, subject)
        if is_more and at == NONE:
            add_entry(table, node, subject)
        elif is_more:
            entries[at, N_CHILDREN] += 1
            continue
        elif entries[at, N_CHILDREN] > 1:
            entries[at, N_CHILDREN] -= 1
            continue
        else:
            drop_entry(table, at)
        changed[kept] = subject
        kept += 1
    return kept


@kernel
def rebuild(table: Exposures, rule: CountingRule) -> None:
    """Recount the subjects behind the levels above the leaves, for another z."""
    nodes, entries = table.nodes, table.entries
    n_levels = 0
    for node in range(table.marks[TOP_NODE]):
        n_levels = max(n_levels, nodes[node, LEVEL] + 1)
    for at in range(table.marks[TOP_ENTRY]):
        if entries[at, NODE] != NONE and nodes[entries[at, NODE], LEVEL] > 0:
            drop_entry(table, at)
    one = np.empty(1, np.int64)
    for level in range(n_levels - 1):
        # Entries that are added at the next level may be met in this loop, and are skipped.
        for at in range(len(entries)):
            node = entries[at, NODE]
            if at >= table.marks[TOP_ENTRY] or node == NONE or nodes[node, LEVEL] != level:
                continue
            if nodes[node, PARENT] == NONE or nodes[node, N_SUBJECTS] >= rule.z - 1:
                continue
            if entries[at, SHOWN] == 1:
                continue
            one[0] = entries[at, SUBJECT]
            _apply(table, nodes[node, PARENT], True, one, 1)
