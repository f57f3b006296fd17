"""Fixed-seed runs of every algorithm write what they always wrote, byte for byte."""

from __future__ import annotations

import pytest

from shoal.algorithms import names
from tests.identity.runs import CASES, digests, recorded

FIRST = {case.algorithm: case for case in reversed(CASES)}


def _of(case):
    marks = () if case is FIRST[case.algorithm] else pytest.mark.nightly
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [_of(case) for case in CASES])
def test_a_run_writes_what_it_always_wrote(case):
    assert digests(case) == recorded()[case.name]


def test_every_algorithm_has_a_run():
    assert set(FIRST) == set(names())
    assert set(recorded()) == {case.name for case in CASES}
