"""Rows joined from the decisions of several shards, by an engine that returns these decisions.

So all that follows a decision is the same as with one engine: the last check of how many subjects
are behind a value, rows and their payload, pseudonyms, figures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine.base import Engine
from shoal.engine.kernels.arrays import Ints
from shoal.engine.space import Codes, Space
from shoal.engine.z.base import ZEngine, ZKnobs
from shoal.engine.z.window import DONE, ZDecisions
from shoal.spark.z.decide import Decided

__all__ = ["Joining", "JoiningEngine", "ZChange"]


class ZChange(NamedTuple):
    """The z in force from a row on."""

    row: int
    z: int


class _Nothing(NamedTuple):
    """The tables of an engine that counts nothing."""


class JoiningEngine(ZEngine):
    """An engine that returns what shards have decided.

    Parameters
    ----------
    space, seed
        As of any engine.
    pieces
        The decisions of shards about the rows that will be pushed.
    changes
        Where z has changed, by row; before the first it is the policy's.
    first
        The position of the first row that will be pushed.
    """

    def __init__(
        self,
        space: Space,
        seed: bytes,
        pieces: Sequence[Decided],
        changes: Sequence[ZChange],
        first: int = 0,
    ) -> None:
        super().__init__(space, _Nothing(), ZKnobs(False, 0.0, 2, 0), seed)
        self.state.place["upcoming"] = first
        self._pieces, self._changes = pieces, changes

    @property
    def n_exposures(self) -> int:
        """Zero: none are counted here."""
        return 0

    def _take(self, codes: Codes, cells: ZDecisions, cursor: Ints) -> int:
        place = self.state.place
        first = int(place["upcoming"][0])
        there = codes.keys[:, self._cuts[:-1]] != 0
        _, cells.levels[:], cells.n_behind[:] = Decided.joined(self._pieces, first, there)
        n = len(codes.subjects)
        cells.z[:] = self.space.z
        for change in self._changes:
            cells.z[max(0, change.row - first) :] = change.z
        cells.times[:] = codes.times
        place["upcoming"] += n
        return DONE

    def _there(self) -> tuple[int, ...]:
        return ()

    def _needed(self) -> tuple[int, ...]:
        return ()

    def _move(self, room: Sequence[int]) -> None:
        """Do nothing: there are no tables."""

    def _subjects(self) -> Ints:
        return np.empty(0, np.int64)

    def _published(self, z: int) -> tuple[Ints, Ints]:
        return self._subjects(), self._subjects()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Joining(ZAnonymizer):
    """z-anonymity where shards have decided: see `JoiningEngine`."""

    name: ClassVar[str] = ZAnonymizer.name

    pieces: Sequence[Decided] = dataclasses.field(default=(), repr=False)
    changes: Sequence[ZChange] = ()
    first: int = 0

    def _start(self, space: Space, seed: bytes) -> Engine:
        return JoiningEngine(space, seed, self.pieces, self.changes, self.first)
