"""Delay: no row was held for longer than promised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.evidence import Evidence
from shoal.audit.report import Figure, Verdict
from shoal.audit.trace import GROUP, HELD, REUSE, SUPPRESSED, Trace

__all__ = ["check"]


def check(evidence: Evidence) -> Verdict | None:
    """Compare the moments of arrival and decision of every row with the promised delay, if any.

    Rows still held when a run was interrupted are judged by the latest moment that the run has
    reached by any decision: a row that was due by then is late. Where several shards decide, only
    decisions of the row's own shard count: each shard counts its own rows, and may have been
    interrupted earlier than another.
    """
    promised, trace = evidence.policy.delay, evidence.trace
    if promised is None:
        return None
    if trace is None:
        return Verdict("delay", "unverifiable", "how long rows were held needs a trace")
    flaws: list[str] = []
    doubts: list[str] = []
    kept: list[str] = []
    figures: dict[str, Figure] = {}
    if promised.rows is not None:
        waited = _waited_rows(trace)
        _judge(waited, promised.rows, "rows", flaws, figures)
        kept.append(f"{promised.rows:,} rows{' of its shard' if trace.has_shards else ''}")
        if n := int(np.count_nonzero(np.isnan(waited))):
            flaws.append(f"{n:,} decided rows have no moment of arrival or decision")
    if promised.seconds is not None:
        waited = _waited_seconds(trace)
        if n := int(np.count_nonzero(np.isnan(waited))):
            doubts.append(f"{n:,} rows have no time, so their delay in seconds can't be told")
        moments = np.concatenate([trace.arrived_s, trace.published_s])
        largest = float(np.max(np.abs(moments), initial=0.0, where=~np.isnan(moments)))
        # The difference of two large times may be off by the last place of either.
        slack = 1e-9 + 4 * float(np.spacing(largest))
        _judge(waited, promised.seconds, "seconds", flaws, figures, slack=slack)
        kept.append(f"{promised.seconds:,} seconds")
    if flaws:
        return Verdict("delay", "broken", "; ".join(flaws), figures)
    if doubts:
        return Verdict("delay", "unverifiable", "; ".join(doubts), figures)
    return Verdict("delay", "kept", f"no row was held for more than {' or '.join(kept)}", figures)


def _judge(
    waited: NDArray[np.float64],
    limit: float,
    unit: str,
    flaws: list[str],
    figures: dict[str, Figure],
    *,
    slack: float = 0.0,
) -> None:
    known = waited[~np.isnan(waited)]
    longest = float(known.max()) if len(known) else None
    n_late = int(np.count_nonzero(known > limit + slack))
    n_early = int(np.count_nonzero(known < -slack))
    figures[f"longest_{unit}"] = longest
    figures[f"n_late_{unit}"] = n_late
    if n_late and longest is not None:
        flaws.append(
            f"{n_late:,} rows were held for more than {limit:,} {unit} "
            f"(the longest for {longest:,})"
        )

    if n_early:
        flaws.append(f"{n_early:,} rows were decided before they arrived, by their {unit}")


def _waited_rows(trace: Trace) -> NDArray[np.float64]:
    """Return how many rows each decided or held row waited; NaN if that isn't known."""
    decided = trace.has(GROUP, REUSE, SUPPRESSED)
    held = trace.has(HELD)
    shards, shard = np.unique(trace.shard, return_inverse=True)
    reached = np.zeros(len(shards), dtype=np.int64)
    np.maximum.at(reached, shard[decided], trace.published[decided])
    end = np.where(held, np.maximum(reached[shard], trace.arrived), trace.published)
    unknown = (trace.arrived < 0) | (end < 0)
    waited = np.where(unknown, np.nan, (end - trace.arrived).astype(np.float64))
    return np.asarray(waited[decided | held], dtype=np.float64)


def _waited_seconds(trace: Trace) -> NDArray[np.float64]:
    """Return how many seconds each decided or held row waited; NaN if that isn't known."""
    decided = trace.has(GROUP, REUSE, SUPPRESSED)
    held = trace.has(HELD)
    shards, shard = np.unique(trace.shard, return_inverse=True)
    reached = np.full(len(shards), -np.inf)
    # `fmax` ignores unknown moments.
    np.fmax.at(reached, shard[decided], trace.published_s[decided])
    end = np.where(held, np.maximum(reached[shard], trace.arrived_s), trace.published_s)
    return np.asarray((end - trace.arrived_s)[decided | held], dtype=np.float64)
