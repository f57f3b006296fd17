"""Entropy l-diversity: the entropy of the values is at least log(l), by rows and by people."""

from __future__ import annotations

import math

from shoal.audit.criteria.diversity import Evenness, Tally, check_attributes
from shoal.audit.criteria.registry import checks
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.policy import EntropyLDiversity

__all__ = ["check"]

# l equally frequent values have an entropy of log(l) only up to rounding.
_SLACK = 1e-9


@checks(EntropyLDiversity)
def check(evidence: Evidence, criterion: EntropyLDiversity) -> list[Verdict]:
    """Evenness the entropy of every box, and of every group whenever rows were added to it."""
    least = math.log(criterion.l) - _SLACK

    def judge(tally: Tally) -> tuple[bool, float]:
        entropy = tally.entropy()
        # The figure is the number of equally frequent values that have this entropy.
        return entropy >= least, math.exp(entropy)

    return check_attributes(evidence, criterion, Evenness("effective_values", judge, min))
