"""What recipes share for which waiting is a cost and not a deadline: their rows need a bound.

Such an algorithm publishes when it sees fit, and nothing in it keeps a row from waiting for ever.
Either the policy says how long a row may wait, or the recipe how many may wait at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.engine.deadlines import HoldingAnonymizer
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter
from shoal.engine.kernels.arrays import Ints, Records
from shoal.engine.kernels.held import Held, people
from shoal.engine.kernels.predicate import Limits, any_diversity, needed, varied
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Deadlines, Space
from shoal.errors import UnsupportedError
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, Policy

__all__ = ["MANY", "SPAN", "WaitingAnonymizer", "nobody_can", "uncount"]

#: After so many merges it is only looked whether a promise is kept when there are twice as many
#: rows: else one that can't be kept, though it isn't plain, would cost the square of what is held.
MANY = 64

#: Where nothing but a capacity bounds what is held, no row waits for more than so many times as
#: many rows: else one that never leaves would keep a place open for each row that came after it.
SPAN = 16


@dataclass(frozen=True, kw_only=True)
class WaitingAnonymizer(HoldingAnonymizer):
    """A recipe whose rows wait as long as it pays, within a bound.

    Parameters
    ----------
    capacity
        How many rows are held at most; 0: as many as the policy's delay lets wait. Who comes when
        all places are taken makes the oldest one leave.
    """

    reference: ClassVar[str] = (
        "Zhou, Han, Pei, Jiang, Tao, Jia: Continuous privacy preserving publishing of data streams "
        "(EDBT 2009)"
    )
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    needs_delay: ClassVar[bool] = False
    # A gap widens no box, so that a row which lacks everything fits everywhere.
    minds_gaps: ClassVar[bool] = False

    capacity: int = 0

    def __post_init__(self) -> None:
        self._at_least(0, "capacity")

    def check(self, policy: Policy) -> None:
        """Refuse a policy that this anonymizer can't keep, or that lets rows wait for ever."""
        super().check(policy)
        if policy.delay is None and not self.capacity:
            raise UnsupportedError(
                f"'{self.name}' lets rows wait as long as it pays, and nothing bounds it: neither "
                "a delay of the policy nor a capacity is set",
                fix="Set policy.delay, for example { rows = 10000 }, or algorithm.capacity",
            )
        fewest = max(policy.k, *(criterion.needed for criterion in policy.diversity), 1)
        if self.capacity and self.capacity + 1 < fewest:
            raise UnsupportedError(
                f"'{self.name}' with a capacity of {self.capacity:,} rows never has the "
                f"{fewest:,} people that a group needs",
                fix=f"Set algorithm.capacity to at least {fewest - 1}, better to many times that",
            )

    def _deadlines(self, space: Space) -> Deadlines:
        """How long a row may wait: as the policy says, or as the capacity lets it."""
        if space.deadlines.rows or space.deadlines.seconds:
            return space.deadlines
        return Deadlines(rows=SPAN * self.capacity, seconds=0.0)


@kernel
def nobody_can(limits: Limits, rows: Held) -> bool:
    """Whether it is plain that no group can be formed of all that is held."""
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
    # Evenness can be had of a part, variety can't.
    subjects, sensitive = people(rows, everybody)
    return not varied(limits, subjects, sensitive)


@kernel
def uncount(rows: Records, marks: Records, counts: Records, positions: Ints) -> None:
    """Some held rows don't count any more when it is counted who is there at all."""
    subjects = rows["subject"]
    for position in positions:
        if counter.remove(counts, counter.EVERYWHERE, subjects[wrap(position, len(rows))]):
            marks["n_subjects"][0] -= 1
