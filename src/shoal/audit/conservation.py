"""Conservation: every row of the input is accounted for exactly once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.evidence import Evidence
from shoal.audit.quarantine import unexplained
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.trace import GROUP, HELD, OUTCOMES, QUARANTINED, REUSE, Trace

__all__ = ["check"]


def check(evidence: Evidence) -> Verdict:
    """Count the rows of the input, of the trace and of the output against each other."""
    trace = evidence.trace
    if trace is None:
        needs = "what became of the rows can't be told without a trace"
        return decide("conservation", [], kept="", doubt=needs)
    flaws = [
        *_lines(trace),
        *_arrivals(trace),
        *_output(evidence, trace),
        *_input(evidence, trace),
    ]
    found = unexplained(evidence, trace)
    if found.n_good:
        flaws.append(f"{found.n_good:,} rows are called quarantined and nothing is wrong with them")
    unsure = f"why {found.n_doubtful:,} rows are called quarantined can't be told"
    figures: dict[str, Figure] = {"n_in": len(trace), "n_out": evidence.n_rows}
    for code, name in enumerate(OUTCOMES):
        figures[f"n_{name}"] = int(np.count_nonzero(trace.outcome == code))
    figures["n_unexplained"] = found.n_good + found.n_doubtful
    counts = ", ".join(f"{figures[f'n_{name}']:,} {name}" for name in OUTCOMES)
    kept = f"each of {len(trace):,} rows is accounted for once: {counts}"
    doubt = unsure if found.n_doubtful else None
    return decide("conservation", flaws, kept=kept, doubt=doubt, figures=figures)


def _lines(trace: Trace) -> list[str]:
    flaws = []
    if n := int(np.count_nonzero(trace.outcome < 0)):
        flaws.append(f"{n:,} lines of the trace have no known outcome")
    if n := int(np.count_nonzero(trace.row < 0)):
        flaws.append(f"{n:,} lines of the trace have no row")
    twice, lost = _counted(trace.row[trace.row >= 0])
    if twice:
        flaws.append(f"{twice:,} rows have more than one line in the trace")
    if lost:
        flaws.append(f"{lost:,} rows have no line in the trace")
    return flaws


def _arrivals(trace: Trace) -> list[str]:
    """Check that `arrived`, which the delay is measured by, counts the valid rows of a shard."""
    valid = trace.outcome != QUARANTINED
    order = np.lexsort((trace.row[valid], trace.shard[valid]))
    arrived, shard = trace.arrived[valid][order], trace.shard[valid][order]
    expected = np.arange(len(shard)) - np.searchsorted(shard, shard)
    wrong = int(np.count_nonzero(arrived != expected))
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
    if len(seq) != evidence.n_rows:
        flaws.append(f"the output has {evidence.n_rows:,} rows, the trace tells of {len(seq):,}")
    return flaws


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
        if n_original != len(trace):
            flaws.append(f"the input has {n_original:,} rows, the trace {len(trace):,}")
        return flaws
    # Rows that couldn't be read aren't in the original, but in the quarantine.
    if n := int(np.count_nonzero(~np.isin(evidence.original_rows, trace.row))):
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
