"""The trace of several shards: each counts its own rows and keeps the promise by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shoal.audit.arrival import GROUP_STRIDE
from shoal.spec.policy import Delay
from tests.audit.world import World

#: The north is one shard, the south another; row 7 is quarantined.
NORTH, SOUTH = (0, 1, 2, 5, 8), (3, 4, 6, 9, 10)
ROME = {"age": "[40, 50]", "city": "Rome"}


@pytest.fixture
def shards(world: World) -> World:
    """The run as two shards would have decided it; groups are numbered over both."""
    for line in world.trace:
        line["shard"] = 0 if line["row"] in NORTH else 1
        if line["group"] is not None:
            line["group"] = {0: 0, 1: 1, 2: GROUP_STRIDE + 1}[line["group"]]
    count_anew(world)
    return world


def count_anew(w: World) -> None:
    """Count the rows that arrived in each shard, and let each row wait as it did."""
    for shard in (0, 1):
        lines = [x for x in w.trace if x["shard"] == shard and x["outcome"] != "quarantined"]
        place = {x["row"]: i for i, x in enumerate(sorted(lines, key=lambda x: x["row"]))}
        # What was decided when a row came, or at the end.
        moments = {x["arrived"]: place[x["row"]] for x in lines}
        for line in lines:
            line["arrived"] = place[line["row"]]
            if line["published"] is not None:
                earlier = [at for moment, at in moments.items() if moment <= line["published"]]
                line["published"] = max(earlier)


def resume(w: World, shard: int, n: int) -> None:
    """A shard decides this many rows more, at once."""
    for _ in range(n):
        arrived = sum(x["shard"] == shard and x["arrived"] is not None for x in w.trace)
        second = 10.0 * len(w.trace)
        box, group = ({}, 0) if shard == 0 else (ROME, 1)
        w.append(
            box, outcome="reuse", group=group, shard=shard, arrived=arrived, published=arrived,
            arrived_s=second, published_s=second,
        )  # fmt: skip
        w.original[-1].update(age="45" if shard else "21", city="Rome" if shard else "Oslo")


def test_a_run_of_two_shards_keeps_its_promises(shards: World) -> None:
    report = shards.report()
    assert report.verdict == "kept"
    assert "4 rows of its shard or 40.0 seconds" in report["delay"].detail
    arrived = [[shards.line(row)["arrived"] for row in part] for part in (NORTH, SOUTH)]
    assert arrived == [[0, 1, 2, 3, 4]] * 2


def test_without_the_column_the_same_trace_is_wrong(shards: World) -> None:
    for line in shards.trace:
        del line["shard"]
    verdict = shards.report()["conservation"]
    assert verdict.verdict == "broken"
    assert verdict.detail.endswith("lines have a wrong position of arrival")


def test_one_shard_is_a_run_on_its_own(world: World) -> None:
    for line in world.trace:
        line["shard"] = 3
        if line["group"] is not None:
            line["group"] = line["group"] * GROUP_STRIDE + 3
    assert world.report().verdict == "kept"
    assert "shard" not in world.report()["delay"].detail


@pytest.mark.parametrize("delay", [Delay(rows=4), Delay(seconds=40.0)])
def test_what_another_shard_has_reached_proves_nothing(shards: World, delay: Delay) -> None:
    """Row 8 is held in the north; the south alone goes on beyond all it may wait for."""
    shards.delay = delay
    resume(shards, 1, 6)
    assert shards.report().verdict == "kept"
    resume(shards, 0, 6)
    assert shards.broken() == {"delay"}


# -- one thing wrong at a time ---------------------------------------------------------------------


def late_in_its_shard(w: World) -> None:
    """Row 3 waited for five rows of its own shard; the limit is 4."""
    resume(w, 1, 1)
    for row in (3, 4):
        w.line(row)["published"] = 5
    w.delay = Delay(rows=4)


def held_too_long_in_its_shard(w: World) -> None:
    resume(w, 0, 5)
    w.delay = Delay(rows=4)


def counted_over_all_shards(w: World) -> None:
    """As if the rows of the other shard had gone by, too: what is late by that may not be."""
    w.line(8)["arrived"] = 7


def said_to_be_in_another_shard(w: World) -> None:
    w.line(6)["shard"] = 0


def in_no_shard(w: World) -> None:
    resume(w, 1, 1)
    w.trace[-1].update(shard=None, arrived=0, published=0, outcome="suppressed", group=None)
    w.trace[-1]["seq"] = None
    w.published.pop()


def lost_in_a_shard(w: World) -> None:
    w.trace.remove(w.line(6))


def last_row_of_a_shard_lost(w: World) -> None:
    """The arrivals of its shard have no gap; the rows of the input have."""
    w.trace.remove(w.line(8))


def a_group_of_two_shards(w: World) -> None:
    """One person in each of them: k was met in neither."""
    w.line(4)["shard"] = 0
    count_anew(w)
    moment = min(w.line(row)["published"] for row in (3, 4))
    for row in (3, 4):
        w.line(row)["published"] = max(moment, w.line(row)["arrived"])
    w.delay = None


def groups_numbered_alike(w: World) -> None:
    """Each shard has its own group 1, and they aren't one."""
    for row in (9, 10):
        w.line(row)["group"] = 0


