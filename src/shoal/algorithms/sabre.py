"""SABRE: t-closeness by buckets of sensitive values.

Values that are near each other share a bucket, and a group takes rows of each bucket in about the
proportion of the whole table. Any such group is close to the table, so the rows can be chosen for
being near each other: along the Hilbert curve (`SabreAk`) or by exact distance (`SabreKnn`).

`SabreW` works on the windows of a stream: when the window advances, the rows that expire are
published in groups that SABRE-AK forms of the held rows of the window, each close to the whole
window. If the held rows have become too different from their window, the groups that were formed
in an earlier window are published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.buckets import EVERYWHERE, sabre_parts
from shoal.engine.by_window import ByWindow
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import Partitioner, WholeTable
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, TCloseness

__all__ = ["SabreAk", "SabreKnn", "SabreW"]


@dataclass(frozen=True, kw_only=True)
class _Sabre(Partitioner):
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, TCloseness)
    reference: ClassVar[str] = "Cao, Karras, Kalnis, Tan: SABRE (VLDB Journal 2011)"


@dataclass(frozen=True, kw_only=True)
class _AlongCurve(_Sabre):
    look: int = 8

    def __post_init__(self) -> None:
        self._at_least(1, "look")

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Form groups close to the table or window, filled along the curve."""
        return sabre_parts(space.sides, limits, rows, random, self.look)


@dataclass(frozen=True, kw_only=True)
class SabreAk(_AlongCurve, WholeTable):
    """SABRE with approximate neighbours, for whole tables.

    Groups that miss k, l or the closeness of a further attribute are merged with near ones.

    Parameters
    ----------
    look
        How many rows, near along the curve, are considered for each one that a group takes; the
        nearest of them are taken. 1 takes what is nearest along the curve.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Hierarchy, Policy, Quasi, Range, Schema, Sensitive, TCloseness, anonymize
    >>> patients = pa.table({"age": [20, 70, 22, 71], "ill": ["flu", "flu", "cold", "cold"]})
    >>> illness = Sensitive("ill", Hierarchy.flat(["cold", "flu"]))
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [illness])
    >>> policy = Policy(TCloseness(0.25), window="all")
    >>> sorted(anonymize(patients, schema, policy, SabreAk())["age"].to_pylist())
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    J. Cao, P. Karras, P. Kalnis, K.-L. Tan, "SABRE: a Sensitive Attribute Bucketization and
    REdistribution framework for t-closeness", VLDB Journal 20, 2011; chapter 3 of J. Cao's thesis,
    NUS, 2010.
    """

    name: ClassVar[str] = "sabre-ak"


@dataclass(frozen=True, kw_only=True)
class SabreKnn(_Sabre, WholeTable):
    """SABRE with exact neighbours, for whole tables.

    It loses a little less than `SabreAk`, and compares every row with every group: the time grows
    with the square of the rows.

    Parameters
    ----------
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Policy, Quasi, Range, Schema, Sensitive, TCloseness, anonymize
    >>> pay = pa.table({"age": [20, 70, 22, 71], "pay": [1, 1, 5, 5]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> policy = Policy(TCloseness(0.25), window="all")
    >>> sorted(anonymize(pay, schema, policy, SabreKnn())["age"].to_pylist())
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    The paper and the chapter of `SabreAk`.
    """

    name: ClassVar[str] = "sabre-knn"

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Form groups close to the table, filled with the nearest rows."""
        return sabre_parts(space.sides, limits, rows, random, EVERYWHERE)


@dataclass(frozen=True, kw_only=True)
class SabreW(_AlongCurve, ByWindow):
    """SABRE for streams, window by window.

    The knobs are those of `SabreAk`.

    >>> import pyarrow as pa
    >>> from shoal import Policy, Quasi, Range, Schema, Sensitive, TCloseness, Window, anonymize
    >>> pay = pa.table({"age": [20, 70, 22, 71], "pay": [1, 1, 5, 5]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> policy = Policy(TCloseness(0.25), window=Window(rows=4, advance=2))
    >>> sorted(anonymize(pay, schema, policy, SabreW())["age"].to_pylist())
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    The paper of `SabreAk`; chapter 6 of J. Cao's thesis, NUS, 2010.
    """

    name: ClassVar[str] = "sabre-w"
