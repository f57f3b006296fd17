"""The kernel of the minimum delay method and its naive twin make the same decisions, row by row."""

from __future__ import annotations

import numba
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms.min_delay import MinDelay
from tests.algorithms import cases
from tests.algorithms.waiting_cases import CASES, Case, compare
from tests.examples import examples
from tests.naive.min_delay import NaiveMinDelay

#: Compiled code draws many streams; plain Python looks whether it does the same.
MANY = examples(8 if numba.config.DISABLE_JIT else 100)


@settings(max_examples=MANY, deadline=None, derandomize=True)
@given(case=st.builds(Case, **CASES), batch=st.sampled_from([1, 7, 1000]), ticks=st.booleans())
def test_kernel_and_twin_decide_alike(case: Case, batch: int, ticks: bool) -> None:
    anonymizer = MinDelay(loss=case.loss, capacity=case.capacity)  # type: ignore[arg-type]
    engine = anonymizer.start(case.schema(), case.policy(), seed=cases.SEED)
    naive = NaiveMinDelay(case.domains, case.weights, **case.naively())
    compare(case, engine, naive, batch, ticks)
