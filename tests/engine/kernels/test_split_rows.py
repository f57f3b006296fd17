"""A cluster of which each row is of another subject is cut as the definition says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import KAnonymity, Policy
from shoal.engine.kernels.boxes import box_loss, join
from shoal.engine.kernels.rng import below, seeded
from shoal.engine.kernels.split_rows import cut_by_rows
from tests.engine.kernels.test_split import Cluster
from tests.examples import examples

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
# Few different values, so that many distances are equal.
VALUES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=60)


def distance(cluster: Cluster, a: int, b: int) -> float:
    lo, hi = cluster.rows.lo[:, a].copy(), cluster.rows.hi[:, a].copy()
    join(cluster.space.sides, lo, hi, cluster.rows.lo[:, b].copy(), cluster.rows.hi[:, b].copy())
    return float(box_loss(cluster.space.sides, lo, hi))


def slowly(cluster: Cluster, k: int) -> tuple[int, list[int]]:
    """A part is a row that is drawn and the k - 1 nearest that are left, the earlier of two."""
    rng, left, n_parts = seeded(b"split", "test"), list(range(len(cluster.part))), 0
    part = [-1] * len(left)
    while len(left) >= k:
        seed = left.pop(below(rng, len(left)))
        near = sorted(left, key=lambda row: (distance(cluster, seed, row), row))[: k - 1]
        for row in (seed, *near):
            part[row] = n_parts
        left = [row for row in left if row not in near]
        n_parts += 1
    return n_parts, part


@SETTINGS
@given(values=VALUES, k=st.integers(1, 7))
def test_parts_are_a_row_and_the_nearest_that_are_left(
    values: list[tuple[int, int]], k: int
) -> None:
    rows: list[tuple[int, ...]] = [(i, x, y, 0, 0) for i, (x, y) in enumerate(values)]
    cluster = Cluster(rows, Policy(KAnonymity(k)))
    cluster.part[:] = -1
    n_parts = cut_by_rows(cluster.space.sides, k, cluster.rng, cluster.rows, cluster.part)
    assert (n_parts, cluster.part.tolist()) == slowly(cluster, k)
