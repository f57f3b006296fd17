"""Tables of Spark's catalog, for `shoal spark` only: each epoch replaces its own partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import JobError, Problem
from shoal.io.base import SinkFactory, Source
from shoal.io.connector import Connector, InputEndpoint, OutputEndpoint, SparkInput

__all__ = ["CONNECTOR", "TableInput", "TableOutput"]


@dataclass(frozen=True)
class TableInput(InputEndpoint):
    """A table that Spark reads as a stream."""

    table: str
    follow: bool = False
    noun = "a table"

    @property
    def is_endless(self) -> bool:
        """Whether new rows are waited for."""
        return self.follow

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return the name of the table."""
        return (self.table,)

    def check_run(self, section: str) -> None:
        """Raise `JobError`: only Spark reads tables."""
        raise _only_spark(section)

    def with_options(self, format: str | None, *, follow: bool) -> TableInput:  # noqa: A002
        """Follow if asked to; a table has no format."""
        return replace(self, follow=follow)

    def open(self, columns: Sequence[str], *, replay: bool) -> Source:
        """Raise `JobError`: only Spark reads tables."""
        raise _only_spark("input")

    def spark_stream(self, session: Any, asked: SparkInput) -> Any:
        """Return the table as a streaming DataFrame."""
        return session.readStream.table(self.table)


@dataclass(frozen=True)
class TableOutput(OutputEndpoint):
    """A table that Spark writes, with a partition for each epoch."""

    table: str
    noun = "a table"

    def identity(self, state: Path) -> tuple[object, ...]:
        """Return the name of the table."""
        return (self.table,)

    def check_run(self, section: str) -> None:
        """Raise `JobError`: only Spark writes tables."""
        raise _only_spark(section)

    def with_format(self, format: str | None) -> TableOutput:  # noqa: A002
        """Return itself: a table has no format."""
        return self

    def sink_factory(self, job: str, *, durable: bool) -> SinkFactory:
        """Raise `JobError`: only Spark writes tables."""
        raise _only_spark("output")

    def spark_writer(self) -> Callable[[Any, str], None]:
        """Return what writes a partition for each epoch."""
        return self._write

    def _write(self, rows: Any, epoch: str) -> None:
        from pyspark.sql import functions as F  # noqa: N812

        session = rows.sparkSession
        if not session.catalog.tableExists(self.table):
            with_batch = rows.limit(0).withColumn("batch", F.lit(epoch))
            with_batch.write.partitionBy("batch").saveAsTable(self.table)
        # That partition and no other, whatever the session's overwrite mode is.
        session.sql(
            f"INSERT OVERWRITE TABLE {self.table} PARTITION (batch = '{epoch}') "
            "SELECT * FROM {rows}",
            rows=rows,
        )


def _only_spark(section: str) -> JobError:
    return JobError(Problem(f"{section}.table", "is for Spark only", None, "Use `shoal spark`"))


def _input(given: Mapping[str, Any], folder: Path) -> TableInput:
    return TableInput(given["table"])


def _output(given: Mapping[str, Any], folder: Path) -> TableOutput:
    return TableOutput(given["table"])


_KEYS = {"table": (str | None, None)}
CONNECTOR = Connector("table", _KEYS, _KEYS, _input, _output)
