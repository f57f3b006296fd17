"""Run one cell of the grid on the data, and measure what comes of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.attacks import Setting, attack
from shoal.audit import audit
from shoal.compare.cells import Cell
from shoal.engine.compile_watch import CompileWatch
from shoal.engine.jit import IS_PLAIN
from shoal.metrics import Compared, Summary, loss_by_attribute, query_error, risk
from shoal.run.frame import anonymize
from shoal.run.result import Result
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["ATTACK", "Figures", "Rows", "measure"]

#: Fewer than `shoal.metrics` asks by default: the median of so many is steady, and runs are many.
N_QUERIES = 1000
#: Into how many intervals waits are counted.
N_WAITS = 20
#: The attack that every run has to stand, and the most people that it is made on.
ATTACK = "linking"
N_TARGETS = 1000
#: How many rows a warm-up has, after which kernels are loaded.
WARM_ROWS = 500


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """The data of a comparison: its schema, its rows, and the seed of the first run of a cell."""

    schema: Schema
    table: pa.Table
    seed: int = 0

    def __repr__(self) -> str:
        return f"Rows({self.table.num_rows})"


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of a run; None where there is nothing to measure.

    Parameters
    ----------
    n_rows, n_published, n_suppressed, n_quarantined
        Rows that were read, and what became of them.
    loss, loss_with_suppressed
        The mean loss of published rows, and that of all with suppressed ones as 1.
    loss_by_attribute
        The mean loss of each quasi attribute over the published rows.
    query_error
        The median relative error of COUNT queries.
    suppression
        The share of suppressed rows among those decided.
    delay_unit, delay_mean, delay_median, delay_p99, delay_most
        How long published rows waited: in rows, or in seconds where the delay has no rows.
    waits
        How many published rows waited for at most each of the ``wait_bounds``.
    n_groups, smallest_group
        How many groups were published, and the least number of people in one.
    risk
        The mean over people of 1 / people in the smallest group that they are in.
    rows_per_s
        Rows by second of the run, compiling excluded.
    attack_success, attack_low, attack_high
        How often somebody whose quasi values are all known is linked to a row of theirs, of at most
        1,000 people who are drawn with the seed; and its 95 % interval.
    attack_bound, attack_verdict
        The success that the promise allows, 1/k, and whether it was ``exceeded``.
    audit, audit_detail
        The audit's verdict, and the promises that it doesn't call kept, in words.
    n_seeds
        Over how many seeds these are means; verdicts are the worst.
    spread
        The standard deviation over the seeds, by the name of a figure.
    """

    n_rows: int
    n_published: int
    n_suppressed: int
    n_quarantined: int
    loss: float | None
    loss_with_suppressed: float | None
    loss_by_attribute: Mapping[str, float | None]
    query_error: float | None
    suppression: float | None
    delay_unit: str
    delay_mean: float | None
    delay_median: float | None
    delay_p99: float | None
    delay_most: float | None
    waits: tuple[int, ...]
    wait_bounds: tuple[float, ...]
    n_groups: int
    smallest_group: int | None
    risk: float | None
    attack_success: float | None
    attack_low: float | None
    attack_high: float | None
    attack_bound: float | None
    attack_verdict: str
    rows_per_s: float
    audit: str
    audit_detail: str
    n_seeds: int = 1
    spread: Mapping[str, float | None] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Return the figures of a dictionary that `as_dict` made."""
        lists = {name: tuple(found[name]) for name in ("waits", "wait_bounds")}
        return cls(**{**found, **lists})


_warm: set[tuple[type, ...]] = set()


def measure(rows: Rows, cell: Cell) -> Figures:
    """Run a cell on all rows and measure the result; numbers are published as ranges.

    Raises
    ------
    JobError
        If the algorithm can't keep the policy, or the policy doesn't fit the data.
    """
    table, schema, policy = rows.table, rows.schema, cell.policy
    with warnings.catch_warnings():
        # What a run warns of concerns its publication; what can't be kept shows in the figures.
        warnings.simplefilter("ignore", UserWarning)
        kind = (type(cell.anonymizer), *map(type, policy.criteria))
        if kind not in _warm and not IS_PLAIN:
            _run(rows, cell, table.slice(0, WARM_ROWS))
            _warm.add(kind)
        compiled = CompileWatch(type(cell.anonymizer), lambda watch: None)
        with compiled.watching():
            begin = time.perf_counter()
            done = _run(rows, cell, table)
            seconds = time.perf_counter() - begin - compiled.seconds
    summary, trace = done.summary, done.trace
    assert trace is not None
    report = audit(
        schema, policy, done.frame, trace=trace, original=table,
        **_audit_options(cell),
    )  # fmt: skip
    loss, groups = summary.loss, summary.groups
    return Figures(
        n_rows=summary.n_in,
        n_published=summary.n_published,
        n_suppressed=summary.suppression.count,
        n_quarantined=summary.n_quarantined,
        loss=loss.published,
        loss_with_suppressed=loss.with_suppressed,
        query_error=_query_error(rows, policy, done.frame),
        suppression=summary.suppression.share,
        loss_by_attribute=_losses(rows, cell, done.frame),
        **_waits(summary, policy),
        n_groups=groups.count,
        smallest_group=None if groups.subjects.least is None else int(groups.subjects.least),
        risk=None if policy.per_value else _risk(schema, trace),
        **_attacked(rows, cell, done),
        rows_per_s=summary.n_in / max(seconds, 1e-9),
        audit=report.verdict,
        audit_detail="; ".join(v.line() for v in report.verdicts if v.verdict != "kept"),
    )


def _run(rows: Rows, cell: Cell, table: pa.Table) -> Result[pa.Table]:
    return anonymize(
        table, rows.schema, cell.policy, cell.anonymizer,
        seed=rows.seed + cell.repeat, bad_rows="drop", trace=True,
    )  # fmt: skip


def _audit_options(cell: Cell) -> dict[str, Any]:
    """Return what the audit must know of how a run publishes."""
    if cell.policy.per_value:
        return {"count": getattr(cell.anonymizer, "count", "residual")}
    kept = getattr(cell.anonymizer, "kept", None)
    return {"loss": cell.anonymizer.loss, "reuse": None if kept is None else kept > 0}


def _query_error(rows: Rows, policy: Policy, published: pa.Table) -> float | None:
    """Return the median error of COUNT queries; None where nothing can be asked."""
    if policy.per_value or not published.num_rows:
        return None
    compared = Compared.from_tables(rows.schema, rows.table, published)
    return query_error(compared, n_queries=N_QUERIES).median


def _losses(rows: Rows, cell: Cell, published: pa.Table) -> dict[str, float | None]:
    if cell.policy.per_value:
        return {}
    return loss_by_attribute(rows.schema, published, measure=cell.anonymizer.loss)


def _waits(summary: Summary, policy: Policy) -> dict[str, Any]:
    """Return how long published rows waited, in the unit of the promise."""
    delay = policy.delay
    in_seconds = delay is not None and delay.rows is None
    waits = summary.delay.seconds if in_seconds else summary.delay.rows
    promised = None if delay is None else delay.seconds if in_seconds else delay.rows
    most = float(promised or waits.largest or 1.0)
    bounds = tuple(float(bound) for bound in np.linspace(0, most, N_WAITS + 1)[1:])
    figures = waits.figures()
    return {
        "delay_unit": "s" if in_seconds else "rows",
        "delay_mean": figures["mean"],
        "delay_median": figures["p50"],
        "delay_p99": figures["p99"],
        "delay_most": figures["max"],
        "waits": waits.fold(bounds),
        "wait_bounds": bounds,
    }


def _risk(schema: Schema, trace: pa.Table) -> float | None:
    """Return the mean over people of 1 / people in their smallest group."""
    published: pa.Table = trace.filter(pc.is_valid(trace["group"]))
    _, groups = np.unique(published["group"].to_numpy(), return_inverse=True)
    people = np.arange(published.num_rows)
    if not schema.each_row:
        subjects = published["subject"].combine_chunks().dictionary_encode()
        people = subjects.indices.to_numpy(zero_copy_only=False)
    return risk(groups, people).average


def _attacked(rows: Rows, cell: Cell, done: Result[pa.Table]) -> dict[str, Any]:
    """Return how often somebody whose quasi values are all known is linked to a row of theirs."""
    setting = Setting(
        rows.schema, cell.policy, done.frame, rows.table, trace=done.trace,
        algorithm=cell.anonymizer.name, n_targets=N_TARGETS, seed=rows.seed + cell.repeat,
    )  # fmt: skip
    found = attack(setting, [ATTACK]).of(ATTACK)[0]
    success = found.success
    low, high = (None, None) if success is None else success.interval
    return {
        "attack_success": None if success is None else success.rate,
        "attack_low": low,
        "attack_high": high,
        "attack_bound": found.bound,
        "attack_verdict": found.verdict,
    }
