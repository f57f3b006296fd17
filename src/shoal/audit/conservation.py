"""Conservation: every row of the input is accounted for exactly once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.evidence import Evidence
from shoal.audit.quarantine import unexplained
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.trace import (
    GROUP,
    HELD,
    OUTCOMES,
    QUARANTINED,
    REUSE,
    Trace,
    behind,
)

__all__ = ["check"]


def check(evidence: Evidence) -> Verdict:
    """Count the rows of the input, of the trace and of the output against each other."""
    trace = evidence.trace
    if trace is None:
        needs = "what became of the rows can't be told without a trace"
        return decide("conservation", [], kept="", doubt=needs)
    n_open, n_lost = _without_line(evidence, trace)
    flaws = [
        *_lines(trace, n_lost),
        *_arrivals(evidence, trace),
        *_output(evidence, trace),
        *_input(evidence, trace),
    ]
    found = unexplained(evidence, trace)
    if found.n_good:
        flaws.append(f"{found.n_good:,} rows are called quarantined and nothing is wrong with them")
    doubts = []
    if n_behind := _n_behind(evidence, trace):
        doubts.append(behind(n_behind))
    if n_open:
        doubts.append(
            f"{n_open:,} rows have no line in the trace: if the job was stopped without --drain "
            "it holds them, or hasn't read them; if it has ended, they are lost"
        )
    if found.n_doubtful:
        doubts.append(f"why {found.n_doubtful:,} rows are called quarantined can't be told")
    figures: dict[str, Figure] = {"n_in": len(trace), "n_out": evidence.n_rows}
    for code, name in enumerate(OUTCOMES):
        figures[f"n_{name}"] = int(np.count_nonzero(trace.outcome == code))
    figures["n_without_line"] = n_open + n_lost
    figures["n_unexplained"] = found.n_good + found.n_doubtful
    counts = ", ".join(f"{figures[f'n_{name}']:,} {name}" for name in OUTCOMES)
    kept = f"each of {len(trace):,} rows is accounted for once: {counts}"
    doubt = "; ".join(doubts) or None
    return decide("conservation", flaws, kept=kept, doubt=doubt, figures=figures)


def _without_line(evidence: Evidence, trace: Trace) -> tuple[int, int]:
    """Return how many rows may get their line when the job goes on, and how many are lost."""
    end = int(np.max(trace.row + 1, initial=0))
    n_absent = end - len(np.unique(trace.row[trace.row >= 0]))
    if not evidence.may_hold:
        return 0, n_absent
    n_lost = min(n_absent, _n_overdue(evidence, trace))
    if evidence.original is not None:
        n_absent += int(np.count_nonzero(evidence.given_rows >= end))
    return n_absent - n_lost, n_lost


def _n_overdue(evidence: Evidence, trace: Trace) -> int:
    """Return how many rows have no line, although others were decided after they were due.

    Positions of arrival that are missing tell when, and in which shard.
    """
    delay, n_overdue = evidence.policy.delay, 0
    if delay is None:
        return 0
    has_arrived = trace.arrived >= 0
    for shard in np.unique(trace.shard[has_arrived]):
        own = has_arrived & (trace.shard == shard)
        arrived, at = np.unique(trace.arrived[own], return_index=True)
        n_before = np.diff(arrived, prepend=-1) - 1
        overdue = np.zeros_like(n_before)
        if delay.rows is not None:
            due = int(trace.published[own].max()) - delay.rows
            overdue = np.clip(due - (arrived - n_before), 0, n_before)
        reached = float(np.fmax.reduce(trace.published_s[own]))
        if delay.seconds is not None and np.isfinite(reached):
            # They came no later than the next row that has a line.
            late = reached - trace.arrived_s[own][at] - delay.seconds
            overdue = np.where(late > 1e-9 + 4 * np.spacing(abs(reached)), n_before, overdue)
        n_overdue += int(overdue.sum())
    return n_overdue


def _lines(trace: Trace, n_lost: int) -> list[str]:
    flaws = []
    if n := int(np.count_nonzero(trace.outcome < 0)):
        flaws.append(f"{n:,} lines of the trace have no known outcome")
    if n := int(np.count_nonzero(trace.row < 0)):
        flaws.append(f"{n:,} lines of the trace have no row")
    twice, _ = _counted(trace.row[trace.row >= 0])
    if twice:
        flaws.append(f"{twice:,} rows have more than one line in the trace")
    if n_lost:
        flaws.append(f"{n_lost:,} rows have no line in the trace")
    return flaws


def _arrivals(evidence: Evidence, trace: Trace) -> list[str]:
    """Check that `arrived`, which the delay is measured by, counts the valid rows of a shard."""
    valid = trace.outcome != QUARANTINED
    order = np.lexsort((trace.row[valid], trace.shard[valid]))
    arrived, shard = trace.arrived[valid][order], trace.shard[valid][order]
    ahead = arrived - (np.arange(len(shard)) - np.searchsorted(shard, shard))
    # Rows that are held have arrived, too: a bad row has a line as soon as it is read.
    row, known = trace.row[valid][order], np.unique(trace.row[trace.row >= 0])
    absent = row - np.searchsorted(known, row) if evidence.may_hold else np.zeros_like(row)
    if trace.is_sharded:
        # Which shard holds which of them isn't known.
        fits = (ahead >= 0) & (ahead <= absent)
        fits[1:] &= (ahead[1:] >= ahead[:-1]) | (shard[1:] != shard[:-1])
    else:
        fits = ahead == absent
    wrong = int(np.count_nonzero(~fits))
    wrong += int(np.count_nonzero(trace.arrived[~valid] >= 0))
    flaws = []
    if wrong:
        where = " in their shard" if trace.has_shards else ""
        flaws.append(f"{wrong:,} lines have a wrong position of arrival{where}")
    if n := int(np.count_nonzero(shard < 0)):
        flaws.append(f"{n:,} rows that arrived have no shard")
    return flaws


def _output(evidence: Evidence, trace: Trace) -> list[str]:
    flaws = []
    shown = trace.seq >= 0
    if n := int(np.count_nonzero(trace.has(GROUP, REUSE) & ~shown)):
        flaws.append(f"{n:,} rows are called published but have no place in the output")
    if n := int(np.count_nonzero(trace.has(QUARANTINED, HELD) & shown)):
        flaws.append(f"{n:,} quarantined or held rows have a place in the output")
    seq = trace.seq[shown]
    twice, lost = _counted(seq)
    if twice:
        flaws.append(f"{twice:,} places in the output are those of several rows")
    if lost:
        flaws.append(f"{lost:,} places in the output are those of no row")
    if len(seq) + _n_behind(evidence, trace) != evidence.n_rows:
        flaws.append(f"the output has {evidence.n_rows:,} rows, the trace tells of {len(seq):,}")
    return flaws


def _n_behind(evidence: Evidence, trace: Trace) -> int:
    """Return how many rows at the end of the output may get their line when the job goes on."""
    return max(0, evidence.n_rows - int(np.max(trace.seq + 1, initial=0))) * evidence.may_hold


def _input(evidence: Evidence, trace: Trace) -> list[str]:
    flaws = []
    n_quarantined = int(np.count_nonzero(trace.outcome == QUARANTINED))
    if evidence.n_quarantined is not None and evidence.n_quarantined != n_quarantined:
        flaws.append(
            f"the quarantine has {evidence.n_quarantined:,} rows, "
            f"the trace tells of {n_quarantined:,}"
        )
    if evidence.original is None:
        return flaws
    n_original = int(evidence.original.num_rows)
    if evidence.original_rows is None:
        # What has no line counts as held, or as not read yet.
        all_there = np.all(trace.row < n_original)
        if not (all_there if evidence.may_hold else n_original == len(trace)):
            flaws.append(f"the input has {n_original:,} rows, the trace {len(trace):,}")
        return flaws
    # Rows that couldn't be read aren't in the original, but in the quarantine.
    n = int(np.count_nonzero(~np.isin(evidence.original_rows, trace.row)))
    if n and not evidence.may_hold:
        flaws.append(f"{n:,} rows of the input have no line in the trace")
    unread = ~np.isin(trace.row, evidence.original_rows) & (trace.outcome != QUARANTINED)
    if n := int(np.count_nonzero(unread)):
        flaws.append(f"{n:,} lines of the trace are of rows that the input doesn't have")
    return flaws


def _counted(positions: NDArray[np.int64]) -> tuple[int, int]:
    """Return how many positions occur twice or more, and how many below the largest are missing."""
    found, counts = np.unique(positions, return_counts=True)
    lost = int(found[-1]) + 1 - len(found) if len(found) else 0
    return int(np.count_nonzero(counts > 1)), lost
