"""The kernel of CASTLE against its naive twin, on a stream short enough for the twin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.naive.castle import NaiveCastle

from benchmarks.measure import Sample, interleaved
from shoal.algorithms.castle import Castle
from shoal.codec import Codec
from shoal.datasets import census
from shoal.policy import Delay, KAnonymity, Policy
from shoal.space import Codes

__all__ = ["Twins", "compare"]

SEED = b"twins"


@dataclass(frozen=True)
class Twins:
    """What both took, and whether they decided alike."""

    n_rows: int
    k: int
    delay: int
    twin: Sample
    kernel: Sample
    alike: bool


def compare(rows: int, *, k: int, delay: int, repeats: int) -> Twins:
    """Push the same encoded rows through both."""
    data = census(rows, subjects=rows, seed=1)
    codes = Codec(data.schema, key=bytes(8)).encode(next(data.batches())).codes
    losses: dict[str, float] = {}

    def kernel() -> None:
        policy = Policy(KAnonymity(k), delay=Delay(rows=delay))
        engine = Castle().start(data.schema, policy, seed=SEED)
        decided = engine.push(codes), engine.flush()
        losses["kernel"] = sum(float(d.loss[d.boxes[d.boxes >= 0]].sum()) for d in decided)

    def twin() -> None:
        naive = NaiveCastle(
            [quasi.domain for quasi in data.schema.quasi],
            [quasi.weight for quasi in data.schema.quasi],
            k=k,
            l_needed=[1],
            entropy=[0.0],
            recursive=[(0.0, 0)],
            delay_rows=delay,
            seed=SEED,
        )
        decided = [decision for row in _rows(codes) for decision in naive.push(*row)]
        decided += naive.flush()
        losses["twin"] = sum(d.loss for d in decided if d.outcome != "suppressed")

    slow, fast = interleaved(repeats, twin, kernel)
    alike = bool(np.isclose(losses["kernel"], losses["twin"], rtol=1e-9))
    return Twins(rows, k, delay, slow, fast, alike)


def _rows(codes: Codes) -> list[tuple[list[float], int, list[int], float]]:
    return list(zip(*(array.tolist() for array in codes), strict=True))
