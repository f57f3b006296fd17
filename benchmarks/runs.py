"""One run from file to file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from benchmarks.passthrough import PassThrough, row_by_row
from benchmarks.workloads import Workload
from shoal.algorithms import find
from shoal.arrow.release import Publish
from shoal.engine.base import Anonymizer
from shoal.io import BadRow, open_sink, open_source
from shoal.io.base import Sink
from shoal.metrics import Summary
from shoal.run.pipeline import Pipeline
from shoal.spec.policy import Delay, KAnonymity, Policy

__all__ = ["DELAY_ROWS", "K", "pass_through", "publish", "run"]

K, DELAY_ROWS = 100, 10_000
SEED = b"benchmark"


def publish(
    name: str,
    workload: Workload,
    output: Path,
    *,
    k: int = K,
    delay: int = DELAY_ROWS,
    watch: Callable[[Summary], None] | None = None,
) -> Summary:
    """An algorithm with its default knobs."""
    policy = Policy(KAnonymity(k), delay=Delay(rows=delay), missing=workload.missing)
    return run(workload, find(name)(), policy, output, watch=watch)


def pass_through(workload: Workload, output: Path) -> Summary:
    """The same way of the data, with nothing to decide."""
    return run(workload, PassThrough(), row_by_row(workload.missing), output)


def run(
    workload: Workload,
    anonymizer: Anonymizer,
    policy: Policy,
    output: Path,
    *,
    looks: Publish | None = None,
    trace: Path | None = None,
    watch: Callable[[Summary], None] | None = None,
) -> Summary:
    """Read a file, publish it, and say what came of it; ``watch`` is called after each batch."""

    def open_trace(schema: pa.Schema) -> Sink:
        assert trace is not None
        return open_sink(trace, schema)

    source = open_source(workload.path, workload.schema.columns)
    try:
        return (
            Pipeline(workload.schema, policy, anonymizer, looks or Publish(), seed=SEED)
            .run(
                source,
                lambda schema: open_sink(output, schema),
                on_bad=_refuse,
                open_trace=None if trace is None else open_trace,
                watch=watch,
            )
            .execute()
        )
    finally:
        source.close()


def _refuse(bad: list[BadRow]) -> None:
    raise SystemExit(f"{len(bad)} rows of the workload can't be used: {bad[0].reason}")
