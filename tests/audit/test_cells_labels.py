"""Labels that aren't true, columns that shouldn't be there, and pseudonyms that tell more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from shoal.policy import Policy, Window, ZAnonymity

from .cells_world import CellWorld, stream

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
