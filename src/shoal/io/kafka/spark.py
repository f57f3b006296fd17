"""Read and write topics with Spark's own connector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shoal.errors import JobError, Problem
from shoal.io.connector import SparkInput
from shoal.io.kafka.settings import KafkaSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TopicWriter", "messages_of_rows", "read_stream", "rows_of_messages"]


def read_stream(session: SparkSession, kafka: KafkaSettings, asked: SparkInput) -> DataFrame:
    """Return the rows of a topic as a stream."""
    if kafka.changes is not None:
        what = "reads envelopes of changes, which isn't supported on Spark"
        fix = "Use `shoal run`, or read the rows yourself and call shoal.spark.publish"
        raise JobError(Problem("input.changes", what, None, fix))
    _refuse_schemas(kafka, "input")
    stream = session.readStream.format("kafka").options(
        **_options(kafka), subscribe=kafka.topic, startingOffsets=kafka.start, failOnDataLoss="true"
    )
    if kafka.partitions is not None:
        raise JobError(
            Problem("input.partitions", "are assigned by Spark itself", None, "Leave it out")
        )
    if asked.n_rows is not None:
        stream = stream.option("maxOffsetsPerTrigger", asked.n_rows)
    return rows_of_messages(stream.load(), kafka, asked.columns, asked.corrupt)


def rows_of_messages(
    messages: DataFrame, kafka: KafkaSettings, columns: Sequence[str], corrupt: str
) -> DataFrame:
    """Return the rows in Kafka messages, as text, with the position of each message."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType, StructField, StructType

    fields = [StructField(name, StringType()) for name in (kafka.columns or columns)]
    schema = StructType([*fields, StructField(corrupt, StringType())])
    options = {"columnNameOfCorruptRecord": corrupt, "mode": "PERMISSIVE"}
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
    place = ("topic", "partition", "offset")
    return messages.select(*place, parsed.alias("row")).select(*place, "row.*")


class TopicWriter:
    """Writes rows to a topic. Spark writes at least once; headers identify repeated messages."""

    def __init__(self, kafka: KafkaSettings) -> None:
        _refuse_schemas(kafka, "output")
        if kafka.format != "json":
            raise JobError(Problem("output.format", "must be json on Spark", repr(kafka.format)))
        self._options, self._topic = _options(kafka), kafka.topic

    def __call__(self, rows: DataFrame, epoch: str) -> None:
        """Write the rows of an epoch."""
        messages_of_rows(rows, epoch).write.format("kafka").options(
            **self._options, topic=self._topic, includeHeaders="true"
        ).save()


def messages_of_rows(rows: DataFrame, epoch: str) -> DataFrame:
    """Return a message for each row, whose headers are the same when it is written again."""
    from pyspark.sql import functions as F  # noqa: N812

    # Each task has the rows of one shard, in their order.
    number = F.monotonically_increasing_id().cast("string").cast("binary")
    headers = F.array(
        F.struct(F.lit("shoal-batch").alias("key"), F.lit(epoch.encode()).alias("value")),
        F.struct(F.lit("shoal-row").alias("key"), number.alias("value")),
    )
    value = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    return rows.select(value.alias("value"), headers.alias("headers"))


def _refuse_schemas(kafka: KafkaSettings, section: str) -> None:
    if kafka.registry is not None:
        what = "isn't supported on Spark: messages must be JSON or CSV there"
        fix = "Use `shoal run`, or read the stream yourself, and call shoal.spark.publish"
        raise JobError(Problem(f"{section}.registry", what, None, fix))


def _options(kafka: KafkaSettings) -> dict[str, Any]:
    """Return the options of Spark's connector, whose client isn't librdkafka."""
    if kafka.settings:
        raise JobError(
            Problem("settings", "are for another client than Spark's", None,
                    "Read the stream yourself, with kafka.* options, and call shoal.spark.publish")
        )  # fmt: skip
    return {"kafka.bootstrap.servers": kafka.servers}
