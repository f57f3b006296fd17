"""delta-disclosure: no value is much rarer or much more frequent in a group than in its window."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.criteria.measured import SLACK, Counts, Judge, Measure, check_attributes
from shoal.audit.criteria.registry import checks
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import DeltaDisclosure

__all__ = ["check", "disclosed"]


@checks(DeltaDisclosure)
def check(evidence: Evidence, criterion: DeltaDisclosure) -> list[Verdict]:
    """Compare |ln(q / p)| of every value of the window with delta; a value may not be absent."""
    delta = criterion.delta

    def judge_of(domain: Domain | None, places: NDArray[np.float64]) -> Judge:
        def judge(inside: Counts, beside: Counts) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
            found = disclosed(inside, beside)
            # Strictly less; but no float is the logarithm of a fraction, so equality can't occur.
            return found < delta * (1.0 + SLACK), found

        return judge

    measure = Measure(
        "disclosure",
        ("delta", delta),
        f"a value absent, or |ln(q/p)| not below {delta:g}",
        judge_of,
    )
    return check_attributes(evidence, criterion, measure)


def disclosed(inside: Counts, beside: Counts) -> NDArray[np.float64]:
    """Return the largest |ln(q / p)| of the values of a window; infinite if the group lacks one.

    >>> disclosed(np.array([[1, 1], [2, 0]]), np.array([[5, 5]])).tolist()
    [0.0, inf]
    """
    n_inside, n_beside = (counts.sum(axis=1, keepdims=True) for counts in (inside, beside))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (inside * n_beside) / (beside * n_inside)
        found = np.where(beside > 0, np.abs(np.log(ratio)), 0.0)
    return np.asarray(found.max(axis=1), dtype=np.float64)
