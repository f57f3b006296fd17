"""A trace without its oldest files: what they told is unverifiable, and all else is judged."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.audit import Part, Report, audit_parts
from shoal.spec.policy import Delay, Policy
from tests.audit.world import World, world


def report(made: World, numbers: list[int], **options: object) -> Report:
    """The audit with a trace of files with these numbers."""
    part = Part(
        Policy(*made.criteria, delay=made.delay),
        {"numeric": "range", "suppressed": "drop", "order": "released"} | options,
    )
    return audit_parts(
        made.schema,
        [part],
        pa.Table.from_pylist(made.published),
        trace=pa.Table.from_pylist(made.trace, schema=pa.Table.from_pylist(world().trace).schema),
        original=pa.Table.from_pylist(made.original),
        numbers=numbers,
    )


def cut(moment: int) -> World:
    """The hand-made run, without the lines of what was decided before a moment."""
    made = world()
    made.trace = [line for line in made.trace if (line["published"] or 99) >= moment]
    return made


@pytest.mark.parametrize("order", ["released", "arrival", None])
@pytest.mark.parametrize("moment", [3, 7, 8, 11])
def test_whatever_was_removed_breaks_nothing(moment: int, order: str | None) -> None:
    made = cut(moment)
    assert report(made, [4, 5], order=order).verdict == "unverifiable"
    assert report(made, [1, 2], order=order).verdict == "broken"


def test_a_reuse_of_a_group_whose_lines_were_removed_isnt_judged() -> None:
    found = report(cut(3), [2])
    assert "0 reuses join such a group" in found["grouping"].detail
    assert "of 4 published rows" in found["grouping"].detail


@pytest.mark.parametrize("order", ["released", "arrival", None])
def test_rows_that_join_a_group_without_lines_are_judged_as_rows(order: str | None) -> None:
    """Row 5 joins group 0, whose lines were removed."""
    made = cut(3)
    made.delay = Delay(rows=2)
    made.line(5)["published"] = 8
    assert report(made, [2], order=order)["delay"].verdict == "broken"
    made = cut(3)
    made.published[made.line(5)["seq"]].update(age="[40, 50]", city="Rome")
    found = report(made, [2], order=order)["cover"]
    assert found.verdict == "broken"
    assert "of 5 published rows" in found.detail


def test_lines_that_come_after_the_last_one_arent_lost() -> None:
    made = cut(3)
    for row in (9, 10):
        made.trace.remove(made.line(row))
    made.delay = None
    found = report(made, [2])["trace"]
    assert found.verdict == "unverifiable"
    assert found.detail.endswith("otherwise somebody has added them")
    assert "the last 2 rows of the output" in found.detail


def test_a_group_that_is_too_small_is_broken_by_the_lines_that_are_left() -> None:
    made = cut(3)
    made.line(3)["subject"] = made.line(4)["subject"]
    found = report(made, [2])
    assert found["k-anonymity"].verdict == found["cover"].verdict == "broken"
    # Where rows leave in the order of their arrival, a group may have lines in a removed file.
    found = report(made, [2], order="arrival")
    assert found["k-anonymity"].verdict == "unverifiable"


def test_a_line_of_a_published_row_that_is_lost_isnt_removed() -> None:
    made = cut(3)
    made.trace.remove(made.line(4))
    found = report(made, [2])["trace"]
    assert found.verdict == "broken"
    assert "1 published rows after them have no line" in found.detail


@pytest.mark.parametrize(("most_held", "is_broken"), [(1, True), (2, True), (3, False), (4, False)])
def test_a_line_of_another_row_that_is_lost_isnt_removed(most_held: int, is_broken: bool) -> None:
    made = cut(3)
    made.delay = Delay(rows=most_held)
    made.trace.remove(made.line(8))  # it was held at 7, and all is decided at 10
    found = report(made, [2])["trace"]
    said = "1 rows that arrived after them have no line, and aren't held any more"
    assert (said in found.detail) == (found.verdict == "broken") == is_broken


def test_a_reuse_in_a_job_that_keeps_no_groups_is_broken() -> None:
    found = report(cut(3), [2], reuse=False)["grouping"]
    assert found.verdict == "broken"
    assert "1 rows are called reuses, and the job keeps no group for reuse" in found.detail


def test_a_line_beyond_the_output_isnt_left_out() -> None:
    made = cut(3)
    made.published.pop()
    found = report(made, [2])["trace"]
    assert "1 lines are of published rows that the output doesn't have" in found.detail


def test_lines_that_are_twice_are_said() -> None:
    made = cut(3)
    made.trace.append(made.line(4))
    found = report(made, [2])["trace"]
    assert "1 lines are of a published row that another line is of" in found.detail
    assert "1 lines are of a row that another line is of" in found.detail


def test_a_trace_without_any_line_is_one_whose_lines_were_removed() -> None:
    made = world()
    made.trace = []
    found = report(made, [7])
    assert found.verdict == "unverifiable"
    assert found["trace"].figures == {"n_removed_files": 6, "n_removed_rows": 8}
