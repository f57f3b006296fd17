"""Write rows to a Kafka topic, each exactly once for a reader of committed messages.

Rows are written in transactions. The number of published rows is committed in the same transaction,
as an offset of the job's own consumer group, so rows and number become visible together. With the
number is stored which process wrote it last, the *owner*.
"""

from __future__ import annotations

import threading
import time

import pyarrow as pa

from shoal.errors import PUBLISHES_AGAIN, CheckpointError, ResourceError
from shoal.io.base import CommitMark
from shoal.io.kafka.payloads import Payload, payloads_for
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.transactions import Transactions

__all__ = ["KafkaSink", "refuse_started"]

#: The size from which a transaction is committed early: its messages are kept in memory.
OPEN_BYTES = 32 << 20


class KafkaSink:
    """Rows as messages of a topic, in transactions.

    Guarantee: a reader with ``isolation.level=read_committed`` sees each row exactly once, even if
    this process or the broker crashes. Rows are committed at most ``commit_seconds`` after they
    were written, while a broker answers. If none does, `write`, `flush` and `commit` wait for one,
    until `stop`.

    The number of its first row determines the partition of a message.

    Parameters
    ----------
    settings
        The topic and the format of its messages.
    schema
        The columns of the output.
    mark
        What `commit` returned last; empty: from the beginning, where rows may exist already; None:
        a new output, which must have no rows of the job.
    job
        The name of the job. Of two processes with the same name, the newer fences off the older.
    commit_seconds
        How long a transaction stays open. None leaves it open until `commit`.

    Raises
    ------
    CheckpointError
        If the topic doesn't fit the mark.
    ResourceError
        If there is no such topic, or no broker.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        schema: pa.Schema,
        mark: CommitMark | None,
        *,
        job: str,
        commit_seconds: float | None = 0.1,
    ) -> None:
        self._settings = settings
        self._payloads = payloads_for(settings, schema)
        self._commit_seconds = commit_seconds
        self._work = threading.Condition(threading.RLock())
        self._failure: BaseException | None = None
        self._closed = False
        self._began = 0.0
        self._next = int(mark["rows"]) if mark else 0
        self._transactions = Transactions(settings, job)
        try:
            # Checked before another process is fenced off, and again when no other can write.
            n_rows = self._transactions.look()
            self._transactions.topic.open()
            self._transactions.topic.expect((mark or {}).get("topic"))
            _check(settings, job, n_rows, mark)
            self._payloads.open()
            self._transactions.open()
            self._has = self._transactions.n_rows
            _check(settings, job, self._has, mark)
            self._transactions.claim()
        except BaseException:
            self._transactions.close()
            raise
        if commit_seconds is not None:
            threading.Thread(target=self._keep_time, name="shoal-kafka-commit", daemon=True).start()

    @property
    def name(self) -> str:
        """The topic, as messages call it."""
        return self._settings.where

    @property
    def n_ahead(self) -> int:
        """The number of rows that the topic has and that haven't been written again."""
        return max(0, self._has - self._next)

    @property
    def is_away(self) -> bool:
        """Whether no broker answers."""
        return self._transactions.is_away

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows; those that the topic has already are dropped."""
        with self._work:
            self._fail()
            known = min(self.n_ahead, batch.num_rows)
            first = self._next + known
            self._next += batch.num_rows
            if known == batch.num_rows:
                return
            made = list(self._payloads.cut(batch.slice(known), first))
            if not self._transactions.n_bytes:
                self._began = time.monotonic()
                self._work.notify()
            self._guarded(made)
            if self._transactions.n_bytes > OPEN_BYTES:
                self._guarded(None)

    def flush(self) -> None:
        """Commit the rows so far, if their transaction has been open for ``commit_seconds``."""
        with self._work:
            self._fail()
            if self._due() == 0.0:
                self._guarded(None)

    def commit(self) -> CommitMark:
        """Commit all rows so far; return the mark to resume from."""
        with self._work:
            self._fail()
            self._guarded(None)
            topic = self._transactions.topic
            topic.look()
            return {"rows": self._next} | ({} if topic.id is None else {"topic": topic.id})

    def stop(self) -> None:
        """End any waiting for a broker, with `ResourceError`. Any thread may call this."""
        self._payloads.stop()
        self._transactions.stop()

    def abandon(self) -> None:
        """Abort the open transaction and disconnect."""
        with self._work:
            self._closed = True
            self._work.notify()
            self._transactions.close()

    def close(self) -> None:
        """Commit all rows and disconnect. Closing twice does no harm."""
        with self._work:
            if self._closed:
                return
            self._closed = True
            self._work.notify()
            try:
                if self._failure is None:
                    self._guarded(None)
            finally:
                self._transactions.close()

    def _guarded(self, made: list[Payload] | None) -> None:
        """Send messages, or commit; after a failure every further call fails."""
        try:
            if made is None:
                self._transactions.commit()
            else:
                self._transactions.send(made)
        except BaseException as error:
            self._failure = error
            raise

    def _fail(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise ResourceError(f"{self._settings.where}: is closed.")

    def _due(self) -> float | None:
        """Return the seconds until the open transaction must be committed; None without one."""
        if not self._transactions.n_bytes or self._commit_seconds is None:
            return None
        return max(0.0, self._began + self._commit_seconds - time.monotonic())

    def _keep_time(self) -> None:
        """Commit on time even while nothing is written."""
        with self._work:
            while not self._closed and self._failure is None:
                due = self._due()
                if due == 0.0:
                    try:
                        self._guarded(None)
                    except Exception:
                        # The next write or commit raises it.
                        return
                else:
                    self._work.wait(due)


def _check(settings: KafkaSettings, job: str, has: int | None, mark: CommitMark | None) -> None:
    where, asked = settings.where, int(mark["rows"]) if mark else 0
    if mark is None and has:
        raise CheckpointError(
            f"{where}: has {has:,} rows of job {job} already, and there is no checkpoint to resume "
            "from. If they were published again, a person could be in two groups. Restore the "
            "checkpoint folder; or, if the former output doesn't matter, give the job another name "
            "and topic."
        )
    if asked and (has is None or has < asked):
        found = "the broker doesn't know the job" if has is None else f"{has:,} are there"
        raise CheckpointError(
            f"{where}: the checkpoint says that {asked:,} rows of job {job} were published, "
            f"and {found}. Is it the right broker, or has it forgotten the job's offsets "
            "(offsets.retention.minutes)? Start over with an empty checkpoint folder and "
            f"another job name. {PUBLISHES_AGAIN}."
        )


def refuse_started(settings: KafkaSettings, job: str) -> None:
    """Raise an error if a topic has rows of a new job already, without fencing off another process.

    Raises
    ------
    CheckpointError
        If there are rows.
    ResourceError
        If there is no such topic, or no broker.
    """
    transactions = Transactions(settings, job)
    try:
        _check(settings, job, transactions.look(), None)
    finally:
        transactions.close()
