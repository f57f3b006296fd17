"""Read the lines of a trace as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.errors import ParameterError

__all__ = ["by_shard", "decided_lines", "numbers", "rows_of"]

_DECIDED = ("group", "reuse", "suppressed")


def decided_lines(trace: pa.Table, *names: str) -> pa.Table:
    """Return the lines of decided rows; refuse a trace that lacks one of these columns."""
    missing = [name for name in ("outcome", *names) if name not in trace.schema.names]
    if missing:
        raise ParameterError(
            "trace",
            f"lacks the columns {', '.join(missing)}",
            fix="Give the file that the run wrote with --trace",
        )
    outcome: Any = trace.column("outcome").cast(pa.string())
    return trace.filter(pc.is_in(outcome, value_set=pa.array(_DECIDED)))


def rows_of(trace: pa.Table) -> pa.Table:
    """Return the lines that are about rows, without those about changes of the job.

    >>> trace = pa.table({"row": [0, 1], "outcome": ["group", 'changed {"what": []}']})
    >>> rows_of(trace)["row"].to_pylist()
    [0]
    """
    outcome: Any = trace.column("outcome").cast(pa.string())
    return trace.filter(pc.invert(pc.starts_with(outcome, "changed ").fill_null(False)))


def by_shard(lines: pa.Table) -> list[pa.Table]:
    """Return the lines of each shard, if the trace has shards: each counts its own rows.

    >>> [part["row"].to_pylist() for part in by_shard(pa.table({"row": [0, 1], "shard": [1, 0]}))]
    [[1], [0]]
    """
    if "shard" not in lines.schema.names:
        return [lines]
    shard: Any = lines.column("shard").cast(pa.int64()).fill_null(-1)
    return [lines.filter(pc.equal(shard, n)) for n in sorted(pc.unique(shard).to_pylist())]


def numbers(lines: pa.Table, name: str) -> NDArray[np.float64]:
    """Return a column of numbers; NaN where there is none."""
    column = lines.column(name).cast(pa.float64())
    return np.asarray(column.to_numpy(), dtype=np.float64)
