"""SABRE_W: t-closeness for a stream, window by window.

When the window advances, the rows that expire leave in groups that SABRE-AK forms of the rows of
the window which are still there, each close to the whole window; if those have become too
different from it, in groups that were formed of an earlier window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.buckets import sabre_parts
from shoal.engine.by_window import ByWindow
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, TCloseness

__all__ = ["SabreW"]


@dataclass(frozen=True, kw_only=True)
class SabreW(ByWindow):
    """SABRE for windows of a stream.

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
    >>> from shoal import Sensitive, Window
    >>> illness = Hierarchy.flat(["cold", "flu"])
    >>> schema = Schema(
    ...     subject=None, quasi=[Quasi("age", Range(0, 100))], sensitive=[Sensitive("ill", illness)]
    ... )
    >>> policy = Policy(KAnonymity(2), TCloseness(0.5), window=Window(rows=4, advance=2))
    >>> engine = SabreW().start(schema, policy, seed=b"1")
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
    REdistribution framework for t-closeness", VLDB Journal 20, 2011; chapter 6 of J. Cao's thesis,
    NUS, 2010.
    """

    name: ClassVar[str] = "sabre-w"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, TCloseness)
    reference: ClassVar[str] = "Cao, Karras, Kalnis, Tan: SABRE (VLDB Journal 2011)"

    look: int = 8

    def __post_init__(self) -> None:
        self._at_least(1, "look")

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Groups close to the window, filled along the curve."""
        return sabre_parts(space.sides, limits, rows, random, self.look)
