"""Cover: each published row covers its original, in one box only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import (
    column,
    is_bytes,
    is_missing,
    not_finite_alike,
    numbers,
    same,
    shared_codes,
    take,
    trace_text,
)
from shoal.audit.evidence import Evidence
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.trace import Trace
from shoal.spec.hierarchy import Range

__all__ = ["check"]


def check(evidence: Evidence) -> Verdict:
    """Compare each published row with the row of the input that the trace joins it to.

    The box covers the original's quasi values, what is published as it is equals the original, and
    the trace names the original's subject. For a midpoint all that can be checked is that a box
    around it, within the range, covers the values.
    """
    trace, original = evidence.trace, evidence.original
    if trace is None or original is None:
        needs = "a trace" if trace is None else "the original"
        return decide("cover", [], kept="", doubt=f"what the boxes hide needs {needs} to be seen")
    flaws = _two_boxes(evidence, trace)
    lines, positions = evidence.originals
    unread = int(np.count_nonzero(positions < 0))
    if unread:
        flaws.append(f"{unread:,} published rows are of no row of the input")
    lines, positions = lines[positions >= 0], positions[positions >= 0]
    seqs = trace.seq[lines]
    for side in evidence.sides:
        values = evidence.published_values[side.name]
        inside = (side.lo[seqs] <= values) & (values <= side.hi[seqs])
        if evidence.policy.missing != "quarantine":
            # Missing values have a check of their own.
            inside |= is_missing(take(column(original, side.name), positions)) | side.gap[seqs]
        if n := int(np.count_nonzero(~inside)):
            flaws.append(f"in {n:,} rows column {side.name} doesn't cover the original")
    compared = evidence.policy.compared(evidence.schema)
    for name in evidence.schema.payload:
        shown = column(evidence.published, name)
        if shown is None:
            continue
        published, given = take(shown, seqs), take(column(original, name), positions)
        equal = same(published, given) | not_finite_alike(published, given)
        if name in compared:
            equal |= _written_alike(evidence, name, seqs, positions)
        if n := int(np.count_nonzero(~equal)):
            flaws.append(f"in {n:,} rows column {name} isn't as in the original")
    if evidence.schema.subject is not None:
        subjects = take(column(original, evidence.schema.subject), positions)
        if is_bytes(subjects.type):
            subjects = trace_text(subjects)
        if n := int(np.count_nonzero(~same(take(trace.subject, lines), subjects))):
            flaws.append(f"in {n:,} lines the trace names another subject than the original")
    figures: dict[str, Figure] = {"n_compared": len(lines)}
    return decide(
        "cover",
        flaws,
        kept=f"each of {len(lines):,} published rows covers its original"
        + (" (numbers as far as a midpoint tells)" if evidence.numeric == "midpoint" else ""),
        doubt=None if evidence.fits else "the trace doesn't fit the output row by row",
        figures=figures,
    )


def _written_alike(
    evidence: Evidence, name: str, seqs: NDArray[np.int64], positions: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which values are the same, though written differently.

    Where shares of values are compared, each value is published in one spelling.
    """
    shown = take(column(evidence.published, name), seqs)
    given = take(column(evidence.original, name), positions)
    domain = next(a.domain for a in evidence.schema.sensitive if a.name == name)
    if isinstance(domain, Range):
        alike: NDArray[np.bool_] = numbers(shown) == numbers(given)
    else:
        one, other = shared_codes(shown, given)
        alike = one == other
    return alike


def _two_boxes(evidence: Evidence, trace: Trace) -> list[str]:
    """Find rows published with two boxes, whose intersection discloses more than either."""
    inside = (trace.seq >= 0) & (trace.seq < evidence.n_rows) & (trace.row >= 0)
    rows, boxes = trace.row[inside], evidence.box[trace.seq[inside]]
    order = np.lexsort((boxes, rows))
    rows, boxes = rows[order], boxes[order]
    differs = (rows[1:] == rows[:-1]) & (boxes[1:] != boxes[:-1])
    n = len(np.unique(rows[1:][differs]))
    return [f"{n:,} rows were published with more than one box"] if n else []
