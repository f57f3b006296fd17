"""Sources and sinks of a job on Spark: files, tables and Kafka topics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from shoal.errors import JobError, Problem, ResourceError
from shoal.io.files.atomic import atomic_write
from shoal.io.formats import file_type
from shoal.io.kafka.settings import KafkaSettings
from shoal.job import Job
from shoal.job.endpoints import Input, Output
from shoal.run.state.folder import make_folder
from shoal.spark.columns import CORRUPT
from shoal.spark.driver import Write

__all__ = ["messages_of_rows", "read_sample", "read_stream", "rows_of_messages", "writer_of"]

#: Spark's names of the file formats, with the options to read them as `shoal run` does.
#: (For CSV: check the header of every file. Otherwise, where columns are in another order, Spark
#: would take one for another, and publish a column that the job doesn't name.)
_CSV: dict[str, Any] = {"header": True, "escape": '"', "enforceSchema": False}
_FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "csv": ("csv", _CSV),
    "tsv": ("csv", _CSV | {"sep": "\t"}),
    "jsonl": ("json", {}),
    "parquet": ("parquet", {}),
}
_TEXT = ("csv", "tsv", "jsonl")
#: The file that keeps the columns of the input.
COLUMNS = "columns.json"


def read_stream(spark: SparkSession, job: Job, source: Input) -> DataFrame:
    """Return the stream that a job reads: files of a folder, a topic, or a table."""
    if source.table is not None:
        return spark.readStream.table(source.table)
    if source.kafka is not None:
        return _read_topic(spark, job, source.kafka)
    return _read_files(spark, job, source)


def writer_of(job: Job, sink: Output) -> Write:
    """Return what writes the public rows of an epoch to the job's output, overwriting them."""
    if sink.table is not None:
        return _TableWriter(sink.table)
    if sink.kafka is not None:
        return _TopicWriter(sink.kafka)
    return _FolderWriter(sink)


# -- files ----------------------------------------------------------------------------------------


def _format(section: str, path: str, name: str | None) -> str:
    if path == "-":
        raise JobError(
            Problem(f"{section}.path", "is missing: Spark reads and writes no pipes", None,
                    f"Set {section}.path to a folder that all machines reach")
        )  # fmt: skip
    found = name or (file_type(path).name if Path(path).suffix else None)
    if found is None and section == "output":
        found = "parquet"
    if found not in _FORMATS:
        raise JobError(
            Problem(f"{section}.format", f"must be one of {', '.join(_FORMATS)}",
                    None if found is None else repr(found),
                    "Name it, since a folder has no file extension")
        )  # fmt: skip
    return found


def _read_files(spark: SparkSession, job: Job, source: Input) -> DataFrame:
    name = _format("input", source.path, source.format)
    form, options = _FORMATS[name]
    schema = _columns(spark, job, source, name)
    if name in _TEXT:
        # Lines that aren't rows go to the quarantine, where Spark would fill them with nulls.
        fields = [field for field in schema.fields if field.name != "_corrupt_record"]
        schema = StructType([*fields, StructField(CORRUPT, StringType())])
        options = options | {"columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE"}
    if job.spark.files is not None:
        options = options | {"maxFilesPerTrigger": job.spark.files}
    return spark.readStream.format(form).options(**options).schema(schema).load(source.path)


def _columns(spark: SparkSession, job: Job, source: Input, name: str) -> StructType:
    """Return the columns and types of the first files, which are kept with the state.

    From other files, at a later start, Spark might infer other types.
    """
    assert job.checkpoints is not None
    kept = job.checkpoints.folder / COLUMNS
    if kept.is_file():
        return StructType.fromJson(json.loads(kept.read_text()))
    form, options = _FORMATS[name]
    try:
        found = spark.read.format(form).options(**options).load(source.path).schema
    except Exception as error:
        raise ResourceError(
            f"{source.path}: Spark finds no columns in it as {name} ({type(error).__name__}). "
            "Check path and format; a first file must be there before the job begins."
        ) from None
    make_folder(kept.parent)
    with atomic_write(kept, private=True) as output:
        output.write(found.json().encode())
    return found


def read_sample(spark: SparkSession, source: Input, path: str) -> DataFrame:
    """Read a file or folder, in the format of the input unless its extension names another."""
    name = _format("--sample", path, None if Path(path).suffix else source.format)
    form, options = _FORMATS[name]
    try:
        return spark.read.format(form).options(**options).load(path)
    except Exception as error:
        raise ResourceError(f"{path}: Spark can't read it ({type(error).__name__}).") from None


