"""BUREL_W: beta-likeness for a stream, window by window.

As SABRE_W with the groups of BUREL. Relative gains don't add up over a window as distances do: so
every group is compared with its window itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.buckets import burel_parts
from shoal.engine.by_window import ByWindow
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.spec.policy import BetaLikeness, Criterion, KAnonymity, LDiversity

__all__ = ["BurelW"]


@dataclass(frozen=True, kw_only=True)
class BurelW(ByWindow):
    """BUREL for windows of a stream.

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
    >>> from shoal import Codes, EnhancedLikeness, Hierarchy, KAnonymity, Policy, Quasi, Range
    >>> from shoal import Schema, Sensitive, Window
    >>> illness = Hierarchy.flat(["cold", "flu"])
    >>> schema = Schema(
    ...     subject=None, quasi=[Quasi("age", Range(0, 100))], sensitive=[Sensitive("ill", illness)]
    ... )
    >>> policy = Policy(KAnonymity(2), EnhancedLikeness(1.0), window=Window(rows=4, advance=2))
    >>> engine = BurelW().start(schema, policy, seed=b"1")
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
    §6.6 of J. Cao's thesis, NUS, 2010.
    """

    name: ClassVar[str] = "burel-w"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, BetaLikeness)
    reference: ClassVar[str] = "Cao: BUREL (§6.6 of his thesis, NUS 2010)"

    look: int = 8

    def __post_init__(self) -> None:
        self._at_least(1, "look")

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Groups like the window, filled along the curve."""
        return burel_parts(space.sides, limits, rows, random, self.look)
