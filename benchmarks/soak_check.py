"""Every row once: who reads the output keeps a ledger of where its rows came from."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from shoal.engine.kernels.arrays import Ints

__all__ = ["Checker", "Ledger"]

#: How far behind the newest a row may come until it counts as missing; far more than any delay.
PATIENCE = 1 << 20
COLUMNS = pa.schema([("message", pa.int64()), ("line", pa.int64())])


class Ledger:
    """Which of the numbers 0, 1, 2, … have come: each must, once, or be told as suppressed.

    >>> ledger = Ledger(patience=4)
    >>> ledger.add(np.array([1, 0, 2, 2]), n_suppressed=1)
    >>> ledger.close(5)
    >>> ledger.n_rows, ledger.n_doubled, ledger.n_missing, ledger.n_suppressed
    (5, 1, 2, 1)
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self._patience = patience
        self._base = 0
        self._seen = np.zeros(4 * patience, np.bool_)
        self.n_rows = self.n_doubled = self.n_missing = self.n_suppressed = 0

    @property
    def is_right(self) -> bool:
        """Whether nothing came twice, and nothing is missing but what was suppressed."""
        return self.n_doubled == 0 and self.n_missing == self.n_suppressed

    def add(self, numbers: Ints, n_suppressed: int) -> None:
        """Take the numbers of some rows, and how many came without one."""
        self.n_rows += len(numbers) + n_suppressed
        self.n_suppressed += n_suppressed
        while len(numbers):
            # Room for all numbers up to the end of what is looked at.
            near = numbers < self._base + len(self._seen)
            self._mark(numbers[near])
            numbers = numbers[~near]
            latest = self._base + len(self._seen) if len(numbers) else self._latest
            self._pass(latest - self._patience)

    def _mark(self, numbers: Ints) -> None:
        # One that was passed has come before, or counts as missing: either way it is wrong.
        late = numbers < self._base
        self.n_doubled += int(late.sum())
        places, counts = np.unique(numbers[~late] - self._base, return_counts=True)
        self.n_doubled += int((counts - 1).sum()) + int(self._seen[places].sum())
        self._seen[places] = True

    @property
    def _latest(self) -> int:
        there = np.flatnonzero(self._seen)
        return self._base + (int(there[-1]) + 1 if len(there) else 0)

    def _pass(self, number: int) -> None:
        """Look at nothing before a number any more."""
        n = number - self._base
        if n < self._patience:
            return
        self.n_missing += int(n - self._seen[:n].sum())
        self._seen = np.append(self._seen[n:], np.zeros(n, np.bool_))
        self._base = number

    def close(self, n_all: int) -> None:
        """All have come that will: of this many."""
        rest = max(0, n_all - self._base)
        self.n_missing += rest - int(self._seen[:rest].sum())


class Checker:
    """Reads what is committed of a topic, in a thread of its own.

    Parameters
    ----------
    address, topic
        What is read, from its beginning.
    message_rows
        How many rows each message of the input has.
    """

    def __init__(self, address: str, topic: str, message_rows: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.ledger = Ledger()
        #: The next offset of the output.
        self.offset = 0
        self.failure: BaseException | None = None
        self._message_rows = message_rows
        self._stopped = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "soak-check",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "queued.max.messages.kbytes": 32768,
                # A full queue would otherwise be filled once a second only, slower than the job.
                "fetch.queue.backoff.ms": 20,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._thread = threading.Thread(target=self._read, name="soak-check", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._stopped.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        try:
            while not self._stopped.is_set():
                self._take(self._consumer.consume(100, 0.2))
        except BaseException as error:
            self.failure = error

    def _take(self, messages: list[Any]) -> None:
        for message in messages:
            if message.error() is not None:
                raise SystemExit(f"the output can't be read: {message.error().str()}")
        if messages:
            numbers, n_suppressed = rows_of(
                [message.value() for message in messages], self._message_rows
            )
            self.ledger.add(numbers, n_suppressed)
            self.offset = messages[-1].offset() + 1


def rows_of(values: list[bytes], message_rows: int) -> tuple[Ints, int]:
    """Give the numbers of the rows in messages of the output, and how many have none.

    >>> rows_of([b'{"age": "[3, 5]", "message": 7, "line": 2}'], 10)
    (array([72]), 0)
    """
    table = pyarrow.json.read_json(
        io.BytesIO(b"\n".join(values)),
        read_options=pyarrow.json.ReadOptions(use_threads=False),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=COLUMNS, unexpected_field_behavior="ignore"
        ),
    )
    known = table.filter(table["message"].is_valid())
    numbers = np.asarray(known["message"]) * message_rows + np.asarray(known["line"])
    return numbers, table.num_rows - known.num_rows
