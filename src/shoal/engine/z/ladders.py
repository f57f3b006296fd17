"""The engine of z-anonymity for values with ladders, published at the finest level that is allowed.

The table of exposures is in `shoal.engine.z.exposures`, the choice of a level in
`shoal.engine.z.climbing`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.engine.decisions import MISSING
from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.ring import wrap
from shoal.engine.space import Codes, Space
from shoal.engine.z.base import ZEngine, ZKnobs, ZState
from shoal.engine.z.climbing import CountingRule, climb, expose, forget, level_of, rebuild, show
from shoal.engine.z.exposures import (
    KEY,
    LATEST,
    N_ENTRIES,
    N_LEAVES,
    N_NODES,
    NODE,
    NONE,
    OLDEST,
    SUBJECT,
    TOP_ENTRY,
    UPCOMING,
    Exposures,
    empty,
    moved,
)
from shoal.engine.z.set_fingerprints import first_of_pairs
from shoal.engine.z.window import DONE, LEAST, LOOK, ROOM, ZDecisions, ZWindow, slot_of

__all__ = ["LadderEngine"]


class LadderEngine(ZEngine):
    """One run on attributes of which at least one has several levels."""

    def __init__(self, space: Space, knobs: ZKnobs, seed: bytes) -> None:
        super().__init__(space, empty(), knobs, seed)
        self._n_levels = max(space.n_levels)

    @property
    def n_exposures(self) -> int:
        """The number of different exposures (a subject, a value) in the window."""
        return int(self.state.table.marks[N_LEAVES])

    def _take(self, codes: Codes, cells: ZDecisions, cursor: Ints) -> int:
        state = self.state
        # A level that reaches z - 1 or drops below it moves fewer than z subjects.
        most = min(int(state.place["z"][0]), len(state.table.entries)) + 1
        rule = CountingRule(int(state.place["z"][0]), self._knobs.plain)
        return int(
            _take(
                state, rule, self._window, self._cuts, codes, cells, cursor,
                np.empty(most, np.int64),
            )
        )  # fmt: skip

    def _there(self) -> tuple[int, int, int]:
        table = self.state.table
        return len(table.entries), len(table.nodes), len(table.ring)

    def _needed(self) -> tuple[int, int, int]:
        marks = self.state.table.marks
        z, n_levels = int(self.state.place["z"][0]), self._n_levels
        n_cells = len(self.space.n_levels)
        n_entries = marks[N_ENTRIES] + _n_new(self.state.table, z, n_levels, n_cells)
        n_exposures = marks[UPCOMING] - marks[OLDEST] + n_cells
        return int(n_entries), int(marks[N_NODES]) + n_levels * n_cells, int(n_exposures)

    def _move(self, room: Sequence[int]) -> None:
        n_entries, n_nodes, n_exposures = room
        table = moved(self.state.table, n_entries, n_nodes, n_exposures)
        self.state = self.state._replace(table=table)

    def _prepare(self) -> None:
        """Make room for as many entries as there can be under any z."""
        n_entries = self.n_exposures * self._n_levels
        self._move((max(n_entries, LEAST), *self._there()[1:]))

    def _count(self, z: int) -> None:
        rebuild(self.state.table, CountingRule(z, self._knobs.plain))

    def _subjects(self) -> Ints:
        return _subjects(self.state.table)

    def _published(self, z: int) -> tuple[Ints, Ints]:
        subjects, keys = _published(self.state.table, CountingRule(z, self._knobs.plain))
        # Several values of a subject may be published under the same level.
        first = first_of_pairs(subjects, keys)
        return subjects[first], keys[first]


@kernel
def _subjects(table: Exposures) -> Ints:
    """Return the subject of each exposed value in the window."""
    subjects = np.empty(table.marks[N_LEAVES], np.int64)
    n = 0
    for at in range(table.marks[TOP_ENTRY]):
        if table.entries[at, LATEST] != NONE:
            subjects[n] = table.entries[at, SUBJECT]
            n += 1
    return subjects


@kernel
def _published(table: Exposures, rule: CountingRule) -> tuple[Ints, Ints]:
    """Return subjects, and the keys of the levels that their values would be published at."""
    subjects = np.empty(table.marks[N_LEAVES], np.int64)
    keys = np.empty(len(subjects), np.int64)
    n = 0
    for at in range(table.marks[TOP_ENTRY]):
        if table.entries[at, LATEST] == NONE:
            continue
        subject = table.entries[at, SUBJECT]
        node = climb(table, rule, table.entries[at, NODE], subject)
        if node != NONE:
            subjects[n], keys[n] = subject, table.nodes[node, KEY]
            n += 1
    return subjects[:n], keys[:n]


@kernel
def _n_new(table: Exposures, z: int, n_levels: int, n_cells: int) -> int:
    """Return how many entries may be added when ``n_cells`` exposures arrive, or one expires."""
    return n_cells * (1 + (n_levels - 1) * min(z, table.marks[N_LEAVES] + n_cells))


@kernel
def _has_room(table: Exposures, z: int, n_levels: int, n_cells: int) -> bool:
    marks = table.marks
    return (
        len(table.entries) - marks[N_ENTRIES] >= _n_new(table, z, n_levels, n_cells)
        and len(table.nodes) - marks[N_NODES] >= n_levels * n_cells
        and len(table.ring) - (marks[UPCOMING] - marks[OLDEST]) >= n_cells
    )


@kernel
def _take(
    state: ZState, rule: CountingRule, window: ZWindow, cuts: Ints, codes: Codes, cells: ZDecisions,
    cursor: Ints, changed: Ints,
) -> int:  # fmt: skip
    """Take in rows from the cursor on, until all are decided or the kernel has to stop.

    A row is decided and then exposed; the steps before that may be repeated after a stop.
    """
    table, place = state.table, state.place
    n_cells, n_levels = len(cuts) - 1, 0
    for j in range(n_cells):
        n_levels = max(n_levels, cuts[j + 1] - cuts[j])
    while cursor[0] < len(codes.subjects):
        i = cursor[0]
        if codes.times[i] > place["now"][0]:
            place["now"][0] = codes.times[i]
        clock = place["now"][0] if window.seconds else float(place["upcoming"][0])
        horizon = clock - window.back
        if place["upcoming"][0] == 0:
            place["begin"][0] = clock
        while (
            table.marks[OLDEST] < table.marks[UPCOMING]
            and table.times[wrap(table.marks[OLDEST], len(table.ring))] < horizon
        ):
            if not _has_room(table, rule.z, n_levels, 1):
                return ROOM
            forget(table, rule, changed)
        slot = slot_of(clock, place["begin"][0], window)
        if slot >= 0 and slot > place["slot"][0]:
            place["slot"][0] = slot
            return LOOK
        if not _has_room(table, rule.z, n_levels, n_cells):
            return ROOM
        subject = codes.subjects[i]
        for j in range(n_cells):
            keys = codes.keys[i, cuts[j] : cuts[j + 1]]
            if keys[0] == 0:
                cells.levels[i, j] = MISSING
            else:
                level, n = level_of(table, rule, keys, subject)
                cells.levels[i, j], cells.n_behind[i, j] = level, n
        for j in range(n_cells):
            if cells.levels[i, j] != MISSING:
                keys = codes.keys[i, cuts[j] : cuts[j + 1]]
                leaf = expose(table, rule, keys, subject, clock, changed)
                if cells.levels[i, j] == 0:
                    show(table, leaf, subject)
        cells.z[i] = rule.z
        if not np.isnan(codes.times[i]):
            cells.times[i] = place["now"][0]
        place["upcoming"][0] += 1
        cursor[0] += 1
    return DONE
