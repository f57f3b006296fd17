"""The common part of SABRE and BUREL: buckets of sensitive values, and groups filled from them.

Which values share a bucket, and how many rows of it a group takes, follows from the promise; which
rows it takes follows from where they lie. Both work on any set of rows, a window or a whole table.

The steps are kernels, the functions that join them are plain Python: they run once for a window,
and one kernel for everything would take minutes to compile.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import Sides
from shoal.engine.kernels.buckets import Buckets, by_order, by_share, by_tree, one_bucket
from shoal.engine.kernels.fill_groups import along_curve, bucket_order, by_distance
from shoal.engine.kernels.group_sizes import SizeRule, group_sizes
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.hilbert import centres, hilbert
from shoal.engine.kernels.likeness import most_of
from shoal.engine.kernels.measured import BASIC, DISCLOSURE, ORDERED, TREE, emd_of
from shoal.engine.kernels.parts import Parts, parts_of
from shoal.engine.kernels.predicate import Limits, needed
from shoal.engine.kernels.window_counts import counted, index_of

__all__ = ["EVERYWHERE", "burel_parts", "sabre_parts"]

#: Consider all rows as candidates.
EVERYWHERE = 0
#: The shares of t that buckets may use up. The rest allows groups that are small and not quite
#: proportional.
SHARES = (1.0, 0.9, 0.8, 0.65, 0.5)


def sabre_parts(sides: Sides, limits: Limits, rows: RowArrays, random: Ints, look: int) -> Parts:
    """Cut rows into parts for t-closeness, considering ``look`` candidates for each row taken."""
    rule, bucket, sizes = closeness_rule(limits, rows)
    return _filled(sides, rows, rule, bucket, sizes, random, look)


def burel_parts(sides: Sides, limits: Limits, rows: RowArrays, random: Ints, look: int) -> Parts:
    """Cut rows into parts for beta-likeness, in the same way."""
    rule, bucket, sizes = likeness_rule(limits, rows)
    return _filled(sides, rows, rule, bucket, sizes, random, look)


def _filled(
    sides: Sides,
    rows: RowArrays,
    rule: SizeRule,
    bucket: Ints,
    sizes: Ints,
    random: Ints,
    look: int,
) -> Parts:
    """Fill groups with rows that are near each other."""
    middle = centres(sides, rows.lo, rows.hi)
    ordered = bucket_order(bucket, len(rule.buckets.sizes), hilbert(sides, middle))
    if look == EVERYWHERE:
        order, starts = by_distance(ordered, sizes, middle, random)
    else:
        order, starts = along_curve(ordered, sizes, middle, look, random)
    return parts_of(sides, rows, order, starts)


@kernel
def _bucket_of(limits: Limits, rows: RowArrays, j: int, buckets: Buckets) -> Ints:
    """Return the bucket of each row."""
    bucket = np.zeros(len(rows.subjects), np.int64)
    for i in range(len(bucket)):
        bucket[i] = buckets.of_value[index_of(limits.window, j, rows.sensitive[i, j])]
    return bucket


def _no_rule(limits: Limits, rows: RowArrays) -> tuple[SizeRule, Ints, Ints]:
    """Return one bucket of all rows: no criterion concerns sensitive values."""
    n, none = len(rows.subjects), np.empty(0, np.int64)
    buckets = one_bucket(np.array([n], np.int64))
    trees = limits.measures.trees
    rule = SizeRule(buckets, np.ones(1), np.inf, 0.0, int(needed(limits)), trees, none, -1)
    return rule, np.zeros(n, np.int64), group_sizes(rule)


def closeness_rule(limits: Limits, rows: RowArrays) -> tuple[SizeRule, Ints, Ints]:
    """Return the rule for t-closeness, the bucket of each row, and the sizes of groups.

    The first attribute that must be close decides the buckets; the others are enforced when parts
    are repaired (thesis, §3.6). Rows that differ from their window have used up a part of t (§6.3).
    Fewer buckets leave more choice of rows, but where they use up nearly all of t, hardly any group
    may be small: so the fewest buckets are taken that allow half of the most groups.
    """
    measures, window = limits.measures, limits.window
    asked = measures.asked
    close = np.flatnonzero(np.isin(asked["kind"], (ORDERED, TREE)))
    if len(close) == 0:
        return _no_rule(limits, rows)
    first = int(close[0])
    j, kind = int(asked["attribute"][first]), int(asked["kind"][first])
    t = float(asked["bound"][close][asked["attribute"][close] == j].min())
    spent = float(emd_of(measures, window, first, rows.sensitive))
    counts, values = counted(window, j, rows.sensitive), window.values[j, : window.n[j]].copy()
    by, fewest = j if kind == TREE else -1, int(needed(limits))
    found: list[tuple[SizeRule, Ints]] = []
    for share in SHARES:
        if kind == TREE:
            buckets = by_tree(measures.trees, j, values, counts, share * t, spent)
        else:
            buckets = by_order(counts, share * t, spent)
        if found and len(buckets.sizes) == len(found[-1][0].buckets.sizes):
            # Buckets are cut in a fixed order: the same number means the same buckets.
            continue
        most = np.ones(len(buckets.sizes))
        rule = SizeRule(buckets, most, t, spent, fewest, measures.trees, values, by)
        found.append((rule, group_sizes(rule)))
    enough = max(len(sizes) for _, sizes in found) / 2
    rule, sizes = next((rule, sizes) for rule, sizes in found if len(sizes) >= enough)
    return rule, _bucket_of(limits, rows, j, rule.buckets), sizes


@kernel
def _first_seen(limits: Limits, rows: RowArrays, j: int) -> Ints:
    """Return the first row that has each value of the window, or -1."""
    seen = np.full(limits.window.n[j], -1, np.int64)
    for i in range(len(rows.sensitive) - 1, -1, -1):
        seen[index_of(limits.window, j, rows.sensitive[i, j])] = i
    return seen


@kernel
def _largest_shares(limits: Limits, j: int) -> Floats:
    """Return the largest share that each value of the window may have in a group."""
    measures, window = limits.measures, limits.window
    most = np.full(window.n[j], np.inf)
    for i in range(len(measures.asked)):
        asked = measures.asked[i]
        if asked["attribute"] != j or asked["kind"] < BASIC or asked["kind"] >= DISCLOSURE:
            continue
        for v in range(len(most)):
            share = most_of(
                asked["bound"], asked["kind"] != BASIC, window.counts[j, v], window.n_rows[0]
            )
            most[v] = min(most[v], share)
    return most


def likeness_rule(limits: Limits, rows: RowArrays) -> tuple[SizeRule, Ints, Ints]:
    """Return the rule for beta-likeness, the bucket of each row, and the sizes of groups.

    The attribute of the first likeness criterion decides the buckets; criteria on nodes, on ranges
    and on other attributes are enforced when parts are repaired (thesis, §4.3.4).
    """
    measures, window = limits.measures, limits.window
    kinds = measures.asked["kind"]
    alike = np.flatnonzero((kinds >= BASIC) & (kinds < DISCLOSURE))
    if len(alike) == 0:
        return _no_rule(limits, rows)
    j = int(measures.asked["attribute"][alike[0]])
    values = window.values[j, : window.n[j]].copy()
    counts, seen = counted(window, j, rows.sensitive), _first_seen(limits, rows, j)
    buckets, most = by_share(counts, _largest_shares(limits, j), seen)
    rule = SizeRule(buckets, most, np.inf, 0.0, int(needed(limits)), measures.trees, values, -1)
    return rule, _bucket_of(limits, rows, j, buckets), group_sizes(rule)
