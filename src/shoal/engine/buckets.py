"""What SABRE and BUREL share: sensitive values in buckets, and groups that take rows of each.

Which values share a bucket and how many rows a group takes follows from the promise; which rows it
takes follows from where they lie. Both are told apart from the windows and tables they work on.

The steps are kernels and what joins them isn't: it runs once for a window, and one kernel for all
would be compiled for minutes.
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

#: Look at all rows.
EVERYWHERE = 0
#: How much of t buckets may spend; what they leave lets groups be small, and not quite fair.
SHARES = (1.0, 0.9, 0.8, 0.65, 0.5)


def sabre_parts(sides: Sides, limits: Limits, rows: RowArrays, random: Ints, look: int) -> Parts:
    """Parts for t-closeness: of the rows near along the curve, so many times what is taken."""
    rule, bucket, sizes = closeness_rule(limits, rows)
    return _filled(sides, rows, rule, bucket, sizes, random, look)


def burel_parts(sides: Sides, limits: Limits, rows: RowArrays, random: Ints, look: int) -> Parts:
    """Parts for beta-likeness, in the same way."""
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
    shelves = bucket_order(bucket, len(rule.buckets.sizes), hilbert(sides, middle))
    if look == EVERYWHERE:
        order, starts = by_distance(shelves, sizes, middle, random)
    else:
        order, starts = along_curve(shelves, sizes, middle, look, random)
    return parts_of(sides, rows, order, starts)


@kernel
def _bucket_of(limits: Limits, rows: RowArrays, j: int, buckets: Buckets) -> Ints:
    """The bucket of each row."""
    bucket = np.zeros(len(rows.subjects), np.int64)
    for i in range(len(bucket)):
        bucket[i] = buckets.of_value[index_of(limits.window, j, rows.sensitive[i, j])]
    return bucket


def _no_rule(limits: Limits, rows: RowArrays) -> tuple[SizeRule, Ints, Ints]:
    """Nothing is asked of sensitive values: all rows are in one bucket."""
    n, none = len(rows.subjects), np.empty(0, np.int64)
    buckets = one_bucket(np.array([n], np.int64))
    trees = limits.measures.trees
    rule = SizeRule(buckets, np.ones(1), np.inf, 0.0, int(needed(limits)), trees, none, -1)
    return rule, np.zeros(n, np.int64), group_sizes(rule)


def closeness_rule(limits: Limits, rows: RowArrays) -> tuple[SizeRule, Ints, Ints]:
    """What a group must obey to be close to the window, the bucket of each row, and the sizes.

    The first attribute that must be close rules; the others are seen to when parts are mended
    (thesis, §3.6). Rows that differ from their window have used up a part of t (§6.3). Fewer
    buckets leave more choice of rows, but where they spend nearly all of t, hardly any group may be
    small: so the fewest are taken that allow half as many groups as others would.
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
            # Buckets are cut one after another: as many are the same ones.
            continue
        most = np.ones(len(buckets.sizes))
        rule = SizeRule(buckets, most, t, spent, fewest, measures.trees, values, by)
        found.append((rule, group_sizes(rule)))
    enough = max(len(sizes) for _, sizes in found) / 2
    rule, sizes = next((rule, sizes) for rule, sizes in found if len(sizes) >= enough)
    return rule, _bucket_of(limits, rows, j, rule.buckets), sizes


@kernel
def _first_seen(limits: Limits, rows: RowArrays, j: int) -> Ints:
    """The first row that has each value of the window, if any has."""
    seen = np.full(limits.window.n[j], -1, np.int64)
    for i in range(len(rows.sensitive) - 1, -1, -1):
        seen[index_of(limits.window, j, rows.sensitive[i, j])] = i
    return seen


@kernel
def _largest_shares(limits: Limits, j: int) -> Floats:
    """The largest share that each value of the window may have in a group."""
    measures, window = limits.measures, limits.window
    most = np.full(window.n[j], np.inf)
    for i in range(len(measures.asked)):
        asked = measures.asked[i]
        if asked["attribute"] != j or asked["kind"] < BASIC or asked["kind"] == DISCLOSURE:
            continue
        for v in range(len(most)):
            share = most_of(
                asked["bound"], asked["kind"] != BASIC, window.counts[j, v], window.n_rows[0]
            )
            most[v] = min(most[v], share)
    return most


def likeness_rule(limits: Limits, rows: RowArrays) -> tuple[SizeRule, Ints, Ints]:
    """What a group must obey to be like the window, the bucket of each row, and the sizes.

    The attribute of the first likeness that is asked rules; what is asked of nodes, of ranges and
    of other attributes is seen to when parts are mended (thesis, §4.3.4).
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
