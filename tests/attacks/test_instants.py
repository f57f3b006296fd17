"""Instants: who leaves alone, or in the order of arrival, is found."""

from __future__ import annotations

import random

import pytest

from shoal.attacks.instants import Instants
from tests.attacks.hand_made import Row, by_knowledge, groups, joining_alone, stream

ORDER = "who came before whom in a group"


def shuffled(rows: list[Row], seed: int = 1) -> list[int]:
    draw = random.Random(seed)
    places = {i: draw.random() for i in range(len(rows))}
    return sorted(places, key=lambda i: (rows[i].left, rows[i].box, places[i]))


def test_whole_groups_hide_their_people() -> None:
    rows = groups(40)
    found = by_knowledge(Instants(), stream(rows, order=shuffled(rows)))
    assert found["instant of release"].success.rate == 1 / 2
    assert found["instant of release, all quasi values"].success.rate == 1 / 2
    assert {result.verdict for result in found.values()} == {"within"}
    assert 0.2 < found[ORDER].success.rate < 0.8
    assert found[ORDER].baseline == 1 / 2


def test_the_order_of_arrival_tells_everybody_apart() -> None:
    found = by_knowledge(Instants(), stream(groups(40)))[ORDER]
    assert found.success.rate == 1
    assert found.verdict == "exceeded"


def test_a_row_that_leaves_alone_is_found_by_its_instant() -> None:
    rows = groups()
    found = by_knowledge(Instants(), stream([*rows, *joining_alone(rows)]))
    for knowledge in ("instant of release", "instant of release, all quasi values"):
        assert found[knowledge].success.successes == pytest.approx(40 + 16 / 2)
        assert found[knowledge].verdict == "exceeded"
    # All who left alone were due; nobody of a group was, and nobody left when they would have been.
    due = found["arrival, and who is due leaves"]
    assert due.success.successes == 40
    assert "of 56 people somebody left" in due.notes[0]


def test_who_is_due_is_in_the_group_that_leaves() -> None:
    rows = [Row(f"p{i}", i, 3 if i < 3 else 6, (0, 2) if i < 3 else (3, 6)) for i in range(7)]
    found = by_knowledge(Instants(), stream(rows, k=3, delay=3))["arrival, and who is due leaves"]
    # The first and the fourth are due when somebody leaves.
    assert found.success.rate == pytest.approx((1 / 3 + 1 / 4) / 7)


def test_many_rows_of_one_person_are_no_success_of_the_order() -> None:
    rows = [Row("ann", 20, 9, (20, 22)) for _ in range(9)] + [Row("bob", 22, 9, (20, 22))]
    found = by_knowledge(Instants(), stream(rows, delay=10))[ORDER]
    assert found.baseline == pytest.approx((9 / 10 + 1 / 10) / 2)
    assert found.verdict == "within"


def test_smaller_groups_than_promised_dont_raise_their_own_bound() -> None:
    rows = [Row(f"p{i}", i % 5, i - i % 5 + 4, (0, 4)) for i in range(1000)]
    order = shuffled(rows)
    kept = by_knowledge(Instants(), stream(rows, k=5, delay=10, order=order))[ORDER]
    assert kept.verdict == "within"
    broken = by_knowledge(Instants(), stream(rows, k=10, delay=10, order=order))[ORDER]
    assert broken.baseline == pytest.approx(1 / 5)
    assert broken.bound < 0.14
    assert broken.verdict == "exceeded"


def test_a_few_groups_of_k_less_one_are_seen_where_everybody_is_attacked() -> None:
    found = by_knowledge(Instants(), stream(groups(8), k=3))
    assert found["instant of release"].verdict == "exceeded"
