"""Arrival: rows came at the times that the original has, each to the shard of its values.

Delays in seconds are measured from the times in the trace, delays in rows by the rows of a shard. A
trace with other times or shards could hide that rows were late.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import column, is_text, take
from shoal.audit.coordinates import coordinates
from shoal.audit.evidence import Evidence
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.times import seconds
from shoal.audit.trace import QUARANTINED, Trace
from shoal.spec.hierarchy import Hierarchy

__all__ = ["GROUP_STRIDE", "check"]

#: By how many seconds a time of the trace may be off.
_SLACK = 1e-6
#: The number of a group is a multiple of this, plus the number of its shard.
GROUP_STRIDE = 1 << 20


def check(evidence: Evidence) -> Verdict | None:
    """Compare the times of arrival with those of the original, and the shards with each other.

    None if there is neither: a schema without a time, or delays by the wall clock, and one shard.
    """
    trace = evidence.trace
    if trace is None:
        needs = "when and where rows arrived can't be told without a trace"
        return decide("arrival", [], kept="", doubt=needs)
    flaws: list[str] = []
    kept: list[str] = []
    doubt: str | None = None
    figures: dict[str, Figure] = {"n_mistimed": None}
    delay = evidence.policy.delay
    by_wall = delay is not None and delay.by_wall(evidence.schema)
    has_times = evidence.schema.time is not None and not by_wall
    if not has_times and not trace.is_sharded:
        return None
    if has_times and evidence.original is None:
        doubt = "when rows arrived needs the original to be seen"
    elif has_times:
        n_mistimed, n_untimed, n_compared = _n_mistimed(evidence, trace)
        figures |= {"n_mistimed": n_mistimed, "n_compared": n_compared}
        if n_untimed:
            doubt = f"{n_untimed:,} rows have no time of arrival in the trace"
        if n_mistimed:
            flaws.append(f"{n_mistimed:,} rows have another time of arrival than the original")
        kept.append(f"each of {n_compared:,} rows arrived at the time that the original has")
    if trace.is_sharded:
        foreign = (trace.group >= 0) & (trace.group % GROUP_STRIDE != trace.shard)
        n_foreign = int(np.count_nonzero(foreign))
        if n_foreign:
            flaws.append(f"{n_foreign:,} rows are in groups that another shard numbered")
        n_mixed = _n_mixed(evidence, trace)
        if n_mixed:
            flaws.append(f"{n_mixed:,} pairs of shards share a part of the space of values")
        figures |= {"n_foreign": n_foreign, "n_mixed_shards": n_mixed}
        kept.append(f"{len(np.unique(trace.shard)):,} shards have rows and groups of their own")
    return decide("arrival", flaws, kept="; ".join(kept), doubt=doubt, figures=figures)


def _n_mistimed(evidence: Evidence, trace: Trace) -> tuple[int, int, int]:
    """Return how many rows didn't arrive at the latest time so far, have no time, were compared.

    Each shard has a latest time of its own, which may have come from other shards' rows when it
    began; so with several of them a time may lie between the latest of the shard and of all.
    """
    lines, at = _arrived(evidence, trace)
    order = np.argsort(trace.row[lines], kind="stable")
    lines, at = lines[order], at[order]
    time = seconds(take(column(evidence.original, str(evidence.schema.time)), at))
    latest = np.fmax(np.fmax.accumulate(time) if len(time) else time, evidence.since)
    least = latest
    if trace.has_shards:
        least = np.empty(len(time))
        for shard in np.unique(trace.shard[lines]):
            own = trace.shard[lines] == shard
            least[own] = np.fmax(np.fmax.accumulate(time[own]), evidence.since)
    if evidence.may_hold:
        # A row without a line, which is held, may have had a later time.
        latest = evidence.latest_time(trace.row[lines], "right")
    told = trace.arrived_s[lines]
    slack = np.maximum(_SLACK, np.spacing(np.abs(latest)))
    unknown = np.isnan(told)
    wrong = ~((told >= least - slack) & (told <= latest + slack)) & ~unknown
    return int(np.count_nonzero(wrong)), int(np.count_nonzero(unknown)), len(lines)


def _arrived(evidence: Evidence, trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lines of rows that arrived and are in the original, and where they are there."""
    lines = np.flatnonzero(trace.outcome != QUARANTINED)
    at = evidence.located(trace.row[lines])
    return lines[at >= 0], at[at >= 0]


def _n_mixed(evidence: Evidence, trace: Trace) -> int:
    """Return how many pairs of shards aren't apart in any quasi attribute.

    Shards are cells of a tree of cuts, so that any two of them are separated by a value of one
    attribute. Where the cuts were changed in between, all rows of the one came before those of
    the other. Rows with a value that two programs may read differently, or without one, are left
    out; and if the time is a quasi attribute and text, nothing is compared.
    """
    original = evidence.original
    if original is None or not trace.has_shards:
        return 0
    lines, at = _arrived(evidence, trace)
    values = []
    for attribute in evidence.schema.quasi:
        array = take(column(original, attribute.name), at)
        is_time = attribute.name == evidence.schema.time
        if is_time and is_text(array.type):
            return 0
        if isinstance(attribute.domain, Hierarchy) and not is_text(array.type):
            return 0
        values.append(coordinates(array, attribute.sided, is_time=is_time))
    table = np.column_stack(values)
    whole = ~np.isnan(table).any(axis=1)
    table, shard, row = table[whole], trace.shard[lines][whole], trace.row[lines][whole]
    cells = []
    for number in np.unique(shard):
        own = shard == number
        cells.append(
            (
                np.append(table[own].min(axis=0), row[own].min()),
                np.append(table[own].max(axis=0), row[own].max()),
            )
        )
    return sum(
        not bool(np.any((one[1] < other[0]) | (other[1] < one[0])))
        for one, other in itertools.combinations(cells, 2)
    )
