"""K-VARP: streams with gaps, whole partitions merged by their likeness. A reconstruction.

As in IDEA, held rows are partitioned by which of their values are missing. A partition that is too
small is merged with others, most similar first and then those with the most rows near the row whose
time is up, and all their rows are published as one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.base import Engine, Out
from shoal.engine.deadlines import InputBatch
from shoal.engine.jit import kernel
from shoal.engine.on_deadline import OnDeadlineRules, OnDeadlineState, next_row, settle
from shoal.engine.partitioned import ByPartition, PartitionEngine, whole_partitions
from shoal.engine.space import Space

__all__ = ["KVarp"]


@dataclass(frozen=True, kw_only=True)
class KVarp(ByPartition):
    """K-VARP, reconstructed from a few sentences in the paper on IDEA.

    It is the baseline that IDEA is compared with. What had to be assumed is listed in
    docs/deviations.md.

    Parameters
    ----------
    radius
        A row of another partition is like the one whose time is up if it is nearer than this (R).
    capacity, kept, threshold, age, reuse, joins, loss
        As in `shoal.algorithms.Idea`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"age": [20, 20, 60, 70], "weight": [None, 80, 90, 80]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100)), Quasi("weight", Range(0, 200))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=3), missing="maybe")
    >>> anonymize(people, schema, policy, KVarp())["age"].to_pylist()
    ['[20, 70]', '[20, 70]', '[20, 70]', '[20, 70]']

    References
    ----------
    A. Otgonbayar, Z. Pervez, K. Dahal, S. Eager, "K-VARP: K-Anonymity for Varied Data Streams via
    Partitioning", Information Sciences 467, 2018; reconstructed from L. Yang et al., IDEA, section
    2.2.
    """

    name: ClassVar[str] = "k-varp"
    reference: ClassVar[str] = (
        "Otgonbayar, Pervez, Dahal, Eager: K-VARP (Information Sciences 2018), reconstructed"
    )

    radius: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        self._between(0, 1, "radius")

    def _start(self, space: Space, seed: bytes) -> Engine:
        return KVarpEngine(self, space, seed)


class KVarpEngine(PartitionEngine):
    """One run of `KVarp`."""

    def __init__(self, anonymizer: KVarp, space: Space, seed: bytes) -> None:
        super().__init__(anonymizer, space, seed)
        self._radius = float(anonymizer.radius)

    def _run(self, batch: InputBatch, out: Out) -> None:
        _run(self._rules_now, self.state, self._radius, batch, out)


@kernel
def _run(
    rules: OnDeadlineRules, state: OnDeadlineState, radius: float, batch: InputBatch, out: Out
) -> None:
    """Take in rows and decide those that are due, between the rows and after them."""
    due = next_row(rules, state, batch, out)
    while due >= 0:
        settle(rules, state, due, whole_partitions(rules, state, due, radius, False), out)
        due = next_row(rules, state, batch, out)
