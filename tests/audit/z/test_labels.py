"""Labels that aren't true, columns that shouldn't be there, and pseudonyms that tell more."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from shoal.audit.times import seconds
from shoal.spec.ladder import Open
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from tests.audit.z.world import CellWorld, stream

Z = "z-anonymity"
Change = Callable[[CellWorld], None]


def policy(z: int = 2, **given: Any) -> Policy:
    return Policy(ZAnonymity(z), **({"window": Window(seconds=10)} | given))


@pytest.fixture
def world() -> CellWorld:
    return CellWorld(original=stream(1)).run()


@pytest.fixture
def gappy() -> CellWorld:
    lenient = policy(missing="maybe", lateness=2.0)
    return CellWorld(policy=lenient, original=stream(2, gaps=0.2, jitter=4)).run()


# -- labels ----------------------------------------------------------------------------------------


def another_label(world: CellWorld) -> None:
    cell = next(line for line in world.cells("group") if line["attribute"] == "page")
    world.published[cell["seq"]]["page"] = "CANARY"


def two_spellings(world: CellWorld) -> None:
    cell = next(line for line in world.cells("group") if line["attribute"] == "page")
    world.published[cell["seq"]]["page"] += " "


def a_mark_that_cannot_be_seen(world: CellWorld) -> None:
    for row in world.published:
        row["page"] = "x\u200b" if row["page"] == "x" else row["page"]


def another_note(world: CellWorld) -> None:
    world.published[0]["note"] = "CANARY"


def another_subject(world: CellWorld) -> None:
    for line in world.trace:
        if line["row"] == 0:
            line["subject"] = "CANARY"


def value_is_unknown(world: CellWorld) -> None:
    cell = next(line for line in world.cells("group") if line["attribute"] == "food")
    world.original[cell["row"]]["food"] = "CANARY"


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (another_label, {"labels"}),
        (two_spellings, {"labels"}),
        (a_mark_that_cannot_be_seen, {"labels"}),
        (another_note, {"labels"}),
        (another_subject, {"labels"}),
        (value_is_unknown, {"labels", Z}),
    ],
)
def test_what_is_not_true(world: CellWorld, change: Change, broken: set[str]) -> None:
    change(world)
    report = world.report()
    assert world.broken() == broken
    assert "CANARY" not in str(report)


@pytest.mark.parametrize("time", [0, 5.0])
def test_a_time_that_is_not_the_rows(world: CellWorld, time: float) -> None:
    world.settings = {"time": time}
    world.run()
    world.published[0]["at"] += 5
    assert world.broken() == {"labels"}
    world.published[0]["at"] -= 5.5
    assert world.broken() == {"labels"}
    world.published[0]["at"] = float("inf")
    assert world.broken() == {"labels"}


def timed(times: Any, step: float, shown: Any) -> set[str]:
    """What is broken if one value is published with these times, each rounded to a step."""
    schema = Schema("who", [Quasi("page", Open())], time="at")
    table = pa.table({"who": ["a"] * len(times), "page": ["x"] * len(times), "at": times})
    clock = seconds(table["at"].combine_chunks())
    rows = [{"who": "a", "page": "x", "at": at} for at in clock.tolist()]
    world = CellWorld(schema=schema, policy=policy(1), original=rows, settings={"time": step}).run()
    published = world.table().set_column(1, "at", shown)
    return world.broken(published=published, original=table)


@pytest.mark.parametrize(
    ("times", "step", "shown"),
    [
        (pa.array([dt.datetime(2024, 1, 1, 12, 59, 59, 999999)]), 60,
         pa.array([dt.datetime(2024, 1, 1, 12, 59)])),
        (pa.array([i / 10 for i in range(60)]), 0.1, pa.array([i / 10 for i in range(60)])),
        (pa.array([0.9999999, 1.0]), 1.0, pa.array([0.0, 1.0])),
        (pa.array([1e300, 1e300]), 7.0, pa.array([1e300, 1e300])),
        (pa.array([0.25e-6]), 1e-7, pa.array([0.2e-6])),
        (pa.array([-0.5]), 1.0, pa.array([-1.0])),
    ],
)  # fmt: skip
def test_times_are_rounded_down(times: Any, step: float, shown: Any) -> None:
    assert timed(times, step, shown) == set()


@pytest.mark.parametrize(
    ("time", "step", "shown"),
    [(60.0, 60, 0.0), (59.999999, 60, 60.0), (59.5, 60, 1.0), (5.0, 0, 4.9), (0.3, 0.1, 0.1)],
)
def test_times_that_are_rounded_otherwise(time: float, step: float, shown: float) -> None:
    assert timed(pa.array([time]), step, pa.array([shown])) == {"labels"}


# -- subjects in any type --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("people", "names"),
    [
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([0, 10**9], pa.timestamp("ns", "Europe/Rome")),
         ["1970-01-01 01:00:00.000000000+0100", "1970-01-01 01:00:01.000000000+0100"]),
        (pa.array([dt.time(1), dt.time(2)]), ["01:00:00.000000", "02:00:00.000000"]),
        (pa.array([1, 2], pa.duration("ns")), ["1", "2"]),
        (pa.array([0.1, 0.2], pa.float32()), ["0.1", "0.2"]),
        (pa.array([-0.0, 1.0]), ["-0", "1"]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), ["6162", "6364"]),
        (pa.array([b"ab", b"cd"], pa.binary_view()), ["6162", "6364"]),
    ],
)  # fmt: skip
def test_subjects_are_compared_as_the_trace_writes_them(people: Any, names: list[str]) -> None:
    schema = Schema("who", [Quasi("page", Open())])
    promise = policy(2, window=Window(rows=5))
    rows = [{"who": name, "page": "x", "at": 0.0} for name in names]
    world = CellWorld(schema=schema, policy=promise, original=rows).run()
    table = pa.table({"who": people, "page": ["x", "x"]})
    assert world.report(original=table).verdict == "kept"
    world.trace[0]["subject"] = "CANARY"
    assert world.broken(original=table) == {"labels"}


def test_a_person_written_in_two_ways_has_one_pseudonym() -> None:
    schema = Schema("who", [Quasi("page", Open())])
    settings = {"pseudonym": True, "rotate": 20.0}
    rows = [{"who": name, "page": "x", "at": 0.0} for name in ("0", "-0", "1")]
    promise = policy(1, window=Window(rows=5))
    world = CellWorld(schema=schema, policy=promise, original=rows, settings=settings).run()
    for row, pseudonym in zip(world.published, "abc", strict=True):
        row["pseudonym"] = "a" if pseudonym == "b" else pseudonym
    table = pa.table({"who": [0.0, -0.0, 1.0], "page": ["x"] * 3})
    assert world.report(original=table).verdict == "kept"


def test_invisible_characters_make_nobody_another() -> None:
    schema = Schema("who", [Quasi("page", Open())])
    rows = [{"who": name, "page": "x", "at": 0.0} for name in ("\xe9", "e\u200d\u0301")]
    promise = policy(2, window=Window(rows=5))
    world = CellWorld(schema=schema, policy=promise, original=rows).run()
    assert world.broken() == {Z}


# -- shape and secrecy -----------------------------------------------------------------------------


def test_columns_that_are_missing_or_in_another_order(world: CellWorld) -> None:
    table = world.table()
    found = world.report(published=table.drop_columns(["page", "note"]))
    assert found["shape"].detail == "missing columns: page, note"
    assert world.broken(published=table.select(table.column_names[::-1])) == {"shape"}
    twice = pa.Table.from_arrays([table.column(0), *table.columns], ["page", *table.column_names])
    assert "there twice: page" in world.report(published=twice)["shape"].detail


@pytest.mark.parametrize(
    ("attribute", "labels"),
    [
        ("food", ["*", "CANARY"]),
        ("age", ["[0, 10]", "[5, 15)", "[00, 10)", "CANARY", "[x, 1)", "[inf, inf)"]),
        ("cell", ["45.0,7.0/1000", "CANARY", "x,y/1000"]),
    ],
)
def test_labels_that_no_domain_has(world: CellWorld, attribute: str, labels: list[str]) -> None:
    for label in labels:
        world.published[0][attribute] = label
        assert "shape" in world.broken(trace=False), label


def test_labels_that_are_numbers_are_no_labels(world: CellWorld) -> None:
    for row in world.published:
        row["age"] = None if row["age"] is None else 20.0
    assert "shape" in world.broken(trace=False)


def test_columns_that_nobody_asked_for(world: CellWorld) -> None:
    for name in ("who", "at", "lat", "pseudonym", "time"):
        table = world.table().append_column(name, pa.array(["x"] * len(world.published)))
        assert world.broken(published=table) == {"secrecy"}
    assert world.broken(published=world.table().replace_schema_metadata({"a": "b"})) == {"secrecy"}


def test_the_subject_under_another_name(world: CellWorld) -> None:
    for line in world.trace:
        if line["seq"] is not None:
            world.published[line["seq"]]["note"] = line["subject"]
    assert "secrecy" in world.broken()


# -- pseudonyms ------------------------------------------------------------------------------------


def no_pseudonym(world: CellWorld) -> None:
    world.published[0]["pseudonym"] = None


def in_clear(world: CellWorld) -> None:
    cell = world.cells("group")[0]
    world.published[cell["seq"]]["pseudonym"] = cell["subject"]


def two_for_one(world: CellWorld) -> None:
    world.published[-1]["pseudonym"] = "new"


def one_for_two(world: CellWorld) -> None:
    for row in world.published:
        row["pseudonym"] = row["pseudonym"][0] + "61"


def across_periods(world: CellWorld) -> None:
    for row in world.published:
        row["pseudonym"] = "a" + row["pseudonym"][1:]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (no_pseudonym, "no pseudonym"),
        (in_clear, "what a subject is called"),
        (two_for_one, "more than one pseudonym"),
        (one_for_two, "several subjects"),
        (across_periods, "more than one period"),
    ],
)
def test_pseudonyms_that_tell_more(world: CellWorld, change: Change, words: str) -> None:
    world.settings = {"pseudonym": True, "rotate": 20.0}
    world.run()
    change(world)
    report = world.report()
    assert world.broken() == {"pseudonyms"}
    assert words in report["pseudonyms"].detail


def test_a_column_of_pseudonyms_that_is_not_there(world: CellWorld) -> None:
    report = world.report(pseudonym=True, rotate=20.0)
    assert report["shape"].verdict == "broken"
    assert report["pseudonyms"].verdict == "unverifiable"
