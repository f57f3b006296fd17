"""Intersection: of k people in each box only the one who comes again is in all of them."""

from __future__ import annotations

import pytest

from shoal.attacks.intersection import Intersection
from tests.attacks.hand_made import Row, by_knowledge, groups, stream


def pairs(*partners: str, diseases: str = "ab") -> list[Row]:
    """Ann comes again and again, each time with another partner; both leave at once."""
    rows = []
    for i, name in enumerate(partners):
        left = 2 * i + 1
        rows += [
            Row("ann", 20, left, (20, 22), disease="gout"),
            Row(name, 22, left, (20, 22), disease=diseases[i % len(diseases)]),
        ]
    return rows


def test_different_company_leaves_one_person() -> None:
    found = by_knowledge(Intersection(), stream(pairs("bob", "cid", "dan", "eve"), delay=1))
    assert found["1 box of one person"].success.rate == 1 / 2
    assert found["1 box of one person"].verdict == "within"
    assert found["2 boxes of one person"].success.rate == 1
    assert found["2 boxes of one person"].verdict == "unbounded"
    assert found["4 boxes of one person"].notes == ("1 of 1 people alone fit 4 of their boxes",)
    # {gout, a} and {gout, b} leave gout.
    assert found["2 groups of one person, disease stays"].success.rate == 1
    assert found["2 groups of one person, disease stays"].baseline == 1 / 2


def test_the_same_company_stays_company() -> None:
    rows = pairs("bob", "bob", "bob", "bob", diseases="a")
    found = by_knowledge(Intersection(), stream(rows, delay=1))
    assert found["4 boxes of one person"].success.rate == 1 / 2
    assert found["4 groups of one person, disease stays"].success.rate == 1 / 2


def test_who_came_at_that_time_and_fits_is_a_candidate_too() -> None:
    rows = pairs("bob", "cid")
    # Fay fits both boxes and may have been in either, for all that is known; so may Bob.
    rows = [Row("fay", 21, 9, (20, 29)), *(row._replace(left=row.left + 1) for row in rows)]
    rows += [Row("gus", 29, 9, (20, 29))]
    found = by_knowledge(Intersection(), stream(rows, delay=9))
    assert found["2 boxes of one person"].success.rate == pytest.approx(1 / 3)


def test_nobody_comes_again() -> None:
    (found,) = Intersection().run(stream(groups()))
    assert found.verdict == "skipped"
