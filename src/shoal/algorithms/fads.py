"""FADS: fast anonymization of data streams, a group around each row whose time is up.

Rows are held. When the time of one is up, or there is no room for another row, it joins a group
published before that covers it; if there is none, it is published in a new group with its nearest
neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from shoal.engine.base import Engine, Out
from shoal.engine.deadlines import DueRowAnonymizer, InputBatch
from shoal.engine.jit import kernel
from shoal.engine.kernels import spatial_index
from shoal.engine.kernels.arrays import Any1
from shoal.engine.kernels.held import Held
from shoal.engine.kernels.spatial_index import Index
from shoal.engine.on_deadline import (
    OnDeadlineEngine,
    OnDeadlineRules,
    OnDeadlineState,
    neighbours_by_index,
    next_row,
    settle,
)
from shoal.engine.space import Space

__all__ = ["Fads"]


@dataclass(frozen=True, kw_only=True)
class Fads(DueRowAnonymizer):
    """FADS, with l-diversity, closeness, likeness and safe reuse.

    Parameters
    ----------
    capacity
        The maximum number of held rows; 0: the policy's delay is the only bound. When one more
        arrives, the oldest row is due, as in the paper (delta).
    kept
        The number of latest groups that are kept for reuse; 0 for no reuse. A row that leaves alone
        into a kept group shows who it is to anyone who knows when it came.
    age
        The number of further rows, or rounds, for which a group is kept (the paper's T_kc).
    age_unit
        ``"rows"``: a group gets older with each row that arrives. ``"rounds"``: with each instant
        at which something is decided.
    reuse
        ``"random"``: any kept group that covers the row, each equally likely, whatever it loses.
        ``"best"``: as in the paper, the one that loses least, if it loses less than a new group
        would; both comparisons tell an observer where the row isn't.
    joins
        How rows join kept groups: ``"together"``, at least as many people at one instant as a group
        needs, and fewer only if no new group can be formed either; or ``"alone"``, each at its
        deadline, as in the paper, for comparison only.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=3))
    >>> anonymize(people, schema, policy, Fads())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    K. Guo, Q. Zhang, "Fast Clustering-Based Anonymization Approaches with Time Constraints for Data
    Streams", Knowledge-Based Systems 46, 2013, as the authors of FAST describe it.
    """

    name: ClassVar[str] = "fads"
    reference: ClassVar[str] = "Guo, Zhang: FADS (Knowledge-Based Systems 2013)"

    kept: int = 0
    age: int = 2_000
    age_unit: Literal["rows", "rounds"] = "rows"
    reuse: Literal["random", "best"] = "random"
    joins: Literal["together", "alone"] = "together"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least(0, "kept")
        self._at_least(1, "age")
        self._one_of("age_unit", ("rows", "rounds"))
        self._one_of("reuse", ("random", "best"))
        self._one_of("joins", ("together", "alone"))

    def _start(self, space: Space, seed: bytes) -> Engine:
        return FadsEngine(self, space, seed)


class FadsEngine(OnDeadlineEngine):
    """One run of `Fads`."""

    def __init__(self, anonymizer: Fads, space: Space, seed: bytes) -> None:
        super().__init__(
            space, seed, capacity=anonymizer.capacity, n_kept=anonymizer.kept,
            reuse=anonymizer.reuse, joins=anonymizer.joins, age=anonymizer.age,
            age_unit=anonymizer.age_unit,
        )  # fmt: skip
        self._begin_index()

    def _begin_index(self) -> None:
        self._index = spatial_index.empty(self.space.n_quasi, len(self.state.columns.slots))

    def _grow(self, larger: Held) -> None:
        super()._grow(larger)
        self._begin_index()

    def restore(self, snapshot: Mapping[str, Any1]) -> None:
        """Restore a snapshot, and start a new index: the old one was of other rows."""
        super().restore(snapshot)
        self._begin_index()

    def _run(self, batch: InputBatch, out: Out) -> None:
        _run(self._rules_now, self.state, self._index, batch, out)


@kernel
def _run(
    rules: OnDeadlineRules, state: OnDeadlineState, known: Index, batch: InputBatch, out: Out
) -> None:
    """Take in rows and decide those that are due, between the rows and after them."""
    due = next_row(rules, state, batch, out)
    while due >= 0:
        settle(rules, state, due, neighbours_by_index(rules, state, known, due), out)
        due = next_row(rules, state, batch, out)
