"""Grouping: a group has one box and one moment, and a reuse joins a group that was there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.evidence import Evidence
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.trace import GROUP, REUSE, Trace

__all__ = ["check"]


def check(evidence: Evidence) -> Verdict:
    """Compare the groups of the trace with the boxes in the output.

    A group is of one shard. Each shard knows its own rows only: a group of two shards was released
    as two, and counting its people together would hide that neither had enough of them.
    """
    trace = evidence.trace
    if trace is None:
        doubt = "which rows were released together can't be told without a trace"
        return decide("grouping", [], kept="", doubt=doubt)
    released = trace.has(GROUP, REUSE)
    numbered = trace.group >= 0
    flaws = []
    if n := int(np.count_nonzero(released & ~numbered)):
        flaws.append(f"{n:,} published rows have no group")
    if n := int(np.count_nonzero(~released & numbered)):
        flaws.append(f"{n:,} rows that weren't published have a group")

    base = np.flatnonzero(trace.has(GROUP) & numbered)
    number, position = np.unique(trace.group[base], return_inverse=True)
    moment = _agreed(trace.published[base], position, len(number))
    seq = np.where((trace.seq >= 0) & (trace.seq < evidence.n_rows), trace.seq, -1)
    # The last element is for rows that aren't in the output; a missing label matches every other.
    labels = [np.append(np.where(s.gap, -1, s.labels), -1)[seq] for s in evidence.sides]
    sides = [(label, _agreed(label[base], position, len(number))) for label in labels]
    torn = np.zeros(len(number), dtype=np.bool_)
    for _, agreed in sides:
        torn |= agreed == -2
    shard = _agreed(trace.shard[base], position, len(number))
    if n := int(np.count_nonzero(shard == -2)):
        flaws.append(f"{n:,} groups are of more than one shard ({_named(number[shard == -2])})")
    if n := int(np.count_nonzero(moment < 0)):
        flaws.append(f"{n:,} groups were released in parts ({_named(number[moment < 0])})")
    if n := int(np.count_nonzero(torn)):
        flaws.append(f"{n:,} groups have more than one box ({_named(number[torn])})")

    if evidence.reuse is False and (n := int(np.count_nonzero(trace.has(REUSE)))):
        flaws.append(f"{n:,} rows are called reuses, and the job keeps no group for reuse")
    reuse = np.flatnonzero(trace.has(REUSE) & numbered)
    at = np.searchsorted(number, trace.group[reuse])
    there = at < len(number)
    there[there] = number[at[there]] == trace.group[reuse][there]
    reuse, at = reuse[there], at[there]
    if n := int(np.count_nonzero(~there)):
        flaws.append(f"{n:,} reuses join a group that was never released")
    if n := int(np.count_nonzero((trace.shard[reuse] != shard[at]) & (shard[at] >= 0))):
        flaws.append(f"{n:,} reuses join a group of another shard")
    # A moment of a group that isn't known is below 0, and no reuse is before it.
    early = trace.published[reuse] < moment[at]
    if n := int(np.count_nonzero(early)):
        flaws.append(f"{n:,} reuses join a group before it was released")
    shown = np.bincount(position[seq[base] >= 0], minlength=len(number)) > 0
    differs = np.zeros(len(reuse), dtype=np.bool_)
    adds = np.zeros(len(reuse), dtype=np.bool_)
    for label, agreed in sides:
        known = label[reuse] >= 0
        differs |= known & (agreed[at] >= 0) & (label[reuse] != agreed[at])
        adds |= known & (agreed[at] == -1) & shown[at]
    if n := int(np.count_nonzero(differs & ~torn[at])):
        flaws.append(f"{n:,} reuses have another box than the group they join")
    if n := int(np.count_nonzero(adds)):
        flaws.append(f"{n:,} reuses have a label where the group they join has none")

    figures: dict[str, Figure] = {"n_groups": len(number), "n_reuses": len(reuse)}
    cost = ""
    if len(reuse):
        n_few = _n_with_few(evidence, trace, reuse)
        figures["n_reuses_with_few"] = n_few
        if n_few:
            cost = (
                f". {n_few:,} of them left with fewer than {evidence.policy.k} people at their "
                "moment: an attacker who knows when somebody came reads off which published row is "
                "theirs, or nearly so"
            )
    return decide(
        "grouping",
        flaws,
        kept=f"each of {len(number):,} groups has one box and was released at once; "
        f"{len(reuse):,} reuses join such a group{cost}",
        doubt=None if evidence.fits else "the trace doesn't fit the output row by row",
        figures=figures,
    )


def _n_with_few(evidence: Evidence, trace: Trace, reuse: NDArray[np.int64]) -> int:
    """Count the reuses at whose moment fewer than k different people were published in all."""
    out = np.flatnonzero(trace.has(GROUP, REUSE) & (trace.seq >= 0) & (trace.seq < evidence.n_rows))
    # NaNs would be moments of their own.
    seconds = np.nan_to_num(trace.published_s[out], nan=np.inf)
    keys = np.stack([trace.shard[out].astype(np.float64), trace.published[out], seconds])
    _, moment = np.unique(keys, axis=1, return_inverse=True)
    moment = moment.ravel()
    pairs = np.unique(np.stack([moment, evidence.subjects[trace.seq[out]]]), axis=1)
    n_people = np.bincount(pairs[0])
    few = n_people[moment] < evidence.policy.k
    return int(np.count_nonzero(few[np.isin(out, reuse)]))


def _agreed(
    values: NDArray[np.int64], position: NDArray[np.int64], n_groups: int
) -> NDArray[np.int64]:
    """Return the value (from 0) that all rows of a group agree on; -1: none known, -2: they differ.

    >>> _agreed(np.array([3, 3, -1, 4, 5]), np.array([0, 0, 0, 1, 1]), 3).tolist()
    [3, -2, -1]
    """
    low = np.full(n_groups, np.iinfo(np.int64).max)
    high = np.full(n_groups, -1, dtype=np.int64)
    known = values >= 0
    np.minimum.at(low, position[known], values[known])
    np.maximum.at(high, position[known], values[known])
    return np.where(low < high, -2, high)


def _named(numbers: NDArray[np.int64]) -> str:
    shown = ", ".join(str(number) for number in numbers[:3])
    return f"groups {shown}{', …' if len(numbers) > 3 else ''}"
