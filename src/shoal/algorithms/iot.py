"""IoT anonymization: streams with gaps, whole partitions put together. A reconstruction.

As IDEA, rows wait in partitions by which of their values are missing. A partition that is too small
by itself is put together with others, most similar and largest first, and all their rows leave as
one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from shoal._jit import kernel
from shoal.engine import Anonymizer, Engine, Out
from shoal.kernels.arrays import Ints
from shoal.kernels.neighbours import group_around
from shoal.kernels.partitions import partitions, spread
from shoal.policy import Criterion, KAnonymity, LDiversity
from shoal.space import Space
from shoal.turns import Batch
from shoal.window import Rules, State, WindowEngine, merged, next_row, settle, tuple_distances

__all__ = ["Iot"]


@dataclass(frozen=True, kw_only=True)
class Iot(Anonymizer):
    """IoT anonymization by partitions, reconstructed from a few sentences in the paper on IDEA.

    It is here as the rival that IDEA is measured against. What had to be assumed is listed in
    docs/deviations.md.

    Parameters
    ----------
    kept
        How many of the latest good groups are kept for reuse; 0 for no reuse.
    threshold
        A group is kept if it loses less than this.
    reuse
        ``"random"`` or ``"best"``; see `shoal.algorithms.idea.Idea`.
    loss
        How loss is measured, ``"glm"`` or ``"lm"``; see `shoal.space.Space`.

    >>> import numpy as np
    >>> from shoal import Codes, Delay, KAnonymity, Policy, Quasi, Range, Schema
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
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity)
    reference: ClassVar[str] = (
        "Otgonbayar, Pervez, Dahal: IoT streams (IEEE MASS 2016), reconstructed"
    )

    kept: int = 200
    threshold: float = 0.5
    reuse: Literal["random", "best"] = "random"

    def __post_init__(self) -> None:
        self._at_least(0, "kept")
        self._between(0, 1, "threshold")
        self._one_of("reuse", ("random", "best"))

    def _start(self, space: Space, seed: bytes) -> Engine:
        return IotEngine(space, seed, n_kept=self.kept, reuse=self.reuse, threshold=self.threshold)


class IotEngine(WindowEngine):
    """One run of `Iot`."""

    def _run(self, batch: Batch, out: Out) -> None:
        _run(self._rules, self.state, batch, out)


@kernel
def _run(rules: Rules, state: State, batch: Batch, out: Out) -> None:
    """Take in rows and decide those that are due, between the rows and after them."""
    due = next_row(rules, state, batch, out)
    while due >= 0:
        settle(rules, state, due, _group(rules, state, due), out)
        due = next_row(rules, state, batch, out)


@kernel
def _group(rules: Rules, state: State, position: int) -> Ints:
    """The row and its nearest neighbours in its partition, or whole partitions put together."""
    slot, distance = tuple_distances(rules, state, position)
    found = partitions(state.columns, slot)
    apart = spread(found)
    members = group_around(rules.limits, state.held, state.columns, slot, distance, apart, 0.0)
    if len(members) > 0:
        return members
    return merged(rules, state, slot, found, np.zeros(len(found.apart), np.int64), True)
