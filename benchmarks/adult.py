"""The whole way on UCI Adult, with a trace, judged by the audit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.runs import run
from benchmarks.workloads import Workload
from shoal.algorithms.castle import Castle
from shoal.audit import audit
from shoal.audit.report import Report
from shoal.datasets import adult
from shoal.metrics import Summary
from shoal.spec.policy import Delay, KAnonymity, Policy

__all__ = ["Audited", "audit_adult"]


@dataclass(frozen=True)
class Audited:
    """What a run came to, and what the audit says of it."""

    k: int
    delay: int
    summary: Summary
    report: Report


def audit_adult(file: Path, folder: Path, *, rows: int, k: int, delay: int) -> Audited:
    """Publish Adult with ten quasi attributes, and check every promise from the outside."""
    data = adult(file, sensitive="salary_class")
    original = data.table().slice(0, rows)
    source, output, trace = (folder / f"{name}.parquet" for name in ("adult", "published", "trace"))
    pq.write_table(original, source)
    policy = Policy(KAnonymity(k), delay=Delay(rows=delay))
    workload = Workload("adult", source, data.schema, original.num_rows)
    summary = run(workload, Castle(kept=1_000, joins="alone"), policy, output, trace=trace)
    report = audit(
        data.schema,
        policy,
        pq.read_table(output),
        trace=pq.read_table(trace),
        original=original,
    )
    return Audited(k, delay, summary, report)
