"""What the tests of Kafka share: filling a topic, and seeing what is in one."""

import json

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.string())])


def rows(begin, end):
    """Rows that can be told apart."""
    numbers = list(range(begin, end))
    words = [f"word {number % 7}" for number in numbers]
    return pa.record_batch([pa.array(numbers), pa.array(words)], schema=SCHEMA)


def fill(address, topic, values, partition=0):
    """Put messages in a topic, each once; give what partition each is in."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "enable.idempotence": True})
    for place, value in enumerate(values):
        where = partition if isinstance(partition, int) else partition[place]
        producer.produce(topic, value, partition=where)
    assert producer.flush(300) == 0


def values(address, topic, isolation="read_committed", partitions=1):
    """All values that are in a topic, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "test",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found, ended = [], set()
    while len(ended) < partitions:
        for message in consumer.consume(1000, 0.1):
            if message.error() is None:
                found.append((message.partition(), message.offset(), message.value()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended.add(message.partition())
    consumer.close()
    return [value for _, _, value in sorted(found)]


def numbers(address, topic, isolation="read_committed", partitions=1):
    """The column ``n`` of all JSON rows that are in a topic."""
    found = values(address, topic, isolation, partitions)
    return [json.loads(line)["n"] for value in found for line in value.splitlines()]


def read(source, n_rows):
    """Read chunks until there are this many rows, good and bad."""
    chunks, n = [], 0
    for chunk in source:
        chunks.append(chunk)
        n += len(chunk.rows) + len(chunk.bad)
        if n >= n_rows:
            break
    assert n == n_rows
    return chunks


def as_tuples(chunks):
    """All rows and bad rows of chunks, as plain values."""
    good = [
        (int(number), row)
        for chunk in chunks
        for number, row in zip(chunk.rows, chunk.batch.to_pylist(), strict=True)
    ]
    bad = [(row.row, row.reason, row.raw) for chunk in chunks for row in chunk.bad]
    return good, bad
