"""Zhou et al.'s density-aware method: leaves wait where more rows are to be expected.

It is the basic method, but for the coin: samples of the latest rows tell how soon a leaf will have
enough rows to be cut in two. Where that takes long, waiting costs more than it gains, and the leaf
leaves sooner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.rtree.engine import DensityTreeAnonymizer

__all__ = ["TreeDensity"]


@dataclass(frozen=True, kw_only=True)
class TreeDensity(DensityTreeAnonymizer):
    """The active R-tree with samples, l-diverse leaves, real time and a bound on what is held.

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
    >>> engine = TreeDensity(samples=20, sampled=10).start(schema, policy, seed=b"1")
    >>> ages, people = np.array([[20.0], [70.0], [22.0], [71.0]]), np.array([1, 2, 3, 4])
    >>> nothing = np.empty((4, 0), np.int64)
    >>> _ = engine.push(Codes(ages, people, nothing, np.full(4, np.nan)))
    >>> rest = engine.flush()
    >>> engine.n_held
    0

    References
    ----------
    B. Zhou, Y. Han, J. Pei, B. Jiang, Y. Tao, Y. Jia, "Continuous Privacy Preserving Publishing of
    Data Streams", EDBT 2009, §4.2.
    """

    name: ClassVar[str] = "tree-density"
