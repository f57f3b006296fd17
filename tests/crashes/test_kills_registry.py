"""Runs from Avro to Avro, killed at random instants and started again."""

from __future__ import annotations

import io
import json
import os
import random
from dataclasses import dataclass

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from tests.crashes.test_kills_kafka import KafkaJob, judge
from tests.crashes.world import crowd, killed_after
from tests.io.kafka.schemas.world import avro, framed, record
from tests.io.kafka.world import fill, values

N_KILLS = int(os.environ.get("SHOAL_KILLS", "10"))
KINDS = {"int64": "long", "double": "double", "string": "string"}


@dataclass
class AvroJob(KafkaJob):
    """A job from a topic to a topic of Avro messages."""

    registry: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        job = self.job.read_text()
        ends = f"format = 'avro'\nregistry = '{self.registry}'\n"
        job = job.replace("rows = 7\n", ends).replace("[output]\n", f"{ends}[output]\n")
        self.job.write_text(job)

    def feed(self, table: pa.Table, draw: random.Random) -> None:
        """Send rows, with another schema each time, and rows that can't be read between them."""
        columns = [(field.name, ["null", KINDS[str(field.type)]]) for field in table.schema]
        more = (f"more{draw.randrange(10**6)}", "int")
        schema = record(*draw.sample([*columns, more], len(columns) + 1))
        text = Schema(json.dumps(schema), "AVRO")
        with SchemaRegistryClient({"url": self.registry}) as client:
            number = client.register_schema(f"{self.source}-{more[0]}", text)
        rows = [avro(number, schema, {**row, more[0]: 1}) for row in table.to_pylist()]
        rows.insert(draw.randrange(len(rows)), framed(number, b"\x02"))
        rows.insert(draw.randrange(len(rows)), framed(10**9 + number, b"\x02"))
        rows.insert(draw.randrange(len(rows)), b"no mark")
        fill(self.address, self.source, rows)

    def published(self, isolation: str = "read_committed") -> list[bytes]:
        """The rows that a reader has, as lines of JSON."""
        found = values(self.address, self.sink, isolation)
        schemas: dict[int, object] = {}
        lines = []
        for value in found:
            number = int.from_bytes(value[1:5], "big")
            if number not in schemas:
                with SchemaRegistryClient({"url": self.registry}) as client:
                    text = client.get_schema(number).schema_str
                schemas[number] = fastavro.parse_schema(json.loads(text))
            row = fastavro.schemaless_reader(io.BytesIO(value[5:]), schemas[number], None)
            lines.append(json.dumps(row).encode())
        return lines


def test_killed_again_and_again_a_reader_has_every_row_once(
    tmp_path, kafka, topic, schema_registry
):
    draw = random.Random(24)
    table = crowd(N_KILLS * 60)
    # Published as it is, so that each row can be told apart.
    table = table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])
    source = topic()
    job = AvroJob(tmp_path / "killed", kafka, source, topic(), registry=schema_registry)
    for i in range(N_KILLS):
        job.feed(table.slice(i * 60, 60), draw)
        assert killed_after(job.command, draw.uniform(0.4, 2.5))
    n_rows = len(table) + 3 * N_KILLS
    job.finish(n_rows)
    lines = job.trace
    assert sorted(lines["row"].to_pylist()) == list(range(n_rows))
    assert lines["outcome"].to_pylist().count("quarantined") == 3 * N_KILLS
    published = job.published()
    seqs = [seq for seq in lines["seq"].to_pylist() if seq is not None]
    assert sorted(seqs) == list(range(len(published)))
    # Row by row what a run that was never disturbed publishes.
    whole = AvroJob(tmp_path / "whole", kafka, source, topic(), registry=schema_registry)
    whole.finish(n_rows)
    assert published == whole.published()
    judge(job, by_place(job, table))
    seen = job.published("read_uncommitted")
    assert len(seen) >= len(published) == len(set(published))
    assert set(seen) == set(published)
    bad = [(one.folder / f"{one.sink}.quarantine.jsonl").read_text() for one in (job, whole)]
    assert bad[0] == bad[1]
    assert bad[0].count("\n") == 3 * N_KILLS


def by_place(job: KafkaJob, table: pa.Table) -> pa.Table:
    """The rows at the places that they had in the topic, with empty rows for bad ones."""
    lines = sorted(job.trace.to_pylist(), key=lambda line: line["row"])
    people = iter(table.to_pylist())
    empty = dict.fromkeys(table.schema.names)
    rows = [empty if line["outcome"] == "quarantined" else next(people) for line in lines]
    return pa.Table.from_pylist(rows, schema=table.schema)
