"""Whether the order inside groups follows something private."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from shoal.audit import Report, audit
from shoal.audit.shuffling import MOST_FALSE, inversions
from shoal.spec.hierarchy import Range
from shoal.spec.policy import KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema

SCHEMA = Schema(subject="who", quasi=[Quasi("age", Range(0, 100))])
NAMES = tuple(f"{name}-{i}" for i in range(40) for name in ("ann", "bob", "cid", "dan", "eve"))


def run(n_groups: int, size: int, *, share: float = 0.0, seed: int = 1, **options: str) -> Report:
    """Audit groups of one box; a share of the pairs of neighbours is in order of arrival."""
    draw = random.Random(seed)
    lines, original = [], []
    for group in range(n_groups):
        members = list(range(group * size, (group + 1) * size))
        original += [{"who": draw.choice(NAMES), "age": draw.randrange(101)} for _ in members]
        order = sorted(members) if draw.random() < share else draw.sample(members, size)
        moment = (group + 1) * size - 1
        lines += [
            {
                "row": row, "subject": original[row]["who"], "outcome": "group", "arrived": row,
                "published": moment, "arrived_s": None, "published_s": None, "group": group,
                "seq": group * size + place,
            }
            for place, row in enumerate(order)
        ]  # fmt: skip
    return audit(
        SCHEMA,
        Policy(KAnonymity(1)),
        pa.table({"age": ["[0, 100]"] * len(lines)}),
        trace=pa.Table.from_pylist(lines),
        original=pa.Table.from_pylist(original),
        **options,
    )


@pytest.mark.parametrize(("n_groups", "size"), [(300, 2), (60, 5), (10, 40), (1, 200)])
def test_shuffled_groups_are_kept_and_sorted_ones_broken(n_groups: int, size: int) -> None:
    for seed in range(10):
        verdict = run(n_groups, size, seed=seed, order="released")["order"]
        assert verdict.verdict == "kept"
        assert "follows nothing private" in verdict.detail
        assert verdict.figures["n_judged"] == n_groups * size
    verdict = run(n_groups, size, share=1.0, order="released")["order"]
    assert verdict.verdict == "broken"
    assert "their order follows arrival" in verdict.detail


def test_half_of_the_groups_are_enough_if_there_are_many() -> None:
    assert run(200, 6, share=0.5, order="shuffled")["order"].verdict == "broken"


@pytest.mark.parametrize(("n_groups", "size"), [(7, 5), (1, 20), (40, 2), (300, 1)])
def test_few_rows_are_never_broken_by_chance(n_groups: int, size: int) -> None:
    """Not even if they are sorted, which chance does now and then."""
    verdict = run(n_groups, size, share=1.0, order="released")["order"]
    assert verdict.verdict == "kept"
    assert "can't be judged by so few rows" in verdict.detail
    assert verdict.figures["n_judged"] == 0


def test_rows_in_order_of_arrival_are_right_if_that_was_asked_for() -> None:
    assert run(60, 5, share=1.0, order="arrival")["order"].verdict == "kept"
    verdict = run(60, 5, order="arrival")["order"]
    assert verdict.verdict == "broken"
    assert "rows left before one that arrived earlier" in verdict.detail


def test_an_order_that_is_not_known_is_the_one_that_fits() -> None:
    assert "in the order of their arrival" in run(60, 5, share=1.0)["order"].detail
    assert "group after group" in run(60, 5)["order"].detail


def test_inversions_by_the_definition() -> None:
    draw = random.Random(3)
    lengths = [1, 2, 5, 3, 5, 7]
    values = draw.sample(range(100), sum(lengths))
    expected, start = 0, 0
    for length in lengths:
        part = values[start : start + length]
        expected += sum(a > b for i, a in enumerate(part) for b in part[i + 1 :])
        start += length
    assert inversions(np.array(values), np.array(lengths)) == expected


def test_the_bound_on_false_alarms_holds_where_chances_can_be_counted() -> None:
    """The exact chances of each number of inversions, by convolution of uniform numbers."""
    for n_groups, size in [(1, 3), (8, 5), (30, 2), (3, 12)]:
        chances = np.ones(1)
        for _ in range(n_groups):
            for m in range(1, size + 1):
                chances = np.convolve(chances, np.full(m, 1 / m))
        mean = n_groups * size * (size - 1) / 4
        variance = n_groups * size * (size - 1) * (2 * size + 5) / 72
        apart = np.abs(np.arange(len(chances)) - mean)
        for t in np.unique(apart):
            bound = 2 * math.exp(-(t**2) / (2 * variance))
            assert chances[apart >= t].sum() <= bound * (1 + 1e-9)
    assert MOST_FALSE == 1e-9
