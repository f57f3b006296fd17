"""BUREL_W: beta-likeness for a stream, window by window.

As SABRE_W with the groups of BUREL. Relative gains don't add up over a window as distances do: so
every group is compared with its window itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from shoal.bucketed import burel_parts
from shoal.engine import Anonymizer, Engine
from shoal.kernels.criteria import Limits
from shoal.kernels.held import Rows
from shoal.kernels.parts import Parts
from shoal.policy import BetaLikeness, Criterion, KAnonymity, LDiversity, Missing
from shoal.sliding import SlidingEngine
from shoal.space import Space

__all__ = ["BurelW"]


@dataclass(frozen=True, kw_only=True)
class BurelW(Anonymizer):
    """BUREL for windows of a stream.

    k, l and further promises are seen to by merging groups that break them with near ones.

    Parameters
    ----------
    look
        How many rows, near along the curve, are looked at for each one that a group takes; of these
        the nearest are taken. 1 takes what is nearest along the curve.
    loss
        How loss is measured, ``"glm"`` or ``"lm"``; see `shoal.space.Space`.

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
    >>> for n, lo, hi in zip(decided.n_rows, decided.lo, decided.hi):
    ...     print(f"{n} people in {lo} to {hi}")
    2 people in [20.] to [22.]
    2 people in [70.] to [71.]

    References
    ----------
    §6.6 of J. Cao's thesis, NUS, 2010.
    """

    name: ClassVar[str] = "burel-w"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, BetaLikeness)
    reference: ClassVar[str] = "Cao: BUREL (§6.6 of his thesis, NUS 2010)"
    needs_delay: ClassVar[bool] = False
    publishes: ClassVar[Literal["rows", "windows", "table"]] = "windows"
    missing: ClassVar[tuple[Missing, ...]] = ("quarantine", "extended")

    look: int = 8

    def __post_init__(self) -> None:
        self._at_least(1, "look")

    def _start(self, space: Space, seed: bytes) -> Engine:
        return BurelWEngine(space, seed, look=self.look)


class BurelWEngine(SlidingEngine):
    """One run of `BurelW`."""

    def __init__(self, space: Space, seed: bytes, *, look: int) -> None:
        super().__init__(space, seed)
        self._look = look

    def _parts(self, rows: Rows, limits: Limits) -> Parts:
        return burel_parts(self.space.sides, limits, rows, self.state.rng, self._look)
