"""Anonymize a stream from Python, without any file, and let the audit judge the result.

A source is anything that gives chunks of rows, a sink anything that takes batches: here both are
in memory. Run it with `python examples/from_python.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.algorithms import Castle
from shoal.audit import Report, audit
from shoal.datasets import Dataset, census
from shoal.io import BadRow, Chunk
from shoal.metrics import Summary
from shoal.run.pipeline import Pipeline


class DatasetSource:
    """A source that reads a dataset. One for a message queue would look the same."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.schema_names = dataset.schema.columns

    def __iter__(self) -> Iterator[Chunk]:
        first = 0
        for batch in self._dataset.batches():
            rows = np.arange(first, first + batch.num_rows)
            yield Chunk(batch, rows, bad=[])
            first += batch.num_rows

    def describe(self) -> str:
        return self._dataset.description

    def close(self) -> None:
        """There is nothing to close."""


class MemorySink:
    """A sink that keeps what it is given. Labels come as dictionaries; here they become plain."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tables: list[pa.Table] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._tables.append(pa.Table.from_batches([batch]).cast(self._schema))

    def flush(self) -> None:
        """Everything is visible at once."""

    def close(self) -> None:
        """There is nothing to close."""

    def table(self) -> pa.Table:
        return pa.concat_tables([self._schema.empty_table(), *self._tables])


def refuse(bad: list[BadRow]) -> None:
    raise SystemExit(f"row {bad[0].row}: {bad[0].reason}")


def main(rows: int = 1500) -> tuple[Summary, Report]:
    stream = census(rows, seed=7, batch_rows=500)
    policy = Policy(KAnonymity(10), DistinctLDiversity(3), delay=Delay(rows=400))
    sinks: dict[str, MemorySink] = {}

    def open_sink(schema: pa.Schema) -> MemorySink:
        return sinks.setdefault("published", MemorySink(schema))

    def open_trace(schema: pa.Schema) -> MemorySink:
        return sinks.setdefault("trace", MemorySink(schema))

    pipeline = Pipeline(stream.schema, policy, Castle(clusters=20))
    run = pipeline.run(DatasetSource(stream), open_sink, on_bad=refuse, open_trace=open_trace)
    summary = run.execute()
    published = sinks["published"].table()
    report = audit(
        stream.schema,
        policy,
        published,
        trace=sinks["trace"].table(),
        original=stream.table(),
    )
    print(f"{published.num_rows:,} rows with the columns {', '.join(published.column_names)}")
    print("\n".join(summary.lines()))
    print(report)
    return summary, report


if __name__ == "__main__":
    raise SystemExit(main()[1].exit_code)
