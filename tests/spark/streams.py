"""Streams of small files for Spark to read, and what a job on it has published."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from shoal.audit import Report
from shoal.job import Job
from shoal.spark import Publishing, publish
from tests.spark.world import judge

#: How long a busy machine may take for what takes a second or two.
PATIENCE = 240.0


def spread(table: pa.Table, folder: Path, n_files: int, first: int = 0) -> None:
    """Write rows to files that were written one after the other, as far as Spark can tell."""
    folder.mkdir(exist_ok=True, parents=True)
    n = -(-table.num_rows // n_files)
    for i in range(n_files):
        put(table.slice(i * n, n), folder, first + i)


def put(table: pa.Table, folder: Path, number: int) -> None:
    """Let one file appear, whole."""
    aside, path = folder / f"_{number:03}", folder / f"part-{number:03}.parquet"
    pq.write_table(table, aside)
    os.utime(aside, (1_700_000_000 + number,) * 2)
    aside.rename(path)


def stream_of(spark: SparkSession, folder: Path, schema: pa.Schema) -> DataFrame:
    """The files as a stream, one in each batch."""
    from pyspark.sql.pandas.types import from_arrow_schema

    reader = spark.readStream.schema(from_arrow_schema(schema))
    return reader.option("maxFilesPerTrigger", 1).parquet(str(folder))


def in_epochs(folder: Path) -> list[dict[str, Any]]:
    """Rows in the order in which they were published: by epoch, and in it by shard."""
    rows = []
    for epoch in sorted(folder.glob("batch-*")):
        assert (epoch / "_SUCCESS").exists()
        for path in sorted(epoch.glob("part-*")):
            rows += pq.read_table(path).to_pylist()
    return rows


def traced(folder: Path) -> list[dict[str, Any]]:
    """All lines of a trace."""
    return [line for path in sorted(folder.iterdir()) for line in pq.read_table(path).to_pylist()]


def wait_until(is_so: Callable[[], bool], publishing: Publishing) -> None:
    """Wait for something to come true while a job runs."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it didn't happen in time"
        if not publishing.query.isActive:
            assert publishing.wait(), "it has ended before"
        time.sleep(0.1)


@dataclasses.dataclass
class OnSpark:
    """A job on Spark over a folder of files, with all that comes of it."""

    spark: SparkSession
    job: Job
    folder: Path
    table: pa.Table

    def publish(self, **options: Any) -> Publishing:
        """Start it."""
        stream = options.pop("stream", None)
        if stream is None:
            stream = stream_of(self.spark, self.folder / "in", self.table.schema)
        # There are too few rows in a batch to learn from them which place is whose.
        options.setdefault("sample", self.spark.createDataFrame(self.table))
        return publish(stream, self.job, trace=self.folder / "trace", **options)

    def to_end(self, **options: Any) -> Publishing:
        """Have all that is there published."""
        publishing = self.publish(until_end=True, **options)
        assert publishing.wait()
        return publishing

    @property
    def public(self) -> list[dict[str, Any]]:
        """What was published."""
        return in_epochs(self.folder / "out")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The trace."""
        return traced(self.folder / "trace")

    def judge(self) -> Report:
        """The audit of all of it."""
        return judge(self.job, self.public, self.lines, self.table)
