"""The oracle of z-anonymity, on cases that can be counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal import Policy, Quasi, Schema, Window
from shoal.spec.criteria import ZAnonymity
from shoal.spec.ladder import Open, Path
from shoal.testing.streams import Stream
from shoal.testing.z.codes import cell_codes, cells_of, keys_of
from shoal.testing.z.definitions import Count, ExposureHistory, NodeSubjects, alike, behind, finest

TURIN, AOSTA, IT = (0, (1, 9)), (0, (2, 9)), (0, (9,))


@pytest.mark.parametrize(
    ("z", "count", "leaves", "expected"),
    [
        (4, "residual", {TURIN: {1, 2}, AOSTA: {3}}, {1, 2, 3}),
        # A third in Turin would be published there.
        (3, "residual", {TURIN: {1, 2}, AOSTA: {3}}, {3}),
        (3, "plain", {TURIN: {1, 2}, AOSTA: {3}}, {1, 2, 3}),
        # Who is at a popular place and at a rare one counts for the rare one.
        (3, "residual", {TURIN: {1, 2}, AOSTA: {1}}, {1}),
        (2, "residual", {TURIN: {1}, AOSTA: {2}}, set()),
        (1, "residual", {TURIN: {1}, AOSTA: {2}}, set()),
    ],
)
def test_who_stands_behind_a_parent(
    z: int, count: Count, leaves: NodeSubjects, expected: set[int]
) -> None:
    assert behind(leaves, z, count)[IT] == expected


def test_who_is_shown_counts_as_one_of_a_leaf_but_for_no_parent() -> None:
    leaves: NodeSubjects = {TURIN: {1, 2}, AOSTA: {3}}
    assert behind(leaves, 4, "residual", {TURIN: {1}, AOSTA: {1}})[IT] == {2, 3}
    assert behind(leaves, 4, "residual", {TURIN: {1}})[TURIN] == {1, 2}
    assert behind(leaves, 3, "residual", {TURIN: {1}})[IT] == {3}
    assert behind(leaves, 4, "plain", {TURIN: {1}})[IT] == {1, 2, 3}


def test_a_node_that_room_for_one_more_is_lacking_in_counts_for_nobody_above() -> None:
    x, y, z = (0, (1, 8, 9)), (0, (2, 8, 9)), (0, (3, 7, 9))
    crowds = behind({x: {1}, y: {2}, z: {3}}, 3, "residual")
    assert (crowds[0, (8, 9)], crowds[0, (7, 9)], crowds[0, (9,)]) == ({1, 2}, {3}, {3})


def test_what_isnt_published_anywhere_has_no_level() -> None:
    crowds = behind({TURIN: {1, 2}, AOSTA: {3}}, 2, "residual")
    assert (finest(TURIN, 1, crowds, 2), finest(AOSTA, 3, crowds, 2)) == (0, None)


def test_a_subject_counts_where_it_is_published() -> None:
    crowds: NodeSubjects = {AOSTA: {5}, IT: {1, 2}}
    assert finest(AOSTA, 5, crowds, 3) == 1
    assert finest(AOSTA, 5, {AOSTA: {5}, IT: {1, 5}}, 3) is None


def test_who_is_alike() -> None:
    leaves: NodeSubjects = {TURIN: {1, 2}, AOSTA: {3}, (1, (5,)): {4}}
    # 1 and 2 show Turin, 3 and 4 nothing.
    assert alike(leaves, z=2, k=2) == (4, 1.0, pytest.approx(math.log(2)))
    assert alike(leaves, z=2, k=3).share == 0.0
    assert alike({}, z=2, k=2) == (0, 1.0, 0.0)


def test_who_is_alike_at_a_parent() -> None:
    leaves: NodeSubjects = {TURIN: {1}, AOSTA: {2}, (0, (3, 9)): {3}}
    assert alike(leaves, z=3, k=3).share == 1.0
    # 1 hides nobody, but would be published as one of three itself.
    assert alike(leaves, 3, 2, {TURIN: {1}}).share == pytest.approx(2 / 3)


def stream_of(times: list[float], window: Window) -> Stream:
    schema = Schema("user", [Quasi("site", Open())], time="at")
    rows = [["a"]] * len(times)
    codes = cell_codes(schema, rows, np.arange(len(times)), np.array(times))
    return Stream(schema, Policy(ZAnonymity(2), window=window), codes)


@pytest.mark.parametrize(
    ("window", "times", "expected"),
    [
        (Window(rows=2), [0.0, 0.0, 0.0], {1, 2}),
        (Window(seconds=5), [0.0, 1.0, 5.0], {0, 1, 2}),
        (Window(seconds=5), [0.0, 1.0, 5.5], {1, 2}),
        # A late row is of the latest time.
        (Window(seconds=5), [0.0, 8.0, 1.0], {1, 2}),
        (Window(seconds=5), [8.0, 0.0, 8.0], {0, 1, 2}),
    ],
)
def test_who_is_in_a_window(window: Window, times: list[float], expected: set[int]) -> None:
    windows = ExposureHistory(stream_of(times, window))
    (subjects,) = windows.leaves(2).values()
    assert subjects == expected
    (before,) = windows.leaves(2, included=False).values()
    assert before == expected - {2}


@pytest.mark.parametrize(
    ("window", "times", "published", "expected"),
    [
        (Window(seconds=5), [0.0, 1.0, 5.0, 6.0], {0: [0]}, {7}),
        # Published once, and exposed again in time: it is known still.
        (Window(seconds=5), [0.0, 5.0, 10.0, 15.0], {0: [0]}, {7}),
        (Window(seconds=5), [0.0, 5.0, 10.0, 15.5], {0: [0]}, set()),
        # Left the window, and came again.
        (Window(seconds=5), [0.0, 5.5, 6.0, 6.0], {0: [0]}, set()),
        (Window(seconds=5), [0.0, 5.5, 6.0, 6.0], {0: [0], 1: [0]}, {7}),
        (Window(seconds=5), [0.0, 1.0, 2.0, 3.0], {1: [1], 2: [-1]}, set()),
        # Of a row itself nothing is known when it comes.
        (Window(seconds=5), [0.0, 1.0, 2.0, 3.0], {3: [0]}, set()),
        (Window(rows=2), [0.0] * 4, {0: [0]}, {7}),
        (Window(rows=1), [0.0] * 4, {2: [0]}, set()),
    ],
)
def test_what_was_published_is_known_until_it_leaves_the_window(
    window: Window, times: list[float], published: dict[int, list[int]], expected: set[int]
) -> None:
    stream = stream_of(times, window)
    same = stream.codes._replace(subjects=np.full(len(times), 7))
    windows = ExposureHistory(Stream(stream.schema, stream.policy, same))
    assert set().union(*windows.shown(3, published).values()) == expected


def test_cells_have_the_keys_of_their_ladders() -> None:
    schema = Schema("user", [Quasi("place", Path("*", levels=2)), Quasi("site", Open())])
    codes = cell_codes(schema, [["it*turin", None], [None, "it"]], np.arange(2), np.zeros(2))
    assert codes.keys.shape == (2, 3)
    place, site = keys_of(0, ["it*turin", "it"]), keys_of(1, ["it"])
    assert cells_of(schema, codes) == [[place, None], [None, site]]
    assert len({*place, *site}) == 3
