"""DMondrian: Mondrian whose cuts need both halves to have all values, about as often as the table.

That is delta-disclosure: no value may be much more or much less frequent in a half.
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
from shoal.spec.policy import Criterion, DeltaDisclosure, KAnonymity, LDiversity

__all__ = ["DMondrian"]


@dataclass(frozen=True, kw_only=True)
class DMondrian(WholeTable):
    """Mondrian for delta-disclosure privacy, for whole tables.

    Parameters
    ----------
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.
        The attribute that loses most is cut first.

    >>> import numpy as np
    >>> from shoal import Codes, DeltaDisclosure, Policy, Quasi, Range, Schema, Sensitive
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))], [Sensitive("illness")])
    >>> engine = DMondrian().start(schema, Policy(DeltaDisclosure(0.5), window="all"), seed=b"1")
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
    J. Brickell, V. Shmatikov, "The Cost of Privacy: Destruction of Data-Mining Utility in
    Anonymized Data Publishing", KDD 2008; DMondrian in J. Cao's thesis, NUS, 2010, section 4.4.2.
    """

    name: ClassVar[str] = "d-mondrian"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, DeltaDisclosure)
    reference: ClassVar[str] = "Brickell, Shmatikov: delta-disclosure (KDD 2008)"

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Rows cut at medians."""
        return median_parts(space.sides, limits, rows)
