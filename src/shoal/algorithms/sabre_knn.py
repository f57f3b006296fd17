"""SABRE-KNN: t-closeness for a table, by buckets of sensitive values and nearest neighbours.

As SABRE-AK, but a group takes the rows that are nearest of all. That loses a little less, and takes
a look at every row for every group: the time grows with the square of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.buckets import EVERYWHERE, sabre_parts
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import WholeTable
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, TCloseness

__all__ = ["SabreKnn"]


@dataclass(frozen=True, kw_only=True)
class SabreKnn(WholeTable):
    """SABRE with exact neighbours, for whole tables.

    Of k and l, and of further attributes, is taken care by merging groups that break the promise
    with near ones.

    Parameters
    ----------
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import numpy as np
    >>> from shoal import Codes, TCloseness, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
    >>> from shoal import Sensitive
    >>> illness = Hierarchy.flat(["cold", "flu"])
    >>> schema = Schema(
    ...     subject=None, quasi=[Quasi("age", Range(0, 100))], sensitive=[Sensitive("ill", illness)]
    ... )
    >>> policy = Policy(KAnonymity(2), TCloseness(0.5), window="all")
    >>> engine = SabreKnn().start(schema, policy, seed=b"1")
    >>> ages = np.array([[20.0], [70.0], [22.0], [71.0]])
    >>> ill = np.array([[0], [0], [1], [1]])
    >>> nothing_yet = engine.push(Codes(ages, np.arange(4), ill, np.full(4, np.nan)))
    >>> decided = engine.flush()
    >>> for n, lo, hi in sorted(zip(decided.n_rows, decided.lo[:, 0], decided.hi[:, 0])):
    ...     print(f"{n} people from {lo} to {hi}")
    2 people from 20.0 to 22.0
    2 people from 70.0 to 71.0

    References
    ----------
    J. Cao, P. Karras, P. Kalnis, K.-L. Tan, "SABRE: a Sensitive Attribute Bucketization and
    REdistribution framework for t-closeness", VLDB Journal 20, 2011; chapter 3 of J. Cao's thesis,
    NUS, 2010.
    """

    name: ClassVar[str] = "sabre-knn"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, TCloseness)
    reference: ClassVar[str] = "Cao, Karras, Kalnis, Tan: SABRE (VLDB Journal 2011)"

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Groups close to the window, filled with the nearest rows."""
        return sabre_parts(space.sides, limits, rows, random, EVERYWHERE)
