"""What a reader of partitions does with its client, without a broker."""

from __future__ import annotations

import threading

from confluent_kafka import KafkaException

from shoal.io.kafka import reader as kafka_reader
from shoal.io.kafka.reader import PartitionReader
from shoal.io.kafka.settings import KafkaSettings


class Client:
    """A client that knows the ends of partitions, and in which thread it was asked."""

    def __init__(self, ends):
        self.ends, self.threads = ends, set()

    def get_watermark_offsets(self, place, cached):
        assert cached
        self.threads.add(threading.get_ident())
        return 0, self.ends[place.partition]

    def consume(self, n_messages, seconds):
        self.threads.add(threading.get_ident())
        return []

    def list_topics(self, topic, timeout):
        self.threads.add(threading.get_ident())
        raise KafkaException

    def close(self):
        self.threads.add(threading.get_ident())


def test_only_the_thread_that_reads_asks_the_client_for_the_lag(monkeypatch):
    """A client makes one call at a time: another thread would wait for the messages."""
    monkeypatch.setattr(kafka_reader, "ENDS_SECONDS", 0)
    reader = PartitionReader(KafkaSettings("127.0.0.1:1", "people"), threading.Event())
    reader._consumer.close()
    client = reader._consumer = Client({0: 10, 1: 7})
    reader.start({0: 4, 1: 7})
    assert reader.lag() is None
    reader._fetch(1)
    found = []
    other = threading.Thread(target=lambda: found.append(reader.lag()))
    other.start()
    other.join()
    assert found == [6]
    assert client.threads == {threading.get_ident()}
    client.ends[1] = -1001
    reader._fetch(1)
    assert reader.lag() is None
    reader.close()
    assert reader.lag() is None
