"""Send the rows of a CSV file to a topic, as Avro; the schema goes to the registry.

python send.py ../anonymize_a_csv/people.csv people 127.0.0.1:9092 REGISTRY
"""

import csv
import sys
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

SCHEMA = Path(__file__).with_name("admission.avsc")


def admission(row: dict[str, str]) -> dict[str, object]:
    """Return a row of the file as the schema wants it."""
    return {
        "patient_id": row["patient_id"],
        "admitted_at": datetime.fromisoformat(row["admitted_at"]).replace(tzinfo=UTC),
        "phone": row["phone"],
        "patient": {
            "age": int(row["age"]) if row["age"] else None,
            "sex": row["sex"],
            "profession": row["profession"],
        },
        "diagnosis": row["diagnosis"],
    }


def main(path: str, topic: str, servers: str, registry: str) -> None:
    client = SchemaRegistryClient({"url": registry})
    serialize = AvroSerializer(client, SCHEMA.read_text(encoding="utf-8"))
    context = SerializationContext(topic, MessageField.VALUE)
    producer = Producer({"bootstrap.servers": servers})
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = [admission(row) for row in csv.DictReader(file)]
    for row in rows:
        producer.produce(topic, serialize(row, context))
    producer.flush()
    print(f"{len(rows)} rows are in {topic}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
