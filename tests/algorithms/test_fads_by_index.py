"""FADS with an index decides as FADS without one: in plain Python, where an index can be forced."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from shoal import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.algorithms.fads import Fads
from shoal.arrow.codec import Codec
from shoal.datasets import census
from shoal.engine import Codes
from shoal.engine.base import Decisions, Engine
from shoal.engine.kernels import spatial_index
from tests.algorithms.rows import groups, stream

pytestmark = [
    pytest.mark.plain,
    pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="compiled code keeps its constants"),
]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Forces an index, and notes the slot of each row that was searched around by it."""
    for name, value in {"LEAST": 0, "LEAST_EACH": 0, "LEAF": 8, "PAIRS": 2}.items():
        monkeypatch.setattr(spatial_index, name, value)
    seen: list[int] = []
    nearest = spatial_index.nearest

    def noted(*arguments: Any) -> Any:
        seen.append(int(arguments[4]))
        return nearest(*arguments)

    monkeypatch.setattr(spatial_index, "nearest", noted)
    return seen


def start(policy: Policy) -> tuple[Engine, list[Codes]]:
    data = census(400, subjects=150, seed=4, batch_rows=100)
    codec = Codec(data.schema, key=bytes(8))
    engine = Fads(kept=5).start(data.schema, policy, seed=b"1")
    batches = []
    for batch in data.batches():
        codes = codec.encode(batch).codes
        if policy.missing == "quarantine":
            # Points: the income of the census is widened to its step.
            codes = codes._replace(values=engine.space.points(codes.values)[0])
        else:
            codes.values[::10, 0] = np.nan
        batches.append(codes)
    return engine, batches


def decided(engine: Engine, batches: list[Codes]) -> list[Decisions]:
    return [*(engine.push(codes) for codes in batches), engine.flush()]


def assert_same(some: list[Decisions], others: list[Decisions]) -> None:
    for one, other in zip(some, others, strict=True):
        for ours, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


POLICIES = [
    Policy(KAnonymity(5), delay=Delay(rows=120)),
    Policy(KAnonymity(3), DistinctLDiversity(3), delay=Delay(rows=120)),
    pytest.param(Policy(KAnonymity(100), delay=Delay(rows=120)), marks=pytest.mark.nightly),
    Policy(KAnonymity(5), delay=Delay(rows=120), missing="maybe"),
    Policy(KAnonymity(5), delay=Delay(rows=120), missing="extended"),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_same_decisions(policy: Policy, request: pytest.FixtureRequest) -> None:
    want = decided(*start(policy))
    searches = request.getfixturevalue("searches")
    engine, batches = start(policy)
    assert_same(decided(engine, batches), want)
    assert len(searches) > 10
    assert engine._index.marks["n"][0] > 0  # type: ignore[attr-defined]


def test_an_index_of_other_rows_is_forgotten(searches: list[int]) -> None:
    engine, batches = start(POLICIES[0])
    engine.push(batches[0])
    before = engine.snapshot()
    want = decided(engine, batches[1:])
    engine.restore(before)
    assert_same(decided(engine, batches[1:]), want)
    assert searches


def last_group(rows: list[tuple[Any, ...]], promise: Policy) -> set[int]:
    """The group of the first row, which is due when the last one comes."""
    played = stream(rows, promise)
    decided = played.start(Fads()).push(played.codes)
    return groups(decided)[0]


def test_where_the_nearest_rows_are_of_too_few_people_all_are_searched(
    searches: list[int],
) -> None:
    rows = [(10.0, "a"), *[(11.0, "b")] * 20, (90.0, "c")]
    assert last_group(rows, Policy(KAnonymity(3), delay=Delay(rows=21))) == {0, 1, 21}
    assert searches


def test_where_a_group_takes_all_people_of_the_nearest_rows_all_are_searched(
    searches: list[int],
) -> None:
    """After 16 people, who aren't diverse, come 18; the nearest 32 rows are of 17."""
    rows = [(float(n), n, int(n == 16)) for n in range(17)]
    rows += [(17.0, 1, 0)] * 16 + [(50.0, 18, 0)]
    promise = Policy(KAnonymity(16), DistinctLDiversity(2), delay=Delay(rows=33))
    assert last_group(rows, promise) == {*range(17), 33}
    assert searches
