"""A job that was stopped and goes on later: the rows that it holds have no line yet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from shoal.audit.arrival import GROUP_STRIDE
from shoal.spec.policy import Delay
from tests.audit.world import World

MAY_BE_HELD = "1 rows have no line in the trace: if the job was stopped without --drain it holds"
LOST = "1 rows have no line in the trace"


@pytest.fixture
def stopped(world: World) -> World:
    """Row 8 is held, and row 11 isn't read."""
    world.options["may_hold"] = True
    world.trace.remove(world.line(8))
    return world


def shard(w: World) -> None:
    """As one of several shards decides it."""
    for line in w.trace:
        line["shard"] = 0
        if line["group"] is not None:
            line["group"] *= GROUP_STRIDE


@pytest.mark.parametrize("with_rows", [True, False])
@pytest.mark.parametrize("split", [True, False])
def test_a_row_that_may_be_held_is_neither_lost_nor_proved(
    stopped: World, with_rows: bool, split: bool
) -> None:
    if split:
        shard(stopped)
    report = stopped.report(original=with_rows)
    assert report["conservation"].verdict == "unverifiable"
    assert report["conservation"].detail.startswith(MAY_BE_HELD)
    assert report["conservation"].figures["n_without_line"] == 1
    assert stopped.broken(original=with_rows) == set()
    assert [v.name for v in report.verdicts if v.verdict == "unverifiable" and with_rows] in (
        [],
        ["conservation"],
    )


@pytest.mark.parametrize("numbered", [True, False])
def test_what_comes_after_the_last_line_may_not_have_been_read(
    world: World, numbered: bool
) -> None:
    world.original += [dict(world.original[0], person=f"late{i}") for i in range(20)]
    if numbered:
        world.options["original_rows"] = np.arange(len(world.original))
    assert world.report()["conservation"].verdict == "broken"
    world.options["may_hold"] = True
    found = world.report()["conservation"]
    assert (found.verdict, found.figures["n_without_line"]) == ("unverifiable", 20)


@pytest.mark.parametrize(("told", "verdict"), [(90.0, "kept"), (95.0, "kept"), (96.0, "broken")])
def test_a_held_row_may_have_had_the_latest_time(stopped: World, told: float, verdict: str) -> None:
    stopped.delay = None
    stopped.original[8]["at"] = 95.0
    stopped.line(10)["arrived_s"] = told
    assert stopped.report()["arrival"].verdict == verdict


@pytest.mark.parametrize("row", [7, 9])
def test_a_quarantined_or_a_later_row_has_not(stopped: World, row: int) -> None:
    stopped.delay = None
    stopped.original[row]["at"] = 200.0
    stopped.line(9 if row == 7 else 4)["arrived_s"] = 200.0
    assert "arrival" in stopped.broken()


def test_a_job_that_has_ended_has_lost_it(stopped: World) -> None:
    stopped.options["may_hold"] = False
    assert LOST in stopped.report()["conservation"].detail
    assert stopped.broken() == {"conservation"}


def test_a_job_that_holds_nothing_is_whole(world: World) -> None:
    world.options["may_hold"] = True
    assert world.report().verdict == "kept"


@pytest.mark.parametrize(("rows", "verdict"), [(3, "unverifiable"), (2, "broken")])
def test_what_was_due_is_lost(stopped: World, rows: int, verdict: str) -> None:
    """Row 8 was the eighth to arrive, three before the last decision."""
    stopped.delay = Delay(rows=rows)
    found = stopped.report()["conservation"]
    assert found.verdict == verdict
    assert found.detail.startswith(MAY_BE_HELD if verdict == "unverifiable" else LOST)


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize(("seconds", "lost"), [(20.0, False), (19.0, True), (20.0 - 1e-12, False)])
def test_a_delay_in_seconds_counts_from_the_next_row(
    stopped: World, seconds: float, lost: bool, split: bool
) -> None:
    """Row 9 came at second 80, so row 8 before that; the last decision was at second 100."""
    if split:
        shard(stopped)
    stopped.delay = Delay(seconds=seconds)
    found = stopped.report()["conservation"]
    assert found.detail.startswith(LOST + ("" if lost else ": if"))
    assert (found.verdict == "broken") == lost


def test_large_times_may_be_off_by_their_last_place(stopped: World) -> None:
    for line in stopped.trace:
        for name in ("arrived_s", "published_s"):
            line[name] = None if line[name] is None else line[name] + 1.7e9
    stopped.delay = Delay(seconds=20.0)
    assert stopped.report()["conservation"].detail.startswith(MAY_BE_HELD)
    stopped.delay = Delay(seconds=20.0 - 1e-5)
    assert stopped.report()["conservation"].verdict == "broken"


