"""tIncognito: one level of detail for each attribute, the finest at which all rows are close.

All combinations of levels are searched, and the same one is used for the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.base import Engine
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.lattice import MOST_LEVELS, check_lattice, lattice_parts
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import WholeTable
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, TCloseness

__all__ = ["TIncognito"]


@dataclass(frozen=True, kw_only=True)
class TIncognito(WholeTable):
    """Full-domain generalization for t-closeness, for whole tables.

    Parameters
    ----------
    levels
        How many steps lead from an exact number to its whole range: the last but one is one half of
        the range, the one before a quarter, and so on. The steps of a category are those of its
        hierarchy.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.
        Of all combinations of levels that can't be finer the one that loses least is taken.

    >>> import numpy as np
    >>> from shoal import Codes, Policy, Quasi, Range, Schema, Sensitive, TCloseness
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> policy = Policy(TCloseness(0.2), window="all")
    >>> engine = TIncognito().start(schema, policy, seed=b"1")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> values = np.array([[1.0], [1.0], [5.0], [5.0]]).view(np.int64)
    >>> _ = engine.push(Codes(ages, people, values, np.full(4, np.nan)))
    >>> decided = engine.flush()
    >>> for n, lo, hi in zip(decided.n_subjects, decided.lo, decided.hi):
    ...     print(f"{n} people in {lo} to {hi}")
    2 people in [12.5] to [25.]
    2 people in [62.5] to [75.]

    References
    ----------
    K. LeFevre, D. J. DeWitt, R. Ramakrishnan, "Incognito: Efficient Full-Domain K-Anonymity",
    SIGMOD 2005; N. Li, T. Li, S. Venkatasubramanian, "t-Closeness: Privacy Beyond k-Anonymity and
    l-Diversity", ICDE 2007.
    """

    name: ClassVar[str] = "t-incognito"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, TCloseness)
    reference: ClassVar[str] = "Li, Li, Venkatasubramanian: t-closeness (ICDE 2007)"

    levels: int = 4

    def __post_init__(self) -> None:
        self._at_least(1, "levels")
        self._at_most(MOST_LEVELS, "levels")

    def _start(self, space: Space, seed: bytes) -> Engine:
        check_lattice(self.name, space.shown, self.levels)
        return super()._start(space, seed)

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Rows of one cell at the chosen levels."""
        return lattice_parts(space.shown, limits, rows, self.levels)
