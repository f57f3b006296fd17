"""Order: rows leave in the order of the job, and the order inside a group tells nothing.

- ``released``: in the order in which they were decided, group after group.
- ``shuffled``: the same, but rows that were decided together are mixed across groups.
- ``arrival``: in the order of arrival.

In the first two the rows of a group are shuffled. `shoal.audit.shuffling` tests that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.evidence import Evidence, Order
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.shuffling import MOST_FALSE, Shuffling, shuffling
from shoal.audit.trace import GROUP, Trace

__all__ = ["check"]

_WORDS = {
    "released": "in the order of their decision, group after group",
    "shuffled": "in the order of their decision",
    "arrival": "in the order of their arrival",
}


def check(evidence: Evidence) -> Verdict:
    """Compare the order of the output with the moments of decision and arrival in the trace.

    If the order that was asked for isn't known, the first one that fits is taken for it.
    """
    trace = evidence.trace
    if trace is None:
        doubt = "in which order rows were decided can't be told without a trace"
        return decide("order", [], kept="", doubt=doubt)
    if not evidence.fits:
        doubt = "the trace doesn't fit the output row by row"
        return decide("order", [], kept="", doubt=doubt)
    orders = _WORDS if evidence.order is None else (evidence.order,)
    verdicts = [_judge(evidence, trace, order) for order in orders]  # type: ignore[arg-type]
    return next((one for one in verdicts if one.verdict == "kept"), verdicts[0])


def _judge(evidence: Evidence, trace: Trace, order: Order) -> Verdict:
    # Each shard decides by itself: only the order of its own rows is known.
    lines = evidence.line[np.argsort(trace.shard[evidence.line], kind="stable")]
    by = trace.arrived if order == "arrival" else trace.published
    n_early = _n_early(by[lines], trace.shard[lines])
    flaws = []
    if n_early:
        when = "arrived" if order == "arrival" else "was decided"
        flaws.append(f"{n_early:,} rows left before one that {when} earlier")
    figures: dict[str, Figure] = {"n_early": n_early}
    kept = f"{evidence.n_rows:,} rows left {_WORDS[order]}"
    if order == "released":
        n_torn = _n_torn(trace, lines)
        figures["n_interleaved"] = n_torn
        if n_torn:
            flaws.append(f"in {n_torn:,} groups other rows stand between those of the group")
    if order != "arrival":
        found = shuffling(evidence, trace)
        flaws += _unshuffled(found)
        figures |= {"n_judged": found.n_rows if found.is_enough else 0}
        figures |= {
            f"order_by_{name.replace(' ', '_')}": figure
            for name, figure in found.deviations.items()
        }
        kept += (
            "; inside groups their order follows nothing private"
            if found.is_enough
            else "; whether groups are shuffled can't be judged by so few rows"
        )
    return decide("order", flaws, kept=kept, figures=figures)


def _n_early(moments: NDArray[np.int64], shard: NDArray[np.int64]) -> int:
    """Return how many rows of a shard come after one of a later moment."""
    n = 0
    for part in np.split(moments, np.flatnonzero(np.diff(shard)) + 1):
        # A row without a moment is a matter of the delay.
        known = part[part >= 0]
        n += int(np.count_nonzero(known < np.maximum.accumulate(known)))
    return n


def _n_torn(trace: Trace, lines: NDArray[np.int64]) -> int:
    """Return how many groups aren't one run of rows in the output of their shard."""
    group = np.where(trace.outcome[lines] == GROUP, trace.group[lines], -1)
    begins = np.ones(len(group), dtype=np.bool_)
    begins[1:] = group[1:] != group[:-1]
    _, n_runs = np.unique(group[begins & (group >= 0)], return_counts=True)
    return int(np.count_nonzero(n_runs > 1))


def _unshuffled(found: Shuffling) -> list[str]:
    return [
        f"the rows of groups aren't shuffled: their order follows {name} "
        f"({abs(deviation):.1f} standard deviations; shuffled rows exceed {found.limit:.1f} in one "
        f"of {1 / MOST_FALSE:.0e} runs at most)"
        for name, deviation in found.deviations.items()
        if abs(deviation) > found.limit
    ]
