"""tMondrian: Mondrian whose cuts need both halves to be close to the whole table (t-closeness).

The sensitive values of a half must be within t of those of the table.
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
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, TCloseness

__all__ = ["TMondrian"]


@dataclass(frozen=True, kw_only=True)
class TMondrian(WholeTable):
    """Mondrian for t-closeness, for whole tables.

    Parameters
    ----------
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.
        The attribute that loses most is cut first.

    >>> import numpy as np
    >>> from shoal import Codes, Policy, Quasi, Range, Schema, Sensitive, TCloseness
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> engine = TMondrian().start(schema, Policy(TCloseness(0.2), window="all"), seed=b"1")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> values = np.array([[1.0], [1.0], [5.0], [5.0]]).view(np.int64)
    >>> _ = engine.push(Codes(ages, people, values, np.full(4, np.nan)))
    >>> decided = engine.flush()
    >>> for n, lo, hi in zip(decided.n_subjects, decided.lo, decided.hi):
    ...     print(f"{n} people in {lo} to {hi}")
    2 people in [20.] to [22.]
    2 people in [70.] to [71.]

    References
    ----------
    K. LeFevre, D. J. DeWitt, R. Ramakrishnan, "Mondrian Multidimensional K-Anonymity", ICDE 2006;
    N. Li, T. Li, S. Venkatasubramanian, "Closeness: A New Privacy Measure for Data Publishing",
    IEEE TKDE 22(7), 2010.
    """

    name: ClassVar[str] = "t-mondrian"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, TCloseness)
    reference: ClassVar[str] = "Li, Li, Venkatasubramanian: t-closeness (IEEE TKDE 2010)"

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Rows cut at medians."""
        return median_parts(space.sides, limits, rows)
