"""Kernels against their naive twins, on a stream short enough for the twins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from tests.algorithms.world import TWINS
from tests.naive.castle import NaiveCastle

from benchmarks.incomplete import insert_gaps
from benchmarks.measure import Sample, interleaved
from shoal.algorithms import find
from shoal.arrow.codec import Codec
from shoal.datasets import census
from shoal.engine.base import Decisions, Outcome
from shoal.engine.space import Codes
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Schema

__all__ = ["Twins", "compare"]

SEED = b"twins"
#: How often a kernel runs for each run of its twin. Once is a few milliseconds, and the caches are
#: full of what the twin left.
RUNS = 20

#: What became of each row: its outcome, its group and its loss.
Decided = dict[int, tuple[str, int | None, float]]


@dataclass(frozen=True)
class Twins:
    """The processor seconds that both took, and whether they decided alike."""

    algorithm: str
    n_rows: int
    k: int
    delay: int
    gaps: int
    twin: Sample
    kernel: Sample
    alike: bool


def compare(algorithm: str, rows: int, *, k: int, delay: int, repeats: int, gaps: int = 0) -> Twins:
    """Push the same encoded rows, of which some may lack this many values, through both."""
    data = census(rows, subjects=rows, seed=1)
    codes = Codec(data.schema, key=bytes(8)).encode(next(data.batches())).codes
    codes = codes._replace(values=insert_gaps(codes.values, gaps, seed=1))
    policy = Policy(
        KAnonymity(k), delay=Delay(rows=delay), missing="maybe" if gaps else "quarantine"
    )
    by_kernel: list[Decisions] = []
    by_twin: list[Any] = []

    def kernel() -> None:
        engine = find(algorithm)().start(data.schema, policy, seed=SEED)
        by_kernel[:] = engine.push(codes), engine.flush()

    def kernels() -> None:
        for _ in range(RUNS):
            kernel()

    def twin() -> None:
        naive = _naive(algorithm, data.schema, policy)
        by_twin[:] = [decision for row in _rows(codes) for decision in naive.push(*row)]
        by_twin.extend(naive.flush())

    # Only a kernel has anything to load, and a twin takes long.
    kernel()
    slow, fast = interleaved(repeats, twin, kernels, warm=True, clock=time.process_time)
    fast = Sample(tuple(seconds / RUNS for seconds in fast.values))
    decided = {row: what for decisions in by_kernel for row, what in _decided(decisions).items()}
    alike = _alike(decided, {d.row: (d.outcome, d.group, d.loss) for d in by_twin})
    return Twins(algorithm, rows, k, delay, gaps, slow, fast, alike)


def _naive(algorithm: str, schema: Schema, policy: Policy) -> Any:
    assert policy.delay is not None
    n_sensitive = len(schema.sensitive)
    options: dict[str, Any] = {
        "k": policy.k,
        "l_needed": [1] * n_sensitive,
        "entropy": [0.0] * n_sensitive,
        "recursive": [(0.0, 0)] * n_sensitive,
        "delay_rows": policy.delay.rows,
        "seed": SEED,
        **asdict(find(algorithm)()),
    }
    kind: Any = NaiveCastle
    if algorithm != "castle":
        kind, options = TWINS[algorithm], options | {"missing": policy.missing}
    domains = [quasi.domain for quasi in schema.quasi]
    return kind(domains, [quasi.weight for quasi in schema.quasi], **options)


def _decided(decisions: Decisions) -> Decided:
    decided: Decided = {}
    for row, outcome, box, loss in zip(
        decisions.rows.tolist(), decisions.outcomes, decisions.boxes, decisions.losses, strict=True
    ):
        group = None if box < 0 else int(decisions.groups[box])
        decided[row] = (Outcome(outcome).name, group, float(loss))
    return decided


def _alike(one: Decided, other: Decided) -> bool:
    """Whether all rows left in the same groups; losses may differ in their last digits."""

    def losses(decided: Decided) -> Sequence[float]:
        return [decided[row][2] for row in sorted(decided)]

    same = {row: what[:2] for row, what in one.items()} == {
        row: what[:2] for row, what in other.items()
    }
    return same and bool(np.allclose(losses(one), losses(other), rtol=1e-9, atol=0.0))


def _rows(codes: Codes) -> list[tuple[list[float], int, list[int], float]]:
    return list(zip(*(array.tolist() for array in codes[:4]), strict=True))
