"""tIncognito: one level of detail for each attribute, the finest at which all groups are close.

All combinations of levels are searched, and one is used for the whole table. `TIncognitoW`
chooses one for each window of a stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.base import Engine
from shoal.engine.by_window import ByWindow
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.lattice import MOST_LEVELS, check_lattice, lattice_parts
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import Partitioner, WholeTable
from shoal.spec.policy import Closeness, Criterion, KAnonymity, LDiversity

__all__ = ["TIncognito", "TIncognitoW"]


@dataclass(frozen=True, kw_only=True)
class _Incognito(Partitioner):
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, Closeness)

    levels: int = 4

    def __post_init__(self) -> None:
        self._at_least(1, "levels")
        self._at_most(MOST_LEVELS, "levels")

    def _start(self, space: Space, seed: bytes) -> Engine:
        check_lattice(self.name, space.shown, self.levels)
        # The other base, for tables or windows, starts the engine.
        return super()._start(space, seed)  # type: ignore[safe-super]

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Put rows together that are in one cell at the chosen levels."""
        return lattice_parts(space.shown, limits, rows, self.levels)


@dataclass(frozen=True, kw_only=True)
class TIncognito(_Incognito, WholeTable):
    """Full-domain generalization for t-closeness, for whole tables.

    Parameters
    ----------
    levels
        The number of steps from an exact number to its whole range: the last but one is one half of
        the range, the one before a quarter, and so on. The steps of a category are those of its
        hierarchy.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.
        Of all combinations of levels that can't be finer, the one that loses least is taken.

    >>> import pyarrow as pa
    >>> from shoal import Policy, Quasi, Range, Schema, Sensitive, TCloseness, anonymize
    >>> pay = pa.table({"age": [20, 70, 22, 71], "pay": [1, 1, 5, 5]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> policy = Policy(TCloseness(0.2), window="all")
    >>> anonymize(pay, schema, policy, TIncognito())["age"].to_pylist()
    ['[12.5, 25]', '[12.5, 25]', '[62.5, 75]', '[62.5, 75]']

    References
    ----------
    K. LeFevre, D. J. DeWitt, R. Ramakrishnan, "Incognito: Efficient Full-Domain K-Anonymity",
    SIGMOD 2005; N. Li, T. Li, S. Venkatasubramanian, "t-Closeness: Privacy Beyond k-Anonymity and
    l-Diversity", ICDE 2007.
    """

    name: ClassVar[str] = "t-incognito"
    reference: ClassVar[str] = "Li, Li, Venkatasubramanian: t-closeness (ICDE 2007)"


@dataclass(frozen=True, kw_only=True)
class TIncognitoW(_Incognito, ByWindow):
    """Full-domain generalization for (omega, t)-closeness, for streams, window by window.

    The knobs are those of `TIncognito`.

    >>> import pyarrow as pa
    >>> from shoal import Policy, Quasi, Range, Schema, Sensitive, TCloseness, Window, anonymize
    >>> pay = pa.table({"age": [20, 70, 22, 71], "pay": [1, 1, 5, 5]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> policy = Policy(TCloseness(0.2), window=Window(rows=4, advance=2))
    >>> anonymize(pay, schema, policy, TIncognitoW())["age"].to_pylist()
    ['[12.5, 25]', '[12.5, 25]', '[62.5, 75]', '[62.5, 75]']

    References
    ----------
    The papers of `TIncognito`; J. Cao, "Privacy-preserving data publication for static and
    streaming data", thesis, NUS, 2010, section 6.5.
    """

    name: ClassVar[str] = "t-incognito-w"
    reference: ClassVar[str] = "Cao: tIncognito_W (thesis, NUS 2010, section 6.5)"
