"""Write all rows that are in a topic now to a file: what a reader of committed data has.

python receive.py public published.jsonl 127.0.0.1:9092

Further settings of the client follow as NAME=VALUE: security.protocol=SSL ssl.ca.location=ca.pem
"""

import sys
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition


def main(topic: str, path: str, servers: str, *settings: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "receive",
            "isolation.level": "read_committed",  # else rows of aborted transactions show, too
            "enable.partition.eof": True,
            **dict(setting.split("=", 1) for setting in settings),
        }
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    n_rows, n_ended = 0, 0
    with Path(path).open("wb") as file:
        while n_ended < len(partitions):
            message = consumer.poll(1)
            if message is not None and message.error():
                n_ended += 1
            elif message is not None:
                file.write(message.value() + b"\n")
                n_rows += message.value().count(b"\n") + 1
    consumer.close()
    print(f"{n_rows} rows are in {path}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
