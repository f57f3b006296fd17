"""Put decided rows in the order in which they leave (thesis §5.5.3).

- ``released``: as decided; the engine has shuffled the rows inside each group.
- ``shuffled``: all rows of one instant shuffled, across its groups.
- ``arrival``: as they arrived. A row waits for all earlier ones; where deadlines follow arrival it
  still leaves within the delay (Theorem 5.3). An attacker who knows when somebody arrived finds
  their row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.engine.base import Decisions
from shoal.engine.jit import kernel
from shoal.engine.kernels.arrays import Any1, Floats, Ints
from shoal.engine.kernels.rng import seeded, shuffle

__all__ = ["ByArrival", "ByInstant", "Departures", "Ordering"]


class Departures(NamedTuple):
    """Decided rows in the order in which they leave, with their payload and their boxes.

    The arrays are those of `Decisions`; ``groups`` and ``windows`` are by box, ``gaps`` and
    ``losses`` by row, and so are ``levels`` and ``z`` where there are no boxes (such rows leave as
    decided). ``left`` and ``left_s`` are the moment at which a row leaves, like ``published`` and
    ``published_s`` for its decision; they are later where a row waits for others.
    """

    rows: Ints
    outcomes: Ints
    boxes: Ints
    published: Ints
    published_s: Floats
    gaps: Ints
    losses: Floats
    left: Ints
    left_s: Floats
    lo: Floats
    hi: Floats
    groups: Ints
    windows: Ints
    levels: Ints
    z: Ints
    payload: pa.RecordBatch

    def __repr__(self) -> str:
        return f"Departures({len(self.rows)} rows)"


class Ordering:
    """Let rows leave in the order of their decision."""

    def arrange(
        self, decisions: Decisions, payload: pa.RecordBatch, oldest_held: int
    ) -> Departures:
        """Return the rows that leave now.

        Parameters
        ----------
        decisions, payload
            The decisions, and a row of payload for each decided row.
        oldest_held
            The position of the oldest undecided row.
        """
        return Departures(
            decisions.rows, decisions.outcomes, decisions.boxes,
            decisions.published, decisions.published_s, decisions.gaps, decisions.losses,
            decisions.published, decisions.published_s,
            decisions.lo, decisions.hi, decisions.groups, decisions.windows,
            decisions.levels, decisions.z, payload,
        )  # fmt: skip

    @property
    def n_waiting(self) -> int:
        """The number of decided rows that haven't left yet."""
        return 0

    def rest(self) -> Departures | None:
        """Remove and return the waiting rows, when those they wait for will never leave."""
        return None

    def snapshot(self) -> tuple[dict[str, Any1], pa.RecordBatch | None]:
        """Return the state: arrays by name, and the payload of waiting rows."""
        return {}, None

    def restore(self, arrays: Mapping[str, Any1], payload: pa.RecordBatch | None) -> None:
        """Restore a snapshot."""


class ByInstant(Ordering):
    """Shuffle all rows that were decided at one instant."""

    def __init__(self, seed: bytes) -> None:
        self._random = seeded(seed, "order")

    def arrange(
        self, decisions: Decisions, payload: pa.RecordBatch, oldest_held: int
    ) -> Departures:
        """Return all rows, shuffled inside each instant."""
        order = np.arange(len(decisions.rows))
        _shuffle_instants(self._random, order, decisions.instants)
        departures = super().arrange(decisions, payload, oldest_held)
        return _picked(departures, order)

    def snapshot(self) -> tuple[dict[str, Any1], pa.RecordBatch | None]:
        """Return the random state."""
        return {"random": self._random.copy()}, None

    def restore(self, arrays: Mapping[str, Any1], payload: pa.RecordBatch | None) -> None:
        """Restore the random state of a snapshot."""
        self._random = arrays["random"].copy()


