"""A batch: all rows become groups at once, in three steps that several threads can share.

Rows are cut into cells along the Hilbert curve, and groups are grown in each cell. Groups are
repaired in chunks along the same curve, and then again in chunks that begin half a chunk later.
Cells and chunks depend on the rows alone, and each chunk has random numbers of its own: so the
result is the same for any number of threads.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.engine.jit import kernel, on_demand
from shoal.engine.kernels import rng
from shoal.engine.kernels.array_tools import by_first
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.boxes import Sides
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.hilbert import centres, hilbert
from shoal.engine.kernels.parts import Parts, in_parts, parts_of
from shoal.engine.kernels.predicate import Limits, any_diversity, any_measured, needed
from shoal.engine.space import Space
from shoal.engine.tide.grid import Grid, GridRows, begin, boxes_for, grid_of, grid_rows, take
from shoal.engine.tide.grow import Rules, candidates_for
from shoal.engine.tide.levels import levels_of
from shoal.engine.tide.nearest import group_around
from shoal.engine.tide.repair import POOLED, repair
from shoal.engine.tide.start import insert, lost, start
from shoal.engine.tide.threads import Threads
from shoal.engine.tide.top_down import cut_in_shares

__all__ = ["CELL", "CHUNK", "NEAR_BY", "Forming", "rules_for"]

#: The most rows in which a group is grown, and the number of groups that are repaired together.
CELL, CHUNK = 16_384, 256
#: What is done row by row or group by group is shared in pieces of this many rows.
PIECE = 8_192
#: A further row of a subject joins one of this many groups, before and after that of its first row.
NEAR_BY = 128


#: The kinds of tasks.
START, CUT, REPAIR, AROUND = range(4)
NO_DRAWS = np.empty(0, np.int64)


class Task(NamedTuple):
    """What a thread does: start with some rows, repair groups, or grow one around the first row.

    ``chosen`` are the rows to start with, or the subjects of all rows to grow among; ``part`` takes
    the group of each row, or the members.
    """

    kind: int
    chosen: Ints
    part: Ints
    n_groups: int
    times: int
    draws: Ints


def rules_for(limits: Limits) -> Rules:
    """Return what a group needs. The promise is tested at sizes that are a quarter of k apart."""
    asks = bool(any_diversity(limits) or any_measured(limits))
    measured = int(limits.measures.asked["attribute"].min()) if any_measured(limits) else -1
    return Rules(limits, int(needed(limits)), max(1, limits.k // 4), asks, measured, True)


class Forming:
    """Forms the groups of whole batches, in threads that share them."""

    def __init__(self, space: Space, effort: int, threads: Threads) -> None:
        self.grid = grid_of(space.sides)
        self._space, self._effort = space, effort
        self.threads = threads

    def parts(self, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Cut rows into parts; those that break the promise must be merged by the caller.

        ``random`` is used by no other call, so that several threads may call this at a time.
        """
        rules, codes = rules_for(limits), grid_rows(self.grid, rows.lo, rows.hi)
        firsts, others = _first_rows(rows.subjects)
        part = np.full(len(rows.subjects), -1, np.int64)
        n_parts = self._start(rules, codes, rows, firsts, part)
        n_parts = self._repair(rules, codes, rows, firsts, part, n_parts, random)
        _add_others(self.grid, codes, rows.subjects, firsts, others, part, n_parts)
        order, starts = in_parts(part, n_parts)
        return self._boxes(rows, order, starts)

    def around(self, limits: Limits, rows: RowArrays) -> Ints:
        """Return the members of a group around the first row, in order; none if there isn't any."""
        rules, codes = rules_for(limits), grid_rows(self.grid, rows.lo, rows.hi)
        members = np.empty(len(rows.subjects), np.int64)
        task = Task(AROUND, rows.subjects, members, 0, 0, NO_DRAWS)
        n = work(self.grid, rules, codes, rows.sensitive, task)
        return np.sort(members[:n])

    def _start(
        self, rules: Rules, codes: GridRows, rows: RowArrays, firsts: Ints, part: Ints
    ) -> int:
        """Grow groups. Where they are measured, cut rows in shares if that loses less."""
        n = self._grow(rules, codes, rows, firsts, part)
        if rules.measured < 0:
            return n
        cut = part.copy()
        task = Task(CUT, firsts, cut, 0, 0, NO_DRAWS)
        n_cut = work(self.grid, rules, codes, rows.sensitive, task)
        grown_lost, cut_lost = (
            lost(self.grid, rules, codes, rows.sensitive, firsts, found, count)
            for found, count in ((part, n), (cut, n_cut))
        )
        if cut_lost >= grown_lost:
            return n
        part[:] = cut
        return n_cut

    def _grow(
        self, rules: Rules, codes: GridRows, rows: RowArrays, firsts: Ints, part: Ints
    ) -> int:
        """Grow groups in cells, and write them in the order of the curve."""
        cells = [firsts]
        if len(firsts) > CELL:
            along = firsts[np.argsort(self._keys(rows, firsts), kind="stable")]
            # The rows of a cell in their order of arrival.
            cells = [np.sort(cell) for cell in np.array_split(along, -(-len(along) // CELL))]
        tasks = [Task(START, cell, part, 0, 0, NO_DRAWS) for cell in cells]
        counts = self.threads.each(
            [partial(work, self.grid, rules, codes, rows.sensitive, task) for task in tasks]
        )
        n = 0
        for cell, count in zip(cells, counts, strict=True):
            part[cell] += n
            n += count
        return n

    def _repair(
        self, rules: Rules, codes: GridRows, rows: RowArrays, firsts: Ints, part: Ints,
        n_parts: int, random: Ints,
    ) -> int:  # fmt: skip
        """Repair the groups, chunk by chunk; return how many there are then."""
        rank = self._ranks(rows, firsts, part, n_parts)
        part[firsts] = rank[part[firsts]]
        if n_parts == 1 or self._effort == 0:
            return n_parts
        shifts = (0,) if n_parts < 2 * CHUNK else (0, CHUNK // 2)
        for shift in shifts:
            bounds = _bounds(n_parts, shift)
            order, starts = in_parts(part[firsts], n_parts)
            chunks = [firsts[np.sort(order[starts[a] : starts[b]])] for a, b in bounds]
            tasks, new = [], []
            for (a, b), chunk in zip(bounds, chunks, strict=True):
                times = self._effort * (b - a) // (POOLED * len(shifts))
                new.append(part[chunk] - a)
                some = _some(codes, chunk)
                task = Task(REPAIR, chunk, new[-1], b - a, times, rng.forked(random))
                tasks.append(partial(work, self.grid, rules, some, rows.sensitive[chunk], task))
            n_parts = 0
            for chunk, found, count in zip(chunks, new, self.threads.each(tasks), strict=True):
                part[chunk] = found + n_parts
                n_parts += count
        return n_parts

    def _keys(self, rows: RowArrays, firsts: Ints) -> Ints:
        """Return the places of some rows on the curve."""
        pieces = np.array_split(firsts, -(-len(firsts) // PIECE))
        keys = self.threads.each([partial(_keys, self._space.sides, rows, one) for one in pieces])
        return np.concatenate(keys)

    def _boxes(self, rows: RowArrays, order: Ints, starts: Ints) -> Parts:
        """Return parts with the boxes of their rows."""
        n_pieces = max(1, min(len(order) // PIECE, len(starts) - 1))
        cuts = np.linspace(0, len(starts) - 1, n_pieces + 1).astype(np.int64)
        tasks = [
            partial(parts_of, self._space.sides, rows, order, starts[a : b + 1])
            for a, b in pairwise(cuts)
        ]
        found = self.threads.each(tasks)
        lo, hi = (np.concatenate([getattr(one, end) for one in found]) for end in ("lo", "hi"))
        return Parts(order, starts, lo, hi)

    def _ranks(self, rows: RowArrays, firsts: Ints, part: Ints, n_parts: int) -> Ints:
        """Return the place of each part along the curve."""
        order, starts = in_parts(part[firsts], n_parts)
        sides = self._space.sides
        found = self._boxes(rows, firsts[order], starts)
        lo, hi = np.ascontiguousarray(found.lo.T), np.ascontiguousarray(found.hi.T)
        keys = hilbert(sides, centres(sides, lo, hi))
        rank = np.empty(n_parts, np.int64)
        rank[np.argsort(keys, kind="stable")] = np.arange(n_parts)
        return rank


def _keys(sides: Sides, rows: RowArrays, chosen: Ints) -> Ints:
    """Return the places of some rows on the curve."""
    lo = rows.lo.take(chosen, axis=1)
    hi = lo if rows.hi is rows.lo else rows.hi.take(chosen, axis=1)
    return hilbert(sides, centres(sides, lo, hi))


def _some(rows: GridRows, chosen: Ints) -> GridRows:
    """Return copies of some rows."""
    lo = rows.lo.take(chosen, axis=1)
    hi = lo if rows.are_points else rows.hi.take(chosen, axis=1)
    return GridRows(lo, hi, rows.has_gaps, rows.are_points)


def _bounds(n_parts: int, shift: int) -> list[tuple[int, int]]:
    """Return where each chunk of parts begins and ends; none has fewer than half a chunk."""
    inner = range(shift or CHUNK, n_parts - CHUNK // 2 + 1, CHUNK)
    cuts = [0, *inner, n_parts]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


@kernel
def work(grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, task: Task) -> int:
    """Do a task. All of them are one kernel, so that what they share is compiled once."""
    if task.kind == START:
        return start(grid, rules, rows, sensitive, task.chosen, task.part)
    if task.kind == CUT:
        return _cut(grid, rules, rows, sensitive, task)
    if task.kind == REPAIR:
        return repair(
            grid, rules, rows, sensitive, task.part, task.n_groups, task.times, task.draws
        )
    return _around(grid, rules, rows, sensitive, task)


@on_demand
def _cut(grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, task: Task) -> int:
    levels = levels_of(rules, sensitive)
    return cut_in_shares(grid, rules, rows, sensitive, levels, task.chosen, task.part)


@on_demand
def _around(grid: Grid, rules: Rules, rows: GridRows, sensitive: Ints, task: Task) -> int:
    n, d = len(task.chosen), len(rows.lo)
    near, boxes = candidates_for(n, d, not rows.are_points, rows.has_gaps), boxes_for(1, d)
    bias, cost = np.zeros(n, np.int32), np.empty(n, np.int32)
    return group_around(
        grid, rules, rows, n, bias, task.chosen, sensitive, 0, near, cost, boxes, 0, task.part
    )


@kernel
def _first_rows(subjects: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each subject, and all others."""
    number = by_first(subjects)
    firsts, others = np.empty(len(number), np.int64), np.empty(len(number), np.int64)
    n = 0
    for i in range(len(number)):
        if number[i] == n:
            firsts[n] = i
            n += 1
        else:
            others[i - n] = i
    return firsts[:n], others[: len(number) - n]


@kernel
def _add_others(
    grid: Grid, rows: GridRows, subjects: Ints, firsts: Ints, others: Ints, part: Ints,
    n_parts: int,
) -> None:  # fmt: skip
    """Put the further rows of subjects into the parts, near those of their first rows."""
    if len(others) == 0:
        return
    boxes = boxes_for(n_parts, len(rows.lo))
    for g in range(n_parts):
        begin(boxes, g)
    for i in firsts:
        take(grid, boxes, part[i], rows, i)
    number = by_first(subjects)
    for i in others:
        home = part[firsts[number[i]]]
        first, end = max(0, home - NEAR_BY), min(n_parts, home + NEAR_BY + 1)
        part[i] = insert(grid, boxes, first, end, rows, i)
