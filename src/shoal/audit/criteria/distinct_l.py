"""Distinct l-diversity: l different subjects with l different values in every class."""

from __future__ import annotations

from shoal.audit.criteria.diversity import check_attributes
from shoal.audit.criteria.registry import checks
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.policy import DistinctLDiversity

__all__ = ["check"]


@checks(DistinctLDiversity)
def check(evidence: Evidence, criterion: DistinctLDiversity) -> list[Verdict]:
    """Match subjects with values in every box, and in every group when it was released."""
    return check_attributes(evidence, criterion, None)