@pytest.mark.parametrize("delay", [Delay(rows=2), Delay(seconds=19.0)])
def test_what_was_due_in_one_of_several_shards_is_lost(stopped: World, delay: Delay) -> None:
    shard(stopped)
    stopped.delay = delay
    assert stopped.report()["conservation"].detail.startswith(LOST)


@pytest.mark.parametrize("delay", [Delay(rows=2), Delay(seconds=19.0)])
def test_what_another_shard_has_reached_proves_nothing(stopped: World, delay: Delay) -> None:
    """Shard 0 holds row 8, and has decided row 9 at once; shard 1 has decided more since."""
    shard(stopped)
    stopped.line(9).update(arrived=7, published=8, published_s=80.0)
    for arrived, row in enumerate([6, 10]):
        stopped.line(row).update(shard=1, arrived=arrived)
    stopped.delay = delay
    found = stopped.report()["conservation"]
    assert found.verdict == "unverifiable"
    assert found.detail.startswith(MAY_BE_HELD)


def test_without_a_delay_nothing_is_due(stopped: World) -> None:
    stopped.delay = None
    stopped.trace.remove(stopped.line(6))
    found = stopped.report()["conservation"]
    assert (found.verdict, found.figures["n_without_line"]) == ("unverifiable", 2)


def test_all_that_was_due_is_counted(stopped: World) -> None:
    """Rows 5 to 8 arrived fifth to seventh; ten have arrived at the last decision."""
    stopped.delay = Delay(rows=4)
    stopped.trace.remove(stopped.line(6))
    stopped.trace.remove(stopped.line(5))
    found = stopped.report()["conservation"]
    assert "1 rows have no line in the trace;" in found.detail
    assert found.figures["n_without_line"] == 3


@pytest.mark.parametrize("may_hold", [True, False])
def test_a_trace_that_is_older_than_the_output_is_no_proof(world: World, may_hold: bool) -> None:
    world.options["may_hold"] = may_hold
    for row in (9, 10):
        world.trace.remove(world.line(row))
    found = world.report()["conservation"]
    assert found.verdict == ("unverifiable" if may_hold else "broken")
    assert ("the last 2 rows of the output have no line" in found.detail) == may_hold
    if may_hold:
        assert world.broken() == set()
        # Of rows before the last that has a line, all must have one.
        world.trace.remove(world.line(3))
        assert "conservation" in world.broken()


@pytest.mark.parametrize(("row", "n_open"), [(7, 10), (None, 11)])
def test_a_trace_without_a_published_row_is_older_than_all(
    world: World, row: int | None, n_open: int
) -> None:
    """Its only line is of a quarantined row, or of none."""
    world.trace = [world.line(7) | {"row": row}]
    found = world.report()["conservation"]
    assert (found.verdict, found.figures["n_without_line"]) == ("broken", 0 if row is None else 7)
    world.options["may_hold"] = True
    found = world.report()["conservation"]
    assert found.figures["n_without_line"] == n_open
    if row is None:
        assert found.detail == "1 lines of the trace have no row"
    else:
        assert found.detail.startswith("the last 8 rows of the output have no line in the trace")


def test_two_lines_of_one_row_are_found(world: World) -> None:
    world.trace.append(world.line(0))
    assert "1 rows have more than one line in the trace" in world.report()["conservation"].detail


def test_an_input_that_lacks_the_last_row_is_found(world: World) -> None:
    world.options["may_hold"] = True
    del world.original[10]
    assert "the input has 10 rows, the trace 11" in world.report()["conservation"].detail


def arrived_before_it(w: World) -> None:
    w.line(9)["arrived"] = 7


def arrived_later(w: World) -> None:
    w.line(10)["arrived"] = 12


def arrived_with_another(w: World) -> None:
    w.line(10)["arrived"] = 8


def quarantined_without_a_line(w: World) -> None:
    """It never arrived, so it can't be held."""
    w.trace.remove(w.line(7))


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize(
    "change",
    [arrived_before_it, arrived_later, arrived_with_another, quarantined_without_a_line],
)
def test_the_others_have_arrived_as_if_it_was_there(
    stopped: World, change: Callable[[World], None], split: bool
) -> None:
    if split:
        shard(stopped)
    change(stopped)
    # In which shard a row is held isn't known, nor whether any is.
    known = not split or change in (arrived_later, arrived_with_another)
    assert ("conservation" in stopped.broken()) == known


def test_a_line_whose_row_is_far_beyond_all_others_is_no_gap_to_fill(stopped: World) -> None:
    stopped.line(10)["row"] = 1 << 60
    assert "conservation" in stopped.broken(original=False)
