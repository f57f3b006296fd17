"""Send made-up people to a topic, at a steady rate, until it is stopped.

python people.py SERVERS TOPIC [ROWS_A_SECOND [SECONDS]]
python people.py SERVERS --create TOPIC...      create topics that are missing, and end
"""

import io
import itertools
import sys
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv as csv
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from shoal.datasets import census

COLUMNS = ["person_id", "age", "sex", "hours_per_week", "diagnosis"]
#: Messages a second; each has a header and its share of the rows.
MESSAGES = 10


def people(rows_in_message: int) -> Iterator[bytes]:
    """Yield messages without end; every 100,000 rows there are other people."""
    for seed in itertools.count():
        table = census(100_000, seed=seed).table().select(COLUMNS)
        ids = [f"{seed}-{each}" for each in table["person_id"].to_pylist()]
        table = table.set_column(0, "person_id", pa.array(ids))
        for batch in table.to_batches(max_chunksize=rows_in_message):
            text = io.BytesIO()
            csv.write_csv(batch, text)
            yield text.getvalue()


def send(servers: str, topic: str, rate: str = "500", seconds: str = "inf") -> None:
    """Send about so many rows a second."""
    producer = Producer({"bootstrap.servers": servers})
    begin = time.monotonic()
    for number, message in enumerate(people(max(1, int(rate) // MESSAGES)), 1):
        producer.produce(topic, message)
        producer.poll(0)
        ahead = begin + number / MESSAGES - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        if time.monotonic() - begin > float(seconds):
            break
    producer.flush()


def create(servers: str, *topics: str) -> None:
    """Create the topics that are missing."""
    admin = AdminClient({"bootstrap.servers": servers})
    there = admin.list_topics(timeout=30).topics
    wanted = [NewTopic(name, 1, 1) for name in topics if name not in there]
    for name, made in admin.create_topics(wanted).items() if wanted else ():
        try:
            made.result()
        except KafkaException as error:
            sys.exit(f"{name}: can't be created: {error.args[0].name()}")


if __name__ == "__main__":
    given = sys.argv[1:]
    if len(given) < 2:
        sys.exit(__doc__)
    if given[1] == "--create":
        create(given[0], *given[2:])
    else:
        send(*given)
