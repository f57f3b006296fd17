from __future__ import annotations

import pytest

from tests.audit.world import EACH_ROW, World

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


def test_how_many_boxes_and_groups_are_large_enough_is_said(world: World) -> None:
    assert world.report()[NAME].detail == (
        "rows of at least 2 different subjects in each of 2 boxes and 3 groups"
    )


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


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("lost", [("age", "city"), ("city",)])
def test_without_the_labels_of_an_attribute_there_are_no_boxes(
    world: World, lost: tuple[str, ...], trace: bool
) -> None:
    world.schema = EACH_ROW
    for shown in world.published:
        for name in lost:
            del shown[name]
    report = world.report(trace=trace, original=False)
    assert f"missing columns: {', '.join(lost)}" in report["shape"].detail
    verdict = report[NAME]
    assert verdict.verdict == "unverifiable"
    assert verdict.detail == (
        f"the output has no labels of {', '.join(lost)}: which rows share a box can't be told"
    )
    assert "n_boxes" not in verdict.figures
    assert report["distinct l-diversity of disease"].detail == verdict.detail


def test_rows_without_a_subject_are_all_of_one(world: World) -> None:
    for row in (3, 4):
        world.line(row)["subject"] = world.original[row]["person"] = None
    assert NAME in world.broken()
