"""Losses by leaf: the same numbers as without a table, whatever became of the boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine import Space
from shoal.engine.kernels import leaf_losses
from shoal.engine.kernels.boxes import Sides, join, joined_losses
from shoal.engine.space import Loss

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True, database=None)
DOMAINS = [Range(0, 20), Hierarchy.digits(2), Hierarchy.flat([*"abcd"]), Hierarchy.digits(3)]
N_BOXES = 3


def space(loss: Loss) -> Sides:
    schema = Schema("p", [Quasi(f"x{d}", domain, 1.0 + d) for d, domain in enumerate(DOMAINS)])
    return Space(schema, Policy(KAnonymity(2), delay=Delay(rows=5)), loss).sides


#: A side is a value, the whole domain (where a gap may be anything) or a gap.
VALUES = [
    st.integers(0, most).map(lambda code: (float(code), float(code)))
    | st.just((0.0, float(most)))
    | st.just((np.inf, -np.inf))
    for most in (20, 99, 3, 999)
]
ROWS = st.tuples(*VALUES).map(np.array)
#: A box that is set to a row, whatever it was, or widened by one; or all tables begin anew.
STEPS = st.lists(st.tuples(st.integers(0, N_BOXES - 1), st.booleans(), ROWS), max_size=25)


@SETTINGS
@given(steps=STEPS, row=ROWS, loss=st.sampled_from(["glm", "lm", "uncertainty"]))
@pytest.mark.parametrize("most", [leaf_losses.MOST, 400, 0])
def test_as_without_a_table(
    steps: list[tuple[int, bool, np.ndarray]], row: np.ndarray, loss: Loss, most: int
) -> None:
    sides, d = space(loss), len(DOMAINS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaf_losses, "MOST", most)
        known, again = (leaf_losses.empty(sides, N_BOXES) for _ in range(2))
    los, his = np.full((d, N_BOXES), np.inf), np.full((d, N_BOXES), -np.inf)
    for c, widens, (low, high) in ((c, widens, by.T) for c, widens, by in steps):
        lo, hi = np.full(d, np.inf), np.full(d, -np.inf)
        if widens:
            lo, hi = los[:, c].copy(), his[:, c].copy()
        join(sides, lo, hi, low.copy(), high.copy())
        los[:, c], his[:, c] = lo, hi
        leaf_losses.fit(sides, known, c, lo, hi)
    leaf_losses.fit_all(sides, again, los, his)
    expected, lo, hi = np.empty(N_BOXES), row[:, 0].copy(), row[:, 1].copy()
    joined_losses(sides, los, his, N_BOXES, lo, hi, expected)
    for table in (known, again):
        found = np.empty(N_BOXES)
        leaf_losses.joined_by_leaf(sides, table, los, his, lo, hi, found)
        assert found.tolist() == expected.tolist()


def test_large_trees_are_not_in_the_table() -> None:
    few, many = (leaf_losses.empty(space("glm"), n) for n in (50, 1_000))
    assert few.first.tolist() == [-1, 0, 100, 104]
    assert few.table.shape == (1_104, 50)
    assert many.first.tolist() == [-1, -1, 0, -1]
    assert many.table.shape == (4, 1_000)
