"""In which order decided rows leave."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.arrow.order import ByArrival, ByInstant, Ordering
from shoal.engine.base import Decisions


def decided(
    rows: list[int],
    published: int = 9,
    instants: list[int] | None = None,
    boxes: list[int] | None = None,
    seconds: float = np.nan,
) -> tuple[Decisions, pa.RecordBatch]:
    """Rows decided at one moment; the payload of each is its own position."""
    n = len(rows)
    boxes = [0] * n if boxes is None else boxes
    n_boxes = max(boxes, default=-1) + 1
    # What is known of a box tells which one it is.
    sides = np.array([[float(rows[boxes.index(box)])] for box in range(n_boxes)]).reshape(-1, 1)
    decisions = Decisions(
        np.array(rows, np.int64),
        np.array([2 if box < 0 else 0 for box in boxes], np.int64),
        np.array(boxes, np.int64),
        np.full(n, published),
        np.full(n, seconds),
        np.array(instants or [0] * n, np.int64),
        # What is known of a row tells which one it is.
        np.array(rows, np.int64) + 100, np.array(rows, float) / 100,
        sides, sides, sides[:, 0], sides[:, 0].astype(np.int64),
        np.ones(n_boxes, np.int64), np.ones(n_boxes, np.int64), np.zeros(n_boxes, np.int64),
        sides[:, 0].astype(np.int64) + 50,
    )  # fmt: skip
    return decisions, pa.record_batch({"own": pa.array(rows, pa.int64())})


def test_as_decided():
    departures = Ordering().arrange(*decided([3, 1, 2]), 0)
    assert departures.rows.tolist() == [3, 1, 2]
    assert departures.payload["own"].to_pylist() == [3, 1, 2]
    assert departures.left.tolist() == departures.published.tolist()
    assert Ordering().n_waiting == 0
    assert Ordering().rest() is None


def test_each_instant_is_shuffled_separately():
    rows = list(range(40))
    instants = [0] * 20 + [1] * 20
    one = ByInstant(b"seed")
    departures = one.arrange(*decided(rows, instants=instants), 40)
    first, second = departures.rows[:20].tolist(), departures.rows[20:].tolist()
    assert sorted(first) == rows[:20] != first
    assert sorted(second) == rows[20:] != second
    assert departures.payload["own"].to_pylist() == departures.rows.tolist()
    again = ByInstant(b"seed").arrange(*decided(rows, instants=instants), 40)
    assert again.rows.tolist() == departures.rows.tolist()
    other = ByInstant(b"other").arrange(*decided(rows, instants=instants), 40)
    assert other.rows.tolist() != departures.rows.tolist()


@given(st.lists(st.integers(1, 3), max_size=5))
def test_no_row_leaves_in_the_place_of_another_instant(lengths):
    instants = np.repeat(np.arange(len(lengths)), lengths).tolist()
    rows = list(range(len(instants)))
    departures = ByInstant(b"seed").arrange(*decided(rows, instants=instants), len(rows))
    assert sorted(departures.rows.tolist()) == rows
    assert [instants[row] for row in departures.rows] == instants


def test_every_row_of_an_instant_may_leave_at_every_place_of_it():
    """Also the first row and the first place: else it would tell who came first."""
    places = {(row, place) for row in range(6) for place in range(6) if row // 3 == place // 3}
    found = set()
    for seed in range(60):
        one = ByInstant(b"seed %d" % seed)
        departures = one.arrange(*decided(list(range(6)), instants=[0] * 3 + [1] * 3), 6)
        found |= {(row, place) for place, row in enumerate(departures.rows.tolist())}
    assert found == places


def test_a_row_waits_for_those_before_it_and_keeps_its_box():
    order = ByArrival()
    departures = order.arrange(*decided([1, 4, 0], published=4, boxes=[0, 1, 0]), 2)
    assert departures.rows.tolist() == [0, 1]
    assert order.n_waiting == 1
    departures = order.arrange(*decided([2, 5], published=5, boxes=[0, -1]), 3)
    assert departures.rows.tolist() == [2]
    assert order.n_waiting == 2
    departures = order.arrange(*decided([3], published=7), 6)
    assert departures.rows.tolist() == [3, 4, 5]
    assert departures.payload["own"].to_pylist() == [3, 4, 5]
    assert departures.boxes.tolist()[2] == -1
    assert departures.groups[departures.boxes[:2]].tolist() == [3, 4]
    assert departures.lo[departures.boxes[:2]].tolist() == [[3.0], [4.0]]
    # Decided at 7, 4 and 5, but the later two had to wait for the first.
    assert departures.published.tolist() == [7, 4, 5]
    assert departures.left.tolist() == [7, 7, 7]
    assert order.n_waiting == 0


def test_a_row_without_a_box_has_none_behind_others_that_waited():
    order = ByArrival()
    order.arrange(*decided([1]), 0)
    departures = order.arrange(*decided([0, 2], boxes=[-1, -1]), 3)
    assert departures.rows.tolist() == [0, 1, 2]
    assert departures.boxes.tolist() == [-1, 0, -1]


@given(
    st.permutations(range(12)),
    st.lists(st.integers(1, 11), max_size=5),
    st.sets(st.integers(0, 11)),
)
def test_each_row_keeps_its_own_box_however_long_it_waits(rows, cuts, without):
    order, held = ByArrival(), set(range(12))
    for begin, end in itertools.pairwise(sorted({0, 12, *cuts})):
        now, n = rows[begin:end], itertools.count()
        held -= set(now)
        boxes = [-1 if row in without else next(n) for row in now]
        departures = order.arrange(*decided(now, boxes=boxes), min(held, default=12))
        for row, box in zip(departures.rows.tolist(), departures.boxes.tolist(), strict=True):
            assert (box == -1) == (row in without)
            assert box == -1 or (box >= 0 and departures.groups[box] == row)


def test_the_first_row_may_leave_at_once():
    assert ByArrival().arrange(*decided([0], published=0), 1).left.tolist() == [0]


def test_seconds_of_leaving_never_go_back():
    order = ByArrival()
    assert order.arrange(*decided([1], seconds=2.0), 0).rows.tolist() == []
    departures = order.arrange(*decided([0], seconds=5.0), 2)
    assert departures.published_s.tolist() == [5.0, 2.0]
    assert departures.left_s.tolist() == [5.0, 5.0]
    departures = order.arrange(*decided([2]), 3)
    assert np.isnan(departures.left_s).all()
    # What has no time delays nobody.
    departures = order.arrange(*decided([3], seconds=4.0), 4)
    assert departures.left_s.tolist() == [5.0]
    departures = order.arrange(*decided([4], seconds=6.0), 5)
    assert departures.left_s.tolist() == [6.0]


def test_what_waits_can_be_had_in_order():
    order = ByArrival()
    assert order.rest() is None
    order.arrange(*decided([5, 3], boxes=[0, 1]), 0)
    rest = order.rest()
    assert rest is not None
    assert rest.rows.tolist() == [3, 5]
    assert rest.groups[rest.boxes].tolist() == [3, 5]
    assert order.n_waiting == 0


@given(st.permutations(range(12)), st.lists(st.integers(1, 11), max_size=5))
def test_all_rows_leave_once_and_in_order(rows, cuts):
    order, left, held = ByArrival(), [], set(range(12))
    borders = sorted({0, 12, *cuts})
    for begin, end in itertools.pairwise(borders):
        held -= set(rows[begin:end])
        departures = order.arrange(*decided(rows[begin:end]), min(held, default=12))
        left += departures.rows.tolist()
        assert all(row < min(held, default=12) for row in left)
        assert len(left) + order.n_waiting + len(held) == 12
    assert left == list(range(12))


@pytest.mark.parametrize("order", [Ordering(), ByInstant(b"x"), ByArrival()])
def test_gaps_and_losses_stay_with_their_rows(order):
    seen = []
    for rows, oldest in (([3, 1, 5], 0), ([2, 7, 0], 4), ([6, 4], 8)):
        departures = order.arrange(*decided(rows, boxes=[0, -1, 1][: len(rows)]), oldest)
        assert departures.gaps.tolist() == [row + 100 for row in departures.rows]
        assert departures.losses.tolist() == [row / 100 for row in departures.rows]
        seen += departures.rows.tolist()
    assert sorted(seen) == list(range(8))


def test_rows_that_wait_keep_gaps_and_losses_in_a_snapshot():
    order, other = ByArrival(), ByArrival()
    order.arrange(*decided([5, 3], boxes=[0, -1]), 0)
    arrays, payload = order.snapshot()
    other.restore({name: array.copy() for name, array in arrays.items()}, payload)
    rest = other.rest()
    assert rest is not None
    assert rest.gaps.tolist() == [103, 105]
    assert rest.losses.tolist() == [0.03, 0.05]


def test_a_shuffle_continues_from_a_snapshot():
    one, other = ByInstant(b"seed"), ByInstant(b"other")
    one.arrange(*decided(list(range(40))), 40)
    arrays, payload = one.snapshot()
    assert payload is None
    other.restore({name: array.copy() for name, array in arrays.items()}, payload)
    again = [order.arrange(*decided(list(range(40))), 40).rows.tolist() for order in (one, other)]
    assert again[0] == again[1]
    # What is restored isn't changed by what follows.
    assert one.snapshot()[0]["random"].tolist() != arrays["random"].tolist()


def test_a_snapshot_without_waiting_rows_leaves_none_waiting():
    order, other = ByArrival(), ByArrival()
    arrays, payload = order.snapshot()
    other.arrange(*decided([5, 3]), 0)
    assert other.n_waiting == 2
    other.restore(arrays, payload)
    assert other.n_waiting == 0


def test_values_of_people_are_not_shown():
    decisions, _ = decided([1])
    departures = Ordering().arrange(decisions, pa.record_batch({"own": ["CANARY"]}), 0)
    assert repr(departures) == "Departures(1 rows)"


@pytest.mark.parametrize("order", [Ordering(), ByInstant(b"x"), ByArrival()])
def test_nothing_decided(order):
    assert len(order.arrange(*decided([]), 0).rows) == 0