class _FolderWriter:
    """Write a folder for each epoch, which is overwritten as a whole."""

    def __init__(self, sink: Output) -> None:
        self._path = sink.path.rstrip("/")
        self._form, self._options = _FORMATS[_format("output", sink.path, sink.format)]

    def __call__(self, rows: DataFrame, epoch: str) -> None:
        """Write the rows of an epoch."""
        # An empty text isn't a missing value.
        options = self._options | ({"emptyValue": ""} if self._form == "csv" else {})
        writer = rows.write.format(self._form).options(**options).mode("overwrite")
        writer.save(f"{self._path}/{epoch}")


# -- tables ---------------------------------------------------------------------------------------


class _TableWriter:
    """Write a partition of a table for each epoch, which is overwritten as a whole."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, rows: DataFrame, epoch: str) -> None:
        """Write the rows of an epoch."""
        spark = rows.sparkSession
        if not spark.catalog.tableExists(self._name):
            with_batch = rows.limit(0).withColumn("batch", F.lit(epoch))
            with_batch.write.partitionBy("batch").saveAsTable(self._name)
        # Only this partition, whatever overwrite mode the session has.
        spark.sql(
            f"INSERT OVERWRITE TABLE {self._name} PARTITION (batch = '{epoch}') "
            "SELECT * FROM {rows}",
            rows=rows,
        )


# -- topics ---------------------------------------------------------------------------------------


def _read_topic(spark: SparkSession, job: Job, kafka: KafkaSettings) -> DataFrame:
    stream = spark.readStream.format("kafka").options(
        **_options(kafka), subscribe=kafka.topic, startingOffsets=kafka.start, failOnDataLoss="true"
    )
    if kafka.partitions is not None:
        raise JobError(
            Problem("input.partitions", "are assigned by Spark itself", None, "Leave it out")
        )
    if job.spark.rows is not None:
        stream = stream.option("maxOffsetsPerTrigger", job.spark.rows)
    return rows_of_messages(stream.load(), kafka, job.schema.columns)


def rows_of_messages(
    messages: DataFrame, kafka: KafkaSettings, columns: Sequence[str]
) -> DataFrame:
    """Parse Kafka messages to rows of text, with topic, partition and offset of each."""
    fields = [StructField(name, StringType()) for name in (kafka.columns or columns)]
    schema = StructType([*fields, StructField(CORRUPT, StringType())])
    options = {"columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE"}
    text = F.col("value").cast("string")
    if kafka.format == "json":
        parsed = F.from_json(text, schema, options)
    elif kafka.format == "csv" and kafka.columns:
        names = ", ".join(f"`{field.name}` STRING" for field in schema)
        parsed = F.from_csv(text, names, options | {"escape": '"'})
    else:
        raise JobError(
            Problem("input.format", "must be json, or csv with input.columns, on Spark",
                    repr(kafka.format), "Or read the stream yourself, and call shoal.spark.publish")
        )  # fmt: skip
    origin = ("topic", "partition", "offset")
    return messages.select(*origin, parsed.alias("row")).select(*origin, "row.*")


class _TopicWriter:
    """Write to a topic. Spark writes at least once; headers identify repeated messages."""

    def __init__(self, kafka: KafkaSettings) -> None:
        if kafka.format != "json":
            raise JobError(Problem("output.format", "must be json on Spark", repr(kafka.format)))
        self._options, self._topic = _options(kafka), kafka.topic

    def __call__(self, rows: DataFrame, epoch: str) -> None:
        """Write the rows of an epoch."""
        messages_of_rows(rows, epoch).write.format("kafka").options(
            **self._options, topic=self._topic, includeHeaders="true"
        ).save()


def messages_of_rows(rows: DataFrame, epoch: str) -> DataFrame:
    """Make a message of each row; its headers are unique, and the same in a repetition."""
    # Each task has the rows of one shard, in order.
    number = F.monotonically_increasing_id().cast("string").cast("binary")
    headers = F.array(
        F.struct(F.lit("shoal-batch").alias("key"), F.lit(epoch.encode()).alias("value")),
        F.struct(F.lit("shoal-row").alias("key"), number.alias("value")),
    )
    value = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    return rows.select(value.alias("value"), headers.alias("headers"))


def _options(kafka: KafkaSettings) -> dict[str, Any]:
    """The settings of Spark's connector, which uses Kafka's own client and not librdkafka."""
    if kafka.settings:
        raise JobError(
            Problem("settings", "are for another client than Spark's", None,
                    "Read the stream yourself, with kafka.* options, and call shoal.spark.publish")
        )  # fmt: skip
    return {"kafka.bootstrap.servers": kafka.servers}
