"""In which order the rows of a batch have come.

Spark brings the rows of a batch to a shard in any order; a repetition must not depend on it. So
every row carries where it comes from, and is sorted by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from shoal.errors import ParameterError
from shoal.spark.columns import CORRUPT, TICK, order_column, refuse_clashes

__all__ = ["Ordered", "numbered", "of_files", "of_topic", "with_order"]


def of_topic() -> list[Column]:
    """The order of rows that come from Kafka: by topic, partition and offset."""
    return [F.col("topic"), F.col("partition"), F.col("offset")]


def of_files() -> list[Column]:
    """The order of rows that come from files: by path, and by the block in which they stand.

    A file may be read in blocks, by several tasks. Inside a block rows are read one after another:
    see `numbered`.
    """
    return [F.col("_metadata.file_path"), F.col("_metadata.file_block_start")]


def numbered(rows: DataFrame, n_order: int) -> DataFrame:
    """The rows of a batch with one more column of the order: how each task reads them.

    It grows with every row of a block. Only a batch can have it, a stream can't.
    """
    return rows.withColumn(order_column(n_order), F.monotonically_increasing_id())


@dataclass(frozen=True)
class Ordered:
    """A stream with the columns that a job needs and those that tell the order.

    ``n_columns`` of the stream tell the order of its rows; where ``as_read``, those that are alike
    in them follow each other as they are read.
    """

    stream: DataFrame
    n_columns: int
    as_read: bool


def with_order(stream: DataFrame, columns: Sequence[str], order: Sequence[str] | None) -> Ordered:
    """Choose the columns that a job needs, and add those that tell the order.

    Raises
    ------
    ParameterError
        If the stream lacks a column, or nothing tells the order.
    """
    refuse_clashes(name for name in stream.columns if name != CORRUPT)
    if missing := [name for name in columns if name not in stream.columns]:
        raise ParameterError(
            "stream_df",
            f"lacks the columns {', '.join(missing)}",
            got=f"columns {', '.join(stream.columns)}",
            fix="Name them as the job does",
        )
    by, as_read = _told(stream, order)
    # A column may be asked for as it is, and tell the order as well.
    chosen = [F.col(f"`{name}`") for name in columns]
    named = [column.alias(order_column(i)) for i, column in enumerate(by)]
    ticks = F.lit(None).cast("boolean").alias(TICK)
    return Ordered(stream.select(*chosen, *named, ticks), len(by), as_read)


def _told(stream: DataFrame, order: Sequence[str] | None) -> tuple[list[Column], bool]:
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
        return of_topic(), False
    try:
        stream.select("_metadata.file_path")
    except Exception:
        raise ParameterError(
            "order",
            "must be given: nothing tells in which order the rows of this stream have come",
            fix="Name the columns that do, and are different in every row: an offset, a number",
        ) from None
    return of_files(), True
