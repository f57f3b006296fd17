"""Zhou et al.'s basic method: rows in an R-tree whose leaves leave by chance.

Rows that lie near each other gather in leaves. A leaf that has twice as many rows as a group needs
is cut in two. At each instant a coin is flipped for each leaf that may be published: the less it
loses, the sooner it leaves, and on average as many rows leave as come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.rtree.engine import TreeAnonymizer

__all__ = ["TreeBasic"]


@dataclass(frozen=True, kw_only=True)
class TreeBasic(TreeAnonymizer):
    """The active R-tree, with l-diverse leaves, real time and a bound on what is held.

    Parameters
    ----------
    capacity
        How many rows are held at most; 0: as many as the policy's delay lets wait. Who comes when
        all places are taken makes the oldest one leave. Without a delay it has to be set.
    instant
        How many seconds an instant lasts, so that time goes by whether rows come or not; 0: each
        row is an instant.
    loss
        How loss is measured; see `Space`.

    >>> import numpy as np
    >>> from shoal import Codes, Delay, KAnonymity, Policy, Quasi, Range, Schema
    >>> schema = Schema(subject="person", quasi=[Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=10))
    >>> engine = TreeBasic().start(schema, policy, seed=b"4")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> nothing = np.empty((4, 0), np.int64)
    >>> decided = engine.push(Codes(ages, people, nothing, np.full(4, np.nan)))
    >>> for n, lo, hi in zip(decided.n_subjects, decided.lo, decided.hi):
    ...     print(f"{n} people in {lo} to {hi}")
    2 people in [20.] to [22.]
    >>> engine.n_held
    2

    References
    ----------
    B. Zhou, Y. Han, J. Pei, B. Jiang, Y. Tao, Y. Jia, "Continuous Privacy Preserving Publishing of
    Data Streams", EDBT 2009, Algorithm 1.
    """

    name: ClassVar[str] = "tree-basic"
