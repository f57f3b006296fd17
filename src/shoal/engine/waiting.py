"""The family of algorithms for which waiting is a cost: their rows need a bound from outside.

Nothing in such an algorithm keeps a row from waiting for ever. Either the policy bounds the delay,
or the anonymizer bounds the number of rows that are held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.engine.deadlines import HoldingAnonymizer, check_bound, with_capacity
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.held import Held, people
from shoal.engine.kernels.predicate import Limits, any_diversity, needed, varied
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Deadlines, Space
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, Policy

__all__ = ["MANY", "WaitingAnonymizer", "nobody_can", "uncount"]

#: After this many merges the promise is checked only when the number of rows has doubled: otherwise
#: one that can't be kept would cost the square of the number of held rows.
MANY = 64


@dataclass(frozen=True, kw_only=True)
class WaitingAnonymizer(HoldingAnonymizer):
    """An anonymizer whose rows wait as long as that reduces the total cost, within a bound.

    Parameters
    ----------
    capacity
        The maximum number of held rows; 0: the policy's delay is the only bound. A row that arrives
        when the capacity is reached makes the oldest row leave.
    """

    reference: ClassVar[str] = (
        "Zhou, Han, Pei, Jiang, Tao, Jia: Continuous privacy preserving publishing of data streams "
        "(EDBT 2009)"
    )
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    needs_delay: ClassVar[bool] = False
    # A missing value widens no box: a row that lacks all values fits every group.
    minds_gaps: ClassVar[bool] = False

    capacity: int = 0

    def __post_init__(self) -> None:
        self._at_least(0, "capacity")

    def check(self, policy: Policy) -> None:
        """Refuse a policy that this anonymizer can't keep, or under which rows have no bound."""
        super().check(policy)
        check_bound(
            self.name,
            policy,
            self.capacity,
            "lets rows wait as long as it pays, and nothing bounds it: neither "
            "a delay of the policy nor a capacity is set",
        )

    def _deadlines(self, space: Space) -> Deadlines:
        """Return how long a row may wait: by the policy, or by the capacity."""
        return with_capacity(space.deadlines, self.capacity)


@kernel
def nobody_can(limits: Limits, rows: Held) -> bool:
    """Whether it is certain that no group can be formed of the held rows."""
    if rows.marks["n_subjects"][0] < needed(limits):
        return True
    if not any_diversity(limits):
        return False
    everybody = np.empty(rows.marks["n_rows"][0], np.int64)
    n = 0
    for position in range(rows.marks["oldest"][0], rows.marks["upcoming"][0]):
        if rows.rows["cluster"][wrap(position, len(rows.rows))] >= 0:
            everybody[n] = position
            n += 1
    # A part may be even where the whole isn't; but no part has more different values.
    subjects, sensitive = people(rows, everybody)
    return not varied(limits, subjects, sensitive)


@kernel
def uncount(rows: Records, marks: Records, counts: Records, positions: Ints) -> None:
    """Remove some held rows from the count of all subjects."""
    subjects = rows["subject"]
    for position in positions:
        if counter.remove(counts, counter.EVERYWHERE, subjects[wrap(position, len(rows))]):
            marks["n_subjects"][0] -= 1