def a_reuse_of_another_shard(w: World) -> None:
    resume(w, 1, 1)
    w.published[-1].update(age="[20, 30]", city="North")
    w.original[-1].update(age="21", city="Oslo")
    w.trace[-1]["group"] = 0


#: What else is wrong with some of them: rows leave in another order, or their values or the numbers
#: of their groups are those of another shard.
ALSO = {
    late_in_its_shard: {"order"},
    said_to_be_in_another_shard: {"arrival"},
    a_group_of_two_shards: {"arrival"},
    groups_numbered_alike: {"arrival"},
    a_reuse_of_another_shard: {"arrival"},
}
BREAKS: list[tuple[Callable[[World], None], str, str]] = [
    (late_in_its_shard, "delay", "1 rows were held for more than 4 rows (the longest for 5"),
    (held_too_long_in_its_shard, "delay", "1 rows were held for more than 4 rows"),
    (counted_over_all_shards, "conservation", "1 lines have a wrong position of arrival in their"),
    (said_to_be_in_another_shard, "conservation", "wrong position of arrival in their shard"),
    (in_no_shard, "conservation", "1 rows that arrived have no shard"),
    (lost_in_a_shard, "conservation", "1 rows have no line in the trace; 2 lines have a wrong"),
    (last_row_of_a_shard_lost, "conservation", "1 rows have no line in the trace"),
    (a_group_of_two_shards, "grouping", "1 groups are of more than one shard (groups 1)"),
    (groups_numbered_alike, "grouping", "1 groups are of more than one shard (groups 0)"),
    (a_reuse_of_another_shard, "grouping", "1 reuses join a group of another shard"),
]


@pytest.mark.parametrize(
    ("change", "promise", "reported"), BREAKS, ids=[change.__name__ for change, _, _ in BREAKS]
)
def test_each_break_is_found_and_nothing_else(
    shards: World, change: Callable[[World], None], promise: str, reported: str
) -> None:
    change(shards)
    assert shards.broken() == {promise} | ALSO.get(change, set())
    assert reported in shards.report()[promise].detail


@pytest.mark.parametrize(("told", "verdict"), [(15.0, "kept"), (14.0, "broken"), (21.0, "broken")])
def test_a_shard_has_a_latest_time_of_its_own(shards: World, told: float, verdict: str) -> None:
    """Row 3 is the first of the south; its time lies before those of the north."""
    shards.delay = None
    shards.original[3]["at"] = 15.0
    shards.line(3)["arrived_s"] = told
    assert shards.report()["arrival"].verdict == verdict


@pytest.mark.parametrize("column", ["age", "city"])
def test_a_row_without_a_value_puts_its_shard_nowhere(shards: World, column: str) -> None:
    shards.original[4][column] = None
    assert shards.report()["arrival"].figures["n_mixed_shards"] == 0
