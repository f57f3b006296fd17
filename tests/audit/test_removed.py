"""A trace without its oldest files: what they told is unverifiable, and all else is judged."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.audit import Part, Report, audit_parts
from shoal.spec.policy import Policy
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


def test_a_group_that_is_too_small_is_broken_by_the_lines_that_are_left() -> None:
    made = cut(3)
    made.line(3)["subject"] = made.line(4)["subject"]
    found = report(made, [2])
    assert found["k-anonymity"].verdict == found["cover"].verdict == "broken"
    # Where rows leave in the order of their arrival, a group may have lines in a removed file.
    found = report(made, [2], order="arrival")
    assert found["k-anonymity"].verdict == "unverifiable"


@pytest.mark.parametrize(("row", "what"), [(4, "published rows after them"), (8, "that arrived")])
def test_a_line_that_is_lost_isnt_removed(row: int, what: str) -> None:
    made = cut(3)
    made.trace = [line for line in made.trace if line["row"] != row]
    found = report(made, [2])["trace"]
    assert found.verdict == "broken"
    assert f"1 {'' if what.startswith('pub') else 'rows '}{what}" in found.detail


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
