"""The kernel of z-anonymity and the naive twin decide alike, cell by cell."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.engine.space import Codes
from shoal.spec.criteria import ZAnonymity
from shoal.spec.ladder import Open, Path
from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Quasi, Schema
from tests.algorithms.events import N_LEVELS, stream
from tests.examples import examples
from tests.naive.z_anonymity import Decision, Estimate, NaiveZAnonymity, Row

#: Compiled code draws many streams; plain Python looks whether it does the same.
MANY = examples(6 if numba.config.DISABLE_JIT else 200)
HIDDEN, MISSING = -1, -2


@dataclass(kw_only=True)
class Case:
    """A promise, a stream, and the knobs."""

    seed: int
    z: int
    window: dict[str, Any]
    n_rows: int
    n_subjects: int
    gaps: float
    count: str
    probability: float
    k: int
    estimates: int
    flat: bool = False
    rows: list[Row] = field(init=False)

    def __post_init__(self) -> None:
        if self.count == "plain":
            self.probability = 0.0
        timed = "window_seconds" in self.window or self.seed % 2 == 0
        self.rows = stream(self.seed, self.n_rows, self.n_subjects, gaps=self.gaps, timed=timed)
        if self.flat:
            # Without ladders, which have an engine of their own.
            self.rows = [(time, who, tuple(map(_leaf, cells))) for time, who, cells in self.rows]

    @property
    def n_levels(self) -> tuple[int, ...]:
        return tuple(1 for _ in N_LEVELS) if self.flat else N_LEVELS

    @property
    def knobs(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "probability": self.probability,
            "k": self.k,
            "estimates": self.estimates,
        }

    def naive(self) -> NaiveZAnonymity:
        return NaiveZAnonymity(self.z, **self.window, **self.knobs)

    def engine(self) -> Any:
        domains = [
            Open() if n_levels == 1 else Path("*", levels=n_levels) for n_levels in self.n_levels
        ]
        quasi = [Quasi(f"q{a}", domain) for a, domain in enumerate(domains)]
        window = Window(**{key.removeprefix("window_"): n for key, n in self.window.items()})
        policy = Policy(ZAnonymity(self.z), window=window, missing="maybe")
        schema = Schema("person", quasi, time="at")
        return ZAnonymizer(**self.knobs).start(schema, policy, seed=bytes(32))


def key_of(attribute: int, level: int, labels: Sequence[str]) -> int:
    """A number for a node that isn't 0, the same in every process."""
    text = repr((attribute, level, tuple(labels))).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True) or 1


def _leaf(labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if labels is None else ("*".join(labels),)


def codes_of(rows: Sequence[Row], n_levels: Sequence[int] = N_LEVELS) -> Codes:
    """Rows of the twin as a batch."""
    keys = [
        [
            0 if labels is None else key_of(attribute, level, labels[level:])
            for attribute, labels in enumerate(cells)
            for level in range(n_levels[attribute])
        ]
        for _, _, cells in rows
    ]
    return Codes(
        values=np.empty((len(rows), 0)),
        subjects=np.array([subject for _, subject, _ in rows], np.int64) * 7_919_000_000_000 - 5,
        sensitive=np.empty((len(rows), 0), np.int64),
        times=np.array([math.nan if time is None else time for time, _, _ in rows]),
        keys=np.array(keys, np.int64).reshape(len(rows), sum(n_levels)),
    )


def batches(rows: Sequence[Row], seed: int) -> Iterator[Sequence[Row]]:
    """The stream cut at random, some batches empty."""
    draw = random.Random(seed)
    begin = 0
    while begin < len(rows):
        end = begin + draw.choice([0, 1, 1, 2, 7, 30])
        yield rows[begin:end]
        begin = end


def by_twin(row: Row, decision: Decision) -> tuple[object, ...]:
    """Levels, n_behind and z, with numbers for what isn't published."""
    levels = [
        MISSING if labels is None else HIDDEN if level is None else level
        for labels, level in zip(row[2], decision.levels, strict=True)
    ]
    return levels, list(decision.n_behind), decision.z


def by_kernel(decisions: Any) -> list[tuple[object, ...]]:
    return [
        (levels, n_behind, z)
        for levels, n_behind, z in zip(
            decisions.levels.tolist(),
            decisions.n_behind.tolist(),
            decisions.z.tolist(),
            strict=True,
        )
    ]


def check_estimates(got: Sequence[Any], want: Sequence[Estimate]) -> None:
    """All is equal, but the entropy, which is summed in another order."""
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        names = {"row": "row", "before": "z_before", "z": "z_after", "n_subjects": "n_subjects"}
        for name, twins in names.items():
            assert ours[name] == getattr(theirs, twins), name
        assert ours["share"] == theirs.share
        assert ours["entropy"] == pytest.approx(theirs.entropy, abs=1e-12)
        if theirs.time is not None:
            assert ours["time"] == theirs.time


def compare(case: Case, cut: int) -> None:
    engine, naive = case.engine(), case.naive()
    estimates: list[Any] = []
    for part in batches(case.rows, cut):
        want = [by_twin(row, naive.push(row)) for row in part]
        decisions = engine.push(codes_of(part, case.n_levels))
        assert by_kernel(decisions) == want
        estimates += list(decisions.estimates)
        assert engine.n_exposures == naive.n_exposures
    if case.count == "plain":
        # What it shows isn't estimated.
        assert not estimates
    else:
        check_estimates(estimates, naive.estimates)


WINDOWS = [{"window_rows": n} for n in (1, 2, 9, 40)]
WINDOWS += [{"window_seconds": seconds} for seconds in (0.3, 6.0, 20.0, 1000.0)]
CASES = st.builds(
    Case,
    seed=st.integers(0, 10**6),
    z=st.integers(1, 6),
    window=st.sampled_from(WINDOWS),
    n_rows=st.integers(1, 120),
    n_subjects=st.sampled_from([1, 3, 8, 40]),
    gaps=st.sampled_from([0.0, 0.0, 0.3, 0.9]),
    count=st.sampled_from(["residual", "residual", "residual", "plain"]),
    probability=st.sampled_from([0.0, 0.0, 0.5, 0.9, 1.0]),
    k=st.integers(2, 4),
    estimates=st.sampled_from([1, 3, 4, 10]),
    flat=st.booleans(),
)


@settings(max_examples=MANY, deadline=None, derandomize=True, database=None)
@given(case=CASES, cut=st.integers(0, 10**6))
def test_kernel_and_twin_decide_alike(case: Case, cut: int) -> None:
    compare(case, cut)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [{"window_rows": 150}, {"window_seconds": 120.0}])
def test_on_a_longer_stream(seed: int, window: dict[str, Any], flat: bool) -> None:
    case = Case(
        seed=seed, z=5, window=window, n_rows=600, n_subjects=60, gaps=0.1, count="residual",
        probability=[0.0, 0.6][seed % 2], k=2, estimates=4, flat=flat,
    )  # fmt: skip
    compare(case, seed)


def test_a_node_has_the_same_number_in_all_rows_and_no_other_has_it() -> None:
    rows = stream(1, 200, 9)
    nodes = {
        (attribute, level, labels[level:])
        for _, _, cells in rows
        for attribute, labels in enumerate(cells)
        if labels is not None
        for level in range(len(labels))
    }
    numbers = {key_of(*node) for node in nodes}
    assert len(numbers) == len(nodes)
    assert 0 not in numbers
    assert set(codes_of(rows).keys.ravel().tolist()) == numbers
