"""The trace: a private line for each input row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shoal.arrow.order import Departures
from shoal.arrow.trace import Tracer, trace_schema
from shoal.engine.space import NO_TABLE
from tests.world import Kept

COLUMNS = [
    "row", "subject", "outcome", "arrived", "published", "arrived_s", "published_s", "group",
    "window", "loss", "seq",
]  # fmt: skip


def tracer_of(shard: tuple[int, int] | None = None) -> tuple[Tracer, Kept]:
    lines = Kept(trace_schema(pa.string(), sharded=shard is not None))
    return Tracer(lines, pa.string(), shard=shard), lines


def decide_three(tracer: Tracer) -> None:
    departures = Departures(
        np.array([4, 5, 6]), np.array([0, 1, 2]), np.array([1, 0, -1]), np.array([7, 7, 8]),
        np.array([70.0, 70.0, np.nan]), np.array([0, 1, 0]), np.array([0.2, 0.1, 1.0]),
        np.array([9, 9, 9]), np.array([90.0] * 3),
        np.zeros((2, 1)), np.ones((2, 1)), np.array([30, 31]), np.array([8, -1]),
        NO_TABLE, np.empty(0, np.int64), pa.record_batch({"x": [0, 0, 0]}),
    )  # fmt: skip
    subjects = pa.array(["a", "b", "c"])
    arrived_s = np.array([40.0, 50.0, np.nan])
    tracer.decided(departures, np.array([14, 15, 16]), arrived_s, subjects, np.array([2, 3, -1]))


def test_decided_rows_tell_when_they_were_decided_and_not_when_they_left():
    tracer, lines = tracer_of()
    decide_three(tracer)
    assert lines.table.schema.names == COLUMNS
    assert [tuple(line.values()) for line in lines.table.to_pylist()] == [
        (14, "a", "group", 4, 7, 40.0, 70.0, 31, None, 0.2, 2),
        (15, "b", "reuse", 5, 7, 50.0, 70.0, 30, 8, 0.1, 3),
        (16, "c", "suppressed", 6, 8, None, None, None, None, 1.0, None),
    ]


def test_quarantined_and_held_rows_have_no_end():
    tracer, lines = tracer_of()
    tracer.quarantined(np.array([3]), pa.array([None], pa.string()))
    tracer.held(np.array([4]), pa.array(["a"]), np.array([2]), np.array([1.5]))
    assert [tuple(line.values()) for line in lines.table.to_pylist()] == [
        (3, None, "quarantined", None, None, None, None, None, None, None, None),
        (4, "a", "held", 2, None, 1.5, None, None, None, None, None),
    ]


def test_several_shards_have_no_group_in_common():
    for shard in range(3):
        tracer, lines = tracer_of((shard, 3))
        decide_three(tracer)
        tracer.quarantined(np.array([3]), pa.array([None], pa.string()))
        tracer.held(np.array([4]), pa.array(["a"]), np.array([2]), np.array([1.5]))
        assert lines.table.schema.names == [*COLUMNS, "shard"]
        groups = lines.table.column("group").to_pylist()
        assert groups == [31 * 3 + shard, 30 * 3 + shard, None, None, None]
        assert lines.table.column("shard").to_pylist() == [shard] * 5
    alone, plain = tracer_of()
    decide_three(alone)
    first, lines = tracer_of((0, 1))
    decide_three(first)
    assert lines.table.drop_columns("shard").equals(plain.table)
