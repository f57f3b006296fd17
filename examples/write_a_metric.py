"""A metric of your own: how many published rows are still sharp.

A metric counts batches of decisions in bounded memory. Registered, it is part of every summary: of
what `shoal.anonymize` and `Pipeline.run` return, of its JSON and of its lines in
words; it is merged over shards and is in every checkpoint.

Run it with `python examples/write_a_metric.py`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
from shoal.algorithms import Castle
from shoal.metrics import Batch, Metric, Summary, in_summary


@in_summary
class Sharpness(Metric):
    """The share of published rows that lost at most a tenth of their information."""

    __slots__ = ("n_published", "n_sharp")
    name: ClassVar[str] = "sharpness"
    #: The attributes by their keys in a checkpoint: `merge`, `state` and `restore` follow from it.
    counters: ClassVar[dict[str, str]] = {"published": "n_published", "sharp": "n_sharp"}

    def __init__(self) -> None:
        self.n_published = 0
        self.n_sharp = 0

    def add_batch(self, batch: Batch) -> None:
        """Count a batch of decisions."""
        loss = batch.loss[batch.is_published]
        self.n_published += len(loss)
        self.n_sharp += int(np.count_nonzero(loss <= 0.1))

    def as_dict(self) -> dict[str, object]:
        """Return the share, for JSON."""
        return {"share": self.n_sharp / self.n_published if self.n_published else None}

    def lines(self) -> list[str]:
        """Return the share in words."""
        if not self.n_published:
            return []
        return [f"sharpness: {self.n_sharp:,} rows lost at most a tenth"]


def main(rows: int = 500) -> Summary:
    """Publish ages in groups, and show the summary."""
    random = np.random.default_rng(3)
    people = pa.table({"person": np.arange(rows), "age": random.integers(0, 100, rows)})
    schema = Schema("person", [Quasi("age", Range(0, 100, step=1))])
    policy = Policy(KAnonymity(5), delay=Delay(rows=100))
    summary = anonymize(people, schema, policy, Castle()).summary
    print("\n".join(summary.lines()))
    return summary


if __name__ == "__main__":
    main()
