"""Loss: the trace has the loss of each published row, and no box is wider than it must be.

A box that is wider than the rows of its group need reveals nothing more. It is reported as unneeded
loss, and breaks no promise: some algorithms publish whole levels, or keep a box for other rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import column, is_missing, take
from shoal.audit.evidence import Evidence, Loss
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.tightness import Needed, needed_sides
from shoal.audit.trace import HELD, QUARANTINED, SUPPRESSED, Trace
from shoal.spec.hierarchy import Domain, Range

__all__ = ["check", "side_loss"]

_SLACK = 1e-9
Floats = NDArray[np.float64]


def check(evidence: Evidence) -> Verdict:
    """Compute the loss of each published row from its labels, and compare it with the trace.

    Which measure the job asks for may not be known; then all rows must agree on one of them. For a
    midpoint a loss must be possible.
    """
    trace = evidence.trace
    if trace is None:
        doubt = "what rows lose by their boxes can't be compared without a trace"
        return decide("loss", [], kept="", doubt=doubt)
    if not evidence.fits:
        doubt = "the trace doesn't fit the output row by row"
        return decide("loss", [], kept="", doubt=doubt)
    lacks = _lacking(evidence, trace)
    if lacks is None:
        doubt = "which values are missing in the input needs the original to be seen"
        return decide("loss", [], kept="", doubt=doubt)
    flaws = []
    n_compared, n_false = 0, 0
    if not np.isnan(trace.loss).all():
        n_compared = evidence.n_rows
        measures: tuple[Loss, ...] = ("glm", "lm") if evidence.loss is None else (evidence.loss,)
        n_false = min(_n_false(evidence, trace, lacks, measure) for measure in measures)
        n_false += int(np.count_nonzero(~np.isnan(trace.loss[trace.has(HELD, QUARANTINED)])))
    if n_false:
        flaws.append(f"{n_false:,} rows have a false loss in the trace")
    found = needed_sides(evidence, trace)
    unneeded = _unneeded(evidence, found)
    kept = (
        f"the trace has the loss of each of {n_compared:,} rows"
        + (" (as far as a midpoint tells)" if evidence.numeric == "midpoint" else "")
        if n_compared
        else "the trace has no losses"
    )
    if found is not None and found.n_wider:
        kept += (
            f"; {found.n_wider:,} of {found.n_groups:,} groups have a wider box than their rows "
            f"need (unneeded loss, on average of all groups' rows: {unneeded:.4f})"
        )
    figures: dict[str, Figure] = {"n_compared": n_compared, "n_false": n_false}
    figures["n_wider_groups"] = None if found is None else found.n_wider
    figures["unneeded_loss"] = unneeded
    return decide("loss", flaws, kept=kept, figures=figures)


def side_loss(domain: Domain, lo: Floats, hi: Floats, measure: Loss) -> Floats:
    """Return what each interval of a domain loses, between 0 and 1.

    >>> side_loss(Range(0, 100), np.array([20.0]), np.array([45.0]), "glm").tolist()
    [0.25]
    >>> from shoal.spec.hierarchy import Hierarchy
    >>> pair = np.array([0.0]), np.array([1.0])
    >>> side_loss(Hierarchy.flat([*"abcd"]), *pair, "glm").tolist()
    [0.5]
    """
    if isinstance(domain, Range):
        return (hi - lo) / (domain.hi - domain.lo)
    n_leaves = hi - lo + 1
    if measure == "glm":
        return np.where(n_leaves > 1, n_leaves / len(domain), 0.0)
    return np.where(n_leaves > 1, (n_leaves - 1) / max(len(domain) - 1, 1), 0.0)


def _lacking(evidence: Evidence, trace: Trace) -> list[NDArray[np.bool_]] | None:
    """Return by side which published rows lack the value; None if that isn't known."""
    sides = evidence.sides
    if evidence.policy.missing != "extended":
        return [side.gap for side in sides]
    if evidence.original is None:
        return None
    lines, positions = evidence.originals
    lines, positions = lines[positions >= 0], positions[positions >= 0]
    found = []
    for side in sides:
        lacks = np.zeros(evidence.n_rows, dtype=np.bool_)
        lacks[trace.seq[lines]] = is_missing(take(column(evidence.original, side.name), positions))
        found.append(lacks)
    return found


def _n_false(
    evidence: Evidence, trace: Trace, lacks: list[NDArray[np.bool_]], measure: Loss
) -> int:
    """Return how many rows have another loss than their labels by one measure."""
    low, high, total = (np.zeros(evidence.n_rows) for _ in range(3))
    weights = _weights(evidence)
    for side, gap in zip(evidence.sides, lacks, strict=True):
        domain, weight = weights[side.name]
        lost = np.where(gap, 0.0, weight * side_loss(domain, side.lo, side.hi, measure))
        high += lost
        if not (evidence.numeric == "midpoint" and isinstance(domain, Range)):
            low += lost
        total += np.where(gap, 0.0, weight)
    with np.errstate(invalid="ignore"):
        low = np.where(total > 0, low / np.where(total > 0, total, 1.0), 0.0)
        high = np.where(total > 0, high / np.where(total > 0, total, 1.0), 0.0)
    told = trace.loss[evidence.line]
    is_suppressed = trace.outcome[evidence.line] == SUPPRESSED
    readable = ~np.isnan(high)
    wrong = ~((low - _SLACK <= told) & (told <= high + _SLACK)) & ~is_suppressed & readable
    hidden = trace.loss[trace.has(SUPPRESSED)]
    return int(np.count_nonzero(wrong)) + int(np.count_nonzero(hidden != 1.0))


def _weights(evidence: Evidence) -> dict[str, tuple[Domain, float]]:
    total = sum(attribute.weight for attribute in evidence.schema.quasi)
    return {a.name: (a.sided, a.weight / total) for a in evidence.schema.quasi}


def _unneeded(evidence: Evidence, found: Needed | None) -> float | None:
    """Return the mean loss of the rows of groups that tighter boxes would have spared."""
    if found is None:
        return None
    weights, spared = _weights(evidence), np.zeros(found.n_groups)
    for name, (label, need) in found.sides.items():
        domain, weight = weights[name]
        measure = evidence.loss or "glm"
        more = side_loss(domain, *label, measure) - side_loss(domain, *need, measure)
        spared += np.where(np.isnan(more), 0.0, weight * np.maximum(more, 0.0))
    n_rows = int(found.n_rows.sum())
    return float((spared * found.n_rows).sum() / n_rows) if n_rows else 0.0
