"""How far a value must climb to be published: z subjects have to stand behind its rung.

Behind a leaf stand those who exposed it. Behind a rung above stand those who exposed something
below it that can't be published now: only so does the rung stand for z subjects. (If all who
exposed anything below counted, a rung that is popular because of one value would be published for
another, and betray that it is a rare one.) So a subject moves up when a rung sinks below z, and
down again when it reaches z. Such a move concerns fewer than z subjects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal._jit import kernel
from shoal.kernels.arrays import Ints
from shoal.kernels.exposures import (
    NONE,
    Exposures,
    add_entry,
    drop_entry,
    drop_node,
    find_entry,
    find_node,
    new_node,
    touch,
    unlink,
)

__all__ = ["Rule", "climb", "expose", "forget", "rebuild"]


class Rule(NamedTuple):
    """How subjects are counted: against which z, and whether all below a rung count for it."""

    z: int
    plain: bool


@kernel
def climb(table: Exposures, rule: Rule, node: int) -> int:
    """The finest rung that may be published, from a node upwards; `NONE` if none may."""
    while node != NONE and table.nodes["n_subjects"][node] < rule.z:
        node = table.nodes["parent"][node]
    return node


@kernel
def expose(
    table: Exposures, rule: Rule, keys: Ints, subject: int, time: float, changed: Ints
) -> int:
    """A subject exposes a value now, given by the keys of its rungs from fine to coarse.

    Give its leaf. ``changed`` is room for as many subjects as `n_changed` says.
    """
    leaf = find_node(table, keys[0])
    if leaf == NONE:
        for level in range(len(keys) - 1, -1, -1):
            parent, leaf = leaf, find_node(table, keys[level])
            if leaf == NONE:
                leaf = new_node(table, keys[level], level, parent)
    at = find_entry(table, leaf, subject)
    if at != NONE:
        touch(table, at, time, False)
        return leaf
    touch(table, add_entry(table, leaf, subject), time, True)
    changed[0] = subject
    _pass_on(table, rule, leaf, True, changed)
    return leaf


@kernel
def forget(table: Exposures, rule: Rule, changed: Ints) -> None:
    """Forget the oldest exposure, which there must be."""
    at = table.marks["oldest"][0]
    leaf = table.entries["node"][at]
    changed[0] = table.entries["subject"][at]
    unlink(table, at)
    table.marks["n_leaves"][0] -= 1
    drop_entry(table, at)
    _pass_on(table, rule, leaf, False, changed)
    drop_node(table, leaf)


@kernel
def _pass_on(table: Exposures, rule: Rule, node: int, is_more: bool, changed: Ints) -> None:
    """Those ``changed`` came to, or went from, behind a node: do what follows for those above it.

    What follows concerns the same subjects, in the same way; or, where the node reached z or sank
    below it, all who stand behind it, in the opposite way.
    """
    nodes, entries = table.nodes, table.entries
    n = 1
    while nodes["parent"][node] != NONE:
        now = nodes["n_subjects"][node]
        before = now - n if is_more else now + n
        if not rule.plain:
            if before >= rule.z and now >= rule.z:
                return
            if before >= rule.z or now >= rule.z:
                # Who has just come is first in the list, and hasn't been counted above yet.
                at = nodes["first"][node]
                for _ in range(n if is_more else 0):
                    at = entries["after"][at]
                n = 0
                while at != NONE:
                    changed[n] = entries["subject"][at]
                    n += 1
                    at = entries["after"][at]
                is_more = not is_more
        node = nodes["parent"][node]
        n = _apply(table, node, is_more, changed, n)
        if n == 0:
            return


@kernel
def _apply(table: Exposures, node: int, is_more: bool, changed: Ints, n: int) -> int:
    """Let so many subjects come or go, each for one child; keep those that are new or gone."""
    entries = table.entries
    kept = 0
    for i in range(n):
        subject = changed[i]
        at = find_entry(table, node, subject)
        if is_more and at == NONE:
            add_entry(table, node, subject)
        elif is_more:
            entries["n_children"][at] += 1
            continue
        elif entries["n_children"][at] > 1:
            entries["n_children"][at] -= 1
            continue
        else:
            drop_entry(table, at)
        changed[kept] = subject
        kept += 1
    return kept


@kernel
def rebuild(table: Exposures, rule: Rule) -> None:
    """Count anew who stands behind the rungs above the leaves, as another z has it."""
    nodes, entries = table.nodes, table.entries
    n_levels = 0
    for node in range(table.marks["top_node"][0]):
        n_levels = max(n_levels, nodes["level"][node] + 1)
        if nodes["level"][node] > 0:
            while nodes["first"][node] != NONE:
                drop_entry(table, nodes["first"][node])
    one = np.empty(1, np.int64)
    for level in range(n_levels - 1):
        for node in range(table.marks["top_node"][0]):
            parent = nodes["parent"][node]
            if nodes["level"][node] != level or parent == NONE:
                continue
            if not rule.plain and nodes["n_subjects"][node] >= rule.z:
                continue
            at = nodes["first"][node]
            while at != NONE:
                one[0] = entries["subject"][at]
                _apply(table, parent, True, one, 1)
                at = entries["after"][at]
