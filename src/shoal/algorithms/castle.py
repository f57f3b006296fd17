"""CASTLE: continuously anonymizing streaming data via adaptive clustering.

An arriving row joins the open cluster that it enlarges least. If that would lose more than the
groups published lately did, it opens a new cluster. When a row's time is up, its cluster is
published, cut into smaller groups where it is large enough. If the cluster is too small, the row
joins a group published before that covers it, or the cluster is merged with its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from shoal.engine.base import Engine
from shoal.engine.castle.clusters import best_selection, join_cluster, open_cluster
from shoal.engine.castle.release import expire
from shoal.engine.castle.state import MARKS, SLOT, CastleRules, CastleState, OpenClusters
from shoal.engine.deadlines import (
    COMES,
    DONE,
    HoldingAnonymizer,
    HoldingEngine,
    InputBatch,
    arrival,
    next_event,
)
from shoal.engine.decisions import Out
from shoal.engine.jit import kernel
from shoal.engine.kernels import counter, held, kept_groups, leaf_losses, rng
from shoal.engine.kernels.arrays import Any1
from shoal.engine.kernels.held import put
from shoal.engine.kernels.predicate import any_diversity, breakable
from shoal.engine.space import Space

__all__ = ["Castle"]


@dataclass(frozen=True, kw_only=True)
class Castle(HoldingAnonymizer):
    """CASTLE, with l-diversity, closeness, likeness, safe reuse and a bounded memory.

    Parameters
    ----------
    clusters
        The most clusters that are open at once (the paper's eta).
    recent
        The number of latest groups that the threshold for new clusters averages over (mu).
    kept
        The number of latest good groups that are kept for reuse (N_ks); 0 for no reuse. A row that
        leaves alone into a kept group shows who it is to anyone who knows when it came.
    reuse
        ``"random"``: any group that covers the row, each equally likely. ``"best"``: the one that
        loses least, which tells an observer that the row lies outside of all better ones
        (Example 5.5); for comparison only.
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
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=2))
    >>> anonymize(people, schema, policy, Castle(clusters=20))["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']

    References
    ----------
    J. Cao, B. Carminati, E. Ferrari, K.-L. Tan, "CASTLE: Continuously Anonymizing Data Streams",
    IEEE TDSC 8(3), 2011; chapter 5 of J. Cao's thesis, NUS, 2010.
    """

    name: ClassVar[str] = "castle"
    reference: ClassVar[str] = "Cao, Carminati, Ferrari, Tan: CASTLE (IEEE TDSC 2011)"
    # A gap widens no cluster, so that a row which lacks everything fits everywhere.
    minds_gaps: ClassVar[bool] = False

    clusters: int = 50
    recent: int = 100
    kept: int = 0
    reuse: Literal["random", "best"] = "random"
    joins: Literal["together", "alone"] = "together"

    def __post_init__(self) -> None:
        self._at_least(1, "clusters", "recent")
        self._at_least(0, "kept")
        self._one_of("reuse", ("random", "best"))
        self._one_of("joins", ("together", "alone"))

    def _start(self, space: Space, seed: bytes) -> Engine:
        return CastleEngine(self, space, seed)


class CastleEngine(HoldingEngine):
    """One run of `Castle`."""

    state: CastleState

    def __init__(self, anonymizer: Castle, space: Space, seed: bytes) -> None:
        d = space.n_quasi
        best, together = anonymizer.reuse == "best", anonymizer.joins == "together"
        hopeless = bool(any_diversity(space.limits) and not breakable(space.limits))
        self._rules = CastleRules(
            space.sides,
            space.shown,
            space.limits,
            space.deadlines,
            leaf_losses.empty(space.sides, anonymizer.clusters),
            best,
            together,
            hopeless,
            space.each_row,
        )
        self._joins_last = anonymizer.kept > 0 and together
        slots = np.zeros(anonymizer.clusters, SLOT)
        slots["birth"] = slots["first"] = slots["last"] = -1
        state = CastleState(
            held=held.empty(d, space.n_sensitive, window=space.window.rows),
            open=OpenClusters(
                np.full((d, anonymizer.clusters), np.inf),
                np.full((d, anonymizer.clusters), -np.inf),
                np.full(anonymizer.clusters, -np.inf),
                slots,
            ),
            counter=counter.empty(2 * held.SMALLEST),
            kept=kept_groups.empty(anonymizer.kept, d, space.n_sensitive, space.limits),
            recent=np.zeros(anonymizer.recent),
            marks=np.zeros(1, MARKS),
            rng=rng.seeded(seed, "decide"),
        )
        super().__init__(space, state, seed)
        self._counts_rows = space.each_row

    def restore(self, snapshot: Mapping[str, Any1]) -> None:
        """Restore a snapshot, and fill the table of losses for the clusters that it has."""
        super().restore(snapshot)
        clusters = self.state.open
        leaf_losses.fit_all(self._rules.sides, self._rules.by_leaf, clusters.lo, clusters.hi)

    def _run(self, batch: InputBatch, out: Out) -> None:
        rules = self._rules._replace(limits=self._of_now(self._rules.limits))
        _run(rules, self.state, batch, out)


@kernel
def _run(rules: CastleRules, state: CastleState, batch: InputBatch, out: Out) -> None:
    """Take in rows and fire deadlines, between the rows and after them."""
    joined = np.empty(len(state.open.slots))
    while True:
        due = next_event(state.held, rules.deadlines, batch, out)
        if due >= 0:
            expire(rules, state, due, batch.at_end, out)
        elif due == COMES:
            row = arrival(state.held, batch)
            slot = best_selection(rules, state, row.lo, row.hi, joined)
            if slot < 0:
                slot = open_cluster(state)
            put(state.held, row, slot)
            join_cluster(rules, state, slot)
        # The whole end of a stream is one instant.
        if (due == DONE) if batch.at_end else (due >= 0):
            state.marks["instants"][0] += 1
        if due == DONE:
            break
