"""Rows to a Kafka topic, each exactly once for a reader of what is committed.

Rows go out in transactions. How far the output has come is a number that is committed in the same
transaction, as an offset of the job's own consumer group: rows and number are there together or not
at all. Beside the number stands who has written it last, its *owner*.
"""

from __future__ import annotations

import threading
import time

import pyarrow as pa

from shoal.errors import CheckpointError, ResourceError
from shoal.io.base import CommitMark
from shoal.io.kafka.payloads import Payload, payloads_for
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.transactions import Transactions

__all__ = ["KafkaSink", "refuse_started"]

#: How many bytes a transaction may have before it is committed anyway: they are kept until then.
OPEN_BYTES = 32 << 20


class KafkaSink:
    """Rows as messages of a topic, in transactions.

    Guarantee: a reader with ``isolation.level=read_committed`` has each row exactly once, whenever
    this process or the broker ends. Rows are committed at the latest ``commit_seconds`` after they
    were written, while a broker answers. Where none does, `write`, `flush` and `commit` wait for it
    to come back, until `stop`.

    Which partition a message goes to follows from the number of its first row.

    Parameters
    ----------
    settings
        The topic, and how its messages look.
    schema
        The columns of the output.
    mark
        What `commit` gave last; empty: from the beginning, where rows may be already; None: anew.
    job
        The name of the job. Two processes with the same one fence each other off.
    commit_seconds
        How long a transaction stays open. None leaves it open until `commit`.

    Raises
    ------
    CheckpointError
        If the topic and the mark don't belong together.
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
            # Looked at before anybody is fenced off, and once more when nobody else can write.
            _check(settings, job, self._transactions.look(), mark)
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
    def n_ahead(self) -> int:
        """How many rows the topic has of those that haven't been given yet."""
        return max(0, self._has - self._next)

    @property
    def is_away(self) -> bool:
        """Whether no broker answers."""
        return self._transactions.is_away

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows; those that the topic has already are dropped."""
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
        """Commit the rows so far, if their transaction has been open for long enough."""
        with self._work:
            self._fail()
            if self._due() == 0.0:
                self._guarded(None)

    def commit(self) -> CommitMark:
        """Commit all rows so far; give the mark to go on from."""
        with self._work:
            self._fail()
            self._guarded(None)
            return {"rows": self._next}

    def stop(self) -> None:
        """End any waiting for a broker, with `ResourceError`. May be called by any thread."""
        self._transactions.stop()

    def abandon(self) -> None:
        """Take the open transaction back and let go of the broker."""
        with self._work:
            self._closed = True
            self._work.notify()
            self._transactions.close()

    def close(self) -> None:
        """Commit all rows and let go of the broker. Closing twice does no harm."""
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
        """Send messages, or commit; after a failure nothing more is taken."""
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
        """In how many seconds the open transaction is to be committed; None if there is none."""
        if not self._transactions.n_bytes or self._commit_seconds is None:
            return None
        return max(0.0, self._began + self._commit_seconds - time.monotonic())

    def _keep_time(self) -> None:
        """Commit what is due also while nothing is written."""
        with self._work:
            while not self._closed and self._failure is None:
                due = self._due()
                if due == 0.0:
                    try:
                        self._guarded(None)
                    except Exception:
                        # Told to whoever writes or commits next.
                        return
                else:
                    self._work.wait(due)


def _check(settings: KafkaSettings, job: str, has: int | None, mark: CommitMark | None) -> None:
    where, asked = settings.where, int(mark["rows"]) if mark else 0
    if mark is None and has:
        raise CheckpointError(
            f"{where}: has {has:,} rows of job {job} already, and there is no checkpoint to go "
            "on from. Published anew, a person could be in two groups. Bring the checkpoint "
            "folder back; or, if the former output is to be forgotten, give the job another "
            "name and topic."
        )
    if asked and (has is None or has < asked):
        found = "nothing is known of it there" if has is None else f"{has:,} are there"
        raise CheckpointError(
            f"{where}: the checkpoint says that {asked:,} rows of job {job} were published, "
            f"and {found}. Is it the right broker, or has it forgotten the job's offsets "
            "(offsets.retention.minutes)? Start anew with an empty checkpoint folder and "
            "another job name."
        )


def refuse_started(settings: KafkaSettings, job: str) -> None:
    """Refuse to start a job anew of which a topic has rows already; nobody is disturbed.

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
