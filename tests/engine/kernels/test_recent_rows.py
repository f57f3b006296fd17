"""The ring of the latest rows, and what is counted of them."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from shoal.engine.kernels import held, recent_rows
from shoal.engine.kernels.recent_rows import RecentRows


def counts(latest: RecentRows, j: int) -> dict[int, int]:
    n, window = latest.window.n[j], latest.window
    return dict(zip(window.values[j, :n].tolist(), window.counts[j, :n].tolist(), strict=True))


@pytest.mark.parametrize("span", [1, 2, 7, 8, 30])
def test_it_counts_the_latest_rows_whatever_the_batches(span: int) -> None:
    draw = random.Random(span)
    rows = [[draw.choice([-5, 0, 3, 10**15]), draw.randrange(40)] for _ in range(100)]
    latest, at = recent_rows.empty(2, span), 0
    while at < len(rows):
        batch = rows[at : at + draw.randrange(1, 12)]
        latest = recent_rows.with_room_for(latest, at, len(batch))
        for row in batch:
            recent_rows.add(latest, at, np.array(row))
            at += 1
            here = rows[max(0, at - span) : at]
            assert latest.window.n_rows[0] == len(here)
            for j in range(2):
                assert counts(latest, j) == Counter(values[j] for values in here)
                assert list(counts(latest, j)) == sorted(counts(latest, j))


def test_its_room_has_an_end() -> None:
    latest = recent_rows.empty(1, 5)
    for at in range(0, 400, 100):
        latest = recent_rows.with_room_for(latest, at, 100)
        for position in range(at, at + 100):
            recent_rows.add(latest, position, np.array([position]))
    assert latest.sensitive.shape == (8, 1)
    assert latest.window.values.shape == (1, 8)
    assert recent_rows.with_room_for(latest, 400, 100) is latest


def test_where_nothing_is_measured_there_is_nothing() -> None:
    latest = recent_rows.empty(3, 0)
    assert recent_rows.with_room_for(latest, 0, 1000) is latest
    recent_rows.add(latest, 0, np.array([1, 2, 3]))
    assert sum(array.size for array in (latest.sensitive, *latest.window[:2])) == 0
    assert latest.window.n_rows[0] == 0


def test_rows_that_are_held_are_noted_and_stay_when_they_leave_or_the_ring_grows() -> None:
    ring = held.empty(1, 1, 4, window=3)
    ring = ring._replace(recent=recent_rows.with_room_for(ring.recent, 0, 6))
    assert held.window_of(ring) == 0
    box = np.array([1.0])
    for value in (5, 5, 6, 5):
        held.put(ring, held.Arrival(box, box, 7, np.array([value]), 0.0, 0), 0)
    held.forget(ring, 0)
    larger = held.grown(ring, 9)
    assert counts(larger.recent, 0) == {5: 2, 6: 1}
    assert held.window_of(larger) == 4
    assert held.window_of(held.empty(1, 1)) == -1
