"""Send the rows of a CSV file to a topic, a hundred to a message.

python send.py ../anonymize_a_csv/people.csv people 127.0.0.1:9092

Further settings of the client follow as NAME=VALUE: security.protocol=SSL ssl.ca.location=ca.pem
"""

import itertools
import sys
from pathlib import Path

from confluent_kafka import Producer


def main(path: str, topic: str, servers: str, *settings: str) -> None:
    more = dict(setting.split("=", 1) for setting in settings)
    producer = Producer({"bootstrap.servers": servers, **more})
    header, *lines = Path(path).read_text(encoding="utf-8").splitlines()
    rows = iter(lines)
    while some := list(itertools.islice(rows, 100)):
        producer.produce(topic, "\n".join([header, *some]).encode())
    producer.flush()
    print(f"{len(lines)} rows are in {topic}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
