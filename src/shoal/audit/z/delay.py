"""Delay and lateness: no row waits or is reordered, and rows that are too late are quarantined."""

from __future__ import annotations

import numpy as np

from shoal.audit.report import Verdict, decide
from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.trace import QUARANTINED, CellTrace

__all__ = ["check", "lateness"]

#: By how many seconds a time of the trace may be off.
_SLACK = 1e-6


def check(cells: ZEvidence) -> Verdict:
    """Check that each cell was decided when it arrived, and rows left in the order of arrival.

    The times of arrival are compared with those of the original, if it is given.
    """
    trace = cells.trace
    if trace is None:
        return decide("delay", [], kept="", doubt="how long cells were held needs a trace")
    decided = trace.outcome != QUARANTINED
    held = decided & ((trace.published != trace.arrived) | (trace.arrived < 0))
    both = ~np.isnan(trace.arrived_s) | ~np.isnan(trace.published_s)
    held |= decided & both & (trace.arrived_s != trace.published_s)
    flaws = []
    if n := int(np.count_nonzero(held)):
        flaws.append(f"{n:,} cells weren't decided at the moment of their arrival")
    n_mistimed = _mistimed(cells, trace)
    if n_mistimed:
        flaws.append(f"{n_mistimed:,} cells have another time of arrival than the original tells")
    seq = trace.seq[cells.rows.first]
    n_reordered = int(np.count_nonzero(np.diff(seq[seq >= 0]) <= 0))
    if n_reordered:
        flaws.append(f"{n_reordered:,} rows left before one that had arrived earlier")
    n_decided = int(np.count_nonzero(decided))
    return decide(
        "delay",
        flaws,
        kept=f"each of {n_decided:,} cells was decided as it arrived, and no row overtook another",
        figures={"n_held": n, "n_mistimed": n_mistimed, "n_reordered": n_reordered},
    )


def _mistimed(cells: ZEvidence, trace: CellTrace) -> int:
    """Return how many cells didn't arrive at the latest time so far, by the original."""
    if cells.original is None or cells.schema.time is None:
        return 0
    known = np.isfinite(cells.clock) & (cells.positions >= 0)
    clock = cells.clock[known]
    n = 0
    for line in cells.rows.line[known].T:
        # Both are the same number if the file has kept all digits.
        off = np.abs(trace.arrived_s[line] - clock)
        wrong = ~(off <= np.maximum(_SLACK, np.spacing(np.abs(clock))))
        n += int(np.count_nonzero(wrong & (line >= 0)))
    return n


def lateness(cells: ZEvidence) -> Verdict | None:
    """Check that no row was decided that was later than the policy allows, if it sets a limit."""
    allowed = cells.policy.lateness
    if allowed is None:
        return None
    if cells.trace is None or cells.original is None:
        return decide("lateness", [], kept="", doubt=f"which rows came late {cells.doubt}")
    before = np.concatenate([[-np.inf], cells.clock[:-1]])[: len(cells.clock)]
    behind = before - cells.times
    n_late = int(np.count_nonzero(cells.times < before - allowed))
    n_unknown = int(np.count_nonzero(np.isnan(cells.times)))
    flaws = []
    if n_late:
        flaws.append(f"{n_late:,} rows were later than {allowed:g} seconds, and not quarantined")
    if n_unknown:
        flaws.append(f"{n_unknown:,} rows have no time, and weren't quarantined")
    largest = float(np.max(behind, initial=0.0, where=~np.isnan(behind)))
    return decide(
        "lateness",
        flaws,
        kept=f"each of {len(behind):,} decided rows was at most {allowed:g} seconds late",
        doubt=cells.doubt,
        figures={"n_late": n_late, "largest_s": largest},
    )
