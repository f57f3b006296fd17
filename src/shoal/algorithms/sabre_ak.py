"""SABRE-AK: t-closeness for a table, by buckets of sensitive values and a space-filling curve.

Values that are near each other share a bucket; a group takes of each bucket about the share that
the whole table has of it, so it is close to the table whatever rows it takes. It takes rows that
lie near each other on the Hilbert curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.buckets import sabre_parts
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import WholeTable
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, TCloseness

__all__ = ["SabreAk"]


@dataclass(frozen=True, kw_only=True)
class SabreAk(WholeTable):
    """SABRE with approximate neighbours, for whole tables.

    Of k and l, and of further attributes, is taken care by merging groups that break the promise
    with near ones.

    Parameters
    ----------
    look
        How many rows, near along the curve, are looked at for each one that a group takes; of these
        the nearest are taken. 1 takes what is nearest along the curve.
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
    >>> engine = SabreAk().start(schema, policy, seed=b"1")
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

    name: ClassVar[str] = "sabre-ak"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, TCloseness)
    reference: ClassVar[str] = "Cao, Karras, Kalnis, Tan: SABRE (VLDB Journal 2011)"

    look: int = 8

    def __post_init__(self) -> None:
        self._at_least(1, "look")

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Groups close to the window, filled along the curve."""
        return sabre_parts(space.sides, limits, rows, random, self.look)
