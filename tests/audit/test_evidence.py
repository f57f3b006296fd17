from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.audit.evidence import Evidence
from shoal.audit.trace import read_trace
from shoal.spec.policy import KAnonymity, Policy
from tests.audit.world import SCHEMA, World


def evidence(world: World, *, trace: bool = True) -> Evidence:
    return Evidence(
        SCHEMA,
        Policy(KAnonymity(2)),
        pa.Table.from_pylist(world.published),
        numeric="range",
        suppressed="drop",
        trace=read_trace(pa.Table.from_pylist(world.trace)) if trace else None,
        original=None,
        original_rows=None,
        n_quarantined=None,
    )


def swap(world: World, one: int, other: int) -> None:
    """Exchange the places of two rows in the output."""
    a, b = world.line(one), world.line(other)
    at, to = a["seq"], b["seq"]
    world.published[at], world.published[to] = world.published[to], world.published[at]
    a["seq"], b["seq"] = to, at


def test_boxes_and_groups(world: World) -> None:
    boxes, groups = evidence(world).classes
    assert (boxes.kind, boxes.n_first.tolist(), boxes.rows.tolist()) == (
        "box",
        [4, 4],
        [0, 1, 2, 5, 3, 4, 6, 7],
    )
    assert (groups.kind, groups.number.tolist(), groups.n_first.tolist()) == (
        "group",
        [0, 1, 2],
        [3, 2, 2],
    )
    assert groups.rows.tolist() == [0, 1, 2, 5, 3, 4, 6, 7]
    rows, class_of = groups.first_rows()
    assert rows.tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert class_of.tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_those_who_joined_come_after_the_release_in_the_order_of_their_moments(
    world: World,
) -> None:
    """An output that was sorted by something else must not change what joined when."""
    world.append({}, group=0, outcome="reuse")
    late, early = len(world.original) - 1, 5
    swap(world, late, early)  # joined later, but now stands before
    swap(world, late, 0)  # and now even before the group
    groups = evidence(world).classes[1]
    members = groups.rows[: groups.starts[1]].tolist()
    assert groups.n_first[0] == 3
    assert members[3:] == [world.line(early)["seq"], world.line(late)["seq"]]


def test_the_last_of_each_moment_is_marked(world: World) -> None:
    for published, seconds in ((20, 1.0), (20, 1.0), (20, 2.0), (30, None), (30, None)):
        world.append({}, group=0, outcome="reuse", published=published, published_s=seconds)
    boxes, groups = evidence(world).classes
    joined = slice(groups.n_first[0], groups.starts[1])
    assert groups.ends_moment[joined].tolist() == [True, False, True, True, False, True]
    assert np.flatnonzero(boxes.ends_moment).tolist() == (boxes.starts[1:] - 1).tolist()


def test_the_release_is_a_moment_of_its_own(world: World) -> None:
    released = world.line(0)
    world.line(5).update(published=released["published"], published_s=released["published_s"])
    groups = evidence(world).classes[1]
    assert groups.ends_moment[: groups.starts[1]].tolist() == [False, False, True, True]


def test_rows_without_a_moment_have_none_in_common(world: World) -> None:
    for _ in range(2):
        world.append({}, group=0, outcome="reuse", published=None, published_s=None)
    groups = evidence(world).classes[1]
    assert groups.ends_moment[groups.n_first[0] : groups.starts[1]].all()


def test_subjects_are_those_of_the_trace(world: World) -> None:
    subjects = evidence(world).subjects
    assert subjects[world.line(3)["seq"]] == subjects[world.line(5)["seq"]]  # both are dan
    assert len(set(subjects.tolist())) == 7
    assert len(set(evidence(world, trace=False).subjects.tolist())) == 8


@pytest.mark.parametrize("row", [3, 5])
def test_the_first_line_of_the_trace_names_its_subject_too(world: World, row: int) -> None:
    line = world.line(row)
    world.trace.remove(line)
    world.trace.insert(0, line)
    subjects = evidence(world).subjects
    assert subjects[world.line(3)["seq"]] == subjects[world.line(5)["seq"]]  # both are dan


@pytest.mark.parametrize("n_lines", [1, 2, 3])
@pytest.mark.parametrize("from_the_end", [False, True])
def test_rows_without_a_line_are_of_different_subjects(
    world: World, n_lines: int, from_the_end: bool
) -> None:
    """Wherever they are in the output, and however few lines there are."""
    lines = [line for line in world.trace if line["seq"] is not None and line["row"] != 5]
    world.trace = lines[::-1][:n_lines] if from_the_end else lines[:n_lines]
    subjects = evidence(world).subjects
    assert len(set(subjects.tolist())) == len(world.published)


def test_a_row_without_a_line_is_of_a_subject_of_its_own(world: World) -> None:
    world.published.append(dict(world.published[0]))
    found = evidence(world)
    assert not found.fits
    assert found.doubt is not None
    assert found.subjects[-1] not in found.subjects[:-1]


