"""Mondrian: a table cut in two at a median, and each half again, while both have enough people.

The attribute is cut whose side of the box loses most; if that can't be, the next one.
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
from shoal.spec.policy import Criterion, KAnonymity, LDiversity

__all__ = ["Mondrian"]


@dataclass(frozen=True, kw_only=True)
class Mondrian(WholeTable):
    """Strict multidimensional Mondrian for k-anonymity and l-diversity, for whole tables.

    Parameters
    ----------
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.
        The attribute that loses most is cut first.

    >>> import numpy as np
    >>> from shoal import Codes, KAnonymity, Policy, Quasi, Range, Schema
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))])
    >>> engine = Mondrian().start(schema, Policy(KAnonymity(2), window="all"), seed=b"1")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> values = np.empty((4, 0), np.int64)
    >>> _ = engine.push(Codes(ages, people, values, np.full(4, np.nan)))
    >>> decided = engine.flush()
    >>> for n, lo, hi in zip(decided.n_subjects, decided.lo, decided.hi):
    ...     print(f"{n} people in {lo} to {hi}")
    2 people in [20.] to [22.]
    2 people in [70.] to [71.]

    References
    ----------
    K. LeFevre, D. J. DeWitt, R. Ramakrishnan, "Mondrian Multidimensional K-Anonymity", ICDE 2006.
    """

    name: ClassVar[str] = "mondrian"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    reference: ClassVar[str] = "LeFevre, DeWitt, Ramakrishnan: Mondrian (ICDE 2006)"

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Rows cut at medians."""
        return median_parts(space.sides, limits, rows)
