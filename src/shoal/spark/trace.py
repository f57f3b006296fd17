"""The trace of a job on Spark: the lines of all shards, merged epoch by epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shoal.io.files.atomic import atomic_write
from shoal.spark.commits import Epoch, Plan, shard_folder
from shoal.spark.shard_io import trace_path

__all__ = ["merge_traces"]


def merge_traces(
    trace: Path,
    folder: Path,
    epoch: Epoch,
    plan: Plan,
    figures: list[dict[str, Any]],
) -> None:
    """Write the lines of an epoch to a file in the folder of the trace.

    The output has the rows of the first shard before those of the second: here positions in the
    output of a shard become positions in the whole output.
    """
    first = epoch.n_out
    trace.mkdir(0o700, parents=True, exist_ok=True)
    tables, paths = [], []
    for shard, known in enumerate(figures):
        path = trace_path(shard_folder(folder, plan.first_shard + shard), epoch)
        paths.append(path)
        data = path.read_bytes()
        if data:
            lines = pa.ipc.open_stream(data).read_all()
            i = lines.schema.get_field_index("seq")
            seq = lines.column(i)
            shifted = pa.array(
                np.asarray(seq.fill_null(-1)) + first, mask=np.asarray(seq.is_null())
            )
            tables.append(lines.set_column(i, "seq", shifted))
        first += known["n_out"]
    if tables:
        output = pa.BufferOutputStream()
        pq.write_table(pa.concat_tables(tables), output)
        with atomic_write(trace / f"{epoch.name}.parquet", private=True) as file:
            file.write(memoryview(output.getvalue()))
    for path in paths:
        path.unlink()
