"""dynamicGroup: condensation, the baseline that CASTLE is compared with.

Groups are built from the first rows of a table. Every further one joins the group with the nearest
centroid, and a group that has people enough for two is cut where its rows are spread most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.condensation import condensed_parts
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import WholeTable
from shoal.spec.policy import Criterion, KAnonymity, LDiversity

__all__ = ["DynamicGroup"]


@dataclass(frozen=True, kw_only=True)
class DynamicGroup(WholeTable):
    """Condensation for k-anonymity and l-diversity, for whole tables.

    Of l is taken care by merging groups that break the promise with near ones.

    Parameters
    ----------
    history
        How many of the first rows groups are built from. Building compares each row with all that
        are left, for every group: the time grows with the square of these rows.
    loss
        How loss is measured, ``"glm"`` or ``"lm"``; see `Space`. Which rows come
        together doesn't depend on it, but for groups that have to be merged.

    >>> import numpy as np
    >>> from shoal import KAnonymity, Policy, Quasi, Range, Schema
    >>> from shoal.engine import Codes
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))])
    >>> engine = DynamicGroup().start(schema, Policy(KAnonymity(2), window="all"), seed=b"1")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> values = np.empty((4, 0), np.int64)
    >>> _ = engine.push(Codes(ages, people, values, np.full(4, np.nan)))
    >>> decided = engine.flush()
    >>> for n, lo, hi in zip(decided.n_subjects, decided.lo, decided.hi):
    ...     print(f"{n} people in {lo} to {hi}")
    2 people in [20.] to [22.]
    2 people in [70.] to [71.]

    References
    ----------
    C. C. Aggarwal, P. S. Yu, "A Condensation Approach to Privacy Preserving Data Mining", EDBT
    2004; as dynamicGroup in J. Cao's thesis, NUS, 2010, section 5.7.3.
    """

    name: ClassVar[str] = "dynamic-group"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    reference: ClassVar[str] = "Aggarwal, Yu: condensation (EDBT 2004)"

    history: int = 8000

    def __post_init__(self) -> None:
        self._at_least(1, "history")

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Rows around centroids."""
        return condensed_parts(space.sides, limits, rows, self.history, random)
