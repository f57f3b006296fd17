"""BUREL: beta-likeness by buckets of sensitive values and a space-filling curve.

Values that may be about equally frequent share a bucket. A group takes so few rows of each bucket
that even the rarest value of the bucket can't become too frequent in it, and chooses rows that lie
near each other on the Hilbert curve.

`BurelW` works on the windows of a stream. Relative gains don't add up over a window as distances
do, so every group is compared with its window directly.
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
from shoal.engine.whole_table import Partitioner, WholeTable
from shoal.spec.policy import BetaLikeness, Criterion, KAnonymity, LDiversity

__all__ = ["Burel", "BurelW"]


@dataclass(frozen=True, kw_only=True)
class _Burel(Partitioner):
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, BetaLikeness)

    look: int = 8

    def __post_init__(self) -> None:
        self._at_least(1, "look")

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Form groups like the table or window, filled along the curve."""
        return burel_parts(space.sides, limits, rows, random, self.look)


@dataclass(frozen=True, kw_only=True)
class Burel(_Burel, WholeTable):
    """BUREL, for whole tables.

    Groups that miss k, l or the likeness of a further attribute are merged with near ones.

    Parameters
    ----------
    look
        How many rows, near along the curve, are considered for each one that a group takes; the
        nearest of them are taken. 1 takes what is nearest along the curve.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import EnhancedLikeness, Policy, Quasi, Range, Schema, Sensitive, anonymize
    >>> patients = pa.table({"age": [20, 70, 22, 71], "ill": ["flu", "flu", "cold", "cold"]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("ill")])
    >>> policy = Policy(EnhancedLikeness(0.5), window="all")
    >>> sorted(anonymize(patients, schema, policy, Burel())["age"].to_pylist())
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    Chapter 4 of J. Cao's thesis, NUS, 2010.
    """

    name: ClassVar[str] = "burel"
    reference: ClassVar[str] = "Cao: BUREL (chapter 4 of his thesis, NUS 2010)"


@dataclass(frozen=True, kw_only=True)
class BurelW(_Burel, ByWindow):
    """BUREL for streams, window by window.

    The knobs are those of `Burel`.

    >>> import pyarrow as pa
    >>> from shoal import EnhancedLikeness, Policy, Quasi, Range, Schema, Sensitive, Window
    >>> from shoal import anonymize
    >>> patients = pa.table({"age": [20, 70, 22, 71], "ill": ["flu", "flu", "cold", "cold"]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("ill")])
    >>> policy = Policy(EnhancedLikeness(0.5), window=Window(rows=4, advance=2))
    >>> sorted(anonymize(patients, schema, policy, BurelW())["age"].to_pylist())
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    §6.6 of J. Cao's thesis, NUS, 2010.
    """

    name: ClassVar[str] = "burel-w"
    reference: ClassVar[str] = "Cao: BUREL (§6.6 of his thesis, NUS 2010)"
