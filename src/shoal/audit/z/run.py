"""All verdicts about an output of cells."""

from __future__ import annotations

from collections.abc import Callable

from shoal.audit.report import Report, Verdict
from shoal.audit.z import conservation, delay, labels, pseudonyms, shape
from shoal.audit.z import criterion as z_anonymity
from shoal.audit.z.evidence import ZEvidence

__all__ = ["judge"]

_CHECKS: tuple[Callable[[ZEvidence], Verdict | None], ...] = (
    shape.check,
    shape.secrecy,
    z_anonymity.check,
    delay.check,
    delay.lateness,
    conservation.check,
    labels.check,
    pseudonyms.check,
)


def judge(cells: ZEvidence) -> Report:
    """Judge whether an output keeps z-anonymity."""
    found = (check(cells) for check in _CHECKS)
    return Report(tuple(verdict for verdict in found if verdict is not None), cells.n_rows)
