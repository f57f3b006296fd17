"""Zhou et al.'s full method: rows that will soon find nearer neighbours are held back.

It is the density-aware method, but for what leaves: when a leaf is due, those of its rows stay
which, by the samples around them, can expect a much smaller group before waiting has cost them what
they would gain. They join other leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.rtree.engine import DensityTreeAnonymizer
from shoal.engine.rtree.leaves import TreeRules
from shoal.engine.space import Space

__all__ = ["TreeFull"]


@dataclass(frozen=True, kw_only=True)
class TreeFull(DensityTreeAnonymizer):
    """The active R-tree with samples and rows held back, within a bound on what is held.

    Parameters
    ----------
    alpha
        By how much, as a share of its loss, a row is worth less for each instant that it waits.
    samples
        How many samples tell where rows come (omega).
    sampled
        Of how many of the latest rows they are samples (W).
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
    >>> engine = TreeFull(samples=20, sampled=10).start(schema, policy, seed=b"1")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> nothing = np.empty((4, 0), np.int64)
    >>> _ = engine.push(Codes(ages, people, nothing, np.full(4, np.nan)))
    >>> rest = engine.flush()
    >>> engine.n_held
    0

    References
    ----------
    B. Zhou, Y. Han, J. Pei, B. Jiang, Y. Tao, Y. Jia, "Continuous Privacy Preserving Publishing of
    Data Streams", EDBT 2009, Algorithm 2.
    """

    name: ClassVar[str] = "tree-full"

    def _rules(self, space: Space) -> TreeRules:
        # A group needs k - 1 others, and a sample stands for sampled / samples rows.
        others = math.ceil((space.limits.k - 1) * self.samples / self.sampled)
        return super()._rules(space)._replace(neighbours=max(1, others))
