"""What weights for a workload save in query error: ``python -m benchmarks.workload [--quick]``.

The queries ask for two of the quasi attributes, a predicate on each. Groups are formed with equal
weights, and with those of `shoal.metrics.workload_weights`; the same queries are asked of both, and
queries about any two attributes, which is what the weights cost. The data are the made-up census;
figures are means over three seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.figures.streams import Stream
from benchmarks.markdown import table
from benchmarks.tide.data import stream
from shoal.algorithms import find
from shoal.metrics import Compared, for_workload, query_error
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Schema

__all__ = ["main"]

ASKED = (0, 1)
SELECTIVITY = 0.05
SEEDS = range(3)


def _errors(algorithm: str, schema: Schema, data: Stream, seed: int, delay: int) -> list[float]:
    policy = Policy(KAnonymity(20), delay=Delay(rows=delay))
    engine = find(algorithm)().start(schema, policy, seed=bytes([seed]) * 8)
    decisions = [engine.push(data.codes), engine.flush()]
    compared = Compared.from_decisions(schema, data.codes, decisions)
    n_queries = min(2_000, compared.n_rows)
    found = [
        query_error(
            compared, n_queries=n_queries, selectivity=SELECTIVITY, n_quasi=2, asked=asked
        ).median
        for asked in (ASKED, None)
    ]
    return [np.nan if median is None else median for median in found]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the median relative error with equal weights and with those of the workload."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workload", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    options = parser.parse_args(arguments)
    rows, delay = (150, 60) if options.quick else (20_000, 2_000)
    seeds = SEEDS[:1] if options.quick else SEEDS
    lines = []
    for algorithm in ("castle",) if options.quick else ("castle", "idea", "tide", "tree-basic"):
        means = []
        for is_weighted in (False, True):
            found = []
            for seed in seeds:
                data = stream("census", rows, seed, sensitive=True)
                share = SELECTIVITY ** (1 / 3)
                query = {data.schema.quasi[d].name: share for d in ASKED}
                schema = for_workload(data.schema, [query]) if is_weighted else data.schema
                found.append(_errors(algorithm, schema, data, seed, delay))
            means.append(np.mean(found, axis=0))
        (equal, equal_any), (weighted, weighted_any) = means
        lines.append([algorithm, *(f"{e:.3f}" for e in (equal, weighted, equal_any, weighted_any))])
    asked = " and ".join(data.schema.quasi[d].name for d in ASKED)
    print(f"made-up census, {rows:,} rows; queries ask for {asked}\n")
    head = ["", "equal weights", "for the workload", "equal, any two", "workload, any two"]
    print(table(head, lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
