"""Missing: a missing quasi value is published as the policy says, and so is its group.

Under ``quarantine`` a row that lacks one isn't published; the check of cover finds one that is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import column, is_missing, take
from shoal.audit.evidence import Evidence
from shoal.audit.labels import Side
from shoal.audit.report import Verdict, decide
from shoal.audit.trace import Trace

__all__ = ["check"]


def check(evidence: Evidence) -> Verdict | None:
    """Compare what is missing in the output with what is missing in the input.

    Under ``maybe`` a cell is null exactly where the original has nothing. Under ``extended`` no
    cell is null, and where an original has nothing its whole group is at the root.
    """
    if evidence.policy.missing == "quarantine":
        return None
    extended = evidence.policy.missing == "extended"
    trace, original = evidence.trace, evidence.original
    flaws = _nulls(evidence) if extended else []
    if trace is None or original is None:
        needs = "a trace" if trace is None else "the original"
        doubt = f"which values are missing in the input needs {needs} to be seen"
        return decide("missing", flaws, kept="", doubt=doubt)
    lines, positions = evidence.originals
    lines, positions = lines[positions >= 0], positions[positions >= 0]
    n_missing = 0
    for side in evidence.sides:
        lacks = is_missing(take(column(original, side.name), positions))
        n_missing += int(np.count_nonzero(lacks))
        found = _not_at_root if extended else _not_as_it_was
        flaws += found(side, trace, lines, lacks)
    kept = f"{n_missing:,} missing values are null in the output, and no others are"
    if extended:
        kept = f"{n_missing:,} missing values are at the root, with their whole groups"
    return decide(
        "missing",
        flaws,
        kept=kept + (" (as far as a midpoint tells)" if evidence.numeric == "midpoint" else ""),
        doubt=None if evidence.fits else "the trace doesn't fit the output row by row",
        figures={"n_missing": n_missing, "n_compared": len(lines)},
    )


def _nulls(evidence: Evidence) -> list[str]:
    flaws = []
    for name in evidence.public_quasi:
        array = column(evidence.published, name)
        if array is not None and (n := int(np.count_nonzero(is_missing(array)))):
            flaws.append(f"column {name} has no label in {n:,} rows")
    return flaws


def _not_as_it_was(
    side: Side, trace: Trace, lines: NDArray[np.int64], lacks: NDArray[np.bool_]
) -> list[str]:
    gap = side.gap[trace.seq[lines]]
    flaws = []
    if n := int(np.count_nonzero(lacks & ~gap)):
        flaws.append(f"in {n:,} rows column {side.name} has a label, and the original no value")
    if n := int(np.count_nonzero(gap & ~lacks)):
        flaws.append(f"in {n:,} rows column {side.name} has no label, and the original a value")
    return flaws


def _not_at_root(
    side: Side, trace: Trace, lines: NDArray[np.int64], lacks: NDArray[np.bool_]
) -> list[str]:
    above = ~side.root[trace.seq[lines]]
    flaws = []
    if n := int(np.count_nonzero(lacks & above)):
        flaws.append(
            f"in {n:,} rows column {side.name} isn't at its root, and the original lacks it"
        )
    group = trace.group[lines]
    # A subject who alone is at the root can be recognized by it.
    n = len(np.intersect1d(group[lacks & (group >= 0)], group[above & ~lacks]))
    if n:
        flaws.append(
            f"in {n:,} groups column {side.name} isn't at its root, though a member lacks it"
        )
    return flaws
