"""What does a larger k cost? Play one stream to engines with different policies.

Rows are encoded once; then only engines run, without labels, files or threads. Run it with
`python examples/compare_loss_over_k.py`.
"""

from __future__ import annotations

import numpy as np

from shoal import Delay, KAnonymity, Policy, Schema
from shoal.algorithms import Castle
from shoal.arrow.codec import Codec
from shoal.datasets import census
from shoal.engine import Anonymizer, Codes
from shoal.engine.base import Outcome


def play(
    anonymizer: Anonymizer, schema: Schema, policy: Policy, batches: list[Codes]
) -> tuple[float, int]:
    """The mean loss of published rows, and how many rows were suppressed."""
    engine = anonymizer.start(schema, policy, seed=b"an example can be repeated")
    lost, n_published, n_suppressed = 0.0, 0, 0
    for decisions in (*map(engine.push, batches), engine.flush()):
        published = decisions.outcomes != Outcome.suppressed
        lost += float(decisions.loss[decisions.boxes[published]].sum())
        n_published += int(published.sum())
        n_suppressed += int((~published).sum())
    return (lost / n_published if n_published else np.nan), n_suppressed


def main(rows: int = 1500, ks: tuple[int, ...] = (2, 5, 10, 20, 50)) -> dict[int, float]:
    stream = census(rows, seed=7)
    codec = Codec(stream.schema, key=b"any 8 bytes or more")
    batches = [codec.encode(batch).codes for batch in stream.batches()]
    losses: dict[int, float] = {}
    print("  k   loss  suppressed")
    for k in ks:
        policy = Policy(KAnonymity(k), delay=Delay(rows=400))
        losses[k], n_suppressed = play(Castle(clusters=20), stream.schema, policy, batches)
        bar = "#" * round(40 * losses[k])
        print(f"{k:>3}  {losses[k]:.3f}  {n_suppressed:>10,}  {bar}")
    return losses


if __name__ == "__main__":
    main()
