"""Publish who bought what and where, each event at once or not at all, and audit the result.

A made-up town: people buy articles of a catalogue, each at a place. Nothing waits. What at least Z
people have exposed in the last hour is published as it is; else a more general category, or a
larger square of the map, takes its place; else it is hidden. A person's pseudonym lasts one hour.
Run it with `python examples/publish_events_at_once.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal import Grid, Path, Policy, Quasi, Schema, Window, ZAnonymity
from shoal.algorithms import ZAnonymizer
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.audit import Report, audit
from shoal.io import BadRow, Chunk
from shoal.metrics import Summary, ValueExposure, value_exposure
from shoal.run.pipeline import Pipeline

HOUR, MINUTE = 3600, 60
Z = 10
SCHEMA = Schema(
    subject="customer",
    quasi=[
        Quasi("article", Path("/", levels=3)),
        Quasi("where", Grid("lat", "lon", [500, 1000, 5000])),
    ],
    time="at",
)
POLICY = Policy(ZAnonymity(Z), window=Window(seconds=HOUR))
PUBLISH = Publish(time=MINUTE, pseudonym=Pseudonym(rotate=HOUR))
#: The further down, the rarer.
CATALOGUE = [
    "food/bread/rye", "food/bread/white", "food/fruit/apple", "food/fruit/pear", "toys/games/chess",
    "food/bread/spelt", "toys/games/go", "books/poems/german", "books/novels/long", "food/fish/eel",
]  # fmt: skip


class Found(NamedTuple):
    """What was published, the figures of the run, the audit's report, and what it comes to."""

    published: pa.Table
    summary: Summary
    report: Report
    exposure: ValueExposure


class TableSource:
    """A source that reads a table, a few rows at a time, as they would come in."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.schema_names = table.column_names

    def __iter__(self) -> Iterator[Chunk]:
        first = 0
        for batch in self._table.to_batches(max_chunksize=100):
            yield Chunk(batch, np.arange(first, first + batch.num_rows), bad=[])
            first += batch.num_rows

    def describe(self) -> str:
        return "a town that doesn't exist"

    def close(self) -> None:
        """There is nothing to close."""


class MemorySink:
    """A sink that keeps what it is given. Labels come as dictionaries; here they become plain."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tables: list[pa.Table] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._tables.append(pa.Table.from_batches([batch]).cast(self._schema))

    def flush(self) -> None:
        """Everything is visible at once."""

    def close(self) -> None:
        """There is nothing to close."""

    def table(self) -> pa.Table:
        return pa.concat_tables([self._schema.empty_table(), *self._tables])


def purchases(n: int) -> pa.Table:
    """Purchases of 150 people, one every eight seconds, most of them in the middle of the town."""
    draw = random.Random(7)
    weights = [1 / rank for rank in range(1, len(CATALOGUE) + 1)]
    rows = [
        {
            "customer": f"c{draw.randrange(150)}",
            "at": 8 * number,
            "article": draw.choices(CATALOGUE, weights)[0],
            "lat": round(45.07 + draw.gauss(0, 0.01), 5),
            "lon": round(7.68 + draw.gauss(0, 0.01), 5),
        }
        for number in range(n)
    ]
    return pa.Table.from_pylist(rows)


def refuse(bad: list[BadRow]) -> None:
    raise SystemExit(f"row {bad[0].row}: {bad[0].reason}")


def main(rows: int = 2000) -> Found:
    events = purchases(rows)
    sinks: dict[str, MemorySink] = {}
    run = Pipeline(SCHEMA, POLICY, ZAnonymizer(), PUBLISH).run(
        TableSource(events),
        lambda schema: sinks.setdefault("published", MemorySink(schema)),
        on_bad=refuse,
        # The audit needs a trace, and a trace tells whose each pseudonym is: here nobody is real.
        open_trace=lambda schema: sinks.setdefault("trace", MemorySink(schema)),
        undo_pseudonyms=True,
    )
    summary = run.execute()
    published, trace = sinks["published"].table(), sinks["trace"].table()
    report = audit(
        SCHEMA, POLICY, published, trace=trace, original=events,
        pseudonym=True, rotate=HOUR, time=MINUTE,
    )  # fmt: skip
    exposure = value_exposure(SCHEMA, POLICY, events, trace)
    for row in published.slice(published.num_rows - 5).to_pylist():
        print(", ".join("hidden" if value is None else str(value) for value in row.values()))
    print("\n".join([*summary.lines(), *exposure.lines(), str(report)]))
    return Found(published, summary, report, exposure)


if __name__ == "__main__":
    raise SystemExit(main().report.exit_code)
