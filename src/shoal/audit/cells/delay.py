"""Delay and lateness: nothing waits, nothing is reordered, and what comes too late is set apart."""

from __future__ import annotations

import numpy as np

from shoal.audit.cells.evidence import Cells
from shoal.audit.cells.trace import QUARANTINED
from shoal.audit.report import Verdict, decide

__all__ = ["check", "lateness"]


def check(cells: Cells) -> Verdict:
    """Check that each cell was decided when it arrived, and rows left in the order of arrival."""
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
    seq = trace.seq[cells.rows.first]
    n_reordered = int(np.count_nonzero(np.diff(seq[seq >= 0]) <= 0))
    if n_reordered:
        flaws.append(f"{n_reordered:,} rows left before one that had arrived earlier")
    n_decided = int(np.count_nonzero(decided))
    return decide(
        "delay",
        flaws,
        kept=f"each of {n_decided:,} cells was decided as it arrived, and no row overtook another",
        figures={"n_held": n, "n_reordered": n_reordered},
    )


def lateness(cells: Cells) -> Verdict | None:
    """Check that no row was decided which came later than is allowed, if anything is said of it."""
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
