"""Mondrian: cut the rows in two at a median, and each half again, while both keep the policy.

By default the attribute whose side of the box loses most is cut first; if no cut of it keeps the
policy, the next one. The variants differ in the criterion that both halves must meet against the
whole table (t-closeness, beta-likeness, delta-disclosure), and `TMondrianW` cuts the windows of a
stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from shoal.engine.by_window import ByWindow
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.median import Cuts, median_parts
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import Partitioner, WholeTable
from shoal.spec.policy import (
    BetaLikeness,
    Closeness,
    Criterion,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
)

__all__ = ["DMondrian", "LMondrian", "Mondrian", "TMondrian", "TMondrianW"]


@dataclass(frozen=True, kw_only=True)
class _MedianCuts(Partitioner):
    side: Literal["loss", "widest"] = "loss"
    cut: Literal["code", "hierarchy"] = "code"
    retry: bool = True

    def __post_init__(self) -> None:
        self._one_of("side", ("loss", "widest"))
        self._one_of("cut", ("code", "hierarchy"))
        self._is_flag("retry")

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Cut rows at medians, or categories along their hierarchies."""
        cuts = Cuts(space.shown, self.side == "widest", self.cut == "hierarchy", self.retry)
        return median_parts(space.sides, limits, rows, cuts)


@dataclass(frozen=True, kw_only=True)
class Mondrian(_MedianCuts, WholeTable):
    """Strict multidimensional Mondrian for k-anonymity and l-diversity, for whole tables.

    Parameters
    ----------
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.
    side
        Which attribute is cut first: ``"loss"``, the one whose side of the box loses most;
        ``"widest"``, the one whose values span the largest share of their domain, categories in the
        order of their leaves (as in the paper). Weights count in both.
    cut
        How categories are cut: ``"code"``, in two at the median of their leaves, in the order of
        the tree; ``"hierarchy"``, into all children of the lowest node above them.
    retry
        Whether further attributes are tried if the first one can't be cut.

    >>> import pyarrow as pa
    >>> from shoal import KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), window="all")
    >>> anonymize(people, schema, policy, Mondrian())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    K. LeFevre, D. J. DeWitt, R. Ramakrishnan, "Mondrian Multidimensional K-Anonymity", ICDE 2006.
    """

    name: ClassVar[str] = "mondrian"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    reference: ClassVar[str] = "LeFevre, DeWitt, Ramakrishnan: Mondrian (ICDE 2006)"


@dataclass(frozen=True, kw_only=True)
class TMondrian(Mondrian):
    """Mondrian for t-closeness, for whole tables.

    The sensitive values of both halves of a cut must be within t of those of the table. The knobs
    are those of `Mondrian`.

    >>> import pyarrow as pa
    >>> from shoal import Policy, Quasi, Range, Schema, Sensitive, TCloseness, anonymize
    >>> pay = pa.table({"age": [20, 70, 22, 71], "pay": [1, 1, 5, 5]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> policy = Policy(TCloseness(0.2), window="all")
    >>> anonymize(pay, schema, policy, TMondrian())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    N. Li, T. Li, S. Venkatasubramanian, "Closeness: A New Privacy Measure for Data Publishing",
    IEEE TKDE 22(7), 2010.
    """

    name: ClassVar[str] = "t-mondrian"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, Closeness)
    reference: ClassVar[str] = "Li, Li, Venkatasubramanian: t-closeness (IEEE TKDE 2010)"


@dataclass(frozen=True, kw_only=True)
class LMondrian(Mondrian):
    """Mondrian for beta-likeness in all of its forms, for whole tables.

    No sensitive value may be much more frequent in a half than it is in the table. The knobs are
    those of `Mondrian`.

    >>> import pyarrow as pa
    >>> from shoal import EnhancedLikeness, Policy, Quasi, Range, Schema, Sensitive, anonymize
    >>> ill = pa.table({"age": [20, 70, 22, 71], "ill": ["flu", "flu", "cold", "cold"]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("ill")])
    >>> policy = Policy(EnhancedLikeness(0.5), window="all")
    >>> anonymize(ill, schema, policy, LMondrian())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    J. Cao, "Privacy-preserving data publication for static and streaming data", thesis, NUS, 2010,
    section 4.4.2.
    """

    name: ClassVar[str] = "l-mondrian"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, BetaLikeness)
    reference: ClassVar[str] = "Cao: LMondrian (thesis, NUS 2010, section 4.4.2)"


@dataclass(frozen=True, kw_only=True)
class DMondrian(Mondrian):
    """Mondrian for delta-disclosure privacy, for whole tables.

    No sensitive value may be much more or much less frequent in a half than it is in the table;
    so each half has all values. The knobs are those of `Mondrian`.

    >>> import pyarrow as pa
    >>> from shoal import DeltaDisclosure, Policy, Quasi, Range, Schema, Sensitive, anonymize
    >>> ill = pa.table({"age": [20, 70, 22, 71], "ill": ["flu", "flu", "cold", "cold"]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("ill")])
    >>> policy = Policy(DeltaDisclosure(0.5), window="all")
    >>> anonymize(ill, schema, policy, DMondrian())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    J. Brickell, V. Shmatikov, "The Cost of Privacy: Destruction of Data-Mining Utility in
    Anonymized Data Publishing", KDD 2008; DMondrian in J. Cao's thesis, NUS, 2010, section 4.4.2.
    """

    name: ClassVar[str] = "d-mondrian"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, DeltaDisclosure)
    reference: ClassVar[str] = "Brickell, Shmatikov: delta-disclosure (KDD 2008)"


@dataclass(frozen=True, kw_only=True)
class TMondrianW(_MedianCuts, ByWindow):
    """Mondrian for (omega, t)-closeness, for streams, window by window.

    The sensitive values of both halves of a cut must be within t of those of the window. The knobs
    are those of `Mondrian`.

    >>> import pyarrow as pa
    >>> from shoal import Policy, Quasi, Range, Schema, Sensitive, TCloseness, Window, anonymize
    >>> pay = pa.table({"age": [20, 70, 22, 71], "pay": [1, 1, 5, 5]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> policy = Policy(TCloseness(0.2), window=Window(rows=4, advance=2))
    >>> anonymize(pay, schema, policy, TMondrianW())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    N. Li, T. Li, S. Venkatasubramanian, "Closeness: A New Privacy Measure for Data Publishing",
    IEEE TKDE 22(7), 2010; J. Cao, "Privacy-preserving data publication for static and streaming
    data", thesis, NUS, 2010, section 6.5.
    """

    name: ClassVar[str] = "t-mondrian-w"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, Closeness)
    reference: ClassVar[str] = "Cao: tMondrian_W (thesis, NUS 2010, section 6.5)"
