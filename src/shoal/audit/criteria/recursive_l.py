"""Recursive (c, l)-diversity: r1 < c (r_l + r_(l+1) + …), by rows and by people."""

from __future__ import annotations

import math

from shoal.audit.criteria.diversity import Evenness, Tally, check_attributes
from shoal.audit.criteria.registry import checks
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.policy import RecursiveLDiversity

__all__ = ["check"]


@checks(RecursiveLDiversity)
def check(evidence: Evidence, criterion: RecursiveLDiversity) -> list[Verdict]:
    """Compare the counts of every box, and of every group whenever rows were added to it."""
    level = int(criterion.l)

    def judge(tally: Tally) -> tuple[bool, float]:
        largest, tail = tally.largest_and_tail(level)
        # The figure is the bound that c must exceed; with fewer than l values no c is enough.
        return largest < criterion.c * tail, largest / tail if tail else math.inf

    return check_attributes(evidence, criterion, Evenness("largest_to_tail", judge, max))
