"""Write the trace: a private line for each input row, for evaluation and for the audit."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from shoal.arrow.order import Departures
from shoal.engine.base import Outcome
from shoal.engine.kernels.arrays import Floats, Ints

__all__ = ["Lines", "Tracer", "finite", "known", "trace_schema"]

OUTCOMES = pa.array([*(outcome.name for outcome in Outcome), "quarantined", "held"])
QUARANTINED, HELD = len(Outcome), len(Outcome) + 1


class Lines(Protocol):
    """Takes the lines of a trace."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write lines."""


def trace_schema(subject: Any, *, sharded: bool = False) -> pa.Schema:
    """Return the columns of a trace, given the Arrow type of the subject.

    The trace of one of several shards has the column ``shard``, too.

    >>> trace_schema(pa.string(), sharded=True).names[-2:]
    ['seq', 'shard']
    """
    columns = pa.schema(
        [
            ("row", pa.int64()),
            ("subject", subject),
            ("outcome", pa.string()),
            ("arrived", pa.int64()),
            ("published", pa.int64()),
            ("arrived_s", pa.float64()),
            ("published_s", pa.float64()),
            ("group", pa.int64()),
            ("window", pa.int64()),
            ("loss", pa.float64()),
            ("seq", pa.int64()),
        ]
    )
    return columns.append(pa.field("shard", pa.int64())) if sharded else columns


class Tracer:
    """Write a line for each row that is decided, quarantined, or still held at the end.

    Parameters
    ----------
    lines
        Takes the lines.
    subject
        The Arrow type of the subject.
    shard
        The number of this shard, and of all shards of the stream; None without shards. Each shard
        numbers its groups from 0; in the trace no two shards have a number in common.
    """

    def __init__(self, lines: Lines, subject: Any, *, shard: tuple[int, int] | None = None) -> None:
        self._lines = lines
        self._schema = trace_schema(subject, sharded=shard is not None)
        self._shard = shard
        self.subject = subject

    def decided(
        self, departures: Departures, inputs: Ints, arrived_s: Floats, subjects: Any, seq: Ints
    ) -> None:
        """Trace departures; ``inputs`` are positions in the input, ``seq`` in the output."""
        has_box = departures.boxes >= 0
        group, window = np.full(len(has_box), -1, np.int64), np.full(len(has_box), -1, np.int64)
        group[has_box] = self._unique(departures.groups[departures.boxes[has_box]])
        window[has_box] = departures.windows[departures.boxes[has_box]]
        self._write(
            inputs, subjects, departures.outcomes, departures.rows, departures.published,
            arrived_s, departures.published_s, group, window, departures.losses, seq,
        )  # fmt: skip

    def quarantined(self, inputs: Ints, subjects: Any) -> None:
        """Trace rows that couldn't be used."""
        self._unfinished(QUARANTINED, inputs, subjects, np.full(len(inputs), -1), None)

    def held(self, inputs: Ints, subjects: Any, arrived: Ints, arrived_s: Floats) -> None:
        """Trace rows that weren't decided when the run was interrupted."""
        self._unfinished(HELD, inputs, subjects, arrived, arrived_s)

    def _unique(self, groups: Ints) -> Ints:
        """Return group numbers that no other shard uses."""
        if self._shard is None:
            return groups
        shard, n_shards = self._shard
        return groups * n_shards + shard

    def _unfinished(
        self, outcome: int, inputs: Ints, subjects: Any, arrived: Ints, arrived_s: Floats | None
    ) -> None:
        n = len(inputs)
        none, unknown = np.full(n, -1), np.full(n, np.nan)
        self._write(
            inputs, subjects, np.full(n, outcome), arrived, none,
            unknown if arrived_s is None else arrived_s, unknown, none, none, unknown, none,
        )  # fmt: skip

    def _write(
        self, inputs: Ints, subjects: Any, outcomes: Ints, arrived: Ints, published: Ints,
        arrived_s: Floats, published_s: Floats, group: Ints, window: Ints, loss: Floats, seq: Ints,
    ) -> None:  # fmt: skip
        columns = [
            pa.array(inputs),
            subjects,
            OUTCOMES.take(pa.array(outcomes)),
            known(arrived),
            known(published),
            finite(arrived_s),
            finite(published_s),
            known(group),
            known(window),
            finite(loss),
            known(seq),
        ]
        if self._shard is not None:
            columns.append(pa.array(np.full(len(inputs), self._shard[0], np.int64)))
        self._lines.write(pa.record_batch(columns, schema=self._schema))


def known(numbers: Ints) -> Any:
    """Return integers, null where they are negative."""
    return pa.array(numbers, pa.int64(), mask=numbers < 0)


def finite(numbers: Floats) -> Any:
    """Return floats, null where they aren't finite."""
    return pa.array(numbers, pa.float64(), mask=~np.isfinite(numbers))
