"""The limit to measure against: everything that a run does, without deciding anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.engine.base import Anonymizer, BoxEngine, Decisions, Engine, Out, Outcome, Publishes
from shoal.engine.decisions import GROUP, MISSING
from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.kernels.boxes import points
from shoal.engine.space import Codes, Space
from shoal.spec.policy import Criterion, Delay, KAnonymity, Missing, Policy, Window, ZAnonymity

__all__ = ["POLICY", "PassThrough", "PassThroughCells", "cell_by_cell", "row_by_row"]


def row_by_row(missing: Missing) -> Policy:
    """The only promise that a row by itself keeps, whatever a missing value means."""
    return Policy(KAnonymity(1), delay=Delay(rows=1), missing=missing)


POLICY = row_by_row("quarantine")


def cell_by_cell(window: Window, missing: Missing = "quarantine") -> Policy:
    """The only promise about single values that a value by itself keeps."""
    return Policy(ZAnonymity(1), window=window, missing=missing)


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
        gaps = self.space.gaps(codes.values)
        points(self.space.sides, codes.values, self.space.missing == "extended", out.lo, out.hi)
        losses = self._losses(codes.values, out.lo, out.hi)
        _publish(int(self.state.n_rows[0]), codes.times, gaps, losses, out)
        self.state.n_rows[0] += n

    def _losses(self, values: Floats, lo: Floats, hi: Floats) -> Floats:
        """What each row loses, over the sides that its box has."""
        attributes = self.space.sides.attributes
        if self.space.missing == "quarantine":
            # A category by itself loses nothing, a number only the step that it is widened to.
            losses = np.zeros(len(values))
            for d in np.flatnonzero(attributes["unit"]):
                losses += (hi[:, d] - lo[:, d]) * attributes["unit"][d]
            return losses
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


@kernel
def _publish(first: int, times: Floats, gaps: Ints, losses: Floats, out: Out) -> None:
    """Decide all rows: each in a box of its own, whose sides are there already."""
    n = len(times)
    out.progress["n_decided"][0] = out.progress["n_boxes"][0] = n
    for i in range(n):
        out.decided["row"][i] = out.decided["published"][i] = out.decided["instant"][i] = first + i
        out.decided["outcome"][i] = GROUP
        out.decided["box"][i] = i
        out.decided["published_s"][i] = times[i]
        out.decided["gaps"][i] = out.boxes["gaps"][i] = gaps[i]
        out.boxes["loss"][i] = losses[i]
        out.boxes["group"][i] = first + i
        out.boxes["n_rows"][i] = out.boxes["n_subjects"][i] = 1
        out.boxes["window"][i] = -1


@dataclass(frozen=True, kw_only=True)
class PassThroughCells(Anonymizer):
    """Publish every value at once, as it is: the yardstick for values that are decided one by one.

    >>> from shoal import Quasi, Schema
    >>> from shoal.spec.ladder import Open
    >>> schema = Schema("user", [Quasi("site", Open())])
    >>> engine = PassThroughCells().start(schema, cell_by_cell(Window(rows=10)))
    >>> none, times = np.empty((2, 0)), np.full(2, np.nan)
    >>> sites = np.array([[7], [9]])
    >>> codes = Codes(none, np.arange(2), none.astype(np.int64), times, sites)
    >>> engine.push(codes).levels.tolist()
    [[0], [0]]
    """

    name: ClassVar[str] = "pass-through-cells"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (ZAnonymity,)
    reference: ClassVar[str] = "none: it is a yardstick"
    needs_delay: ClassVar[bool] = False
    publishes: ClassVar[Publishes] = "values"
    missing: ClassVar[tuple[Missing, ...]] = ("quarantine", "maybe")

    def _start(self, space: Space, seed: bytes) -> Engine:
        return _PassThroughCellsEngine(space, _State(np.zeros(1, np.int64)), seed)


class _PassThroughCellsEngine(Engine):
    """One run of `PassThroughCells`."""

    state: _State

    @property
    def n_held(self) -> int:
        return 0

    def push(self, codes: Codes) -> Decisions:
        n = len(codes.subjects)
        first = int(self.state.n_rows[0])
        self.state.n_rows[0] += n
        rows = np.arange(first, first + n)
        leaves = np.cumsum([0, *self.space.n_levels])[:-1]
        is_there = codes.keys[:, leaves] != 0
        has_some = is_there.any(axis=1)
        return Out.room(0, 0).decisions()._replace(
            rows=rows, outcomes=np.where(has_some, Outcome.group.value, Outcome.suppressed.value),
            boxes=np.full(n, -1), published=rows, published_s=codes.times, instants=rows,
            gaps=np.zeros(n, np.int64), losses=np.where(has_some, 0.0, 1.0),
            levels=np.where(is_there, 0, MISSING), n_behind=is_there.astype(np.int64),
            z=np.full(n, self.space.z),
        )  # fmt: skip

    def advance(self, now: float) -> Decisions:
        """Nothing is ever held."""
        return self.flush()

    def flush(self) -> Decisions:
        """Nothing is ever held."""
        n_keys = sum(self.space.n_levels)
        return self.push(Codes.empty(0, 0)._replace(keys=np.empty((0, n_keys), np.int64)))
