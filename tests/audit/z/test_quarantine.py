"""Rows that are called quarantined, and whether anything is wrong with them."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.quarantine import Unexplained, unexplained
from shoal.audit.z.trace import read_cell_trace
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Grid, Open
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from tests.audit.z.world import TRACE, CellWorld, stream

GOOD, BAD, DOUBTFUL = Unexplained(1, 0), Unexplained(0, 0), Unexplained(0, 1)


def judged(
    original: dict[str, Any],
    domain: Any = None,
    *,
    keep: Any = (),
    timed: bool = False,
    time: float | None = None,
    rows: Any = None,
    **promised: Any,
) -> Unexplained:
    """Judge a table of which the last row is called quarantined."""
    quasi = [] if domain is None else [Quasi("x", domain)]
    schema = Schema("who", [Quasi("page", Open()), *quasi], keep=keep, time="at" if timed else None)
    ahead = promised.pop("ahead", None)
    policy: Any = Policy(ZAnonymity(2), window=Window(rows=9), **promised)
    if ahead is not None:
        named = ("z", "window", "lateness", "missing")
        policy = SimpleNamespace(ahead=ahead, **{name: getattr(policy, name) for name in named})
    n = len(next(iter(original.values())))
    table = pa.table({"who": ["a"] * n, "page": ["p"] * n} | original)
    names = [attribute.name for attribute in schema.quasi]
    lines = [
        dict.fromkeys(TRACE.names)
        | {"row": i, "attribute": name, "outcome": "suppressed", "arrived": i, "z": 2}
        for i in range(n - 1)
        for name in names
    ]
    lines.append(dict.fromkeys(TRACE.names) | {"row": n - 1, "outcome": "quarantined"})
    trace = read_cell_trace(pa.Table.from_pylist(lines, TRACE), names)
    cells = ZEvidence(
        schema, policy, table.select(["page"]).slice(0, 0), suppressed="drop", trace=trace,
        original=table, original_rows=rows, n_quarantined=None, count="residual", pseudonym=False,
        rotate=None, time=time,
    )  # fmt: skip
    return unexplained(cells, trace)


TREE = Hierarchy.flat(["7", "8"])
SPAN = Range(0, 9, step=3)
GRID = Grid("lat", "lon", [1000])


@pytest.mark.parametrize(
    ("original", "found"),
    [
        ({"who": ["a"]}, GOOD),
        ({"who": [None, ""]}, BAD),
        ({"who": ["a", "\u200b "]}, BAD),
        ({"who": [1.0, float("nan")]}, BAD),
        ({"who": [1.0, 1e17]}, BAD),
        ({"who": [1.0, 1e9]}, GOOD),
        ({"who": pa.array([True, False])}, GOOD),
        ({"page": ["p", " "]}, BAD),
        ({"page": ["p", "\u200b"]}, BAD),
        ({"page": ["p", None]}, BAD),
    ],
)
def test_subjects_and_gaps(original: dict[str, Any], found: Unexplained) -> None:
    assert judged(original) == found


def test_a_gap_is_no_reason_where_it_may_be() -> None:
    assert judged({"page": ["p", None]}, missing="maybe") == GOOD
    assert judged({"page": ["p", "q"], "x": [1.0, None]}, SPAN, missing="maybe") == GOOD
    # What isn't a number is another matter than what isn't there.
    assert judged({"x": [1.0, float("nan")]}, SPAN, missing="maybe") == BAD
    assert judged({"x": [7.0, float("nan")]}, TREE, missing="maybe") == BAD
    assert judged({"page": [7.0, float("nan")]}, missing="maybe") == GOOD


@pytest.mark.parametrize(
    ("domain", "original", "found"),
    [
        (SPAN, {"x": [1, 10]}, BAD),
        (SPAN, {"x": ["1", "x"]}, BAD),
        (SPAN, {"x": ["1", "9"]}, GOOD),
        (SPAN, {"x": ["1", " 2.5 "]}, GOOD),
        (SPAN, {"x": ["1", "1_0"]}, BAD),
        (SPAN, {"x": ["1", "0_1"]}, DOUBTFUL),
        (SPAN, {"x": pa.array([True])}, BAD),
        (TREE, {"x": ["7", "q"]}, BAD),
        (TREE, {"x": ["7", " 8"]}, GOOD),
        (TREE, {"x": [7, 8]}, GOOD),
        (TREE, {"x": [7.0, 8.0]}, DOUBTFUL),
        (GRID, {"lat": [1.0], "lon": [181.0]}, BAD),
        (GRID, {"lat": [1.0], "lon": [180.0]}, GOOD),
    ],
)
def test_values_that_a_domain_lacks(
    domain: Any, original: dict[str, Any], found: Unexplained
) -> None:
    assert judged(original, domain) == found


def test_half_of_a_place_may_be_wrong() -> None:
    half = {"lat": pa.array([None], pa.float64()), "lon": [200.0]}
    assert judged(half, GRID, missing="maybe") == BAD
    assert judged(half | {"lon": [20.0]}, GRID, missing="maybe") == GOOD


MOMENTS = pa.array([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)])


@pytest.mark.parametrize(
    ("times", "given", "found"),
    [
        ([5.0, None], {}, BAD),
        ([5.0, float("inf")], {}, BAD),
        (["5", "soon"], {}, BAD),
        (["5", "6"], {}, GOOD),
        (["2024-01-01", "2024-01-01T10:00:00.5+01:00"], {}, GOOD),
        (["2024-01-01", "2024-W01-1"], {}, DOUBTFUL),
        (MOMENTS, {}, GOOD),
        ([5.0, 2.9], {"lateness": 2.0}, BAD),
        ([5.0, 3.0], {"lateness": 2.0}, GOOD),
        ([5.0, 2.9], {}, GOOD),
        ([9.0], {"lateness": 2.0}, GOOD),
        ([5.0, 6.0], {"ahead": 60.0}, DOUBTFUL),
        ([5.0, None], {"ahead": 60.0}, BAD),
        (["5", "999999999999"], {"time": 0.0}, BAD),
        ([5.0, 999999999999.0], {"time": 0.0}, GOOD),
    ],
)
def test_times(times: Any, given: dict[str, Any], found: Unexplained) -> None:
    assert judged({"at": times}, timed=True, **given) == found


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        (["n1", "5"], GOOD),
        ([None, None], GOOD),
        ([1, 2], GOOD),
        (pa.array([True, False]), GOOD),
        (["1", "2"], GOOD),
        (["1", "2.5"], DOUBTFUL),
        (["1.5", "2"], GOOD),
        (["1.5", "x"], DOUBTFUL),
        (["2024-01-01", "5"], DOUBTFUL),
        (["true", "x"], DOUBTFUL),
        ([1.0, 2.5], DOUBTFUL),
        ([1.0, 2.0], GOOD),
        ([1.5, 2.5], GOOD),
        (MOMENTS, DOUBTFUL),
        ([[1], None], GOOD),
    ],
)
def test_columns_that_may_have_changed_their_type(kept: Any, found: Unexplained) -> None:
    assert judged({"note": kept}, keep=["note"]) == found


def test_rows_that_the_original_lacks_are_not_judged() -> None:
    assert judged({"who": ["a", "a"]}, rows=np.array([0, 7])) == BAD


def called_bad(world: CellWorld, row: int) -> None:
    """A row is called quarantined, and all that follows is made to fit."""
    seq = next(line["seq"] for line in world.trace if line["row"] == row)
    world.trace = [
        line for line in world.trace if line["row"] != row or line["attribute"] == "page"
    ]
    line = world.line(row, "page")
    line |= dict.fromkeys(line) | {"row": row, "subject": line["subject"]}
    line["outcome"] = "quarantined"
    if seq is not None:
        del world.published[seq]
    for line in world.trace:
        if line["row"] > row and line["arrived"] is not None:
            line["arrived"] -= 1
            line["published"] -= 1
            if seq is not None and line["seq"] is not None:
                line["seq"] -= 1


def test_a_good_row_is_called_quarantined() -> None:
    promise = Policy(ZAnonymity(1), window=Window(rows=12))
    world = CellWorld(policy=promise, original=stream(1)).run()
    called_bad(world, 20)
    report = world.report()
    assert world.broken() == {"conservation"}
    assert report["conservation"].detail == (
        "1 rows are called quarantined and nothing is wrong with them"
    )
    assert report["conservation"].figures["n_unexplained"] == 1
    assert world.report(original=False)["conservation"].verdict == "kept"


def test_what_is_unknown_is_not_called_kept() -> None:
    promise = Policy(ZAnonymity(1), window=Window(rows=12))
    rows = stream(1)
    rows[0]["note"] = "0"
    world = CellWorld(policy=promise, original=rows).run()
    called_bad(world, 20)
    found = world.report()["conservation"]
    assert (found.verdict, found.figures["n_unexplained"]) == ("unverifiable", 1)
