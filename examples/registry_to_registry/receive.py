"""Write all rows that are in a topic of Avro messages now to a file of JSON lines.

python receive.py public published.jsonl 127.0.0.1:9092 REGISTRY
"""

import json
import sys
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext


def main(topic: str, path: str, servers: str, registry: str) -> None:
    deserialize = AvroDeserializer(SchemaRegistryClient({"url": registry}))
    context = SerializationContext(topic, MessageField.VALUE)
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "receive",
            "isolation.level": "read_committed",  # else rows of aborted transactions show, too
            "enable.partition.eof": True,
        }
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    n_rows, n_ended = 0, 0
    with Path(path).open("w", encoding="utf-8") as file:
        while n_ended < len(partitions):
            message = consumer.poll(1)
            if message is not None and message.error():
                n_ended += 1
            elif message is not None:
                file.write(json.dumps(deserialize(message.value(), context)) + "\n")
                n_rows += 1
    consumer.close()
    print(f"{n_rows} rows are in {path}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
