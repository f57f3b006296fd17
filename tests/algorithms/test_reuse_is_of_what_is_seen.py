"""Who may join a kept group depends on what was published of it, and on nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Schema
from shoal.algorithms import find
from shoal.engine import Codes
from shoal.engine.base import Outcome

PETS = Hierarchy.from_dict({"*": {"Mammal": ["Cat", "Dog"], "Bird": ["Owl", "Jay"]}})
SCHEMA = Schema("person", [Quasi("pet", PETS)])
POLICY = Policy(KAnonymity(2), delay=Delay(rows=3))


def rows(pets: list[float], people: list[int]) -> Codes:
    """Rows of people with pets."""
    n = len(pets)
    nothing = np.empty((n, 0), np.int64)
    return Codes(np.array(pets).reshape(n, 1), np.array(people), nothing, np.full(n, np.nan))


@pytest.mark.parametrize("loss", ["glm", "uncertainty"])
@pytest.mark.parametrize("name", ["castle", "fads", "fast", "idea", "k-varp", "iot"])
def test_a_node_hides_which_leaves_are_behind_it(name: str, loss: Any) -> None:
    """A dog and an owl leave as any animal; whoever comes alone then may be any animal, too.

    By the tight box of a dog and an owl, a cat would be suppressed: that would tell what the node
    hides.
    """
    found = {}
    for pet in range(4):
        engine = find(name)(loss=loss, kept=50).start(SCHEMA, POLICY, seed=b"1")
        engine.push(rows([1.0, 2.0], [1, 2]))
        first = engine.flush()
        assert (first.lo.tolist(), first.hi.tolist()) == ([[0.0]], [[3.0]])
        decided = [engine.push(rows([float(pet)], [9])), engine.flush()]
        found[PETS.leaves[pet]] = [o for d in decided for o in d.outcomes.tolist()]
    assert len(set(map(tuple, found.values()))) == 1
    # The others don't keep a group that loses all there is.
    if name in ("castle", "fads", "fast"):
        assert found["Cat"] == [Outcome.reuse]
