"""The transactions of one job: messages and their number of rows, committed together.

Every failure is handled in the same way. The messages of the open transaction are kept; a new
producer takes over the job, which either commits or aborts the old transaction, and the committed
number of rows shows which: if it includes the messages, they are published, and else they are sent
again. Only if another process has taken over the job meanwhile, this one gives up.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from shoal.errors import ResourceError
from shoal.events import sentence
from shoal.io.kafka.calls import CallThread, HungError
from shoal.io.kafka.client import ASK_SECONDS, LOG, OPEN_SECONDS, Connection, confluent
from shoal.io.kafka.payloads import Payload
from shoal.io.kafka.settings import KafkaSettings, unless_set
from shoal.io.kafka.topic import TopicWatch

__all__ = ["Transactions"]

#: The number of failures in a row from which a failure counts as permanent.
MOST_FAILURES = 5
#: The seconds without an answer after which the broker counts as away, and between two attempts.
AWAY_SECONDS, PAUSE_SECONDS = 1.5, 0.05
#: The time, in seconds, after which a call counts as hung.
HUNG_SECONDS = 10.0
#: A transaction that follows another closely is retried after a short time.
PRODUCING = {"retry.backoff.ms": 10}
#: The time, in seconds, to wait before checking whether another process has taken over.
GRACE = 1.0


class _Committed(NamedTuple):
    """The committed offset of the job: the number of rows in the topic, and who wrote it."""

    n_rows: int
    owner: str


class Transactions:
    """The transactions of a job; not thread-safe.

    Parameters
    ----------
    settings
        The topic, and where it is.
    job
        The name of the job.
    """

    def __init__(self, settings: KafkaSettings, job: str) -> None:
        self._library = confluent()
        self._settings = settings
        self._job = job
        self._name = f"shoal-{job}"
        self._owner = secrets.token_hex(8)
        self._stopped = threading.Event()
        self._connection = Connection(settings)
        #: Whether the topic is still the same one.
        self.topic = TopicWatch(
            settings, self._connection, "Rows that were published are gone with it."
        )
        self._producer: Any = None
        self._group: Any = None
        self._n_partitions = 1
        self._kept: list[Payload] = []
        self._is_open = False
        self._n_failures = 0
        self._calls = CallThread()
        self._until: float | None = time.monotonic() + OPEN_SECONDS
        #: The number of committed rows of the job.
        self.n_rows = 0
        #: The number of bytes in the open transaction.
        self.n_bytes = 0

    def look(self) -> int | None:
        """Return the number of committed rows, without fencing off another process.

        Raises
        ------
        ResourceError
            If there is no such topic, or no broker.
        """
        with self._reading("read_uncommitted") as consumer:
            self._n_partitions = len(self._connection.partitions(consumer))
            found = self._committed(consumer)
        return None if found is None else found.n_rows

    def open(self) -> None:
        """Fence off other processes of this job, and read the number of committed rows."""
        self._until = time.monotonic() + OPEN_SECONDS
        self._take_over()
        found = self._read()
        self.n_rows = 0 if found is None else found.n_rows

    def claim(self) -> None:
        """Commit that this process is now the owner."""
        self._producer.begin_transaction()
        self._finish()
        self._until = None

    def send(self, made: Sequence[Payload]) -> None:
        """Send messages in the open transaction; begin one if there is none."""
        self._kept += made
        self.n_bytes += sum(len(payload.data) for payload in made)
        try:
            self._send(made)
        except self._library.KafkaException as error:
            self._recover(error.args[0])

    def commit(self) -> None:
        """Commit the messages so far, if there are any. Once it returns they are published."""
        while self._kept:
            try:
                self._finish()
                self._done()
            except self._library.KafkaException as error:
                self._recover(error.args[0])

    @property
    def is_away(self) -> bool:
        """Whether no broker answers."""
        return self._connection.away

    def stop(self) -> None:
        """End any waiting with an error."""
        self._stopped.set()

    def close(self) -> None:
        """Disconnect; an open transaction is aborted."""
        if self._producer is not None and self._is_open:
            try:
                self._producer.purge()
                self._producer.abort_transaction(ASK_SECONDS)
            except self._library.KafkaException:
                # Then the broker aborts it, at the latest after transaction.timeout.ms.
                pass
        self._let_go()
        self.topic.close()
        self._calls.end()

    # -- one transaction -----------------------------------------------------------------------

    def _send(self, made: Sequence[Payload]) -> None:
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True
        for payload in made:
            partition = payload.first // self._settings.rows % self._n_partitions
            while True:
                try:
                    self._producer.produce(self._settings.topic, payload.data, partition=partition)
                    break
                except BufferError:
                    self._pause_or_stop()
                    self._producer.poll(ASK_SECONDS)
            self._producer.poll(0)

    def _finish(self) -> None:
        """Commit the open transaction, with the new number of rows."""
        n_rows = self.n_rows + sum(payload.n_rows for payload in self._kept)
        place = self._library.TopicPartition(self._settings.topic, 0, n_rows, metadata=self._owner)
        self._wait(lambda s: self._producer.send_offsets_to_transaction([place], self._group, s))
        self._wait(self._producer.commit_transaction)

    def _done(self) -> None:
        self.n_rows += sum(payload.n_rows for payload in self._kept)
        self._kept.clear()
        self.n_bytes = 0
        self._is_open = False
        self._n_failures = 0

    # -- failures --------------------------------------------------------------------------------

    def _recover(self, error: Any) -> None:
        """Take over the job again and send what isn't committed; raise if that can't succeed."""
        while True:
            if error.code() == self._library.KafkaError._TIMED_OUT:
                # A broker that is away or slow may be so for long: that is no permanent failure.
                self._stop_if_asked()
            else:
                self._n_failures += 1
            if self._n_failures > MOST_FAILURES or self._is_hopeless(error):
                raise self._connection.failure(error)
            try:
                if self._is_fenced(error):
                    self._stopped.wait(GRACE)
                    # Without waiting for a transaction to end, since it may be this process's.
                    self._check_owner(self._read("read_uncommitted"))
                # With a topic its offsets are deleted, as if nobody had owned the job.
                self.topic.check()
                self._take_over()
                self._resume(self._check_owner(self._read()).n_rows)
                text = f"{self._settings.where}: a transaction failed and was repeated"
                sentence(LOG, logging.WARNING, "transaction repeated", text)
                return
            except self._library.KafkaException as next_error:
                error = next_error.args[0]

    def _resume(self, n_rows: int) -> None:
        """Send the kept messages again unless they are among the committed rows."""
        n_after = self.n_rows + sum(payload.n_rows for payload in self._kept)
        if n_rows == n_after:
            # The commit had reached the broker; only its answer was lost.
            self._done()
        elif n_rows == self.n_rows:
            self._send(self._kept)
        else:
            raise ResourceError(
                f"{self._settings.where}: {n_rows:,} rows of job {self._job} are there where "
                f"{self.n_rows:,} or {n_after:,} should be. Nothing more is published; start "
                "the job again: it resumes from the checkpoint."
            )

    def _is_hopeless(self, error: Any) -> bool:
        kinds = self._library.KafkaError
        return error.code() in (
            kinds.MSG_SIZE_TOO_LARGE,
            kinds.UNKNOWN_TOPIC_OR_PART,
            kinds._UNKNOWN_TOPIC,
            kinds._UNKNOWN_PARTITION,
            kinds._UNSUPPORTED_FEATURE,
            kinds.TOPIC_AUTHORIZATION_FAILED,
            kinds.GROUP_AUTHORIZATION_FAILED,
            kinds.CLUSTER_AUTHORIZATION_FAILED,
            kinds.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        )

    def _is_fenced(self, error: Any) -> bool:
        kinds = self._library.KafkaError
        return error.code() in (
            kinds._FENCED,
            kinds.PRODUCER_FENCED,
            kinds.INVALID_PRODUCER_EPOCH,
        )

    def _check_owner(self, found: _Committed | None) -> _Committed:
        if found is None or found.owner != self._owner:
            raise ResourceError(
                f"{self._settings.where}: another process has taken over job {self._job}; nothing "
                "more is published by this one. Run one process of a job, or split it by "
                "partitions into jobs with names of their own."
            )
        return found

    # -- the broker ----------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Create a new producer; the broker ends what the former one has left open."""
        self._let_go()
        self._producer = self._connection.producer(
            transactional_id=self._name,
            enable_idempotence=True,
            **unless_set(self._settings, PRODUCING | self._connection.steady),
        )
        self._wait(self._producer.init_transactions)

    def _let_go(self) -> None:
        self._is_open = False
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    @contextmanager
    def _reading(self, isolation: str) -> Iterator[Any]:
        consumer = self._connection.consumer(
            group_id=self._name,
            enable_auto_commit=False,
            isolation_level=isolation,
            allow_auto_create_topics=False,
        )
        try:
            yield consumer
        finally:
            consumer.close()

    def _read(self, isolation: str = "read_committed") -> _Committed | None:
        """Return what is committed; by default wait until no open transaction can change it."""
        with self._reading(isolation) as consumer:
            return self._committed(consumer)

    def _committed(self, consumer: Any) -> _Committed | None:
        place = self._library.TopicPartition(self._settings.topic, 0)
        [found] = self._wait(lambda seconds: consumer.committed([place], timeout=seconds))
        if found.error is not None:
            raise self._connection.failure(found.error)
        self._group = consumer.consumer_group_metadata()
        return None if found.offset < 0 else _Committed(found.offset, found.metadata or "")

    def _wait(self, ask: Callable[[float], Any]) -> Any:
        """Repeat a request until the broker answers."""
        kinds = self._library.KafkaError
        start = time.monotonic()
        while True:
            try:
                answer = self._calls.make(lambda: ask(ASK_SECONDS), HUNG_SECONDS)
            except HungError:
                self._calls = CallThread()
                why = kinds(kinds._TIMED_OUT, "the client waits for a broker that is gone")
                raise self._library.KafkaException(why) from None
            except self._library.KafkaException as exception:
                error = exception.args[0]
                may_pass = error.retriable() or error.code() in (
                    kinds._TIMED_OUT,
                    kinds._TRANSPORT,
                    kinds._WAIT_COORD,
                    kinds.COORDINATOR_NOT_AVAILABLE,
                    kinds.COORDINATOR_LOAD_IN_PROGRESS,
                    kinds.NOT_COORDINATOR,
                )
                if not may_pass or error.fatal() or error.txn_requires_abort():
                    raise
                if time.monotonic() > start + AWAY_SECONDS:
                    self._connection.lost()
                self._pause_or_stop()
                # Some failures come at once, and would repeat a thousand times a second.
                self._stopped.wait(PAUSE_SECONDS)
            else:
                self._connection.answered()
                return answer

    def _pause_or_stop(self) -> None:
        """Serve callbacks between two attempts; raise if waiting must end."""
        if self._producer is not None:
            self._producer.poll(0)
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        """Raise if waiting must end: refused by the broker, stopped, or too long at the start."""
        self._connection.check()
        if self._stopped.is_set() or (self._until and time.monotonic() > self._until):
            waiting = sum(payload.n_rows for payload in self._kept)
            raise ResourceError(
                f"{self._settings.where}: no broker answers; {waiting:,} rows wait to be "
                "published, and will be when the job is started again."
            )
