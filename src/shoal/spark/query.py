"""`publish`: a streaming DataFrame in, a running query out."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from shoal.errors import ParameterError
from shoal.job import Job
from shoal.metrics import Summary
from shoal.run.protocols import Memory
from shoal.run.recovery import SavedCheckpoint
from shoal.run.state.seal import Seal
from shoal.spark.columns import CORRUPT, TICK, order_column
from shoal.spark.commits import CommitLog
from shoal.spark.driver import Driver, StoppedError, Write
from shoal.spark.failures import original_error
from shoal.spark.history import HistoryFile
from shoal.spark.order import with_order
from shoal.spark.shard_job import ShardJob, own_code
from shoal.spark.support import check_support

__all__ = ["Publishing", "publish"]


def publish(
    stream_df: DataFrame,
    job: Job,
    *,
    shards: int | None = None,
    order: Sequence[str] | None = None,
    write: Write | None = None,
    until_end: bool = False,
    migrate: bool = False,
    sample: DataFrame | None = None,
    trace: str | Path | None = None,
    watch: Callable[[Summary], None] | None = None,
    memory: Memory | None = None,
) -> Publishing:
    """Publish a Spark stream under the promise of a job.

    Parameters
    ----------
    stream_df
        A streaming DataFrame that has the columns of the job.
    job
        What is promised and how; its checkpoint folder must be one that all machines reach.
    shards
        How many engines run in parallel; None: as in the job.
    order
        Columns that together are different in every row, and define the order of rows.
        None: the offset for Kafka, the position in the file for files.
    write
        Called with the public rows and a name for each epoch. It must write all of them, and write
        over what it wrote under that name before. None: as the job's output says.
    until_end
        Stop when all that is there now is read, and publish what is held then.
    migrate
        Publish what is held, and continue with another number of shards or another partition map.
    sample
        Rows like those of the stream, not streaming, from which the partition map is learned.
        None: those of the first batch that has a thousand for each shard; until then all rows go
        to one shard.
    trace
        A folder for the private trace.
    watch
        Called with the figures after each epoch.
    memory
        What an observer keeps from one run to the next, such as the history of the live page.
    """
    n_shards = job.spark.shards if shards is None else shards
    check_support(job, n_shards)
    assert job.checkpoints is not None
    if not stream_df.isStreaming:
        raise ParameterError(
            "stream_df",
            "must be a streaming DataFrame",
            fix="Read it with spark.readStream; for a table that is complete, use `shoal run`",
        )
    if trace is not None:
        job.publish.check_trace()
    names = [*job.schema.columns, *([CORRUPT] if CORRUPT in stream_df.columns else [])]
    ordered = with_order(stream_df, names, order)
    rows = ordered.stream
    seconds = None if job.policy.delay is None else job.policy.delay.seconds
    interval = job.spark.interval
    # The time zone of a session must not change instants.
    columns = to_arrow_schema(
        rows.select(*(f"`{name}`" for name in job.schema.columns)).schema, timezone="UTC"
    )
    by = ordered.n_columns if order is None else order
    shard_job = ShardJob(
        job.schema,
        job.policy,
        job.anonymizer,
        job.publish,
        columns,
        job.checkpoints.folder.resolve(),
        _digests(job, columns, by, traced=trace is not None),
        job.checkpoints.seal,
        n_shards,
        job.bad_rows.file.resolve() if job.bad_rows.action == "quarantine" else None,
        trace is not None,
        tuple(order_column(i) for i in range(ordered.n_columns)) if order is not None else (),
        own_code(job.anonymizer),
    )
    stack = contextlib.ExitStack()
    try:
        seal = None if job.checkpoints.seal is None else Seal.from_spec(job.checkpoints.seal)
        commits = CommitLog(shard_job.folder, job=shard_job.digests, seal=seal)
        stack.enter_context(commits.lock())
        history = None
        if memory is not None:
            history = HistoryFile(memory, shard_job.folder, job=shard_job.digests, seal=seal)
            history.load()
            watch = _both(watch, history.save)
        driver = Driver(
            stream_df.sparkSession, shard_job, commits,
            ordered=ordered, write=job.output.spark_writer() if write is None else write,
            interval=interval,
            seed=job.pipeline.seed, trace=None if trace is None else Path(trace), watch=watch,
            sample=sample, has_ticks=seconds is not None,
        )  # fmt: skip
        driver.finish_pending()
        if migrate:
            driver.migrate(n_shards)
        driver.ensure_plan(n_shards)
        if seconds is not None:
            # With until_end too: Spark resumes only with the same sources.
            rows = _with_ticks(rows)
        writer = (
            rows.writeStream.foreachBatch(driver.batch)
            .option("checkpointLocation", str(shard_job.folder / "spark"))
            .queryName(job.name)
        )
        writer = (
            writer.trigger(availableNow=True)
            if until_end
            else writer.trigger(processingTime=f"{round(interval * 1000)} milliseconds")
        )
        query = writer.start()
        if history is not None:
            # However the job ends, but while the folder is locked; and not where it is refused: it
            # may have been started with a wrong key.
            stack.callback(history.save)
        return Publishing(query, driver, stack, until_end=until_end)
    except BaseException:
        stack.close()
        raise


class Publishing:
    """A job that runs on Spark; ``summary`` has its figures at any time.

    Parameters
    ----------
    query
        Spark's own handle.
    driver
        What runs its epochs.
    stack
        Closed at the end.
    until_end
        Whether to publish what is held when all is read.
    """

    def __init__(
        self, query: StreamingQuery, driver: Driver, stack: contextlib.ExitStack, *, until_end: bool
    ) -> None:
        self.query, self._driver, self._stack = query, driver, stack
        self._until_end = until_end
        self._is_stopped = False

    @property
    def summary(self) -> Summary:
        """The figures of the whole job after the last epoch."""
        return self._driver.summary

    # What the monitor reads beside the figures; see `shoal.cli.run.monitor.Observed`.

    @property
    def saved(self) -> SavedCheckpoint | None:
        """The states of all shards after the last epoch."""
        return self._driver.saved

    @property
    def checkpoint_age(self) -> float | None:
        """None: every batch is committed, and without rows there is none; see `batch_at`."""
        return None

    @property
    def batch_at(self) -> float | None:
        """When the last committed batch began, of any run of the job; None before the first."""
        return self._driver.batch_at

    @property
    def lag(self) -> int | None:
        """How many rows in Kafka are unread, or None where Spark doesn't report it."""
        progress = self.query.lastProgress
        if progress is None:
            return None
        behind = [
            source["metrics"].get("maxOffsetsBehindLatest")
            for source in progress["sources"]
            if source["metrics"]
        ]
        known = [int(n) for n in behind if n is not None]
        return max(known) if known else None

    @property
    def is_connected(self) -> bool:
        """Whether the query runs."""
        return bool(self.query.isActive)

    @property
    def n_waiting(self) -> int:
        """Zero: a batch is written before the next one is read."""
        return 0

    @property
    def blocked_seconds(self) -> float | None:
        """None: Spark writes, and doesn't say how long it waits."""
        return None

    @property
    def n_written(self) -> int:
        """How many rows are in the output."""
        return self._driver.n_written

    @property
    def journal_entries(self) -> int | None:
        """None: every batch is committed, and nothing is replayed."""
        return None

    @property
    def ending(self) -> str | None:
        """What it does after a stop; None as long as it runs."""
        return "stopping" if self._is_stopped else None

    @property
    def shards(self) -> tuple[Summary, ...]:
        """The figures of each shard after the last epoch of this process, if there are several."""
        return self._driver.shards

    def wait(self, seconds: int | None = None) -> bool:
        """Wait until the stream has ended, or for some seconds; return whether it has.

        Raises
        ------
        ShoalError
            The error of an epoch that failed.
        """
        try:
            ended = self.query.awaitTermination(seconds)
        except Exception as error:
            self._stack.close()
            failure = self._driver.failure
            if isinstance(failure, StoppedError):
                return True
            raise (original_error(error) if failure is None else failure) from None
        if ended is False:
            return False
        with self._stack:
            if self._until_end and not self._is_stopped:
                self._driver.end()
        return True

    def stop(self, *, drain: bool = False) -> None:
        """Stop after the running epoch; with ``drain``, publish what is held first."""
        self._is_stopped = True
        with self._stack:
            self._driver.stop_after_batch(self.query.stop)
            if drain:
                self._driver.end()


