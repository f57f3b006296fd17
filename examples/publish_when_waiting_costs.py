"""Publish a stream in which every instant counts: who costs least, if waiting costs so much?

A row is worth alpha less for each further row that comes before it is published. The R-tree family,
for which waiting is a cost, is compared with minimum delay, which waits for nobody who is alike,
and with FADS, which has deadlines: several are tried out. Run it with
`python examples/publish_when_waiting_costs.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal import Delay, KAnonymity, Policy, Schema
from shoal.algorithms import Fads, MinDelay, TreeBasic, TreeDensity, TreeFull
from shoal.arrow.codec import Codec
from shoal.datasets import gaussian_points
from shoal.engine import Anonymizer, Codes
from shoal.engine.base import Outcome
from shoal.metrics import Cost

K = 5
#: How much, as a share of its loss, a row is worth less for each row that comes meanwhile.
ALPHAS = (0.0, 0.002, 0.02)
#: The deadlines that are tried out.
DELAYS = (25, 50, 100, 200, 400)


class Found(NamedTuple):
    """What rows have lost on average, for how many others they waited, and what both costs."""

    loss: float
    wait: float
    cost: float


def play(
    anonymizer: Anonymizer, schema: Schema, delay: int, alpha: float, batches: list[Codes]
) -> Found:
    """Publish a stream, and count. A suppressed row has lost everything."""
    policy = Policy(KAnonymity(K), delay=Delay(rows=delay))
    engine = anonymizer.start(schema, policy, seed=b"an example can be repeated")
    cost, losses, waits = Cost(alpha), [], []
    for decided in (*map(engine.push, batches), engine.flush()):
        is_out = decided.outcomes != Outcome.suppressed
        waited = decided.published - decided.rows
        cost.add(decided.losses[is_out], waited[is_out], suppressed=waited[~is_out])
        losses.append(np.where(is_out, decided.losses, 1.0))
        waits.append(waited)
    assert cost.with_suppressed is not None
    return Found(
        float(np.concatenate(losses).mean()),
        float(np.concatenate(waits).mean()),
        cost.with_suppressed,
    )


def rivals(rows: int, alpha: float) -> dict[str, tuple[Anonymizer, int]]:
    """Anonymizers by name, each with the longest wait that is allowed."""
    # After 1 / alpha rows a loss has cost 2.7 times as much: to wait longer hardly ever pays.
    longest = max(DELAYS) if alpha == 0 else min(max(DELAYS), round(1 / alpha))
    samples, sampled = rows // 10, rows // 4
    found: dict[str, tuple[Anonymizer, int]] = {
        "min-delay": (MinDelay(), longest),
        "tree-basic": (TreeBasic(), longest),
        "tree-density": (TreeDensity(alpha=alpha, samples=samples, sampled=sampled), longest),
        "tree-full": (TreeFull(alpha=alpha, samples=samples, sampled=sampled), longest),
    }
    for delay in DELAYS:
        found[f"fads, {delay} rows"] = (Fads(kept=0), delay)
    return found


def main(rows: int = 2000, alphas: tuple[float, ...] = ALPHAS) -> dict[float, dict[str, Found]]:
    stream = gaussian_points(rows, seed=7)
    codec = Codec(stream.schema, key=b"any 8 bytes or more")
    batches = [codec.encode(batch).codes for batch in stream.batches()]
    results: dict[float, dict[str, Found]] = {}
    for alpha in alphas:
        print(f"alpha = {alpha}\n  by              loss  wait   cost")
        results[alpha] = {}
        for name, (anonymizer, delay) in rivals(rows, alpha).items():
            found = play(anonymizer, stream.schema, delay, alpha, batches)
            results[alpha][name] = found
            print(f"  {name:<14} {found.loss:.3f} {found.wait:5.0f}  {found.cost:.3f}")
        cheapest = min(results[alpha], key=lambda name: results[alpha][name].cost)
        print(f"  {cheapest} costs least")
    return results


if __name__ == "__main__":
    main()
