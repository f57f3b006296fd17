"""tMondrian_W: a stream published window by window, each cut at medians as Mondrian does.

A cut needs both halves to be close to the window: their sensitive values must be within t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.by_window import ByWindow
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.median import median_parts
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits
from shoal.engine.space import Space
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, TCloseness

__all__ = ["TMondrianW"]


@dataclass(frozen=True, kw_only=True)
class TMondrianW(ByWindow):
    """Mondrian for (omega, t)-closeness, for streams.

    Parameters
    ----------
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.
        The attribute that loses most is cut first.

    >>> import numpy as np
    >>> from shoal import Codes, Policy, Quasi, Range, Schema, Sensitive, TCloseness, Window
    >>> schema = Schema("person", [Quasi("age", Range(0, 100))], [Sensitive("pay", Range(0, 9))])
    >>> policy = Policy(TCloseness(0.2), window=Window(rows=4, advance=2))
    >>> engine = TMondrianW().start(schema, policy, seed=b"1")
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
    IEEE TKDE 22(7), 2010; J. Cao, "Privacy-preserving data publication for static and streaming
    data", thesis, NUS, 2010, section 6.5.
    """

    name: ClassVar[str] = "t-mondrian-w"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, TCloseness)
    reference: ClassVar[str] = "Cao: tMondrian_W (thesis, NUS 2010, section 6.5)"

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Rows cut at medians."""
        return median_parts(space.sides, limits, rows)
