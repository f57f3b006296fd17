"""A job on Spark in a process of its own: ``python -m tests.crashes.spark_job FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.job import Job
from shoal.spark import publish
from tests.spark.cluster import ended, logs_of, started
from tests.spark.streams import stream_of


def main(folder: Path) -> None:
    """Publish all that is there, a file at a time."""
    spark = started(folder / "spark")
    with (folder / "logs").open("a") as file:
        file.write(f"{logs_of(spark)}\n")
    columns: pa.Schema = pq.read_schema(next((folder / "in").glob("part-*")))
    stream = stream_of(spark, folder / "in", columns)
    job = Job.load(folder / "job.toml")
    sample = spark.read.parquet(str(folder / "in"))
    publish(stream, job, until_end=True, sample=sample, trace=folder / "trace").wait()
    ended(spark)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
