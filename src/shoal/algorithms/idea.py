"""IDEA: streams with gaps, a group around each row whose time is up, among rows with the same gaps.

Rows wait in a window, in partitions by which of their values are missing. When the time of one is
up, it joins a group published before that covers it; if there is none, it leaves in a new group
with its nearest neighbours of the same partition, or, if that has too few, of the partitions most
like it.
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

    Its way with gaps is that of ``missing = "maybe"``: a missing value stays missing and widens no
    box. With ``"extended"`` every value is there, and all rows are in one partition.

    Parameters
    ----------
    kept
        How many of the latest good groups are kept for reuse (beta); 0 for no reuse.
    threshold
        A group is kept if it loses less than this (tau).
    age
        For how many further rows a group is kept; None, as in the paper, for as long as there is
        room. One that covers everybody would then never give way to better ones.
    reuse
        ``"random"``: where kept groups cover the row, any of them, each equally likely, without a
        look at losses. ``"best"``: as the paper has it, the one that loses least, if it loses less
        than a new group would; both comparisons tell an observer where the row isn't.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import numpy as np
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema
    >>> from shoal.engine import Codes
    >>> quasi = [Quasi("age", Range(0, 100)), Quasi("weight", Range(0, 200))]
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=3), missing="maybe")
    >>> engine = Idea().start(Schema(subject="person", quasi=quasi), policy, seed=b"1")
    >>> gap = np.nan
    >>> values = np.array([[20.0, gap], [20.0, 80.0], [60.0, gap], [70.0, 80.0]])
    >>> people, nothing = np.array([1, 2, 3, 4]), np.empty((4, 0), np.int64)
    >>> decided = engine.push(Codes(values, people, nothing, np.full(4, np.nan)))
    >>> sorted(decided.rows.tolist()), decided.lo.tolist(), decided.hi.tolist()
    ([0, 2], [[20.0, inf]], [[60.0, -inf]])

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
