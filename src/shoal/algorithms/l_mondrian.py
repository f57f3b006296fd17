"""LMondrian: Mondrian whose cuts need both halves to be like the whole table (beta-likeness).

No sensitive value may be much more frequent in a half than it is in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.median import median_parts
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.engine.whole_table import WholeTable
from shoal.spec.policy import BetaLikeness, Criterion, KAnonymity, LDiversity

__all__ = ["LMondrian"]


@dataclass(frozen=True, kw_only=True)
class LMondrian(WholeTable):
    """Mondrian for beta-likeness in all of its forms, for whole tables.

    Parameters
    ----------
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.
        The attribute that loses most is cut first.

    >>> import numpy as np
    >>> from shoal import Codes, EnhancedLikeness, Policy, Quasi, Range, Schema, Sensitive
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))], [Sensitive("illness")])
    >>> engine = LMondrian().start(schema, Policy(EnhancedLikeness(0.5), window="all"), seed=b"1")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> values = np.array([[7], [7], [9], [9]])
    >>> _ = engine.push(Codes(ages, people, values, np.full(4, np.nan)))
    >>> decided = engine.flush()
    >>> for n, lo, hi in zip(decided.n_subjects, decided.lo, decided.hi):
    ...     print(f"{n} people in {lo} to {hi}")
    2 people in [20.] to [22.]
    2 people in [70.] to [71.]

    References
    ----------
    K. LeFevre, D. J. DeWitt, R. Ramakrishnan, "Mondrian Multidimensional K-Anonymity", ICDE 2006;
    J. Cao, "Privacy-preserving data publication for static and streaming data", thesis, NUS, 2010,
    section 4.4.2.
    """

    name: ClassVar[str] = "l-mondrian"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, BetaLikeness)
    reference: ClassVar[str] = "Cao: LMondrian (thesis, NUS 2010, section 4.4.2)"

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Rows cut at medians."""
        return median_parts(space.sides, limits, rows)
