"""Which kernels an algorithm may call."""

from __future__ import annotations

import numba
import pytest

from shoal.algorithms import Castle, Tide, ZAnonymizer
from shoal.engine.call_graph import kernels_of

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="there are no kernels in plain Python"
)


def test_kernels_are_found_through_methods_kernels_and_modules() -> None:
    found = kernels_of(Castle)
    assert ("shoal.algorithms.castle", "_run") in found
    assert ("shoal.engine.castle.clusters", "members") in found
    # By the name of its module: `counter.add`.
    assert ("shoal.engine.kernels.counter", "add") in found
    assert ("shoal.engine.kernels.predicate", "meets") in found
    # A method of the base class calls it.
    assert ("shoal.engine.decisions", "shuffle_groups") in found


def test_kernels_of_other_algorithms_are_not_among_them() -> None:
    assert not {key for key in kernels_of(Castle) if ".z." in key[0] or "rtree" in key[0]}
    assert not {key for key in kernels_of(ZAnonymizer) if key[0].endswith("castle")}


def test_what_few_batches_of_tide_need_waits_until_they_need_it() -> None:
    found = kernels_of(Tide)
    assert ("shoal.engine.tide.forming", "work") in found
    assert ("shoal.engine.kernels.parts", "repaired") in found
    # Cuts in shares are for measured promises, merging is for groups that break the promise.
    assert not {name for module, name in found if module.endswith("tide.top_down")}
    assert not {"_grow", "_merge"} & {n for module, n in found if module.endswith("kernels.parts")}
