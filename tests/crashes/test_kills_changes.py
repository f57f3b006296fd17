"""Runs that read changes of a database, killed at random instants and started again."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from tests.crashes.test_kills_kafka import KafkaJob, judge
from tests.crashes.test_kills_registry import by_place
from tests.crashes.world import crowd, killed_after
from tests.io.kafka.world import fill

N_KILLS = int(os.environ.get("SHOAL_KILLS", "10"))
BAD = (b'{"op": "c", "before": null}', b'{"op": "x", "after": {"age": 1}}', b'{"op": "c", "aft')


def envelope(op: str, before: Any, after: Any) -> bytes:
    """A change as Debezium writes it without a schema."""
    source = {"connector": "postgresql", "table": "people", "snapshot": "false"}
    whole = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}
    return json.dumps(whole).encode()


@dataclass
class ChangesJob(KafkaJob):
    """A job that reads changes."""

    changes: str = "inserts"
    #: The rows that it takes in, in order.
    rows: list[dict[str, Any]] = field(default_factory=list)
    n_bad: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        job = self.job.read_text()
        self.job.write_text(job.replace("[output]\n", f"changes = '{self.changes}'\n[output]\n"))

    def feed(self, table: pa.Table, draw: random.Random) -> None:
        """Send inserts, with updates, deletes, tombstones and bad messages between them."""
        messages: list[bytes | None] = []
        for row in table.to_pylist():
            messages.append(envelope(draw.choice("cr"), None, row))
            self.rows.append(row)
            chance = draw.random()
            if chance < 0.2:
                changed = row | {"ward": f"{row['ward']} again"}
                messages.append(envelope("u", row, changed))
                self.rows += [changed] * (self.changes == "every")
            elif chance < 0.4:
                messages += [envelope("d", row, None), None]
            elif chance < 0.45:
                messages.append(draw.choice(BAD))
                self.n_bad += 1
        fill(self.address, self.source, messages)


@pytest.mark.parametrize("changes", ["inserts", "every"])
def test_killed_again_and_again_each_change_is_taken_in_once(tmp_path, kafka, topic, changes):
    draw = random.Random(changes)
    table = crowd(N_KILLS * 60)
    # Published as it is, so that each row can be told apart.
    table = table.set_column(4, "ward", [[f"ward {i}" for i in range(len(table))]])
    source = topic()
    job = ChangesJob(tmp_path / "killed", kafka, source, topic(), changes=changes)
    for i in range(N_KILLS):
        job.feed(table.slice(i * 60, 60), draw)
        assert killed_after(job.command, draw.uniform(0.4, 2.5))
    assert job.n_bad > N_KILLS / 2
    n_rows = len(job.rows) + job.n_bad
    job.finish(n_rows)
    lines = job.trace
    assert sorted(lines["row"].to_pylist()) == list(range(n_rows))
    assert lines["outcome"].to_pylist().count("quarantined") == job.n_bad
    published = job.published()
    seqs = [seq for seq in lines["seq"].to_pylist() if seq is not None]
    assert sorted(seqs) == list(range(len(published)))
    judge(job, by_place(job, pa.Table.from_pylist(job.rows, schema=table.schema)))
    # Byte by byte what a run that was never disturbed publishes.
    whole = ChangesJob(tmp_path / "whole", kafka, source, topic(), changes=changes)
    whole.finish(n_rows)
    assert published == whole.published()
    bad = [(one.folder / f"{one.sink}.quarantine.jsonl").read_text() for one in (job, whole)]
    assert bad[0] == bad[1]
    assert bad[0].count("\n") == job.n_bad