class ByArrival(Ordering):
    """Keep rows back until all earlier ones have left."""

    def __init__(self) -> None:
        self._waiting: Departures | None = None
        self._latest = 0
        self._latest_s = -np.inf

    def arrange(
        self, decisions: Decisions, payload: pa.RecordBatch, oldest_held: int
    ) -> Departures:
        """Return the decided rows that arrived before the oldest held one."""
        departures = _with_own_boxes(super().arrange(decisions, payload, oldest_held))
        if self._waiting is not None:
            departures = _joined(self._waiting, departures)
        departures = _picked(departures, np.argsort(departures.rows))
        n = int(np.searchsorted(departures.rows, oldest_held))
        self._waiting = _with_own_boxes(_picked(departures, np.arange(n, len(departures.rows))))
        leaving = _picked(departures, np.arange(n))
        # A row leaves when the last of those before it is decided.
        left = np.maximum.accumulate(np.append(self._latest, leaving.published))[1:]
        seconds = np.fmax.accumulate(np.append(self._latest_s, leaving.published_s))[1:]
        if n:
            self._latest, self._latest_s = int(left[-1]), float(seconds[-1])
        seconds = np.where(np.isnan(leaving.published_s), np.nan, seconds)
        return leaving._replace(left=left, left_s=seconds)

    @property
    def n_waiting(self) -> int:
        """The number of decided rows that wait for earlier ones."""
        return 0 if self._waiting is None else len(self._waiting.rows)

    def rest(self) -> Departures | None:
        """Remove and return the waiting rows, in the order of their arrival."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def snapshot(self) -> tuple[dict[str, Any1], pa.RecordBatch | None]:
        """Return the waiting rows, and when the last row left."""
        latest: dict[str, Any1] = {
            "latest": np.array([self._latest]),
            "latest_s": np.array([self._latest_s]),
        }
        if self._waiting is None:
            return latest, None
        waiting = {n: getattr(self._waiting, n) for n in Departures._fields if n != "payload"}
        return latest | waiting, self._waiting.payload

    def restore(self, arrays: Mapping[str, Any1], payload: pa.RecordBatch | None) -> None:
        """Restore the waiting rows of a snapshot."""
        self._latest, self._latest_s = int(arrays["latest"][0]), float(arrays["latest_s"][0])
        if payload is None:
            self._waiting = None
        else:
            parts = {n: arrays[n] for n in Departures._fields if n != "payload"}
            self._waiting = Departures(**parts, payload=payload)


def _picked(departures: Departures, order: Ints) -> Departures:
    return departures._replace(
        rows=departures.rows[order],
        outcomes=departures.outcomes[order],
        boxes=departures.boxes[order],
        published=departures.published[order],
        published_s=departures.published_s[order],
        gaps=departures.gaps[order],
        losses=departures.losses[order],
        left=departures.left[order],
        left_s=departures.left_s[order],
        payload=departures.payload.take(pa.array(order)),
    )


def _with_own_boxes(departures: Departures) -> Departures:
    """Give each row a box of its own, so that rows of one group can leave apart."""
    has_box = departures.boxes >= 0
    chosen = departures.boxes[has_box]
    boxes = np.full(len(departures.boxes), -1, np.int64)
    boxes[has_box] = np.arange(len(chosen))
    return departures._replace(
        boxes=boxes, lo=departures.lo[chosen], hi=departures.hi[chosen],
        groups=departures.groups[chosen], windows=departures.windows[chosen],
    )  # fmt: skip


def _joined(first: Departures, second: Departures) -> Departures:
    shifted = np.where(second.boxes < 0, -1, second.boxes + len(first.lo))
    second = second._replace(boxes=shifted)
    arrays = {
        name: np.concatenate((getattr(first, name), getattr(second, name)))
        for name in Departures._fields
        if name != "payload"
    }
    return Departures(**arrays, payload=pa.concat_batches([first.payload, second.payload]))


@kernel
def _shuffle_instants(random: Ints, order: Ints, instants: Ints) -> None:
    begin = 0
    for i in range(1, len(order) + 1):
        if i == len(order) or instants[i] != instants[begin]:
            shuffle(random, order[begin:i])
            begin = i
