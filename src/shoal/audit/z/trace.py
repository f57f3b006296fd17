"""The private trace of z-anonymity as arrays: one line for each cell of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.changes import without_changes
from shoal.audit.columns import Array, column, integers, numbers, positions
from shoal.errors import ParameterError

__all__ = ["OUTCOMES", "CellTrace", "read_cell_trace"]

#: The outcomes a cell can have; their positions are the codes of `CellTrace.outcome`.
OUTCOMES = ("group", "suppressed", "missing", "quarantined")
GROUP, SUPPRESSED, MISSING, QUARANTINED = range(4)

_COLUMNS = (
    "row",
    "subject",
    "attribute",
    "outcome",
    "arrived",
    "published",
    "arrived_s",
    "published_s",
    "level",
    "z",
    "seq",
)


@dataclass(frozen=True, slots=True, repr=False)
class CellTrace:
    """The columns of a trace; a missing whole number is -1, a missing time NaN."""

    row: NDArray[np.int64]
    subject: Array
    attribute: NDArray[np.int64]
    """The position among the quasi attributes; -1 if there is none, -2 if it is unknown."""
    outcome: NDArray[np.int64]
    """The position in `OUTCOMES`, -1 if it is none of them."""
    arrived: NDArray[np.int64]
    published: NDArray[np.int64]
    arrived_s: NDArray[np.float64]
    published_s: NDArray[np.float64]
    level: NDArray[np.int64]
    z: NDArray[np.int64]
    seq: NDArray[np.int64]


def read_cell_trace(table: pa.Table, attributes: Sequence[str]) -> CellTrace:
    """Read the columns of a trace of z-anonymity; refuse a table without them.

    Parameters
    ----------
    table
        The trace.
    attributes
        The names of the quasi attributes.
    """
    table = without_changes(table)
    missing = [name for name in _COLUMNS if name not in table.schema.names]
    if missing:
        raise ParameterError(
            "trace",
            f"lacks the columns {', '.join(missing)} of a trace with one line for each cell",
            fix="Give the file that a run which promised z wrote with --trace",
        )
    found: dict[str, Array] = {name: column(table, name) for name in _COLUMNS}
    return CellTrace(
        row=integers(found["row"]),
        subject=found["subject"],
        attribute=positions(found["attribute"], attributes, unknown=-2),
        outcome=positions(found["outcome"], OUTCOMES, unknown=-1),
        arrived=integers(found["arrived"]),
        published=integers(found["published"]),
        arrived_s=numbers(found["arrived_s"]),
        published_s=numbers(found["published_s"]),
        level=integers(found["level"]),
        z=integers(found["z"]),
        seq=integers(found["seq"]),
    )
