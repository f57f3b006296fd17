"""The order of the rows of a batch.

Spark brings the rows of a batch to a shard in any order; a repetition must not depend on it. So
every row carries its position in the source, and rows are sorted by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from shoal.errors import ParameterError
from shoal.spark.columns import CORRUPT, TICK, order_column, refuse_clashes

__all__ = ["OrderedStream", "file_order", "topic_order", "with_order", "with_read_order"]


def topic_order() -> list[Column]:
    """The order of rows from Kafka: by topic, partition and offset."""
    return [F.col("topic"), F.col("partition"), F.col("offset")]


def file_order() -> list[Column]:
    """The order of rows from files: by path and block.

    A file may be read in blocks, by several tasks. Inside a block rows are read in sequence: see
    `with_read_order`.
    """
    return [F.col("_metadata.file_path"), F.col("_metadata.file_block_start")]


def with_read_order(rows: DataFrame, n_order: int) -> DataFrame:
    """Add a column with the order in which each task reads the rows of a batch.

    It grows with every row of a block. Spark allows it in a batch, not in a stream.
    """
    return rows.withColumn(order_column(n_order), F.monotonically_increasing_id())


@dataclass(frozen=True)
class OrderedStream:
    """A stream with the columns that a job needs and those that define the order.

    ``n_columns`` of its columns define the order; with ``as_read``, ties are in the order in which
    they are read.
    """

    stream: DataFrame
    n_columns: int
    as_read: bool


def with_order(
    stream: DataFrame, columns: Sequence[str], order: Sequence[str] | None
) -> OrderedStream:
    """Select the columns that a job needs, and add those that define the order.

    Raises
    ------
    ParameterError
        If the stream lacks a column, or nothing defines the order.
    """
    refuse_clashes(name for name in stream.columns if name != CORRUPT)
    if missing := [name for name in columns if name not in stream.columns]:
        raise ParameterError(
            "stream_df",
            f"lacks the columns {', '.join(missing)}",
            got=f"columns {', '.join(stream.columns)}",
            fix="Name them as the job does",
        )
    by, as_read = _order_columns(stream, order)
    # A column may be one of the job and define the order as well.
    chosen = [F.col(f"`{name}`") for name in columns]
    named = [column.alias(order_column(i)) for i, column in enumerate(by)]
    ticks = F.lit(None).cast("boolean").alias(TICK)
    return OrderedStream(stream.select(*chosen, *named, ticks), len(by), as_read)


def _order_columns(stream: DataFrame, order: Sequence[str] | None) -> tuple[list[Column], bool]:
    if order is not None:
        wrong = [name for name in order if name not in stream.columns]
        if wrong or not order:
            raise ParameterError(
                "order",
                "must name columns of the stream that together are different in every row",
                got=repr(wrong or order),
            )
        return [F.col(f"`{name}`") for name in order], False
    if {"topic", "partition", "offset"} <= set(stream.columns):
        return topic_order(), False
    try:
        stream.select("_metadata.file_path")
    except Exception:
        raise ParameterError(
            "order",
            "must be given: nothing defines the order of the rows of this stream",
            fix="Name the columns that do, and are different in every row: an offset, a number",
        ) from None
    return file_order(), True
