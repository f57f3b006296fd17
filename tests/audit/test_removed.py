"""A trace without its oldest files: what they told is unverifiable, and all else is judged."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.audit import Part, Report, audit_parts
from shoal.audit.removed import Rest, lost_files, rest_of
from shoal.errors import ParameterError
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


def rest(made: World, numbers: list[int], most_held: int | None = None) -> Rest | None:
    """What is left of a trace of files with these numbers."""
    tables = pa.Table.from_pylist(made.published), pa.Table.from_pylist(made.trace)
    return rest_of(*tables, numbers, most_held=most_held)


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
    assert found["trace"].detail.endswith("the lines of the first 8 published rows")


@pytest.mark.parametrize("numbers", [[], [1], [1, 2]])
def test_a_trace_with_its_first_file_is_no_rest(numbers: list[int]) -> None:
    assert rest(world(), numbers) is None


def test_a_rest_with_lines_of_all_published_rows_is_judged_by_them_all() -> None:
    """The removed file had lines of other rows only."""
    found = report(world(), [2])
    assert found.verdict == "unverifiable"
    assert found["trace"].figures == {"n_removed_files": 1, "n_removed_rows": 0}
    assert found["trace"].detail.endswith("the lines of the first 0 published rows")
    assert "by the lines that are left, of 8 published rows" in found["cover"].detail
    whole = rest(world(), [2])
    assert whole is not None and whole.rows is not None
    assert whole.rows[1]["seq"].to_pylist() == [*range(8), None, None, None]


def test_a_rest_without_published_rows_is_judged_by_itself() -> None:
    made = world()
    made.trace = [made.line(row) for row in (6, 7, 8)]
    found = rest(made, [2])
    assert found is not None
    assert (found.first, found.rows, found.groups) == (8, None, None)
    assert found.verdict.verdict == "unverifiable"


def test_places_that_no_published_row_has_are_counted() -> None:
    """The one right behind the last row, and one far from it."""
    made = cut(3)
    made.line(9)["seq"], made.line(10)["seq"] = 8, 20
    found = rest(made, [2])
    assert found is not None and found.rows is not None
    assert "2 lines are of published rows that the output doesn't have" in found.verdict.detail
    assert "2 published rows after them have no line, though later" in found.verdict.detail
    assert found.rows[1]["seq"].to_pylist() == [0, 1, 2, 5, 5, None, None, None]


def test_a_diversity_that_is_too_small_is_broken_by_the_lines_that_are_left() -> None:
    made = cut(3)
    made.shown(3)["disease"] = made.shown(4)["disease"]
    assert report(made, [2])["distinct l-diversity of disease"].verdict == "broken"


def test_lines_of_the_first_row_that_are_twice_are_said() -> None:
    made = world()
    made.trace.append(made.line(0) | {"seq": None})
    found = report(made, [2])["trace"]
    assert found.detail.endswith("1 lines are of a row that another line is of")


@pytest.mark.parametrize("split", [True, False])
def test_a_row_that_is_lost_in_one_of_several_shards_may_be_held(split: bool) -> None:
    made = cut(3)
    made.trace.remove(made.line(8))
    for line in made.trace if split else ():
        line["shard"] = 0
    found = rest(made, [2], 2)
    assert found is not None
    assert found.verdict.verdict == ("unverifiable" if split else "broken")


@pytest.mark.parametrize(
    ("moments", "most_held", "n_lost"),
    [
        ([(0, 0), (5, 5)], 1, 3),
        ([(0, 1), (5, 5)], 1, 2),
        ([(2, 2), (5, 9)], 3, 2),
        ([(2, 2), (5, 6)], 1, 2),
        ([(2, 2), (5, 6)], 2, 1),
        ([(2, 2), (5, 6)], 3, 0),
        ([(2, 2), (5, 6)], 9, 0),
    ],
)
def test_rows_between_the_first_decision_and_the_due_ones_have_lines(
    moments: list[tuple[int, int]], most_held: int, n_lost: int
) -> None:
    made = world()
    made.trace = [made.line(7)]
    for row, (arrived, published) in enumerate(moments):
        made.trace.append(
            world().line(6) | {"row": row, "arrived": arrived, "published": published}
        )
    found = rest(made, [2], most_held)
    assert found is not None
    said = f"{n_lost} rows that arrived after them have no line, and aren't held any more"
    assert (said in found.verdict.detail) == (n_lost > 0) == (found.verdict.verdict == "broken")


def test_a_reuse_of_a_group_whose_lines_are_left_is_judged() -> None:
    made = cut(3)
    made.append(made.shown(3), group=1, outcome="reuse", arrived=10, published=10)
    found = report(made, [2])["grouping"]
    assert found.verdict == "unverifiable"
    assert "of 5 published rows" in found.detail
    assert "1 reuses join such a group" in found.detail
    made.line(11)["published"] = 5
    found = report(made, [2])["grouping"]
    assert found.verdict == "broken"
    assert "1 reuses join a group before it was released" in found.detail


@pytest.mark.parametrize("reuse", [True, None])
def test_a_reuse_of_a_removed_group_is_excused_where_rows_may_join(reuse: bool | None) -> None:
    assert report(cut(3), [2], reuse=reuse)["grouping"].verdict == "unverifiable"


def test_a_reuse_without_a_group_joins_none_that_was_removed() -> None:
    made = cut(3)
    made.line(5)["group"] = None
    found = report(made, [2])["grouping"]
    assert found.verdict == "broken"
    assert "1 published rows have no group" in found.detail


def test_lines_about_a_change_of_the_job_are_of_no_row() -> None:
    made = cut(3)
    made.trace.insert(2, made.line(4) | {"outcome": "changed {}"})
    assert report(made, [2]).verdict == "unverifiable"


@pytest.mark.parametrize("name", ["seq", "outcome"])
def test_a_rest_without_a_column_is_refused(name: str) -> None:
    made = cut(3)
    for line in made.trace:
        del line[name]
    with pytest.raises(ParameterError, match=f"lacks the columns {name}"):
        rest(made, [2])


@pytest.mark.parametrize(
    ("numbers", "said", "n"),
    [
        ([4, 2], "file 3, though it has files before and after it: bring it back", 1),
        ([1, 9, 4, 5], "files 2–3, 6–8, though it has files before and after them: bring", 5),
    ],
)
def test_files_between_others_are_lost(numbers: list[int], said: str, n: int) -> None:
    found = lost_files(numbers)
    assert found is not None
    assert said in found.detail
    assert found.figures == {"n_lost_files": n}
    assert lost_files([2, 3, 4]) is None
