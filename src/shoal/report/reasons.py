"""Why rows aren't in a release: suppressed and quarantined rows by reason.

The trace has no reasons. Who was held when a row was suppressed follows from it, and so does what
was missing; a quarantined row is looked at again. Reasons name columns and promises, never values.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.arrow.codec import Codec
from shoal.audit.evidence import Evidence
from shoal.audit.trace import HELD, QUARANTINED, SUPPRESSED, Trace
from shoal.report.release import Release
from shoal.spec.policy import KAnonymity, Policy

__all__ = ["quarantine_reasons", "suppression_reasons"]

_KEY = bytes(8)
OTHER = "unreadable, late, or ahead of its time"
UNKNOWN = "unknown without the original"
#: Rounding of times.
_SLACK = 1e-6


def suppression_reasons(release: Release) -> dict[str, int]:
    """Return how many rows were suppressed for which reason, most frequent first.

    A row is suppressed where no group can be had. Either too few people were held at that moment,
    or enough people, who keep k, but not what else is promised.
    """
    evidence, policy = release.evidence, release.policy
    trace = evidence.trace
    assert trace is not None
    counts: Counter[str] = Counter()
    arrived = (trace.arrived >= 0) & ~trace.has(QUARANTINED)
    for shard in np.unique(trace.shard[arrived & trace.has(SUPPRESSED)]):
        lines = np.flatnonzero(arrived & (trace.shard == shard))
        lines = lines[np.argsort(trace.arrived[lines], kind="stable")]
        counts.update(_of_shard(evidence, trace, lines, policy))
    return dict(counts.most_common())


def _of_shard(
    evidence: Evidence, trace: Trace, lines: NDArray[np.int64], policy: Policy
) -> Counter[str]:
    """Return the reasons of one shard; its lines are in the order of their arrival."""
    at, moment = trace.arrived[lines], trace.published[lines]
    suppressed = trace.outcome[lines] == SUPPRESSED
    moment = np.where(trace.outcome[lines] == HELD, np.iinfo(np.int64).max, moment)
    people = lines if evidence.schema.each_row else evidence.people[lines]
    counts: Counter[str] = Counter()
    for now in np.unique(moment[suppressed]):
        here = suppressed & (moment == now)
        # Others of the same moment may have left just before.
        held = (at <= now) & ((moment > now) | here)
        n_people = len(np.unique(people[held]))
        when = _when(trace, lines[here], int(now), len(lines), policy)
        counts[f"{_lacked(n_people, policy)} {when}"] += int(np.count_nonzero(here))
    return counts


def _lacked(n_people: int, policy: Policy) -> str:
    if n_people < policy.k:
        return f"fewer than k = {policy.k} people were held"
    others = [each.name for each in policy.criteria if not isinstance(each, KAnonymity)]
    if others:
        return f"no group kept {', '.join(dict.fromkeys(others))}"
    return "no group was formed, though enough people were held"


def _when(trace: Trace, lines: NDArray[np.int64], moment: int, n_rows: int, policy: Policy) -> str:
    """Return at which moment rows were suppressed, in words."""
    if policy.window == "all":
        return "in the whole table"
    if moment >= n_rows:
        return "at the end of the stream"
    delay = policy.delay
    if delay is None:
        return "when their window was published"
    waited = moment - trace.arrived[lines]
    seconds = trace.published_s[lines] - trace.arrived_s[lines]
    due = np.zeros(len(lines), dtype=np.bool_)
    if delay.rows is not None:
        due |= waited >= delay.rows
    if delay.seconds is not None:
        due |= seconds >= delay.seconds - _SLACK
    return "when the delay was over" if due.any() else "before the delay was over"


def quarantine_reasons(release: Release, rows: NDArray[np.int64]) -> dict[str, int]:
    """Return why rows were quarantined, by looking at them again; most frequent first."""
    if not len(rows):
        return {}
    counts: Counter[str] = Counter()
    if release.original is not None:
        positions = release.original_rows
        places = rows if positions is None else np.flatnonzero(np.isin(positions, rows))
        places = places[places < release.original.num_rows]
        bad = release.original.select(release.schema.columns).take(pa.array(places))
        policy = release.policy
        codec = Codec(
            release.schema,
            key=_KEY,
            with_gaps=policy.missing != "quarantine",
            complete=policy.in_place(release.schema),
            per_value=policy.per_value,
        )
        for batch in bad.combine_chunks().to_batches():
            counts.update(codec.encode(batch).reasons.values())
    rest = len(rows) - counts.total()
    if rest > 0:
        counts[UNKNOWN if release.original is None else OTHER] += rest
    return dict(counts.most_common(20))
