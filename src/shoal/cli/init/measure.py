"""Measure drafts on a sample: which algorithm and promise lose least, and what a column adds.

The work is bounded: a few thousand rows, two algorithms, two promises, and one run for each column
that isn't proposed, up to a number.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from shoal import algorithms
from shoal.algorithms.registry import DEFAULT
from shoal.engine.base import Anonymizer
from shoal.engine.compile_watch import is_cold
from shoal.errors import UnsupportedError
from shoal.metrics.uniqueness import uniqueness
from shoal.run.frame import anonymize
from shoal.spec.criteria import DistinctLDiversity, EntropyLDiversity, KAnonymity, LDiversity
from shoal.spec.ladder import AnyDomain
from shoal.spec.policy import Delay, Policy
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["PROMISES", "Measured", "Plan", "Promise", "anonymizer_of", "measure"]

#: The algorithms that are tried on the sample. Each is compiled when it is first used.
CANDIDATES = ("tide", "castle")
#: How many rows uniqueness is counted in, and for how many columns it is measured what they add.
UNIQUE_ROWS = 20_000
MOST_COLUMNS = 40
#: For each k, this many rows are needed for a figure that means something.
ROWS_PER_K = 5


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise about sensitive values that protects about as much as the others do."""

    kind: type[LDiversity]
    l: float  # noqa: E741 - the letter of the papers and of the job file
    table: str
    """As in a job file."""
    remark: str


#: The promises that are tried on the sample, the usual one first.
PROMISES = (
    Promise(DistinctLDiversity, 3, "3", "least number of sensitive values in a group"),
    Promise(EntropyLDiversity, 2, "{ entropy = 2 }", "no sensitive value fills most of a group"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is drafted, as far as it is measured."""

    subject: str | None
    time: str | None
    quasi: Sequence[str]
    rest: Sequence[str] = ()
    sensitive: Sequence[str] = ()
    diverse: Sequence[str] = ()
    """The sensitive columns with enough values for a promise about them."""
    k: int
    delay_rows: int
    has_gaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured. Loss counts suppressed rows as 1; uniqueness is the share of people."""

    n_rows: int
    algorithm: str
    promise: Promise
    loss: float | None
    unique: float | None
    tried: Mapping[str, float]
    """The loss of each algorithm and promise that was tried."""
    added: Mapping[str, tuple[float | None, float | None]]
    """Loss and uniqueness with one more column."""


def anonymizer_of(name: str) -> Anonymizer:
    """Return an algorithm as it is drafted: without reuse, so that no row leaves alone."""
    kind: Any = algorithms.find(name)
    knobs = {"kept": 0} if "kept" in {knob.name for knob in dataclasses.fields(kind)} else {}
    anonymizer: Anonymizer = kind(**knobs)
    return anonymizer


def measure(
    sample: pa.Table,
    plan: Plan,
    domains: Mapping[str, AnyDomain],
    *,
    n_rows: int,
    note: Callable[[str], None],
) -> Measured | None:
    """Try the candidates on a part of the sample; None if it has too few rows.

    Parameters
    ----------
    sample
        Rows with all columns.
    plan
        What is drafted.
    domains
        The domains of all quasi columns, proposed or not.
    n_rows
        How many rows to run on, spread over the sample.
    note
        Called with a text about what is going on.
    """
    part = _spread(sample, n_rows)
    if part.num_rows < ROWS_PER_K * plan.k:
        return None
    tried: dict[tuple[str, Promise], float] = {}
    for name in CANDIDATES:
        cold = is_cold(type(anonymizer_of(name)).__module__)
        first = "compiling its kernels first, up to half a minute …" if cold else "…"
        for promise in PROMISES if plan.diverse else PROMISES[:1]:
            note(f"measuring {name} on {part.num_rows:,} rows: {first}")
            loss = _loss(part, plan, domains, name, promise)
            if loss is not None:
                tried[name, promise] = loss
    # The first of equals, so that a draft is the same every time.
    best = min(tried, key=lambda pair: tried[pair], default=(DEFAULT, PROMISES[0]))
    many = _spread(sample, UNIQUE_ROWS)
    added: dict[str, tuple[float | None, float | None]] = {}
    for name in plan.rest[:MOST_COLUMNS]:
        note(f"measuring what {len(plan.rest)} further columns add: {len(added) + 1} …")
        wider = replace(plan, quasi=[*plan.quasi, name])
        unique = uniqueness(many, wider.quasi, plan.subject).share
        added[name] = (_loss(part, wider, domains, *best), unique)
    return Measured(
        n_rows=part.num_rows,
        algorithm=best[0],
        promise=best[1],
        loss=tried.get(best),
        unique=uniqueness(many, plan.quasi, plan.subject).share,
        tried={
            name + (f", l = {promise.table}" if plan.diverse else ""): loss
            for (name, promise), loss in tried.items()
        },
        added=added,
    )


def _spread(sample: pa.Table, n_rows: int) -> pa.Table:
    """Return at most this many rows, evenly spread and in their order."""
    if sample.num_rows <= n_rows:
        return sample
    return sample.take(np.linspace(0, sample.num_rows - 1, n_rows).astype(np.int64))


def _loss(
    part: pa.Table, plan: Plan, domains: Mapping[str, AnyDomain], name: str, promise: Promise
) -> float | None:
    """Return the loss of a run; None if the algorithm can't keep the promise."""
    diversity = [promise.kind(promise.l, column) for column in plan.diverse]
    policy = Policy(
        KAnonymity(plan.k),
        *diversity,
        # A row of the sample stands for several of the stream, so that it waits for fewer.
        delay=Delay(rows=min(plan.delay_rows, max(10 * plan.k, part.num_rows // 4))),
        missing="extended" if plan.has_gaps else "quarantine",
    )
    schema = Schema(
        subject=plan.subject,
        quasi=[Quasi(column, domains[column]) for column in plan.quasi],
        sensitive=[Sensitive(column, None) for column in plan.sensitive],
        time=plan.time,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            done = anonymize(part, schema, policy, anonymizer_of(name), seed=0, bad_rows="drop")
        except UnsupportedError:
            return None
    return done.summary.loss.with_suppressed
