"""The kernel and the naive twin make the same decisions, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms import Castle
from shoal.engine import Codes, Decisions, Engine
from tests.algorithms import cases
from tests.examples import examples
from tests.naive.castle import NaiveCastle

#: Compiled code draws many streams; plain Python looks whether it does the same.
MANY = examples(6 if numba.config.DISABLE_JIT else 150)


@dataclass(kw_only=True)
class Case(cases.Case):
    """A case with the knobs of CASTLE."""

    clusters: int
    recent: int

    def naive(self) -> NaiveCastle:
        return NaiveCastle(
            self.domains,
            self.weights,
            clusters=self.clusters,
            recent=self.recent,
            **self.naively(),
        )

    def engine(self) -> Engine:
        anonymizer = Castle(
            clusters=self.clusters,
            recent=self.recent,
            kept=self.kept,
            reuse=self.reuse,  # type: ignore[arg-type]
            joins=self.joins,  # type: ignore[arg-type]
            loss=self.loss,  # type: ignore[arg-type]
        )
        return anonymizer.start(self.schema(), self.policy(), seed=cases.SEED)


def as_tuples(decisions: Decisions) -> list[tuple[object, ...]]:
    """What a kernel decided, in words that can be compared."""
    names = ["group", "reuse", "suppressed"]
    rows = []
    for i, row in enumerate(decisions.rows):
        box = int(decisions.boxes[i])
        when = (int(decisions.published[i]), float(decisions.published_s[i]))
        outcome = names[decisions.outcomes[i]]
        if box < 0:
            rows.append((int(row), outcome, None, None, None, 1.0, *when, -1))
        else:
            sides = (tuple(decisions.lo[box]), tuple(decisions.hi[box]))
            number, loss = int(decisions.groups[box]), float(decisions.loss[box])
            rows.append(
                (int(row), outcome, number, *sides, loss, *when, int(decisions.windows[box]))
            )
    return sorted(rows)


def compare(case: Case, batch: int, ticks: bool) -> None:
    codes = case.codes()
    engine, naive = case.engine(), case.naive()
    for begin in range(0, case.n_rows, batch):
        part = Codes(*(array[begin : begin + batch] for array in codes))
        got = as_tuples(engine.push(part))
        want = []
        for i in range(begin, min(begin + batch, case.n_rows)):
            want += naive.push(
                list(codes.values[i]), int(codes.subjects[i]), list(codes.sensitive[i]),
                float(codes.times[i]),
            )  # fmt: skip
        if ticks:
            got += as_tuples(engine.advance(float(part.times.max()) + 1.0))
            want += naive.advance(float(part.times.max()) + 1.0)
        assert sorted(got) == naively(want)
    assert as_tuples(engine.flush()) == naively(naive.flush())
    assert engine.n_held == 0


def naively(decisions: list[object]) -> list[tuple[object, ...]]:
    return sorted(
        (d.row, d.outcome, d.group,  # type: ignore[attr-defined]
         None if d.lo is None else tuple(d.lo),  # type: ignore[attr-defined]
         None if d.hi is None else tuple(d.hi),  # type: ignore[attr-defined]
         d.loss, d.published, d.published_s,  # type: ignore[attr-defined]
         -1 if d.window is None else d.window)  # type: ignore[attr-defined]
        for d in decisions
    )  # fmt: skip


KNOBS = {
    "seed": st.integers(0, 10**6),
    "k": st.integers(1, 7),
    "l": st.sampled_from([1, 1, 1, 2, 3, 4]),
    "entropy": st.sampled_from([0.0, 0.0, 0.0, 1.5, 2.0]),
    "recursive": st.sampled_from([(0.0, 0), (0.0, 0), (0.0, 0), (2.0, 2), (1.5, 3)]),
    "delay": st.tuples(st.integers(1, 60), st.sampled_from([None, None, 2.5, 20.0])),
    "n_subjects": st.sampled_from([1, 3, 9, 40]),
    "n_rows": st.integers(1, 120),
    "clusters": st.sampled_from([1, 2, 5, 20]),
    "recent": st.sampled_from([1, 3, 10]),
    "kept": st.sampled_from([0, 1, 4, 100]),
    "reuse": st.sampled_from(["random", "random", "best"]),
    "joins": st.sampled_from(["together", "together", "alone"]),
    "loss": st.sampled_from(["glm", "lm", "uncertainty"]),
    "step": st.sampled_from([None, 1.0, 5.0, 0.3]),
    "spread": st.sampled_from([0, 3, 40]),
    "two_sensitive": st.booleans(),
}


@settings(max_examples=2 * MANY, deadline=None, derandomize=True)
@given(case=st.builds(Case, **KNOBS), batch=st.sampled_from([1, 7, 1000]), ticks=st.booleans())
def test_kernel_and_twin_decide_alike(case: Case, batch: int, ticks: bool) -> None:
    compare(case, batch, ticks)


@settings(max_examples=MANY, deadline=None, derandomize=True)
@given(
    case=st.builds(Case, **KNOBS, measured=cases.MEASURED, window=st.sampled_from([1, 30, 80])),
    batch=st.sampled_from([1, 7, 1000]),
    ticks=st.booleans(),
)
def test_kernel_and_twin_decide_alike_against_a_window(case: Case, batch: int, ticks: bool) -> None:
    compare(case, batch, ticks)


@pytest.mark.parametrize("seed", range(4))
def test_on_a_longer_stream(seed: int) -> None:
    case = Case(
        seed=seed, k=5, l=[1, 3][seed % 2], entropy=0.0, recursive=(0.0, 0), delay=(150, None),
        n_subjects=200, n_rows=700, clusters=8, recent=20, kept=30, reuse="random",
        joins=["alone", "together"][seed // 2], loss="glm", step=5.0, spread=20,
    )  # fmt: skip
    compare(case, 256, ticks=False)
