"""What stands behind a general label: neither who is public nor who soon may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from shoal.spec.ladder import Path
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from tests.audit.z.world import CellWorld, stream

Z = "z-anonymity"
SCHEMA = Schema(subject="who", quasi=[Quasi("area", Path("/", levels=2))], time="at")


def world_of(events: str, seconds: float, z: int = 3) -> CellWorld:
    """A run over events as "A Turin 5": who, where in Italy, when."""
    rows = []
    for event in events.split(","):
        who, town, at = event.split()
        rows.append({"who": who, "area": f"Italy/{town}", "at": float(at)})
    policy = Policy(ZAnonymity(z), window=Window(seconds=seconds))
    return CellWorld(schema=SCHEMA, policy=policy, original=rows).run()


def levels(world: CellWorld) -> list[Any]:
    return [line["level"] for line in world.trace]


def publish(world: CellWorld, row: int, level: int) -> None:
    """Change what became of a row that was hidden."""
    line = world.line(row, "area")
    seq = sum(one["seq"] is not None for one in world.trace[:row])
    for later in world.trace[row:]:
        later["seq"] = None if later["seq"] is None else later["seq"] + 1
    line |= {"outcome": "group", "level": level, "loss": level / 2, "seq": seq}
    label = world.original[row]["area"].split("/")
    world.published.insert(seq, {"area": "/".join(label[: 2 - level])})


@pytest.mark.parametrize(
    ("events", "seconds"),
    [
        # B and C were shown with Turin: behind Italy is D alone.
        ("A Turin 0, B Turin 5, C Turin 6, B Turin 7, D Aosta 11, E Turin 12", 10),
        # One more would make Turin public, and E does: Italy would tell that D isn't there.
        ("B Turin 5, C Turin 6, D Aosta 11, E Turin 12", 20),
    ],
)
def test_a_general_label_would_tell_where_somebody_is_not(events: str, seconds: float) -> None:
    world = world_of(events, seconds)
    row = events.split(", ").index("D Aosta 11")
    assert world.line(row, "area")["outcome"] == "suppressed"
    assert world.report().verdict == "kept"
    publish(world, row, level=1)
    assert world.broken() == {Z}
    assert world.report()[Z].figures["smallest"] == 1


def test_a_general_label_for_those_who_are_neither_public_nor_nearly_so() -> None:
    world = world_of("A Turin 0, B Aosta 1, C Asti 2", 10)
    assert levels(world) == [None, None, 1]
    assert world.report().verdict == "kept"
    assert world.report()[Z].figures["n_level_1"] == 1


def test_who_was_shown_and_comes_again_after_leaving_is_new() -> None:
    shown = "A Turin 0, B Turin 1, C Turin 2, "
    again = "C Turin 20, B Aosta 21, A Asti 22"
    assert levels(world_of(shown + again, 10)) == [None, None, 0, None, None, 1]
    # It renews what it has exposed, and stays shown.
    again = "C Turin 11, C Turin 20, B Aosta 21, A Asti 22"
    world = world_of(shown + again, 10)
    assert levels(world) == [None, None, 0, None, None, None, None]
    assert world.report().verdict == "kept"


def test_with_two_no_general_label_is_ever_published() -> None:
    world = CellWorld(policy=Policy(ZAnonymity(2), window=Window(rows=9)), original=stream(6)).run()
    assert {line["level"] for line in world.trace} == {None, 0}
    assert world.report().verdict == "kept"


def test_with_one_everything_is_public() -> None:
    world = CellWorld(policy=Policy(ZAnonymity(1), window=Window(rows=9)), original=stream(6)).run()
    assert {line["level"] for line in world.trace} == {0}
    assert world.report().verdict == "kept"


def test_what_is_coarser_than_it_must_be_is_reported() -> None:
    world = world_of("A Turin 0, B Turin 1, C Turin 2", 10)
    assert levels(world) == [None, None, 0]
    world.line(2, "area")["level"] = 1
    world.published[0]["area"] = "Italy"
    found = world.report()[Z]
    assert found.verdict == "kept"
    assert "1 of them could have been finer" in found.detail
    assert (found.figures["n_coarser"], found.figures["n_hidden_more"]) == (1, 0)


def test_marks_follow_what_was_really_published() -> None:
    """C is published as Italy though Turin is public, so that it still hides others."""
    events = "A Turin 0, B Turin 1, C Turin 2, C Turin 11, E Aosta 12, F Asti 12.5"
    world = world_of(events, 10)
    assert levels(world) == [None, None, 0, None, None, None]
    world.line(2, "area")["level"] = 1
    world.published[0]["area"] = "Italy"
    found = world.report()[Z]
    assert (found.verdict, found.figures["n_hidden_more"]) == ("kept", 1)
    publish(world, 5, level=1)
    assert world.report()[Z].figures["n_hidden_more"] == 0


@dataclass(frozen=True)
class Stricter(ZAnonymity):
    """A criterion that the audit doesn't know."""

    name: ClassVar[str] = "stricter z"


def test_a_class_of_ones_own_is_unverifiable() -> None:
    world = world_of("A Turin 0, B Turin 1, C Turin 2", 10, z=2)
    world.policy = Policy(Stricter(2), window=Window(seconds=10))
    report = world.report()
    assert report[Z].verdict == "kept"
    assert report["stricter z"].verdict == report.verdict == "unverifiable"
