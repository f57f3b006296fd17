"""Recursive (c, l)-diversity: r1 < c (r_l + r_(l+1) + …), by rows and by people."""

from __future__ import annotations

from shoal.audit.criteria.diversity import Measure, Tally, check_attributes
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.policy import RecursiveLDiversity

__all__ = ["check"]


def check(evidence: Evidence, criterion: RecursiveLDiversity) -> list[Verdict]:
    """Compare the counts of every box, and of every group whenever a row was added to it."""
    level = int(criterion.l)

    def holds(tally: Tally) -> bool:
        largest, tail = tally.largest_and_tail(level)
        return largest < criterion.c * tail

    measure = Measure(
        name="largest_to_tail",
        holds=holds,
        figure=lambda tally: tally.largest_to_tail(level),
        worst=max,
    )
    return check_attributes(evidence, criterion, measure)
