"""A cluster that is cut: every row in a part, every part with enough people."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, Policy, Quasi, Range, Schema, Sensitive
from shoal.engine import Space
from shoal.engine.kernels.diverse_split import diverse_parts
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.rng import seeded
from shoal.engine.kernels.split import by_subjects, by_values, repair_parts
from shoal.spec.policy import DistinctLDiversity, EntropyLDiversity, KAnonymity
from shoal.testing.definitions import broken
from tests.examples import examples

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)
TREE = Hierarchy.from_dict({"Any": {"A": ["a", "b"], "B": ["c", "d", "e"]}})
SCHEMA = Schema(
    "p", [Quasi("x", Range(0, 20)), Quasi("y", TREE)], [Sensitive("s0"), Sensitive("s1")]
)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 11),
        st.integers(0, 20),
        st.integers(0, 4),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=30,
)


class Cluster:
    def __init__(self, rows: list[tuple[int, ...]], policy: Policy) -> None:
        array = np.array(rows, np.int64)
        self.policy = policy
        self.space = Space(SCHEMA, policy)
        self.subjects, self.sensitive = array[:, 0].copy(), array[:, 3:].copy()
        lo, hi = self.space.points(array[:, 1:3].astype(float))
        gaps = np.zeros(len(lo), np.int64)
        self.rows = RowArrays(lo.T.copy(), hi.T.copy(), self.subjects, self.sensitive, gaps)
        self.part = np.full(len(rows), -7)
        self.rng = seeded(b"split", "test")

    def broken(self, members: np.ndarray) -> str | None:
        return broken(
            self.policy, SCHEMA, self.subjects[members].tolist(), self.sensitive[members].tolist()
        )

    def parts(self, n_parts: int) -> list[np.ndarray]:
        assert set(self.part.tolist()) == set(range(n_parts)), "a row without part, or the reverse"
        return [np.flatnonzero(self.part == p) for p in range(n_parts)]


@SETTINGS
@given(rows=ROWS, k=st.integers(1, 4))
def test_by_subjects_gives_every_part_k_people(rows: list[tuple[int, ...]], k: int) -> None:
    cluster = Cluster(rows, Policy(KAnonymity(k)))
    if cluster.broken(np.arange(len(rows))):
        return
    n_parts = by_subjects(cluster.space.sides, k, cluster.rng, cluster.rows, cluster.part)
    parts = cluster.parts(n_parts)
    assert all(cluster.broken(members) is None for members in parts)
    # Nobody is asked to join a part while enough people are left to make another one.
    if len({row[0] for row in rows}) == len(rows):
        assert n_parts == len(rows) // k


@SETTINGS
@given(rows=ROWS, k=st.integers(1, 4), l=st.integers(2, 3), name=st.sampled_from(["s0", "s1"]))
def test_by_values_gives_every_part_enough_people_and_values(
    rows: list[tuple[int, ...]],
    k: int,
    l: int,  # noqa: E741
    name: str,
) -> None:
    cluster = Cluster(rows, Policy(KAnonymity(k), DistinctLDiversity(l, name)))
    if cluster.broken(np.arange(len(rows))):
        return
    n_parts = by_values(
        cluster.space.sides, cluster.space.limits, cluster.rng, cluster.rows, cluster.part
    )
    parts = cluster.parts(n_parts)
    assert all(cluster.broken(members) is None for members in parts)
    for subject in set(cluster.subjects.tolist()):
        assert len(set(cluster.part[cluster.subjects == subject].tolist())) == 1


def test_by_values_leaves_rows_that_are_not_diverse_in_one_part() -> None:
    cluster = Cluster([(i, i, 0, 1, 1) for i in range(6)], Policy(DistinctLDiversity(2)))
    n_parts = by_values(
        cluster.space.sides, cluster.space.limits, cluster.rng, cluster.rows, cluster.part
    )
    assert len(cluster.parts(n_parts)) == 1


@SETTINGS
@given(rows=ROWS, k=st.integers(1, 4), l=st.integers(2, 3), entropy=st.booleans())
def test_diverse_parts_keep_the_promise_and_leave_subjects_whole(
    rows: list[tuple[int, ...]],
    k: int,
    l: int,  # noqa: E741
    entropy: bool,
) -> None:
    diverse = EntropyLDiversity(l) if entropy else DistinctLDiversity(l)
    cluster = Cluster(rows, Policy(KAnonymity(k), diverse))
    if cluster.broken(np.arange(len(rows))):
        return
    n_parts = diverse_parts(
        cluster.space.sides, cluster.space.limits, cluster.rng, cluster.rows, cluster.part
    )
    assert all(cluster.broken(members) is None for members in cluster.parts(n_parts))
    for subject in set(cluster.subjects.tolist()):
        assert len(set(cluster.part[cluster.subjects == subject].tolist())) == 1


@SETTINGS
@given(rows=ROWS, parts=st.lists(st.integers(0, 4), min_size=30, max_size=30))
def test_repair_leaves_no_part_that_breaks_the_promise(
    rows: list[tuple[int, ...]], parts: list[int]
) -> None:
    policy = Policy(KAnonymity(2), DistinctLDiversity(2), EntropyLDiversity(1.5, "s1"))
    cluster = Cluster(rows, policy)
    if cluster.broken(np.arange(len(rows))):
        return
    numbers = {part: i for i, part in enumerate(dict.fromkeys(parts[: len(rows)]))}
    cluster.part[:] = [numbers[part] for part in parts[: len(rows)]]
    before = cluster.part.copy()
    n_parts = repair_parts(
        cluster.space.sides, cluster.space.limits, cluster.rows, cluster.part, len(numbers)
    )
    assert all(cluster.broken(members) is None for members in cluster.parts(n_parts))
    for p in range(len(numbers)):
        assert len(set(cluster.part[before == p].tolist())) == 1, "the repair tore a part apart"
