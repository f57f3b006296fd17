"""The limit to measure against: everything that a run does, without deciding anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.engine import Anonymizer, BoxEngine, Engine, Out, Outcome
from shoal.kernels.arrays import Floats, Ints
from shoal.policy import Criterion, Delay, KAnonymity, Missing, Policy
from shoal.space import Codes, Space

__all__ = ["POLICY", "PassThrough", "row_by_row"]


def row_by_row(missing: Missing) -> Policy:
    """The only promise that a row by itself keeps, whatever a missing value means."""
    return Policy(KAnonymity(1), delay=Delay(rows=1), missing=missing)


POLICY = row_by_row("quarantine")


@dataclass(frozen=True, kw_only=True)
class PassThrough(Anonymizer):
    """Publish every row at once, in the box of its own values.

    This protects nobody and is in no registry. It reads, encodes, labels and writes as any other
    algorithm does, so the time of a run with it is what the algorithm can't be blamed for.

    >>> from shoal import Quasi, Range, Schema
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(0, 100))])
    >>> engine = PassThrough().start(schema, POLICY)
    >>> nothing = np.empty((2, 0), np.int64)
    >>> decided = engine.push(
    ...     Codes(np.array([[20.0], [70.0]]), np.arange(2), nothing, np.full(2, np.nan))
    ... )
    >>> decided.lo.tolist(), decided.n_subjects.tolist(), engine.n_held
    ([[20.0], [70.0]], [1, 1], 0)
    """

    name: ClassVar[str] = "pass-through"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity,)
    reference: ClassVar[str] = "none: it is a yardstick"

    def _start(self, space: Space, seed: bytes) -> Engine:
        return _PassThroughEngine(space, _State(np.zeros(1, np.int64)), seed)


class _State(NamedTuple):
    """How many rows there have been."""

    n_rows: Ints


class _PassThroughEngine(BoxEngine):
    """One run of `PassThrough`."""

    state: _State

    @property
    def n_held(self) -> int:
        return 0

    def _push(self, codes: Codes, out: Out) -> None:
        n = len(codes.subjects)
        first = int(self.state.n_rows[0])
        rows = np.arange(first, first + n)
        out.progress["n_decided"] = out.progress["n_boxes"] = n
        out.decided["row"] = out.decided["published"] = out.decided["instant"] = rows
        out.decided["outcome"] = Outcome.group
        out.decided["box"] = np.arange(n)
        out.decided["published_s"] = codes.times
        out.decided["gaps"] = self.space.gaps(codes.values)
        out.lo[:], out.hi[:] = self.space.points(codes.values)
        out.boxes["loss"] = self._losses(codes.values, out.lo, out.hi)
        out.boxes["group"] = rows
        out.boxes["n_rows"] = out.boxes["n_subjects"] = 1
        out.boxes["gaps"] = out.decided["gaps"]
        self.state.n_rows[0] += n

    def _losses(self, values: Floats, lo: Floats, hi: Floats) -> Floats:
        """What each row loses, over the sides that its box has."""
        attributes = self.space.sides.attributes
        if self.space.missing == "quarantine":
            # A category by itself loses nothing, a number only the step that it is widened to.
            return (hi - lo) @ attributes["unit"]
        missing = np.isnan(values)
        lost = np.where(missing, 0.0, hi - lo) @ attributes["unit"]
        if self.space.missing == "extended":
            return lost + missing @ attributes["weight"]
        weight = ~missing @ attributes["weight"]
        return np.divide(lost, weight, out=np.zeros(len(lost)), where=weight > 0.0)

    def _advance(self, now: float, out: Out) -> None:
        """Nothing is ever held."""

    def _flush(self, out: Out) -> None:
        """Nothing is ever held."""
