"""Open the input of a job as a stream of Spark's."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from shoal.io.connector import InputEndpoint, SparkInput
from shoal.io.files.connector import FileInput
from shoal.io.files.spark import read_sample as read_files
from shoal.io.text.dialect import PLAIN
from shoal.job import Job
from shoal.run.state.folder import make_folder
from shoal.spark.columns import CORRUPT

__all__ = ["read_sample", "read_stream"]


def read_stream(session: SparkSession, job: Job, source: InputEndpoint) -> DataFrame:
    """Return the stream that a job reads."""
    assert job.checkpoints is not None
    make_folder(job.checkpoints.folder)
    asked = SparkInput(
        job.schema.columns, CORRUPT, job.spark.files, job.spark.rows, job.checkpoints.folder
    )
    stream: DataFrame = source.spark_stream(session, asked)
    return stream


def read_sample(session: SparkSession, source: InputEndpoint, path: str) -> DataFrame:
    """Read a file or folder, in the format of the input unless its name has an ending."""
    if isinstance(source, FileInput):
        return read_files(session, path, source.format, source.dialect)
    return read_files(session, path, None, PLAIN)
