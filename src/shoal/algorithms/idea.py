"""IDEA: streams with gaps, a group around each row whose time is up, among rows with the same gaps.

Held rows are partitioned by which of their values are missing. When the time of a row is up, it
joins a group published before that covers it; if there is none, it is published in a new group
with its nearest neighbours of the same partition or, if that has too few, of the most similar
partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.engine.base import Engine, Out
from shoal.engine.deadlines import InputBatch
from shoal.engine.jit import kernel
from shoal.engine.on_deadline import OnDeadlineRules, OnDeadlineState, next_row, settle
from shoal.engine.partitioned import ByPartition, PartitionEngine, most_like
from shoal.engine.space import Space

__all__ = ["Idea"]


@dataclass(frozen=True, kw_only=True)
class Idea(ByPartition):
    """IDEA, with l-diversity, closeness, likeness and safe reuse.

    It is made for ``missing = "maybe"``: a missing value stays missing and widens no box. With
    ``"extended"`` no value is missing, and all rows are in one partition.

    Parameters
    ----------
    capacity
        The maximum number of held rows; 0: the policy's delay is the only bound. When one more
        arrives, the oldest row is due, as in the paper (delta).
    kept
        The number of latest good groups that are kept for reuse (beta); 0 for no reuse. A row that
        leaves alone into a kept group shows who it is to anyone who knows when it came.
    threshold
        A group is kept if it loses less than this (tau).
    age
        The number of further rows for which a group is kept; None, as in the paper, for as long as
        there is room. One that covers every row would then never be replaced by better ones.
    reuse
        ``"random"`` or ``"best"``; see `shoal.algorithms.Fads`.
    joins
        ``"together"`` or ``"alone"``; see `shoal.algorithms.Fads`.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"age": [20, 20, 60, 70], "weight": [None, 80, None, 80]})
    >>> schema = Schema(None, [Quasi("age", Range(0, 100)), Quasi("weight", Range(0, 200))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=3), missing="maybe")
    >>> anonymize(people, schema, policy, Idea())["age"].to_pylist()
    ['[20, 60]', '[20, 60]', '[20, 70]', '[20, 70]']

    References
    ----------
    L. Yang, X. Chen, Y. Luo, X. Lan, W. Wang, "IDEA: A Utility-Enhanced Approach to Incomplete Data
    Stream Anonymization", Tsinghua Science and Technology 27(1), 2022.
    """

    name: ClassVar[str] = "idea"
    reference: ClassVar[str] = "Yang, Chen, Luo, Lan, Wang: IDEA (Tsinghua Sci. Technol. 2022)"

    def _start(self, space: Space, seed: bytes) -> Engine:
        return IdeaEngine(self, space, seed)


class IdeaEngine(PartitionEngine):
    """One run of `Idea`."""

    def _run(self, batch: InputBatch, out: Out) -> None:
        _run(self._rules_now, self.state, batch, out)


@kernel
def _run(rules: OnDeadlineRules, state: OnDeadlineState, batch: InputBatch, out: Out) -> None:
    """Take in rows and decide those that are due, between the rows and after them."""
    due = next_row(rules, state, batch, out)
    while due >= 0:
        settle(rules, state, due, most_like(rules, state, due), out)
        due = next_row(rules, state, batch, out)
