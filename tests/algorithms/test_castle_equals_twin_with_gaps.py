"""The kernel of CASTLE and its naive twin make the same decisions on rows that lack values."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine import Codes
from shoal.engine.base import Decisions
from shoal.engine.space import Space
from tests.algorithms import test_castle_equals_twin as complete
from tests.examples import examples
from tests.naive.castle import NaiveCastle
from tests.naive.space import Box
from tests.naive.space import Space as NaiveSpace

EMPTY = (np.inf, -np.inf)


class Added(NaiveSpace):
    """CASTLE weighs boxes by what their sides lose together, however many sides they have.

    What is published of an empty side is written as kernels do.
    """

    def loss(self, box: Box) -> float:
        return self.spread(tuple(None if side == EMPTY else side for side in box))

    def public(self, box: Box) -> Box:
        return tuple(EMPTY if side is None else side for side in super().public(box))


class Case(complete.Case):
    """A stream with gaps: each attribute is missing in its own share of the rows."""

    def codes(self) -> Codes:
        draw = random.Random(self.seed)
        codes = super().codes()
        shares = [draw.choice([0.1, 0.4, 0.8, 1.0]) for _ in self.domains]
        gaps = [[draw.random() < share for share in shares] for _ in range(self.n_rows)]
        return codes._replace(values=np.where(gaps, np.nan, codes.values))

    def naive(self) -> NaiveCastle:
        naive = super().naive()
        naive.space.__class__ = Added
        naive.space.missing = self.missing
        return naive


def as_tuples(space: Space, decisions: Decisions) -> list[tuple[object, ...]]:
    """What a kernel decided, with the loss that it weighs by and not the one it tells."""
    losses = [space.loss(lo, hi) for lo, hi in zip(decisions.lo, decisions.hi, strict=True)]
    return complete.as_tuples(decisions._replace(loss=np.array(losses)))


CASES = st.builds(
    Case,
    seed=st.integers(0, 10**6),
    k=st.integers(1, 7),
    l=st.sampled_from([1, 1, 1, 2, 3]),
    entropy=st.sampled_from([0.0, 0.0, 0.0, 1.5]),
    recursive=st.sampled_from([(0.0, 0), (0.0, 0), (2.0, 2)]),
    delay=st.tuples(st.integers(1, 60), st.none()),
    n_subjects=st.sampled_from([1, 3, 9, 40]),
    n_rows=st.integers(1, 120),
    clusters=st.sampled_from([1, 2, 5, 20]),
    recent=st.sampled_from([1, 3, 10]),
    kept=st.sampled_from([0, 1, 4, 100]),
    # The best of kept groups is that of least loss over the sides which it has: not weighed here.
    reuse=st.just("random"),
    joins=st.sampled_from(["together", "alone"]),
    loss=st.sampled_from(["glm", "lm", "uncertainty"]),
    step=st.sampled_from([None, 1.0, 5.0]),
    spread=st.sampled_from([0, 3, 40]),
    two_sensitive=st.booleans(),
    missing=st.sampled_from(["maybe", "extended"]),
)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(case=CASES)
def test_kernel_and_twin_decide_alike_about_rows_with_gaps(case: Case) -> None:
    space = Space(case.schema(), case.policy(), case.loss)  # type: ignore[arg-type]
    engine, naive, codes = case.engine(), case.naive(), case.codes()
    want: list[object] = []
    for i in range(case.n_rows):
        want += naive.push(
            list(codes.values[i]), int(codes.subjects[i]), list(codes.sensitive[i]),
            float(codes.times[i]),
        )  # fmt: skip
    assert as_tuples(space, engine.push(codes)) == complete.naively(want)
    assert as_tuples(space, engine.flush()) == complete.naively(list(naive.flush()))
