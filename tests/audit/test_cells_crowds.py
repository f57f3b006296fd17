"""Who stands behind a node: what is kept up row by row against what is counted anew."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.audit.cells.crowds import Crowds, crowds_behind

# Two roots, four nodes below them, eight leaves; a leaf may be an only child.
PARENTS = [-1, -1, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4, 4, 5]
LEAVES = range(6, 14)


def anew(node: int, exposed: list[tuple[int, int]], z: float) -> set[int]:
    if node in LEAVES:
        return {subject for leaf, subject in exposed if leaf == node}
    children = [child for child, parent in enumerate(PARENTS) if parent == node]
    crowds = [anew(child, exposed, z) for child in children]
    return set().union(*(crowd for crowd in crowds if len(crowd) < z))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("z", [1, 2, 4, math.inf])
def test_whoever_comes_and_goes(seed: int, z: float) -> None:
    random = np.random.default_rng(seed)
    crowds, exposed = Crowds(PARENTS, z), []
    for _ in range(300):
        if exposed and random.random() < 0.45:
            leaf, subject = exposed.pop(random.integers(len(exposed)))
            crowds.drop(leaf, subject)
        else:
            leaf, subject = int(random.choice(LEAVES)), int(random.integers(9))
            exposed.append((leaf, subject))
            crowds.add(leaf, subject)
        if random.random() < 0.05 and z != math.inf:
            z = int(random.integers(1, 6))
            crowds.need(z)
        for node in range(len(PARENTS)):
            assert crowds.n_subjects(node) == len(anew(node, exposed, z))


def test_rows_that_expose_nothing_and_nodes_that_are_not_asked_for() -> None:
    found = crowds_behind(
        np.array([1, -1, 1, 0]),
        [-1, 0, 0],
        np.array([1, -1, 1, 2]),
        np.array([5, 6, 6, 7]),
        np.array([0, 0, 0, 2]),
        np.array([2, 2, 2, 2]),
        residual=True,
    )
    # At the last row the first one has left, so that the other child no longer keeps its people.
    assert found.tolist() == [1, 0, 2, 2]
