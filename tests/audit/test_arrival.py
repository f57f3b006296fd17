"""Times of arrival against the original, and shards against each other."""

from __future__ import annotations

import pytest

from shoal.audit.arrival import GROUP_STRIDE
from shoal.spec.policy import Delay
from tests.audit.world import World


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
