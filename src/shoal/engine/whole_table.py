"""The family of algorithms for whole tables: all rows are held, and decided at the end.

The algorithms differ in how they cut the rows into parts. This module repairs parts that break the
promise. Memory grows with the table, since the whole table is held.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.engine.base import Anonymizer, BoxEngine, Engine, Publishes
from shoal.engine.decisions import GROUP, SUPPRESSED, Out, decide, write_box
from shoal.engine.jit import kernel
from shoal.engine.kernels import rng
from shoal.engine.kernels.array_tools import picked
from shoal.engine.kernels.arrays import Any1, Floats, Ints, Records
from shoal.engine.kernels.boxes import Box, Sides, mean_loss
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts, repaired
from shoal.engine.kernels.predicate import Limits, count_subjects
from shoal.engine.kernels.window_counts import window_counts_of
from shoal.engine.space import Codes, Space
from shoal.errors import ParameterError
from shoal.spec.policy import Missing

__all__ = [
    "Partitioner",
    "Publication",
    "WholeTable",
    "WholeTableEngine",
    "WholeTableState",
    "publish_parts",
    "suppress",
]

SMALLEST = 256
#: The number of held rows, whether the table has ended, and the latest time.
MARKS = np.dtype([("n_rows", "i8"), ("ended", "?"), ("now", "f8")])


class WholeTableState(NamedTuple):
    """The state of a run: rows with attributes along the first axis, and room for more."""

    lo: Floats
    hi: Floats
    subjects: Ints
    sensitive: Ints
    gaps: Ints
    marks: Records
    rng: Ints


@dataclass(frozen=True, kw_only=True)
class Partitioner(Anonymizer):
    """An anonymizer that cuts rows into parts, each of which becomes a group."""

    needs_delay: ClassVar[bool] = False
    missing: ClassVar[tuple[Missing, ...]] = ("quarantine", "extended")

    @abstractmethod
    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Cut rows into parts that should meet the limits; those that don't are repaired."""


@dataclass(frozen=True, kw_only=True)
class WholeTable(Partitioner):
    """An anonymizer that cuts the rows of a whole table into parts."""

    publishes: ClassVar[Publishes] = "table"

    def _start(self, space: Space, seed: bytes) -> Engine:
        return WholeTableEngine(space, seed, self)


class WholeTableEngine(BoxEngine):
    """One run of a `WholeTable` anonymizer."""

    state: WholeTableState

    def __init__(self, space: Space, seed: bytes, anonymizer: Partitioner) -> None:
        self._anonymizer = anonymizer
        state = WholeTableState(
            np.zeros((space.n_quasi, SMALLEST)),
            np.zeros((space.n_quasi, SMALLEST)),
            np.zeros(SMALLEST, np.int64),
            np.zeros((SMALLEST, space.n_sensitive), np.int64),
            np.zeros(SMALLEST, np.int64),
            np.zeros(1, MARKS),
            rng.seeded(seed, "decide"),
        )
        state.marks["now"] = -np.inf
        super().__init__(space, state, seed)

    @property
    def n_held(self) -> int:
        """The number of rows so far."""
        return int(self.state.marks["n_rows"][0])

    def _reserve(self, n: int) -> None:
        needed, room = self.n_held + n, len(self.state.subjects)
        if needed <= room:
            return
        more = max(needed, 2 * room) - room
        state = self.state
        self.state = state._replace(
            lo=_wider(state.lo, 1, more),
            hi=_wider(state.hi, 1, more),
            subjects=_wider(state.subjects, 0, more),
            sensitive=_wider(state.sensitive, 0, more),
            gaps=_wider(state.gaps, 0, more),
        )

    def _push(self, codes: Codes, out: Out) -> None:
        state, n = self.state, len(codes.subjects)
        if n > 0 and state.marks["ended"][0]:
            raise ParameterError(
                "Codes",
                "come after the end of the table, which is published already",
                got=f"{n} rows",
                fix="What is measured against all rows has to be published with all of them",
            )
        begin = self.n_held
        lo, hi = self.space.points(codes.values)
        state.lo[:, begin : begin + n], state.hi[:, begin : begin + n] = lo.T, hi.T
        state.subjects[begin : begin + n] = codes.subjects
        state.sensitive[begin : begin + n] = codes.sensitive
        state.gaps[begin : begin + n] = self.space.gaps(codes.values)
        state.marks["n_rows"] += n
        timed = codes.times[np.isfinite(codes.times)]
        state.marks["now"] = max(state.marks["now"][0], timed.max(initial=-np.inf))

    def _advance(self, now: float, out: Out) -> None:
        self.state.marks["now"] = max(self.state.marks["now"][0], now)

    def _flush(self, out: Out) -> None:
        n, marks = self.n_held, self.state.marks
        if n == 0:
            return
        rows = RowArrays(
            np.ascontiguousarray(self.state.lo[:, :n]),
            np.ascontiguousarray(self.state.hi[:, :n]),
            self.state.subjects[:n].copy(),
            self.state.sensitive[:n].copy(),
            self.state.gaps[:n].copy(),
        )
        limits = self.space.limits._replace(window=window_counts_of(rows.sensitive))
        out.progress["published"] = n
        out.progress["published_s"] = marks["now"][0] if np.isfinite(marks["now"][0]) else np.nan
        found = self._anonymizer.parts(self.space, limits, rows, self.state.rng)
        parts, lost = repaired(self.space.sides, limits, rows, found)
        measured = len(limits.measures.asked) > 0
        shown = Publication(np.arange(n), 0, n if measured else -1, 0)
        publish_parts(self.space.sides, rows, parts, shown, out)
        suppress(rows, lost, shown, out)
        marks["n_rows"], marks["ended"] = 0, True


def _wider(array: Any1, axis: int, by: int) -> Any1:
    """Return an array with more room along an axis."""
    shape = list(array.shape)
    shape[axis] = by
    return np.concatenate((array, np.zeros(shape, array.dtype)), axis)


class Publication(NamedTuple):
    """What parts that are published together have in common.

    The positions of all rows, the number of the first group, the window that the parts were
    measured against (-1: none), and the instant.
    """

    positions: Ints
    first_group: int
    window: int
    instant: int


@kernel
def publish_parts(
    sides: Sides, rows: RowArrays, parts: Parts, shown: Publication, out: Out
) -> None:
    """Publish parts as groups with consecutive numbers."""
    for p in range(len(parts.starts) - 1):
        members = parts.rows[parts.starts[p] : parts.starts[p + 1]]
        gaps = 0
        for i in members:
            gaps |= rows.gaps[i]
        n_subjects = count_subjects(picked(rows.subjects, members))
        lo, hi = parts.lo[p], parts.hi[p]
        number = shown.first_group + p
        loss = mean_loss(sides, lo, hi)
        box = write_box(
            out, lo, hi, Box(loss, number, len(members), n_subjects, gaps, shown.window)
        )
        for i in members:
            decide(out, shown.positions[i], GROUP, box, shown.instant, rows.gaps[i])


@kernel
def suppress(rows: RowArrays, lost: Ints, shown: Publication, out: Out) -> None:
    """Suppress rows that are in no part."""
    for i in lost:
        decide(out, shown.positions[i], SUPPRESSED, -1, shown.instant, rows.gaps[i])
