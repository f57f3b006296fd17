"""The engine of z-anonymity for values without ladders, published as they are or not at all.

The table of exposures is in `shoal.engine.z.pairs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.kernels.arrays import Ints
from shoal.engine.space import Codes, Space
from shoal.engine.z.base import ZEngine, ZKnobs
from shoal.engine.z.pairs import N_PAIRS, empty, moved, needed, published, room, take
from shoal.engine.z.window import ZDecisions

__all__ = ["FlatEngine"]


class FlatEngine(ZEngine):
    """One run on attributes with one level each."""

    def __init__(self, space: Space, knobs: ZKnobs, seed: bytes) -> None:
        super().__init__(space, empty(), knobs, seed)

    @property
    def n_exposures(self) -> int:
        """The number of different exposures (a subject, a value) in the window."""
        return int(self.state.table.marks[N_PAIRS])

    def _take(self, codes: Codes, cells: ZDecisions, cursor: Ints) -> int:
        state = self.state
        why = take(
            state.table, state.place, self._window, codes.subjects, codes.times, codes.keys,
            cells, cursor,
        )  # fmt: skip
        return int(why)

    def _there(self) -> tuple[int, int, int]:
        return room(self.state.table)

    def _needed(self) -> tuple[int, int, int]:
        n_cells = len(self.space.n_levels)
        n_pairs, n_keys, n_exposures = needed(self.state.table)
        return n_pairs + n_cells, n_keys + n_cells, n_exposures + n_cells

    def _move(self, room: Sequence[int]) -> None:
        n_pairs, n_keys, n_exposures = room
        self.state = self.state._replace(
            table=moved(self.state.table, n_pairs, n_keys, n_exposures)
        )

    def _subjects(self) -> Ints:
        return published(self.state.table, 0)[0]

    def _published(self, z: int) -> tuple[Ints, Ints]:
        return published(self.state.table, z)
