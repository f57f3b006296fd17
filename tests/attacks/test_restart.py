"""Restart: a row that is published twice lies where its boxes overlap."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from shoal.attacks import Run, Setting
from shoal.attacks.restart import Restart
from tests.attacks.hand_made import Row, by_knowledge, stream

BOTH = "two releases under different seeds"


def released(partition: Sequence[Sequence[int]], **given: object) -> Setting:
    """Six people of 0, 10, 20 and so on, in groups that all leave at once."""
    rows = []
    for i in range(6):
        members = next(part for part in partition if i in part)
        box = (10 * min(members), 10 * max(members))
        rows.append(Row(f"p{i}", 10 * i, 5, box, disease=f"d{i}"))
    return stream(rows, delay=5, **given)


def twice(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> Setting:
    other = released(second)

    def rerun(rows: pa.Table, seed: int) -> Run:
        assert rows.num_rows == 6
        assert isinstance(seed, int)
        return Run(other.published, other.trace)

    return released(first, rerun=rerun)


def test_other_groups_leave_the_overlap() -> None:
    found = by_knowledge(Restart(), twice([(0, 1, 2), (3, 4, 5)], [(0, 1), (2, 3), (4, 5)]))
    # 0 and 1 are two, 2 is alone, 3 is alone, 4 and 5 are two.
    assert found[BOTH].success.rate == pytest.approx((4 / 2 + 2) / 6)
    assert found[BOTH].baseline == pytest.approx(1 / 3)
    assert found[BOTH].verdict == "unbounded"
    assert found[BOTH].notes == ("2 of 6 people alone fit both boxes",)
    guess = found[f"{BOTH}; guesses disease"]
    assert guess.success.rate == pytest.approx((4 / 2 + 2) / 6)
    assert guess.baseline == pytest.approx(1 / 3)


def test_the_same_groups_tell_nothing_more() -> None:
    found = by_knowledge(Restart(), twice([(0, 1, 2), (3, 4, 5)], [(0, 1, 2), (3, 4, 5)]))
    for result in found.values():
        assert result.success.rate == pytest.approx(result.baseline)


def test_without_a_job_there_is_no_second_release() -> None:
    assert "can't be run again" in str(Restart().misfit(released([(0, 1, 2), (3, 4, 5)])))
