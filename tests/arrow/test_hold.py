from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from shoal.arrow.hold import Hold


def batch(start: int, n: int) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(range(start, start + n), pa.int64())})


@given(
    lengths=st.lists(st.one_of(st.integers(0, 5), st.integers(1000, 1100)), max_size=6),
    data=st.data(),
)
def test_takes_give_each_row_once_in_the_order_asked(
    lengths: list[int], data: st.DataObject
) -> None:
    hold, start, left = Hold(), 0, set[int]()
    for n in lengths:
        hold.put(batch(start, n))
        left |= set(range(start, start + n))
        start += n
        if left:
            few = sorted(left)[:50] + sorted(left)[-50:]
            wanted = data.draw(st.lists(st.sampled_from(few), unique=True, min_size=1, max_size=20))
            assert hold.take(np.array(wanted)).column("x").to_pylist() == wanted
            left -= set(wanted)
        assert len(hold) == len(left)
        assert hold.oldest == min(left, default=start)
        positions, payload = hold.rest()
        assert set(positions.tolist()) == left
        if payload is not None:
            assert payload.column("x").to_pylist() == positions.tolist()


def test_a_trickle_of_rows_is_put_together() -> None:
    hold = Hold()
    for i in range(3000):
        hold.put(batch(i, 1))
    assert len(hold._blocks) < 5
    assert hold.take(np.array([2999, 0])).column("x").to_pylist() == [2999, 0]


def test_what_is_held_is_held_again_after_a_restore() -> None:
    hold, other = Hold(), Hold()
    hold.put(batch(0, 1500))
    hold.put(batch(1500, 1500))
    hold.take(np.array([0, 7, 2999]))
    for _ in range(2):
        other.restore(hold.upcoming, *hold.rest())
        assert (len(other), other.upcoming, other.oldest) == (2997, 3000, 1)
        other.put(batch(3000, 2))
        assert other.take(np.array([3001, 8, 1500])).column("x").to_pylist() == [3001, 8, 1500]
    hold.take(hold.rest()[0])
    other.restore(hold.upcoming, *hold.rest())
    assert (len(other), other.upcoming, other.oldest) == (0, 3000, 3000)


def test_rows_with_any_gaps_between_them_are_found_after_a_restore() -> None:
    for n in range(1, 6):
        for held in itertools.combinations(range(5), n):
            hold = Hold()
            hold.restore(5, np.array(held), pa.record_batch({"x": list(held)}))
            wanted = list(reversed(held))
            assert hold.take(np.array(wanted)).column("x").to_pylist() == wanted


def test_decided_batches_are_forgotten() -> None:
    hold = Hold()
    hold.put(batch(0, 2000))
    hold.put(batch(2000, 2000))
    hold.take(np.arange(2000))
    assert [block.batch.num_rows for block in hold._blocks] == [2000]
    assert repr(hold) == "Hold(2000 rows)"