def _both(
    watch: Callable[[Summary], None] | None, then: Callable[[], None]
) -> Callable[[Summary], None]:
    """Return a function that calls both."""

    def call(summary: Summary) -> None:
        if watch is not None:
            watch(summary)
        then()

    return call


def _with_ticks(rows: DataFrame) -> DataFrame:
    """Add a tick to each batch: without it, rows would be held during a pause of the input."""
    # Unlike `rate`, it lets a run to the end read the batches of the other sources one by one.
    reader = rows.sparkSession.readStream.format("rate-micro-batch")
    rate = reader.option("rowsPerBatch", 1).load()
    nothing = [
        F.lit(None).cast(field.dataType).alias(field.name)
        for field in rows.schema.fields
        if field.name != TICK
    ]
    ticks = rate.select(*nothing, F.lit(True).alias(TICK))
    return rows.unionByName(ticks)


def _digests(
    job: Job, columns: pa.Schema, order: Sequence[str] | int, *, traced: bool
) -> dict[str, str]:
    """Digests of what the state of shards depends on; the order of rows changes decisions too."""
    by = order if isinstance(order, int) else list(order)
    parts = {"trace": repr(traced), "order": repr(by), "columns": str(columns)}
    return dict(job.digests) | {
        name: hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        for name, text in parts.items()
    }
