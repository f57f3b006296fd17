"""What attacks on z-anonymity have in common: the output cell by cell."""

from __future__ import annotations

from typing import ClassVar

from shoal.attacks.base import Attack
from shoal.attacks.setting import Setting
from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.trace import read_cell_trace

__all__ = ["CellAttack", "cells_of"]


class CellAttack(Attack):
    """An attack on values that are published one by one."""

    needs_trace: ClassVar[bool] = True
    has_control: ClassVar[bool] = False

    def misfit(self, setting: Setting) -> str | None:
        """Return that values aren't published one by one, or None."""
        return None if setting.policy.per_value else "only z-anonymity publishes values one by one"


def cells_of(setting: Setting) -> ZEvidence:
    """Join output, trace and original as the audit of z does; there must be a trace."""
    names = [attribute.name for attribute in setting.schema.quasi]
    assert setting.trace is not None
    return ZEvidence(
        setting.schema,
        setting.policy,
        setting.published,
        suppressed=setting.suppressed,
        trace=read_cell_trace(setting.trace, names),
        original=setting.original,
        original_rows=setting.original_rows,
        n_quarantined=None,
        count="residual",
        pseudonym=setting.pseudonym,
        rotate=setting.rotate,
        time=None,
    )
