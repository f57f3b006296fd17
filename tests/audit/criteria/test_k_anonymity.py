from __future__ import annotations

from tests.audit.world import World

NAME = "k-anonymity"


def test_the_smallest_groups_are_reported(world: World) -> None:
    figures = world.report()[NAME].figures
    assert figures == {
        "k": 2,
        "n_boxes": 2,
        "n_boxes_below": 0,
        "smallest_box_n_subjects": 4,
        "smallest_box_n_rows": 4,
        "n_groups": 3,
        "n_groups_below": 0,
        "smallest_group_n_subjects": 2,
        "smallest_group_n_rows": 2,
    }


def test_a_broken_group_is_named_by_its_number(world: World) -> None:
    world.line(10)["group"] = 17
    detail = world.report()[NAME].detail
    assert "2 of 4 groups (2, 17) had when released fewer than 2 subjects" in detail
    assert "box" not in detail


def test_without_a_trace_rows_are_spoken_of(world: World) -> None:
    verdict = world.report(trace=False)[NAME]
    assert verdict.figures["smallest_box_n_subjects"] is None
    assert verdict.figures["smallest_box_n_rows"] == 4
    world.published.append({**world.published[0], "city": "Oslo"})
    assert "1 of 3 boxes has fewer than 2 rows" in world.report(trace=False)[NAME].detail


def test_rows_without_a_subject_are_all_of_one(world: World) -> None:
    for row in (3, 4):
        world.line(row)["subject"] = world.original[row]["person"] = None
    assert NAME in world.broken()
