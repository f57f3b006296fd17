"""Policies and streams on which min-delay and the R-tree family are compared with their twins."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shoal import Policy, Quasi, Range, Schema
from shoal.engine import Codes, Decisions, Engine
from tests.algorithms import cases
from tests.naive.castle import Decision
from tests.naive.forcing import NaiveForcing

TIME = Range(0, 200)


@dataclass(kw_only=True)
class Case(cases.Case):
    """A case in which a row may wait for ever, unless there is a capacity or a delay."""

    kept: int = 0
    reuse: str = "random"
    joins: str = "together"
    capacity: int = 0
    #: Whether all rows have the same values.
    equal: bool = False
    #: For how many rows the sensitive values are all the same, so that nothing may leave.
    dull: int = 0
    #: Whether the time of a row is a quasi attribute too.
    time_is_quasi: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delay == (None, None) and not self.capacity:
            self.capacity = 9
        if self.capacity:
            people = (self.k, self.l, math.ceil(self.entropy), self.recursive[1])
            self.capacity = max(self.capacity, *(n - 1 for n in people))
        if self.time_is_quasi:
            self.timed = True
            self.domains = [*self.domains, TIME]
            self.weights = (*self.weights, 1.5)

    def policy(self) -> Policy:
        if self.delay != (None, None):
            return super().policy()
        with_delay = dataclasses.replace(self, delay=(1, None), time_is_quasi=False)
        policy = with_delay.policy()
        return Policy(*policy.criteria, missing=self.missing)

    def schema(self) -> Schema:
        schema = super().schema()
        if not self.time_is_quasi:
            return dataclasses.replace(schema, time="at" if self.timed else None)
        quasi = [*schema.quasi[:-1], Quasi("at", TIME, self.weights[-1])]
        return dataclasses.replace(schema, quasi=quasi, time="at")

    def codes(self) -> Codes:
        codes = super().codes()
        values, sensitive, times = codes.values, codes.sensitive, codes.times
        if self.equal:
            values = np.where(np.isnan(values), np.nan, [50.0, 2.0, 7.0])
        if self.time_is_quasi:
            values = np.column_stack([values, np.clip(times, TIME.lo, TIME.hi)])
        sensitive[: self.dull] = sensitive[:1]
        return codes._replace(values=values, sensitive=sensitive)

    def naively(self) -> dict[str, Any]:
        options = super().naively()
        for measured_or_kept in ("measures", "window", "kept", "reuse", "joins"):
            del options[measured_or_kept]
        return {**options, "missing": self.missing, "capacity": self.capacity}


CASES: dict[str, st.SearchStrategy[Any]] = {
    "seed": st.integers(0, 10**6),
    "k": st.integers(1, 6),
    "l": st.sampled_from([1, 1, 1, 2, 3]),
    "entropy": st.sampled_from([0.0, 0.0, 0.0, 1.5, 2.0]),
    "recursive": st.sampled_from([(0.0, 0), (0.0, 0), (0.0, 0), (2.0, 2), (1.5, 3)]),
    "delay": st.sampled_from(
        [(None, None), (5, None), (30, None), (100, None), (None, 4.0), (None, 30.0), (40, 20.0)]
    ),
    "capacity": st.sampled_from([0, 0, 1, 7, 25, 80]),
    "n_subjects": st.sampled_from([1, 3, 9, 40, 400]),
    "n_rows": st.integers(1, 120),
    "loss": st.sampled_from(["glm", "lm", "uncertainty"]),
    "step": st.sampled_from([None, 1.0, 5.0, 0.3]),
    "spread": st.sampled_from([0, 3, 40]),
    "two_sensitive": st.booleans(),
    "missing": st.sampled_from(["quarantine", "quarantine", "maybe", "extended"]),
    "gaps": st.sampled_from([0.1, 0.5]),
    "timed": st.booleans(),
    "equal": st.sampled_from([False, False, False, True]),
    "dull": st.sampled_from([0, 0, 0, 60]),
    "time_is_quasi": st.sampled_from([False, False, True]),
}


def as_tuples(decisions: Decisions) -> list[tuple[Any, ...]]:
    """What a kernel decided, in words that can be compared."""
    rows = []
    for i, row in enumerate(decisions.rows):
        box, second = int(decisions.boxes[i]), float(decisions.published_s[i])
        when = int(decisions.published[i]), None if math.isnan(second) else second
        if box < 0:
            rows.append((int(row), None, None, None, 1.0, 0, *when))
        else:
            sides = tuple(decisions.lo[box].tolist()), tuple(decisions.hi[box].tolist())
            number, loss = int(decisions.groups[box]), float(decisions.loss[box])
            rows.append((int(row), number, *sides, loss, int(decisions.n_subjects[box]), *when))
    return sorted(rows)


def naively(decisions: list[Decision]) -> list[tuple[Any, ...]]:
    """What a twin decided, in the same words."""
    return sorted(
        (d.row, d.group, d.lo, d.hi, d.loss, d.n_subjects, d.published, d.published_s)
        for d in decisions
    )


def agree(got: list[tuple[Any, ...]], want: list[tuple[Any, ...]]) -> None:
    """The same to the last bit, but for seconds that are drawn.

    They depend on sums of weights, which a kernel keeps in another order than its twin.
    """
    assert [row[:-1] for row in got] == [row[:-1] for row in want]
    assert [row[-1] for row in got] == [
        row[-1] if row[-1] is None else pytest.approx(row[-1], rel=1e-9) for row in want
    ]


def compare(case: Case, engine: Engine, naive: NaiveForcing, batch: int, ticks: bool) -> None:
    """Let both decide about the stream, batch by batch, and about what is left at its end."""
    codes = case.codes()
    for begin in range(0, case.n_rows, batch):
        part = Codes(*(array[begin : begin + batch] for array in codes[:4]))
        got = as_tuples(engine.push(part))
        want: list[Decision] = []
        for values, subject, sensitive, time in zip(*part[:4], strict=True):
            want += naive.push(list(values), int(subject), list(sensitive), float(time))
        if ticks and case.timed:
            now = float(part.times.max()) + 1.0
            got += as_tuples(engine.advance(now))
            want += naive.advance(now)
        agree(sorted(got), naively(want))
        assert engine.n_held == len(naive.held)
    agree(as_tuples(engine.flush()), naively(naive.flush()))
    assert engine.n_held == 0
