"""The trace of values one by one: a line for each cell, and one for a row that is bad."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shoal.arrow.order import Departures
from shoal.arrow.z.trace import ZTracer, z_trace_schema
from shoal.spec.ladder import Open, Path
from shoal.spec.schema import Quasi, Schema
from tests.world import Kept

SCHEMA = Schema("who", [Quasi("area", Path("/", 4)), Quasi("page", Open())])
COLUMNS = [
    "row", "subject", "attribute", "outcome", "arrived", "published", "arrived_s", "published_s",
    "group", "window", "level", "z", "loss", "seq",
]  # fmt: skip


def tracer_of() -> tuple[ZTracer, Kept]:
    lines = Kept(z_trace_schema(pa.string()))
    return ZTracer(lines, pa.string(), SCHEMA), lines


def test_a_line_for_each_cell():
    tracer, lines = tracer_of()
    none = np.empty(0, np.int64)
    departures = Departures(
        np.array([4, 5, 6]), np.array([0, 0, 2]), np.full(3, -1), np.array([4, 5, 6]),
        np.array([40.0, 41.0, np.nan]), np.zeros(3, np.int64), np.array([0.5, 0.0, 1.0]),
        np.array([4, 5, 6]), np.array([40.0, 41.0, np.nan]), np.empty((0, 0)), np.empty((0, 0)),
        none, none, np.array([[3, -1], [-2, 0], [-1, -2]]), np.array([20, 20, 31]),
        pa.record_batch({"x": [0, 0, 0]}),
    )  # fmt: skip
    subjects, arrived_s = pa.array(["a", "b", "c"]), np.array([40.0, 41.0, np.nan])
    tracer.decided(departures, np.array([14, 15, 17]), arrived_s, subjects, np.array([2, 3, -1]))
    assert lines.table.schema.names == COLUMNS
    none_yet = (None, None)
    assert [tuple(line.values()) for line in lines.table.to_pylist()] == [
        (14, "a", "area", "group", 4, 4, 40.0, 40.0, *none_yet, 3, 20, 0.75, 2),
        (14, "a", "page", "suppressed", 4, 4, 40.0, 40.0, *none_yet, None, 20, 1.0, 2),
        (15, "b", "area", "missing", 5, 5, 41.0, 41.0, *none_yet, None, 20, None, 3),
        (15, "b", "page", "group", 5, 5, 41.0, 41.0, *none_yet, 0, 20, 0.0, 3),
        (17, "c", "area", "suppressed", 6, 6, None, None, *none_yet, None, 31, 1.0, None),
        (17, "c", "page", "missing", 6, 6, None, None, *none_yet, None, 31, None, None),
    ]


def test_a_quarantined_row_has_one_line():
    tracer, lines = tracer_of()
    tracer.quarantined(np.array([3, 9]), pa.array([None, "a"], pa.string()))
    assert [tuple(line.values()) for line in lines.table.to_pylist()] == [
        (3, None, None, "quarantined", *[None] * 10),
        (9, "a", None, "quarantined", *[None] * 10),
    ]
