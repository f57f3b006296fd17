"""The R-tree family against its naive twins, on a stream short enough for the twins."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.naive.castle import Decision
from tests.naive.min_delay import NaiveMinDelay
from tests.naive.tree import NaiveTreeBasic, NaiveTreeDensity, NaiveTreeFull

from benchmarks.figures.trees.data import employees
from benchmarks.measure import interleaved, say
from benchmarks.trees_runs import Sizes
from shoal.engine.base import Decisions, Outcome
from shoal.engine.space import Codes
from shoal.spec.schema import Schema

__all__ = ["TWINS", "alike", "twins"]

TWINS: dict[str, Any] = {
    "min-delay": NaiveMinDelay,
    "tree-basic": NaiveTreeBasic,
    "tree-density": NaiveTreeDensity,
    "tree-full": NaiveTreeFull,
}
SEED = b"twins"
#: A twin looks at every sample for every leaf.
SAMPLED: dict[str, Any] = {"samples": 200, "sampled": 500}


def twins(sizes: Sizes, _: Path) -> list[dict[str, Any]]:
    """Every engine alone, on encoded rows, and its naive twin."""
    schema, codes = employees(sizes.twin_rows, 7, seed=0)
    return [_compare(name, schema, codes, sizes) for name in TWINS]


def _compare(name: str, schema: Schema, codes: Codes, sizes: Sizes) -> dict[str, Any]:
    say(f"{name} and its twin")
    made = replace(sizes, capacity=sizes.twin_capacity, **SAMPLED).anonymizer(name)
    by_kernel: list[Decisions] = []
    by_twin: list[Decision] = []

    def kernel() -> None:
        engine = made.start(schema, sizes.policy, seed=SEED)
        by_kernel[:] = engine.push(codes), engine.flush()

    def twin() -> None:
        domains = [quasi.domain for quasi in schema.quasi]
        weights = [quasi.weight for quasi in schema.quasi]
        naive = TWINS[name](domains, weights, k=sizes.k, seed=SEED, **asdict(made))
        by_twin.clear()
        for values, subject in zip(codes.values.tolist(), codes.subjects.tolist(), strict=True):
            by_twin.extend(naive.push(values, subject))
        by_twin.extend(naive.flush())

    # Only a kernel has anything to load, and a twin takes long.
    kernel()
    slow, fast = interleaved(sizes.twin_repeats, twin, kernel, warm=True)
    return {
        "algorithm": name,
        "n_rows": len(codes.subjects),
        "k": sizes.k,
        "capacity": sizes.twin_capacity,
        "seconds": {"twin": slow.as_dict(), "kernel": fast.as_dict()},
        "ratio": slow.per(fast).as_dict(),
        "alike": alike(by_kernel, by_twin),
    }


def alike(by_kernel: list[Decisions], by_twin: list[Decision]) -> bool:
    """Whether all rows left in the same groups, with losses that differ in their last digits."""
    ours = {
        row: (Outcome(outcome).name, None if box < 0 else int(some.groups[box]), float(loss))
        for some in by_kernel
        for row, outcome, box, loss in zip(
            some.rows.tolist(), some.outcomes, some.boxes, some.losses, strict=True
        )
    }
    theirs = {one.row: (one.outcome, one.group, one.loss) for one in by_twin}
    if ours.keys() != theirs.keys():
        return False
    same = all(ours[row][:2] == theirs[row][:2] for row in ours)
    losses = np.array([(ours[row][2], theirs[row][2]) for row in ours])
    return same and bool(np.allclose(losses[:, 0], losses[:, 1], rtol=1e-9, atol=0.0))
