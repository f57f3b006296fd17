"""What the audit says of each break, in whole: a verdict may have several reasons, and each counts.

`test_breaks` asks which promises are broken. A reason that is missing, or a wrong count, shows only
in the words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.audit.grouping import _named
from shoal.spec.criteria import BasicLikeness, KAnonymity
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Window
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.audit import test_breaks as breaks
from tests.audit.world import SCHEMA, World

SAID = [
    ("late_by_a_row", "delay", "1 rows were held for more than 4 rows (the longest for 5.0)"),
    (
        "late_by_a_second",
        "delay",
        "1 rows were held for more than 40.0 seconds (the longest for 41.0)",
    ),
    (
        "held_for_too_many_rows",
        "delay",
        "1 rows were held for more than 4 rows (the longest for 6.0)",
    ),
    (
        "held_for_too_many_seconds",
        "delay",
        "1 rows were held for more than 40.0 seconds (the longest for 60.0)",
    ),
    (
        "decided_before_it_came",
        "delay",
        "1 rows were decided before they arrived, by their rows",
    ),
    (
        "decided_before_its_time",
        "delay",
        "1 rows were decided before they arrived, by their seconds",
    ),
    ("no_moment", "delay", "1 decided rows have no moment of arrival or decision"),
    ("wrong_arrival", "conservation", "1 lines have a wrong position of arrival"),
    ("quarantined_but_arrived", "conservation", "1 lines have a wrong position of arrival"),
    (
        "two_rows_in_one_place",
        "conservation",
        "1 places in the output are those of several rows; "
        "the output has 8 rows, the trace tells of 9",
    ),
    ("a_place_of_nobody", "conservation", "1 places in the output are those of no row"),
    (
        "a_line_without_a_row",
        "conservation",
        "1 lines of the trace have no row; 11 lines have a wrong position of arrival; "
        "the input has 11 rows, the trace 12",
    ),
    ("doubled_in_the_output", "conservation", "the output has 9 rows, the trace tells of 8"),
    (
        "published_twice",
        "conservation",
        "1 rows have more than one line in the trace; 9 lines have a wrong position of arrival; "
        "the input has 11 rows, the trace 12",
    ),
    ("published_in_two_boxes", "cover", "1 rows were published with more than one box"),
    ("lost_from_the_output", "conservation", "the output has 8 rows, the trace tells of 9"),
    (
        "lost_from_the_trace",
        "conservation",
        "1 rows have no line in the trace; 3 lines have a wrong position of arrival; "
        "the input has 11 rows, the trace 10",
    ),
    ("lost_at_the_end", "conservation", "the input has 12 rows, the trace 11"),
    (
        "called_published_but_absent",
        "conservation",
        "1 rows are called published but have no place in the output",
    ),
    ("unknown_outcome", "conservation", "1 lines of the trace have no known outcome"),
    (
        "quarantined_in_the_output",
        "conservation",
        "1 quarantined or held rows have a place in the output; "
        "1 rows are called quarantined and nothing is wrong with them",
    ),
    ("other_quarantine", "conservation", "the quarantine has 2 rows, the trace tells of 1"),
    ("a_number_outside_its_box", "cover", "in 1 rows column age doesn't cover the original"),
    ("a_category_outside_its_box", "cover", "in 1 rows column city doesn't cover the original"),
    ("an_original_that_is_missing", "cover", "in 1 rows column city doesn't cover the original"),
    ("another_sensitive_value", "cover", "in 1 rows column disease isn't as in the original"),
    ("another_kept_value", "cover", "in 1 rows column visits isn't as in the original"),
    (
        "another_subject",
        "cover",
        "in 1 lines the trace names another subject than the original",
    ),
    (
        "reuse_in_another_box",
        "grouping",
        "1 reuses have another box than the group they join",
    ),
    ("reuse_of_no_group", "grouping", "1 reuses join a group that was never released"),
    ("reuse_before_its_group", "grouping", "1 reuses join a group before it was released"),
    ("a_group_with_two_boxes", "grouping", "1 groups have more than one box (groups 0)"),
    ("a_group_in_two_parts", "grouping", "1 groups were released in parts (groups 1)"),
    ("published_without_group", "grouping", "1 published rows have no group"),
    ("suppressed_with_group", "grouping", "1 rows that weren't published have a group"),
    ("suppressed_but_shown", "suppression", "1 suppressed rows are in the output"),
]

NEEDLESS = "1 of them, though enough others were held for a group"


def said(world: World, promise: str) -> str:
    (verdict,) = [v for v in world.report().verdicts if v.name == promise]
    return verdict.detail


@pytest.mark.parametrize(("change", "promise", "words"), SAID, ids=[one[0] for one in SAID])
def test_each_reason_is_said_and_no_other(
    world: World, change: str, promise: str, words: str
) -> None:
    getattr(breaks, change)(world)
    assert said(world, promise) == words


def show(world: World, row: dict[str, Any], place: int) -> None:
    """Publish the suppressed row."""
    world.published.insert(place, row)
    for line in world.trace:
        if line["seq"] is not None and line["seq"] >= place:
            line["seq"] += 1
    world.line(6)["seq"] = place


@pytest.mark.parametrize("arrived", [0, 1])
def test_a_quarantined_row_has_no_position_of_arrival_at_all(world: World, arrived: int) -> None:
    world.line(7)["arrived"] = arrived
    assert said(world, "conservation") == "1 lines have a wrong position of arrival"


@pytest.mark.parametrize("place", [0, 8])
def test_a_suppressed_row_is_found_in_every_place(world: World, place: int) -> None:
    show(world, dict(world.published[0]), place)
    assert said(world, "suppression") == "1 suppressed rows are in the output"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (None, "each of 1 suppressed rows is a row of roots and nulls; " + NEEDLESS),
        ("absent", "1 suppressed rows aren't in the output, where they should be roots"),
        ("labelled", "1 suppressed rows in the output hold more than roots and nulls"),
    ],
)
@pytest.mark.parametrize("place", [0, 8])
def test_suppressed_rows_that_are_published_as_roots(
    world: World, change: str | None, words: str, place: int
) -> None:
    world.options["suppressed"] = "root"
    if change != "absent":
        roots = {"age": "[0, 99]", "city": "Any", "disease": None, "visits": None}
        show(world, roots | ({"disease": "flu"} if change == "labelled" else {}), place)
    assert said(world, "suppression") == words
    assert ("suppression" in world.broken()) == (change is not None)


def test_what_is_counted_where_all_is_kept(world: World) -> None:
    found = {v.name: dict(v.figures) for v in world.report().verdicts}
    assert found["conservation"] == {
        "n_in": 11, "n_out": 8, "n_group": 7, "n_reuse": 1, "n_suppressed": 1, "n_quarantined": 1,
        "n_held": 1, "n_without_line": 0, "n_unexplained": 0,
    }  # fmt: skip
    assert found["delay"] == {
        "longest_rows": 4.0, "n_late_rows": 0, "longest_seconds": 40.0, "n_late_seconds": 0,
    }  # fmt: skip
    assert found["grouping"] == {"n_groups": 3, "n_reuses": 1, "n_reuses_with_few": 1}
    assert found["suppression"] == {"n_suppressed": 1, "n_judged": 1, "n_needless": 1}
    assert found["cover"] == {"n_compared": 8}
    assert said(world, "suppression") == (
        "each of 1 suppressed rows is absent; 1 of them, though enough others were held for a group"
    )
    assert said(world, "delay") == "no row was held for more than 4 rows or 40.0 seconds"
    assert said(world, "conservation") == (
        "each of 11 rows is accounted for once: "
        "7 group, 1 reuse, 1 suppressed, 1 quarantined, 1 held"
    )


def test_a_column_that_is_missing_hides_no_other(world: World) -> None:
    for row in world.published:
        del row["disease"]
    breaks.another_kept_value(world)
    assert said(world, "cover") == "in 1 rows column visits isn't as in the original"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"trace": False}, "what the boxes hide needs a trace to be seen"),
        ({"trace": False, "original": False}, "what the boxes hide needs a trace to be seen"),
        ({"original": False}, "what the boxes hide needs the original to be seen"),
    ],
)
def test_what_is_needed_to_see_the_cover_is_named(
    world: World, given: dict[str, bool], words: str
) -> None:
    assert world.report(**given)["cover"].detail == words


def test_every_row_that_was_published_in_two_boxes_is_counted(world: World) -> None:
    """Rows 0 and 1 leave again; row 5 leaves again in the same box."""
    for row, city in ((0, "Any"), (1, "Any"), (5, "North")):
        world.published.append({**world.shown(row), "city": city})
        world.trace.append({**world.line(row), "seq": len(world.published) - 1})
    assert said(world, "cover") == "2 rows were published with more than one box"


def test_subjects_that_are_bytes_are_compared_as_the_trace_writes_them(world: World) -> None:
    for row in world.original:
        row["person"] = row["person"].encode()
    for line in world.trace:
        line["subject"] = line["subject"].encode().hex()
    assert said(world, "cover") == "each of 8 published rows covers its original"
    world.original[0]["person"] = b"zoe"
    assert said(world, "cover") == ("in 1 lines the trace names another subject than the original")


@pytest.mark.parametrize(
    ("domain", "published", "original", "alike"),
    [
        (Range(0, 999), "7.5", "75e-1", True),
        (None, "7.5", "75e-1", False),
        (None, "flu", "flu ", True),
        (None, "flu", "gout", False),
    ],
)
def test_what_one_value_is_depends_on_whether_it_is_a_number(
    world: World, domain: Range | None, published: str, original: str, alike: bool
) -> None:
    world.schema = Schema(
        "person", SCHEMA.quasi, sensitive=[Sensitive("disease", domain)], keep=["visits"], time="at"
    )
    for table, value in ((world.published, published), (world.original, original)):
        for row in table:
            row["disease"] = value
    world.criteria, world.window = [KAnonymity(2), BasicLikeness(9.0)], Window(rows=100)
    other = "in 8 rows column disease isn't as in the original"
    assert said(world, "cover") == (
        "each of 8 published rows covers its original" if alike else other
    )


@pytest.mark.parametrize("domain", [None, Range(0, 999)])
def test_values_in_another_spelling_are_the_same_where_shares_are_compared(
    world: World, domain: Range | None
) -> None:
    world.schema = Schema(
        "person", SCHEMA.quasi, sensitive=[Sensitive("disease", domain)], keep=["visits"], time="at"
    )
    for row in world.published:
        row["disease"] = "7.5"
    for row in world.original:
        row["disease"] = "7.50"
    world.criteria = [KAnonymity(2)]
    assert said(world, "cover") == "in 8 rows column disease isn't as in the original"
    world.criteria, world.window = [KAnonymity(2), BasicLikeness(9.0)], Window(rows=100)
    assert said(world, "cover") == "each of 8 published rows covers its original"
    world.original[0]["disease"] = "7.51"
    assert said(world, "cover") == "in 1 rows column disease isn't as in the original"


def test_three_groups_are_named() -> None:
    assert _named(np.arange(3)) == "groups 0, 1, 2"
    assert _named(np.arange(4)) == "groups 0, 1, 2, …"


def test_the_first_box_of_the_output_is_another_one_as_well(world: World) -> None:
    """Row 5 has the box of group 0, and is said to join group 1."""
    world.line(5)["group"] = 1
    assert said(world, "grouping") == "1 reuses have another box than the group they join"


def test_a_group_may_be_released_when_the_first_row_comes(world: World) -> None:
    for row in (0, 1, 2):
        world.line(row).update(published=0, published_s=0.0)
    assert world.report()["grouping"].verdict == "kept"


def test_a_reuse_without_a_moment_isnt_known_to_follow_its_group(world: World) -> None:
    world.line(5)["published"] = None
    assert said(world, "grouping") == "1 reuses join a group before it was released"


@pytest.mark.parametrize("group", [1, 3, 4])
def test_a_group_that_was_never_released_is_missed_wherever_its_number_is(
    world: World, group: int
) -> None:
    numbers = {0: 0, 1: 2, 2: 3}
    for line in world.trace:
        if line["group"] is not None:
            line["group"] = numbers[line["group"]]
    world.line(5)["group"] = group
    words = "1 reuses join a group that was never released"
    assert (words in said(world, "grouping")) == (group not in numbers.values())


def test_a_group_that_isnt_in_the_output_lacks_no_label(world: World) -> None:
    """Nothing is known of the box of group 2, which the reuse is said to join."""
    world.line(10)["seq"], world.line(9)["seq"] = 8, 9
    world.line(5).update(group=2, published=10, published_s=100.0)
    assert said(world, "grouping") == "the trace doesn't fit the output row by row"


@pytest.mark.parametrize("reuse", [True, None])
def test_reuses_are_found_where_the_job_keeps_no_group(world: World, reuse: bool | None) -> None:
    world.options["reuse"] = reuse
    assert world.report()["grouping"].verdict == "kept"
    world.options["reuse"] = False
    words = "1 rows are called reuses, and the job keeps no group for reuse"
    assert said(world, "grouping") == words
    assert world.broken() == {"grouping"}


def test_a_row_after_the_end_of_the_original_is_of_no_row_of_the_input(world: World) -> None:
    world.original.pop()
    assert said(world, "cover") == "1 published rows are of no row of the input"


def test_times_that_are_text_are_compared_as_times_where_they_are_labels(world: World) -> None:
    world.schema = Schema(
        "person",
        [*SCHEMA.quasi, Quasi("at", Range(0, 200, step=50))],
        sensitive=SCHEMA.sensitive,
        keep=["visits"],
        time="at",
    )
    world.published = [{**row, "at": "[0, 100]"} for row in world.published]
    for row in world.original:
        row["at"] = f"1970-01-01T00:{row['at'] // 60:02.0f}:{row['at'] % 60:02.0f}Z"
    assert said(world, "cover") == "each of 8 published rows covers its original"
    world.shown(5)["at"] = "[100, 150]"
    assert said(world, "cover") == "in 1 rows column at doesn't cover the original"
