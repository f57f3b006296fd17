"""One checker for each criterion.

To add one, write its module with ``check(evidence, criterion) -> list[Verdict]`` and name it
in `CHECKERS`. A criterion that isn't named there is reported as unverifiable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.audit.criteria import (
    closeness,
    disclosure,
    distinct_l,
    entropy_l,
    k_anonymity,
    likeness,
    recursive_l,
)
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.policy import (
    BasicLikeness,
    Criterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    KAnonymity,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
)

__all__ = ["CHECKERS"]

CHECKERS: Mapping[type[Criterion], Callable[[Evidence, Any], list[Verdict]]] = {
    KAnonymity: k_anonymity.check,
    DistinctLDiversity: distinct_l.check,
    EntropyLDiversity: entropy_l.check,
    RecursiveLDiversity: recursive_l.check,
    TCloseness: closeness.check,
    BasicLikeness: likeness.check_basic,
    EnhancedLikeness: likeness.check_enhanced,
    SemanticLikeness: likeness.check_semantic,
    RangeLikeness: likeness.check_range,
    DeltaDisclosure: disclosure.check,
}
