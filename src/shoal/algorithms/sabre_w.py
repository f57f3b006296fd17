"""SABRE_W: t-closeness for a stream, window by window.

When the window advances, the rows that expire leave in groups that SABRE-AK forms of the rows of
the window which are still there, each close to the whole window; if those have become too
different from it, in groups that were formed of an earlier window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from shoal.bucketed import sabre_parts
from shoal.engine import Anonymizer, Engine
from shoal.kernels.criteria import Limits
from shoal.kernels.held import Rows
from shoal.kernels.parts import Parts
from shoal.policy import Criterion, KAnonymity, LDiversity, Missing, TCloseness
from shoal.sliding import SlidingEngine
from shoal.space import Space

__all__ = ["SabreW"]


@dataclass(frozen=True, kw_only=True)
class SabreW(Anonymizer):
    """SABRE for windows of a stream.

    k, l and further promises are seen to by merging groups that break them with near ones.

    Parameters
    ----------
    look
        How many rows, near along the curve, are looked at for each one that a group takes; of these
        the nearest are taken. 1 takes what is nearest along the curve.
    loss
        How loss is measured, ``"glm"`` or ``"lm"``; see `shoal.space.Space`.

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
    >>> for n, lo, hi in zip(decided.n_rows, decided.lo, decided.hi):
    ...     print(f"{n} people in {lo} to {hi}")
    2 people in [20.] to [22.]
    2 people in [70.] to [71.]

    References
    ----------
    J. Cao, P. Karras, P. Kalnis, K.-L. Tan, "SABRE: a Sensitive Attribute Bucketization and
    REdistribution framework for t-closeness", VLDB Journal 20, 2011; chapter 6 of J. Cao's thesis,
    NUS, 2010.
    """

    name: ClassVar[str] = "sabre-w"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, TCloseness)
    reference: ClassVar[str] = "Cao, Karras, Kalnis, Tan: SABRE (VLDB Journal 2011)"
    needs_delay: ClassVar[bool] = False
    publishes: ClassVar[Literal["rows", "windows", "table"]] = "windows"
    missing: ClassVar[tuple[Missing, ...]] = ("quarantine", "extended")

    look: int = 8

    def __post_init__(self) -> None:
        self._at_least(1, "look")

    def _start(self, space: Space, seed: bytes) -> Engine:
        return SabreWEngine(space, seed, look=self.look)


class SabreWEngine(SlidingEngine):
    """One run of `SabreW`."""

    def __init__(self, space: Space, seed: bytes, *, look: int) -> None:
        super().__init__(space, seed)
        self._look = look

    def _parts(self, rows: Rows, limits: Limits) -> Parts:
        return sabre_parts(self.space.sides, limits, rows, self.state.rng, self._look)
