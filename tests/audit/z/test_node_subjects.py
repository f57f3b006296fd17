"""Who stands behind a node: what is kept up row by row against what is counted from scratch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.audit.z.node_subjects import NodeSubjects, redecide

# Two roots, four nodes below them, eight leaves; a leaf may be an only child.
PARENTS = [-1, -1, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4, 4, 5]
LEAVES = range(6, 14)

Pairs = list[tuple[int, int]]


def from_scratch(node: int, exposed: Pairs, shown: set[tuple[int, int]], z: float) -> set[int]:
    if node in LEAVES:
        return {subject for leaf, subject in exposed if leaf == node}
    found: set[int] = set()
    for child, parent in enumerate(PARENTS):
        if parent == node and len(people := from_scratch(child, exposed, shown, z)) <= z - 2:
            found |= {subject for subject in people if (child, subject) not in shown}
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("z", [1, 2, 3, 5, math.inf])
def test_counts_of_subjects_that_come_and_go(seed: int, z: float) -> None:
    random = np.random.default_rng(seed)
    counts, exposed, shown = NodeSubjects(PARENTS, z), [], set()
    for _ in range(300):
        what = random.random()
        if exposed and what < 0.4:
            pair = exposed.pop(random.integers(len(exposed)))
            counts.drop(*pair)
            if pair not in exposed:
                shown.discard(pair)
        elif exposed and what < 0.5:
            pair = exposed[random.integers(len(exposed))]
            counts.show(*pair)
            shown.add(pair)
        else:
            pair = int(random.choice(LEAVES)), int(random.integers(9))
            exposed.append(pair)
            counts.add(*pair)
        if random.random() < 0.05 and z != math.inf:
            z = int(random.integers(1, 7))
            counts.need(z)
        for node in range(len(PARENTS)):
            people = from_scratch(node, exposed, shown, z)
            assert counts.n_subjects(node, 3) == len(people | {3})


def test_rows_that_expose_nothing_and_levels_that_there_are_not() -> None:
    allowed, behind = redecide(
        np.array([[1, 0], [2, 0]]),
        [-1, 0, 0],
        value=np.array([0, -1, 0, 1, 0]),
        subject=np.array([5, 6, 6, 7, 7]),
        starts=np.array([0, 0, 0, 2, 3]),
        z=np.array([2, 2, 2, 2, 1]),
        level=np.array([-1, 0, 0, 1, 9]),
        residual=True,
    )
    assert allowed.tolist() == [2, 2, 0, 2, 0]
    # At the fourth row the first one has left, and the other leaf is one short of being public.
    assert behind.tolist() == [0, 0, 2, 1, 0]


def test_a_label_says_no_more_than_a_finer_one() -> None:
    """The last of three at a leaf is published as the parent, behind which nobody else is."""
    allowed, behind = redecide(
        np.array([[1, 0]]),
        [-1, 0],
        value=np.zeros(3, dtype=np.int64),
        subject=np.arange(3),
        starts=np.zeros(3, dtype=np.int64),
        z=np.full(3, 3),
        level=np.array([-1, -1, 1]),
        residual=True,
    )
    assert (allowed.tolist(), behind.tolist()) == ([2, 2, 0], [0, 0, 3])
