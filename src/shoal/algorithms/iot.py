"""IoT anonymization: streams with gaps, whole partitions put together. A reconstruction.

As IDEA, rows wait in partitions by which of their values are missing. A partition that is too small
by itself is put together with others, most similar and largest first, and all their rows leave as
one group.
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

__all__ = ["Iot"]


@dataclass(frozen=True, kw_only=True)
class Iot(ByPartition):
    """IoT anonymization by partitions, reconstructed from a few sentences in the paper on IDEA.

    It is here as the rival that IDEA is measured against. What had to be assumed is listed in
    docs/deviations.md.

    Parameters
    ----------
    kept, threshold, age, reuse, loss
        As in `shoal.algorithms.idea.Idea`.

    >>> import numpy as np
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema
    >>> from shoal.engine import Codes
    >>> quasi = [Quasi("age", Range(0, 100)), Quasi("weight", Range(0, 200))]
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=3), missing="maybe")
    >>> engine = Iot().start(Schema(subject="person", quasi=quasi), policy, seed=b"1")
    >>> gap = np.nan
    >>> values = np.array([[20.0, gap], [20.0, 80.0], [60.0, 90.0], [70.0, 80.0]])
    >>> people, nothing = np.array([1, 2, 3, 4]), np.empty((4, 0), np.int64)
    >>> decided = engine.push(Codes(values, people, nothing, np.full(4, np.nan)))
    >>> sorted(decided.rows.tolist()), decided.lo.tolist(), decided.hi.tolist()
    ([0, 1, 2, 3], [[20.0, 80.0]], [[70.0, 90.0]])

    References
    ----------
    A. Otgonbayar, Z. Pervez, K. Dahal, "Toward Anonymizing IoT Data Streams via Partitioning", IEEE
    MASS 2016; reconstructed from L. Yang et al., IDEA, section 2.2.
    """

    name: ClassVar[str] = "iot"
    reference: ClassVar[str] = (
        "Otgonbayar, Pervez, Dahal: IoT streams (IEEE MASS 2016), reconstructed"
    )

    def _start(self, space: Space, seed: bytes) -> Engine:
        return IotEngine(self, space, seed)


class IotEngine(PartitionEngine):
    """One run of `Iot`."""

    def _run(self, batch: InputBatch, out: Out) -> None:
        _run(self._rules_now, self.state, batch, out)


@kernel
def _run(rules: OnDeadlineRules, state: OnDeadlineState, batch: InputBatch, out: Out) -> None:
    """Take in rows and decide those that are due, between the rows and after them."""
    due = next_row(rules, state, batch, out)
    while due >= 0:
        settle(rules, state, due, whole_partitions(rules, state, due, 0.0, True), out)
        due = next_row(rules, state, batch, out)
