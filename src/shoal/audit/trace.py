"""The private trace as arrays: one line for each row of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.changes import without_changes
from shoal.audit.columns import Array, column, integers, numbers, positions
from shoal.errors import ParameterError

__all__ = ["OUTCOMES", "Trace", "behind", "read_trace", "whole_numbers"]

#: The outcomes a row can have; their positions are the codes of `Trace.outcome`.
OUTCOMES = ("group", "reuse", "suppressed", "quarantined", "held")
GROUP, REUSE, SUPPRESSED, QUARANTINED, HELD = range(5)

_COLUMNS = (
    "row",
    "subject",
    "outcome",
    "arrived",
    "published",
    "arrived_s",
    "published_s",
    "group",
    "seq",
)


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """The columns of a trace; a missing whole number is -1, a missing time NaN."""

    row: NDArray[np.int64]
    subject: Array
    outcome: NDArray[np.int64]
    """The position in `OUTCOMES`, -1 if it is none of them."""
    arrived: NDArray[np.int64]
    published: NDArray[np.int64]
    arrived_s: NDArray[np.float64]
    published_s: NDArray[np.float64]
    group: NDArray[np.int64]
    window: NDArray[np.int64]
    """How many rows had arrived at the end of the window that the row was measured in."""
    seq: NDArray[np.int64]
    shard: NDArray[np.int64]
    """Which of several shards decided the row; 0 where the trace has no shards."""
    loss: NDArray[np.float64]
    """The loss of the published row; NaN where the trace has none."""
    is_sharded: bool
    """Whether the trace has a column for shards."""

    @property
    def has_shards(self) -> bool:
        """Whether rows were decided in more than one shard, each of which counts its own rows."""
        return len(self) > 0 and bool(np.any(self.shard != self.shard[0]))

    def __len__(self) -> int:
        return len(self.row)

    def has(self, *outcomes: int) -> NDArray[np.bool_]:
        """Return which lines have one of these outcomes."""
        return np.isin(self.outcome, outcomes)


def behind(n: int) -> str:
    """Return what is said of the last rows of an output that have no line."""
    return (
        f"the last {n:,} rows of the output have no line in the trace: it is older than the "
        "output, or the job was killed and hasn't resumed since; otherwise somebody has added them"
    )


def read_trace(table: pa.Table) -> Trace:
    """Read the columns of a trace; refuse a table without them."""
    table = without_changes(table)
    _check_columns(table, _COLUMNS)
    if "attribute" in table.schema.names:
        raise ParameterError(
            "trace",
            "has one line for each cell, as that of a run which promises z",
            fix="Give the job of that run, or a trace with one line for each row",
        )
    found: dict[str, Array] = {name: column(table, name) for name in _COLUMNS}
    return Trace(
        row=integers(found["row"]),
        subject=found["subject"],
        outcome=positions(found["outcome"], OUTCOMES, unknown=-1),
        arrived=integers(found["arrived"]),
        published=integers(found["published"]),
        arrived_s=numbers(found["arrived_s"]),
        published_s=numbers(found["published_s"]),
        group=integers(found["group"]),
        # A trace has no windows where no promise is measured against them, and no shards where
        # there is one.
        window=_optional(table, "window", -1),
        seq=integers(found["seq"]),
        shard=_optional(table, "shard", 0),
        loss=np.full(table.num_rows, np.nan)
        if (loss := column(table, "loss")) is None
        else numbers(loss),
        is_sharded="shard" in table.schema.names,
    )


def whole_numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Return the whole numbers of a column of a trace; refuse a table without it."""
    _check_columns(table, [name])
    return integers(column(table, name))


def _check_columns(table: pa.Table, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in table.schema.names]
    if missing:
        raise ParameterError(
            "trace",
            f"lacks the columns {', '.join(missing)}",
            fix="Give the file that the run wrote with --trace",
        )


def _optional(table: pa.Table, name: str, otherwise: int) -> NDArray[np.int64]:
    """Return the whole numbers of a column, or a default for all lines if it is missing."""
    found = column(table, name)
    return np.full(table.num_rows, otherwise, dtype=np.int64) if found is None else integers(found)
