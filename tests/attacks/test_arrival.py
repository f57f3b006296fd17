"""Arrival: who leaves alone is found by when they came."""

from __future__ import annotations

import pytest

from shoal.attacks.arrival import Arrival
from tests.attacks.hand_made import Row, by_knowledge, groups, joining_alone, stream


def test_who_leaves_with_others_is_one_of_them() -> None:
    rows = [
        Row("ann", 20, 1, (20, 22)),
        Row("bob", 22, 1, (20, 22)),
        Row("cid", 60, 5, (60, 70)),
        Row("dan", 70, 5, (60, 70)),
    ]
    found = by_knowledge(Arrival(), stream(rows))
    assert found["arrival, all quasi values"].success.rate == 1 / 2
    # Ann may have left until 4, and so with Bob only; Bob until 5, as one of four.
    assert found["arrival"].success.rate == pytest.approx((1 / 2 + 1 / 4 + 1 / 2 + 1 / 2) / 4)
    assert found["arrival ± 4 rows"].success.rate == 1 / 4
    assert {result.verdict for result in found.values()} == {"within"}
    assert {result.bound for result in found.values()} == {1 / 2}
    assert {result.baseline for result in found.values()} == {1 / 4}


def test_who_leaves_alone_is_found_by_arrival_and_values() -> None:
    rows = groups()
    found = by_knowledge(Arrival(), stream([*rows, *joining_alone(rows)]))
    by_values = found["arrival, all quasi values"]
    # 40 who are found for certain, and 16 who are one of two.
    assert by_values.success.successes == pytest.approx(48)
    assert by_values.verdict == "exceeded"
    # Who doesn't know values has five rows to choose from.
    assert found["arrival"].verdict == "within"


def test_a_person_counts_once_however_many_rows_they_have() -> None:
    rows = [Row("ann", 20, 3, (20, 22)) for _ in range(3)] + [Row("bob", 22, 3, (20, 22))]
    found = by_knowledge(Arrival(), stream(rows))["arrival, all quasi values"]
    assert found.success.attempts == 2
    assert found.success.rate == 1 / 2
