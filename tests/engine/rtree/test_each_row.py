"""Trees where each row is of another subject, and nothing is counted by subject."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import KAnonymity, Policy, Quasi, Range, Schema
from shoal.algorithms import TreeDensity
from shoal.engine import Codes
from shoal.errors import ParameterError
from shoal.testing.streams import batch


def test_counting_rows_is_counting_people_where_each_row_is_another_one() -> None:
    quasi = [Quasi("x", Range(0, 1000))]
    policy, n_rows = Policy(KAnonymity(3)), 600
    values = np.random.default_rng(4).uniform(0, 1000, (n_rows, 1))
    numbers, nothing = np.arange(n_rows), np.empty((n_rows, 0), np.int64)
    codes = Codes(values, numbers, nothing, np.full(n_rows, np.nan))
    found = []
    for schema in (Schema("p", quasi), Schema(None, quasi)):
        engine = TreeDensity(capacity=60, samples=50, sampled=100).start(
            schema, policy, seed=b"numbered"
        )
        made = [engine.push(batch(codes, i, i + 40)) for i in range(0, n_rows, 40)]
        found.append([*made, engine.flush()])
    for a, b in zip(*found, strict=True):
        for one, other in zip(a, b, strict=True):
            np.testing.assert_array_equal(one, other)
    assert sum(len(decided.rows) for decided in found[1]) == n_rows
    with pytest.raises(ParameterError, match="must be ascending"):
        engine.push(batch(codes._replace(subjects=numbers[::-1].copy()), 0, 9))
