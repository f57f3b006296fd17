"""The audit, which shares no code with engines, finds no promise broken by the rivals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal import (
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    Hierarchy,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    RangeLikeness,
    Schema,
    SemanticLikeness,
    Sensitive,
    TCloseness,
    Window,
)
from shoal.algorithms import find
from shoal.audit import audit
from shoal.io import Chunk
from shoal.run.pipeline import Pipeline

ILLNESS = Hierarchy.from_dict({"*": {"lung": ["flu", "asthma"], "other": ["ulcer", "gout"]}})
SCHEMA = Schema(
    "person",
    [
        Quasi("age", Range(0, 100, step=5)),
        Quasi("post", Hierarchy.digits(2)),
        Quasi("x", Range(0, 1)),
    ],
    [Sensitive("ill", ILLNESS), Sensitive("pay", Range(0, 9))],
)
N_ROWS = 240
CLOSE = TCloseness(0.3)
WINDOW = Window(rows=80, advance=20)


def table(missing: bool) -> pa.Table:
    """People who come back, with illnesses that go with age, and gaps if they may be there."""
    draw = np.random.default_rng(5)
    age = draw.integers(0, 101, N_ROWS)
    ill = np.where(draw.random(N_ROWS) < 0.5, age // 26, draw.integers(0, 4, N_ROWS))
    gaps = draw.random(N_ROWS) < (0.1 if missing else 0.0)
    return pa.table(
        {
            "person": [f"p{n}" for n in draw.integers(0, 90, N_ROWS)],
            "age": pa.array(age.astype(float), mask=gaps),
            "post": [f"{n:02}" for n in draw.integers(0, 100, N_ROWS)],
            "x": draw.random(N_ROWS),
            "ill": [ILLNESS.leaves[n] for n in ill],
            "pay": draw.integers(0, 5, N_ROWS).astype(float),
        }
    )


class Rows:
    """A source with a table in it."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self.schema_names = rows.column_names

    def __iter__(self) -> Iterator[Chunk]:
        first = 0
        for batch in self._rows.to_batches(max_chunksize=100):
            yield Chunk(batch, np.arange(first, first + batch.num_rows), bad=[])
            first += batch.num_rows

    def describe(self) -> str:
        return "a table"

    def close(self) -> None:
        pass


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._tables = schema, [schema.empty_table()]

    def write(self, batch: pa.RecordBatch) -> None:
        self._tables.append(pa.Table.from_batches([batch]).cast(self._schema))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def table(self) -> pa.Table:
        return pa.concat_tables(self._tables)


@pytest.mark.plain
@pytest.mark.parametrize("missing", ["quarantine", "extended"])
@pytest.mark.parametrize(
    ("name", "criteria", "window"),
    [
        ("mondrian", [DistinctLDiversity(2)], "all"),
        ("t-mondrian", [CLOSE], "all"),
        ("l-mondrian", [EnhancedLikeness(1.5), SemanticLikeness(1.5, attribute="ill")], "all"),
        ("l-mondrian", [RangeLikeness(1.5, attribute="pay", epsilon=1.0)], "all"),
        ("d-mondrian", [DeltaDisclosure(1.5)], "all"),
        ("t-incognito", [CLOSE], "all"),
        ("t-mondrian-w", [CLOSE], WINDOW),
        ("t-incognito-w", [CLOSE, DistinctLDiversity(2)], WINDOW),
    ],
)
def test_no_promise_is_broken(name: str, criteria: list[Any], window: Any, missing: Any) -> None:
    policy = Policy(KAnonymity(3), *criteria, window=window, missing=missing)
    rows, sinks = table(missing == "extended"), dict[str, Kept]()
    run = Pipeline(SCHEMA, policy, find(name)(), seed=b"1").run(
        Rows(rows),
        lambda schema: sinks.setdefault("published", Kept(schema)),
        on_bad=lambda bad: pytest.fail(f"{len(bad)} bad rows"),
        open_trace=lambda schema: sinks.setdefault("trace", Kept(schema)),
    )
    run.execute()
    published, trace = sinks["published"].table(), sinks["trace"].table()
    report = audit(SCHEMA, policy, published, trace=trace, original=rows)
    assert report.verdict == "kept", str(report)
    # Groups are many and rows are published: a table in one group would keep everything, too.
    assert published.num_rows == N_ROWS
    assert len(set(trace["group"].to_pylist())) > 1
