"""The trace of a job on Spark: the lines of all shards, put together turn by turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shoal.io.files.atomic import atomic_write
from shoal.spark.ledger import Plan, Turn, shard_folder
from shoal.spark.shard_io import lines_path

__all__ = ["gather_lines"]


def gather_lines(
    trace: Path,
    folder: Path,
    turn: Turn,
    plan: Plan,
    figures: list[dict[str, Any]],
) -> None:
    """Write the lines of a turn to a file of its own in the folder of the trace.

    The output has the rows of the first shard before those of the second: here places in the
    output of a shard become places in the whole output.
    """
    first = turn.n_out
    trace.mkdir(0o700, parents=True, exist_ok=True)
    tables, paths = [], []
    for shard, known in enumerate(figures):
        path = lines_path(shard_folder(folder, plan.first_shard + shard), turn)
        paths.append(path)
        data = path.read_bytes()
        if data:
            lines = pa.ipc.open_stream(data).read_all()
            place = lines.schema.get_field_index("seq")
            seq = lines.column(place)
            shifted = pa.array(
                np.asarray(seq.fill_null(-1)) + first, mask=np.asarray(seq.is_null())
            )
            tables.append(lines.set_column(place, "seq", shifted))
        first += known["n_out"]
    if tables:
        output = pa.BufferOutputStream()
        pq.write_table(pa.concat_tables(tables), output)
        with atomic_write(trace / f"{turn.name}.parquet", private=True) as file:
            file.write(memoryview(output.getvalue()))
    for path in paths:
        path.unlink()
