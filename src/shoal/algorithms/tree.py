"""Zhou et al.'s R-tree methods: near rows gather in leaves, and leaves are published by chance.

A leaf that has twice as many rows as a group needs is cut in two. At each instant a coin is flipped
for each leaf that may be published; or all coins of a leaf are flipped when it forms, as in the
paper. In `TreeBasic` a leaf is published sooner the less it loses, and on average as many rows
leave as come. `TreeDensity` also estimates, from samples of the latest rows, how soon a leaf will
have enough rows to be cut; where that takes long, waiting costs more than it gains, and the leaf is
published sooner. `TreeFull` also holds back single rows of a leaf that can expect a much smaller
group before waiting has cost them what they would gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from shoal.engine.base import Engine
from shoal.engine.kernels.predicate import any_diversity, needed
from shoal.engine.rtree.engine import TreeEngine
from shoal.engine.rtree.state import LeafOdds, TreeRules
from shoal.engine.space import Space
from shoal.engine.waiting import WaitingAnonymizer
from shoal.errors import ParameterError, UnsupportedError
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["TreeBasic", "TreeDensity", "TreeFull"]

#: No instant is shorter, in seconds, unless it is a row.
SHORTEST = 1e-6
#: When the due time of a leaf is drawn.
DUES = ("current", "drawn")
#: Samples are part of every checkpoint, each with a chain behind it.
MOST_SAMPLES = 100_000


@dataclass(frozen=True, kw_only=True)
class TreeBasic(WaitingAnonymizer):
    """The active R-tree, with l-diverse leaves, real time and a bound on the held rows.

    Parameters
    ----------
    capacity
        The most rows that are held; 0: as many as the policy's delay lets wait. A row that comes
        when all places are taken makes the oldest one leave. Required if there is no delay.
    instant
        The length of an instant in seconds, so that time passes whether rows come or not; 0: each
        row is an instant.
    due
        ``"current"``: whether a leaf is published is drawn at every instant, with the probability
        that it has then. ``"drawn"``, as in the paper: its due time is drawn once, when it becomes
        mature, and stays while it grows. Then fewer rows are held, which wait less and lose more.
    loss
        How loss is measured; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=10))
    >>> public = anonymize(people, schema, policy, TreeBasic(), seed=4)
    >>> public["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    B. Zhou, Y. Han, J. Pei, B. Jiang, Y. Tao, Y. Jia, "Continuous Privacy Preserving Publishing of
    Data Streams", EDBT 2009, Algorithm 1.
    """

    name: ClassVar[str] = "tree-basic"
    #: Over how many of the latest rows averages go, where no samples say it.
    averaged: ClassVar[int] = 10_000

    instant: float = 0.0
    due: Literal["current", "drawn"] = "current"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("due", DUES)
        self._between(0.0, 1e9, "instant")
        if 0.0 < self.instant < SHORTEST:
            what = f"must be 0, or at least {SHORTEST:g} seconds"
            raise ParameterError(f"{type(self).__name__}.instant", what, got=repr(self.instant))

    def start(self, schema: Schema, policy: Policy, *, seed: bytes | None = None) -> Engine:
        """Begin a run, or refuse if the policy can't be kept this way."""
        in_seconds = policy.delay is not None and policy.delay.seconds is not None
        if self.instant and schema.time is None and not in_seconds:
            raise UnsupportedError(
                f"'{self.name}' with instants of {self.instant:g} seconds needs to know when rows "
                "come, and nothing tells it: neither a time column nor a delay in seconds is set",
                fix="Set schema.time or policy.delay.seconds, or leave algorithm.instant out",
            )
        return super().start(schema, policy, seed=seed)

    def _start(self, space: Space, seed: bytes) -> Engine:
        return TreeEngine(space, seed, self._rules(space))

    def _odds(self, space: Space) -> LeafOdds:
        clock, sides = space.clock, space.sides.attributes
        return LeafOdds(
            needed=int(needed(space.limits)),
            decay=0.0,
            samples=0,
            instant=float(self.instant),
            clock=clock,
            end=float(sides["highest"][clock]) if clock >= 0 else 0.0,
            per_second=float(sides["unit"][clock]) if clock >= 0 else 0.0,
        )

    def _rules(self, space: Space) -> TreeRules:
        odds = self._odds(space)
        return TreeRules(
            sides=space.sides,
            limits=space.limits,
            deadlines=self._deadlines(space),
            odds=odds,
            diverse=bool(any_diversity(space.limits)),
            capacity=self.capacity,
            sampled=self.averaged,
            neighbours=0,
            restless=odds.clock >= 0 or (odds.instant > 0.0 and odds.samples > 0),
            drawn=self.due == "drawn",
            each_row=space.each_row,
        )


@dataclass(frozen=True, kw_only=True)
class TreeDensity(TreeBasic):
    """The active R-tree with samples, so that leaves wait where more rows are to be expected.

    Parameters
    ----------
    alpha
        By how much, as a share of its loss, a row is worth less for each instant that it waits.
    samples
        The number of samples that estimate where rows come (omega). The default keeps the error of
        a leaf's share within 0.025 with a probability of 95 %; see `shoal.models.tree`.
    sampled
        The number of latest rows that the samples are drawn from (W).
    capacity, instant, due, loss
        As in `TreeBasic`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=10))
    >>> public = anonymize(people, schema, policy, TreeDensity(samples=20, sampled=10), seed=7)
    >>> public["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    The paper of `TreeBasic`, §4.2.
    """

    name: ClassVar[str] = "tree-density"

    alpha: float = 0.001
    samples: int = 3_000
    sampled: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self._between(0.0, 1.0, "alpha")
        self._at_least(1, "samples", "sampled")
        self._at_most(MOST_SAMPLES, "samples")

    def _odds(self, space: Space) -> LeafOdds:
        return super()._odds(space)._replace(decay=math.log1p(self.alpha), samples=self.samples)

    def _rules(self, space: Space) -> TreeRules:
        return super()._rules(space)._replace(sampled=self.sampled)


@dataclass(frozen=True, kw_only=True)
class TreeFull(TreeDensity):
    """The active R-tree with samples, which also holds back rows that will find nearer neighbours.

    The rows that a leaf leaves behind join other leaves. The knobs are those of `TreeDensity`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=10))
    >>> public = anonymize(people, schema, policy, TreeFull(samples=20, sampled=10), seed=7)
    >>> public["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    The paper of `TreeBasic`, Algorithm 2.
    """

    name: ClassVar[str] = "tree-full"

    def _rules(self, space: Space) -> TreeRules:
        # A group needs k - 1 others, and a sample stands for sampled / samples rows.
        others = math.ceil((space.limits.k - 1) * self.samples / self.sampled)
        return super()._rules(space)._replace(neighbours=max(1, others))
