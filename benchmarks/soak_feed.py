"""Keep a topic filled, ahead of the job that reads it by this many rows and no more.

``python -m benchmarks.soak_feed ADDRESS IN OUT JOB`` runs until SIGTERM, or for ``--seconds``, and
prints how many messages it has sent.
"""

from __future__ import annotations

import argparse
import signal
import time
from typing import Any

from benchmarks.soak_job import Messages, SoakJob

#: How long to wait, in seconds, while the topic is full.
FULL = 0.05


class Progress:
    """How many rows the job has published, as it has committed it with them."""

    def __init__(self, address: str, topic: str, job: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._consumer = Consumer({"bootstrap.servers": address, "group.id": f"shoal-{job}"})
        self._place = TopicPartition(topic, 0)

    def __call__(self) -> int:
        [found] = self._consumer.committed([self._place], timeout=10)
        return max(0, int(found.offset))

    def close(self) -> None:
        self._consumer.close()


def feed(
    address: str, source: str, progress: Progress, job: SoakJob, ahead: int, seconds: float
) -> int:
    """Send messages until told to stop; give how many."""
    from confluent_kafka import Producer

    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": "lz4", "acks": "all",
         "enable.idempotence": True}
    )  # fmt: skip
    end = time.monotonic() + seconds
    n_sent, n_out = 0, 0
    for data in Messages(job):
        while n_sent * job.message_rows - n_out >= ahead and not stopped:
            n_out = progress()
            if n_sent * job.message_rows - n_out >= ahead:
                producer.poll(FULL)
        if stopped or time.monotonic() > end:
            break
        _send(producer, source, data)
        n_sent += 1
    producer.flush()
    return n_sent


def _send(producer: Any, topic: str, data: bytes) -> None:
    while True:
        try:
            producer.produce(topic, data, partition=0)
            producer.poll(0)
            return
        except BufferError:
            producer.poll(FULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("address", "source", "sink", "name"):
        parser.add_argument(name)
    parser.add_argument("--ahead", type=int, required=True, metavar="ROWS")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--message-rows", type=int, required=True)
    parser.add_argument("--templates", type=int, required=True)
    options = parser.parse_args()
    job = SoakJob(message_rows=options.message_rows, n_templates=options.templates)
    progress = Progress(options.address, options.sink, options.name)
    n_sent = feed(options.address, options.source, progress, job, options.ahead, options.seconds)
    progress.close()
    print(n_sent)


if __name__ == "__main__":
    main()
