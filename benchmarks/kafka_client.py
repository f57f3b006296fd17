"""How many rows per second go through the Kafka source and sink alone, by rows per message.

    python -m benchmarks.kafka_client [--rows 300000]

Starts a broker of its own, or takes that of ``SHOAL_TEST_KAFKA``. Nothing is anonymized here: it is
the client's own speed, with messages of JSON, CSV and Arrow, in three turns each.
"""

from __future__ import annotations

import argparse
import statistics
import time
import uuid

import numpy as np
import pyarrow as pa

from benchmarks.markdown import table
from shoal.io.kafka.settings import FORMATS, KafkaSettings
from shoal.io.kafka.sink import KafkaSink
from shoal.io.kafka.source import KafkaSource
from shoal.testing.broker import create_topics, find_broker

BATCH_ROWS = 20_000
TURNS = 3
COLUMNS = ("age", "work", "education", "sex", "hours", "country")


def made_up_rows(n_rows: int) -> list[pa.RecordBatch]:
    """Rows like those of a census: numbers, and a few words each from a small set."""
    draw = np.random.default_rng(7)
    words = pa.array([f"some-word-{i}" for i in range(40)])
    batches = []
    for _ in range(0, n_rows, BATCH_ROWS):
        columns = [
            pa.DictionaryArray.from_arrays(draw.integers(0, 40, BATCH_ROWS), words)
            if name in ("work", "education", "sex", "country")
            else pa.array(draw.integers(17, 90, BATCH_ROWS))
            for name in COLUMNS
        ]
        batches.append(pa.record_batch(columns, names=list(COLUMNS)))
    return batches


def measure(
    address: str, kind: str, rows: int, batches: list[pa.RecordBatch]
) -> tuple[float, float]:
    """Write all rows to a new topic and read them again; give the rows per second of both."""
    topic = f"bench-{uuid.uuid4().hex[:12]}"
    create_topics({"bootstrap.servers": address}, [topic])
    settings = KafkaSettings(address, topic, format=kind, rows=rows)
    schema = pa.schema(
        [
            (field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type)
            for field in batches[0].schema
        ]
    )
    n_rows = sum(batch.num_rows for batch in batches)
    sink = KafkaSink(settings, schema, None, job=topic)
    start = time.perf_counter()
    for batch in batches:
        sink.write(batch)
        sink.flush()
    sink.commit()
    written = time.perf_counter() - start
    sink.close()
    source = KafkaSource(settings, COLUMNS)
    start = time.perf_counter()
    n_read = 0
    for chunk in source:
        n_read += len(chunk.rows)
        if n_read == n_rows:
            source.stop()
    read = time.perf_counter() - start
    source.close()
    return n_rows / written, n_rows / read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    n_rows = parser.parse_args().rows
    many, few = made_up_rows(n_rows), made_up_rows(max(BATCH_ROWS, n_rows // 10))
    lines = []
    with find_broker() as address:
        for kind in FORMATS:
            for rows, batches in ((1, few), (1000, many)):
                turns = [measure(address, kind, rows, batches) for _ in range(TURNS)]
                sink, source = (
                    f"{statistics.median(turn[side] for turn in turns):,.0f}" for side in (0, 1)
                )
                lines.append([kind, f"{rows:,}", sink, source])
    print(table(["format", "rows per message", "sink, rows/s", "source, rows/s"], lines))


if __name__ == "__main__":
    main()