def test_who_joins_at_the_moment_of_the_release_still_joins(world: World) -> None:
    world.line(5)["published"] = world.line(0)["published"]
    swap(world, 5, 1)  # now first in the output
    groups = evidence(world).classes[1]
    assert groups.rows[: groups.starts[1]].tolist()[3:] == [0]


def test_a_row_without_its_own_line_has_none(world: World) -> None:
    world.trace.remove(world.line(2))
    world.line(3)["seq"] = world.line(4)["seq"]
    found = evidence(world)
    lines = [world.trace.index(world.line(row)) for row in (1, 0, 5, 10, 9)]
    assert found.line.tolist() == [*lines[:2], -1, -1, -1, *lines[2:]]
    assert not found.fits


def test_what_isnt_said_is_nothing(world: World) -> None:
    found = evidence(world)
    assert (found.n_unreadable, found.files, found.reuse) == (0, (), None)
    assert np.isnan(found.since) and not found.may_hold
    # Without the original there are no lines of it either.
    assert [part.tolist() for part in found.originals] == [[], []]


@pytest.mark.parametrize(
    ("since", "before", "upto"),
    [(np.nan, [np.nan, 0.0, 60.0, 60.0], [0.0, 10.0, 60.0, 70.0]), (5.0, [5.0, 5.0], [5.0, 10.0])],
)
def test_the_latest_time_goes_on_from_that_of_the_rows_before(
    world: World, since: float, before: list[float], upto: list[float]
) -> None:
    """Row 7 was quarantined, and row 8 came at 70 seconds."""
    found = evidence(world)
    found.original, found.since = pa.Table.from_pylist(world.original), since
    rows = np.array([0, 1, 7, 8])[: len(before)]
    np.testing.assert_array_equal(found.latest_time(rows, "left"), before)
    np.testing.assert_array_equal(found.latest_time(rows, "right"), upto)


@pytest.mark.parametrize("place", [0, -1])
def test_a_suppressed_row_is_in_no_group_wherever_its_line_is(world: World, place: int) -> None:
    line = world.line(6)
    world.trace.remove(line)
    world.trace.insert(place % (len(world.trace) + 1), line)
    line["seq"] = len(world.published)
    world.published.append(dict(world.published[0]))
    assert np.flatnonzero(~evidence(world).in_group).tolist() == [line["seq"]]


@pytest.mark.parametrize(
    ("positions", "expected"),
    [(None, [0, 9, 10, -1, -1]), ([10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 12], [3, 1, 0, -1, -1])],
)
def test_rows_are_located_in_the_original(
    world: World, positions: list[int] | None, expected: list[int]
) -> None:
    found = evidence(world)
    found.original = pa.Table.from_pylist(world.original)
    found.original_rows = None if positions is None else np.array(positions)
    assert found.located(np.array([0, 9, 10, 11, -1])).tolist() == expected


def test_rows_are_nowhere_in_an_empty_original(world: World) -> None:
    found = evidence(world)
    found.original = pa.Table.from_pylist(world.original).slice(0, 0)
    for positions in (None, np.array([], dtype=np.int64)):
        found.original_rows = positions
        assert found.located(np.array([0, -1])).tolist() == [-1, -1]


@pytest.mark.parametrize(
    "wrong", [{"outcome": "suppressed"}, {"outcome": "suppressed", "group": None}, {"group": None}]
)
def test_a_group_has_the_rows_that_were_released_in_it_or_joined(
    world: World, wrong: dict[str, object]
) -> None:
    """What is wrong with such a line is said elsewhere."""
    world.append({}, **{"outcome": "reuse", "group": 0} | wrong)
    groups = evidence(world).classes[1]
    assert groups.number.tolist() == [0, 1, 2]
    assert groups.rows.tolist() == [0, 1, 2, 5, 3, 4, 6, 7]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ({"window": 12}, {"window": 12}, False),
        ({"window": 12}, {"window": 13}, True),
        ({"published_s": None}, {"published_s": None}, False),
        ({"published_s": 1.0}, {"published_s": None}, True),
    ],
)
def test_what_tells_one_moment_from_another(
    world: World, one: dict[str, object], other: dict[str, object], apart: bool
) -> None:
    """A tick and the row after it differ in their windows alone."""
    for change in (one, other):
        world.append({}, group=0, outcome="reuse", **{"published": 20, "published_s": 2.0} | change)
    groups = evidence(world).classes[1]
    assert groups.ends_moment[groups.n_first[0] : groups.starts[1]].tolist() == [True, apart, True]


def test_the_first_row_of_a_stream_is_a_moment_like_any_other(world: World) -> None:
    for row in (0, 1, 2):
        world.line(row).update(published=0, published_s=0.0)
    groups = evidence(world).classes[1]
    assert groups.ends_moment[: groups.n_first[0]].tolist() == [False, False, True]
