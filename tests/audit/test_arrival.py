"""Times of arrival against the original, and shards against each other."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.audit.arrival import GROUP_STRIDE
from shoal.spark import shard_io
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay
from shoal.spec.schema import Quasi, Schema
from tests.audit.world import SCHEMA, World


def test_a_row_that_came_late_arrived_at_the_latest_time_before_it(world: World) -> None:
    world.original[4]["at"] = 5.0
    assert world.broken() == {"arrival"}
    world.line(4)["arrived_s"] = 30.0
    assert world.broken() == set()


@pytest.mark.parametrize("shift", [-10.0, -0.001, 0.001, 1e9])
def test_another_time_of_arrival_is_found(world: World, shift: float) -> None:
    world.line(8)["arrived_s"] += shift
    world.delay = None
    verdict = world.report()["arrival"]
    assert verdict.verdict == "broken"
    assert "1 rows have another time of arrival than the original" in verdict.detail
    assert verdict.figures == {"n_mistimed": 1, "n_compared": 10}


def test_times_by_the_clock_of_the_wall_are_in_no_file(world: World) -> None:
    world.line(8)["arrived_s"] += 1.0
    world.delay = Delay(rows=4, seconds=40.0, clock="wall")
    report = world.report()
    assert "arrival" not in {verdict.name for verdict in report.verdicts}
    assert report.verdict == "kept"


def test_a_trace_without_times_proves_nothing(world: World) -> None:
    world.line(8)["arrived_s"] = None
    assert world.report()["arrival"].verdict == "unverifiable"


def test_shards_that_share_a_part_of_the_space_are_found(world: World) -> None:
    """Rows are said to be in two shards by turns, with all counts right."""
    world.delay = None
    counts = [0, 0]
    for line in sorted(world.trace, key=lambda line: line["row"]):
        shard = line["row"] % 2
        line["shard"] = shard
        if line["arrived"] is not None:
            line["arrived"] = counts[shard]
            counts[shard] += 1
        if line["group"] is not None:
            line["group"] = line["group"] * GROUP_STRIDE + shard
    verdict = world.report()["arrival"]
    assert verdict.verdict == "broken"
    assert verdict.detail == "1 pairs of shards share a part of the space of values"


def test_shards_after_other_cuts_may_share_a_part_of_the_space(world: World) -> None:
    """All rows of the one came before all rows of the other."""
    world.delay = None
    for line in world.trace:
        line["shard"] = int(line["row"] > 5)
        if line["group"] is not None:
            line["group"] = line["group"] * GROUP_STRIDE + line["shard"]
    assert world.report()["arrival"].verdict == "kept"


def in_shards(world: World, *shards: int) -> None:
    """Decide each row of the input in one of these shards, by turns."""
    for line in world.trace:
        line["shard"] = shards[line["row"] % len(shards)]


def test_what_is_kept_is_said_of_times_and_of_shards(world: World) -> None:
    times = "each of 10 rows arrived at the time that the original has"
    assert world.report()["arrival"].detail == times
    for line in world.trace:
        line["shard"] = int(line["row"] > 5)
        if line["group"] is not None:
            line["group"] = line["group"] * GROUP_STRIDE + line["shard"]
    verdict = world.report()["arrival"]
    assert verdict.detail == f"{times}; 2 shards have rows and groups of their own"


@pytest.mark.parametrize("may_hold", [False, True])
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize(("since", "n_wrong"), [(25.0, 3), (-5.0, 0)])
def test_times_go_on_from_the_latest_of_the_rows_before(
    world: World, sharded: bool, since: float, n_wrong: int, may_hold: bool
) -> None:
    """Rows 0 to 2 came at 0, 10 and 20 seconds, after a row of 25 seconds they came late."""
    world.options["may_hold"] = may_hold
    if sharded:
        in_shards(world, 0, 1)
    world.options["since"] = since
    assert world.report()["arrival"].figures["n_mistimed"] == n_wrong
    for line in world.trace:
        if line["arrived_s"] is not None:
            line["arrived_s"] = max(since, line["arrived_s"])
    assert world.report()["arrival"].figures["n_mistimed"] == 0


def test_with_three_shards_a_time_may_lie_behind_that_of_either_other(world: World) -> None:
    """Rows 3 and 4, each the second of its shard, came late; the times are those of the shard."""
    in_shards(world, 0, 1, 2)
    for row, at in ((3, 4.0), (4, 14.0)):
        world.original[row]["at"] = world.line(row)["arrived_s"] = at
    assert world.report()["arrival"].figures["n_mistimed"] == 0
    world.line(4)["arrived_s"] = 9.0
    assert world.report()["arrival"].figures["n_mistimed"] == 1


@pytest.mark.parametrize(("n", "verdict"), [(1, "kept"), (2, "broken")])
@pytest.mark.parametrize("towards", [-np.inf, np.inf])
def test_the_last_bit_of_a_large_time_is_no_other_time(
    world: World, n: int, towards: float, verdict: str
) -> None:
    """Milliseconds since 1970, taken for seconds, have larger last places than the slack."""
    for table, name in ((world.trace, "arrived_s"), (world.original, "at")):
        for row in table:
            if row[name] is not None:
                row[name] += 1.7e12
    for _ in range(n):
        line = world.line(10)
        line["arrived_s"] = float(np.nextafter(line["arrived_s"], towards))
    assert world.report()["arrival"].verdict == verdict


def test_without_the_original_shards_arent_compared_by_values(world: World) -> None:
    in_shards(world, 0, 1)
    for line in world.trace:
        if line["group"] is not None:
            line["group"] = line["group"] * GROUP_STRIDE + line["shard"]
    verdict = world.report(original=False)["arrival"]
    assert verdict.verdict == "unverifiable"
    assert verdict.figures["n_mixed_shards"] == 0


def test_groups_are_numbered_as_the_shards_of_spark_do() -> None:
    """The audit shares no code with what it judges, so it has the number a second time."""
    assert GROUP_STRIDE == shard_io.GROUP_STRIDE


def n_mixed(world: World) -> object:
    return world.report()["arrival"].figures["n_mixed_shards"]


def test_a_quarantined_row_is_in_no_part_of_the_space(world: World) -> None:
    """Its values are those of the north, but it was set aside before any shard saw it."""
    for line in world.trace:
        line["shard"] = int(world.original[line["row"]]["city"] in ("Rome", "Bari"))
    assert n_mixed(world) == 0
    world.original[7].update(age="21", city="Oslo")
    assert n_mixed(world) == 0
    world.line(7)["outcome"] = "held"
    assert n_mixed(world) == 1


@pytest.mark.parametrize(("youngest", "expected"), [(41, 0), (40, 1)])
@pytest.mark.parametrize("shards", [(0, 1), (1, 0)])
def test_shards_that_share_one_value_alone_are_found(
    world: World, youngest: int, shards: tuple[int, int], expected: int
) -> None:
    """A cut leaves each value on one side; those of one side are at most 40 years old."""
    in_shards(world, *shards)
    for row, values in enumerate(world.original):
        values.update(city="Oslo", age=youngest + row - 1 if row % 2 else 40 - row)
    assert n_mixed(world) == expected


def test_values_that_two_programs_may_read_differently_put_no_shard_anywhere(world: World) -> None:
    """Categories that are numbers, and times that are text."""
    in_shards(world, 0, 1)
    assert n_mixed(world) == 1
    number = Quasi("visits", Hierarchy.flat([str(one) for one in range(1, 12)]))
    moment = Quasi("at", Range(0, 1000))
    for row in world.original:
        row["at"] = f"1970-01-01T00:00:{row['at'] / 10:02.0f}"
    for quasi, expected in ((number, 0), (moment, 0), (None, 1)):
        world.schema = Schema(
            "person",
            [*SCHEMA.quasi, *([] if quasi is None else [quasi])],
            sensitive=SCHEMA.sensitive,
            time="at",
        )
        assert n_mixed(world) == expected
