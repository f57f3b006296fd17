"""Tables for kernels that cut rows into parts, and what their twins make of the same tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

from shoal.engine.kernels.boxes import Sides
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts, repaired
from shoal.engine.kernels.predicate import Limits
from shoal.engine.kernels.window_counts import window_counts_of
from shoal.engine.space import Loss, Space
from shoal.spec.criteria import (
    BasicLikeness,
    Criterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
)
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.policy import Missing, Policy, Window
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.naive import space as naive
from tests.naive.measured import Promises
from tests.naive.parts import Part
from tests.naive.space import gaps_of

#: Branches of three lengths, one of them a chain.
RAGGED = Hierarchy.from_dict({"*": {"a": None, "b": {"c": None, "d": {"e": {"f": None}, "g": {}}}}})
ILLNESS = Hierarchy.from_dict({"*": {"lung": ["flu", "asthma"], "other": ["ulcer", "gout"]}})


@dataclass(frozen=True)
class Table:
    """A schema, a policy, and rows: the first ones are the pool, all are the window.

    A row is its quasi values, its subject, a category and a number.
    """

    domains: Sequence[Domain]
    criteria: Sequence[Criterion]
    rows: Sequence[tuple[tuple[float, ...], int, int, float]]
    n_pool: int | None = None
    weights: Sequence[float] = ()
    loss: Loss = "glm"
    missing: Missing = "quarantine"
    window: Window | Literal["all"] = "all"

    @cached_property
    def schema(self) -> Schema:
        weights = self.weights or [1.0] * len(self.domains)
        quasi = [
            Quasi(f"q{d}", domain, weight)
            for d, (domain, weight) in enumerate(zip(self.domains, weights, strict=True))
        ]
        return Schema("person", quasi, [Sensitive("ill", ILLNESS), Sensitive("pay", Range(0, 9))])

    @cached_property
    def policy(self) -> Policy:
        return Policy(*self.criteria, missing=self.missing, window=self.window)

    @cached_property
    def space(self) -> Space:
        return Space(self.schema, self.policy, self.loss)

    @cached_property
    def promises(self) -> Promises:
        """What is promised, for twins."""
        return Promises.of(self.schema, self.policy)

    @cached_property
    def slow(self) -> naive.Space:
        """The space of twins."""
        weights = [attribute.weight for attribute in self.schema.quasi]
        return naive.Space(self.domains, weights, self.loss, self.missing)

    def codes(self) -> list[tuple[int, int]]:
        """The sensitive codes of all rows; a number's are its bits."""
        return [(ill, int(np.float64(pay).view(np.int64))) for _, _, ill, pay in self.rows]

    def arrays(self) -> tuple[Sides, Limits, RowArrays]:
        """What kernels take."""
        pool = self.rows[: self.n_pool]
        values = np.array([row[0] for row in pool], float).reshape(len(pool), len(self.domains))
        lo, hi = self.space.points(values)
        codes = np.array(self.codes(), np.int64).reshape(len(self.rows), 2)
        rows = RowArrays(
            np.ascontiguousarray(lo.T),
            np.ascontiguousarray(hi.T),
            np.array([row[1] for row in pool], np.int64),
            codes[: self.n_pool].copy(),
            self.space.gaps(values),
        )
        limits = self.space.limits._replace(window=window_counts_of(codes))
        return self.space.sides, limits, rows

    def naively(self) -> tuple[list[naive.Row], list[naive.Row]]:
        """What twins take: the pool and the window."""
        window = [
            naive.Row(n, self.slow.row_box(values), subject, codes, None, gaps_of(values))
            for n, ((values, subject, _, _), codes) in enumerate(
                zip(self.rows, self.codes(), strict=True)
            )
        ]
        return window[: self.n_pool], window


def shown(parts: Parts) -> list[tuple[list[int], list[tuple[float, float]]]]:
    """The rows of each part, in their order, and its box."""
    return [
        (
            parts.rows[parts.starts[p] : parts.starts[p + 1]].tolist(),
            list(zip(parts.lo[p].tolist(), parts.hi[p].tolist(), strict=True)),
        )
        for p in range(len(parts.starts) - 1)
    ]


def that_leave(sides: Sides, limits: Limits, rows: RowArrays, parts: Parts) -> list[Any]:
    """The same of the parts that may leave, as engines publish them."""
    return shown(repaired(sides, limits, rows, parts)[0])


def shown_slowly(parts: Sequence[Part]) -> list[tuple[list[int], list[Any]]]:
    """What a twin lets leave."""
    return [([row.number for row in part.rows], list(part.box)) for part in parts]


NUMBERS = [Range(0, 80), Range(0, 100, step=5), Range(17, 90, step=0.3), Range(-7, 66)]
CRITERIA: list[Criterion] = [
    DistinctLDiversity(2, "ill"),
    EntropyLDiversity(1.5, "ill"),
    RecursiveLDiversity(2, "ill", c=1.0),
    TCloseness(0.3, attribute="ill"),
    TCloseness(0.2, attribute="pay"),
    EuclideanCloseness(0.25, attribute="pay"),
    VariationalCloseness(0.3, attribute="ill"),
    JensenShannonCloseness(0.3),
    BasicLikeness(1.5, attribute="pay"),
    EnhancedLikeness(0.8),
    SemanticLikeness(1.0, attribute="ill"),
    RangeLikeness(1.0, attribute="pay", epsilon=2.0),
    DeltaDisclosure(1.2, attribute="ill"),
]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Draw few values that repeat, people with several rows, gaps, and promises of all kinds."""
    domain = st.sampled_from([*NUMBERS, RAGGED, Hierarchy.digits(2), Hierarchy.flat([*"a"])])
    domains = draw(st.lists(domain, min_size=1, max_size=3))
    missing: Missing = draw(st.sampled_from(["quarantine", "extended"]))
    pools = []
    for each in domains:
        if isinstance(each, Range):
            value = st.sampled_from([each.lo, each.hi]) | st.floats(each.lo, each.hi)
        else:
            value = st.integers(0, len(each) - 1).map(float)
        pool = draw(st.lists(value, min_size=1, max_size=8))
        pools.append([*pool, np.nan] if missing == "extended" else pool)
    row = st.tuples(
        st.tuples(*(st.sampled_from(pool) for pool in pools)),
        st.integers(0, draw(st.sampled_from([40, 5]))),
        st.integers(0, 3),
        st.sampled_from([1.0, 2.0, 5.0]),
    )
    at_least = draw(st.sampled_from([1, 12, 25]))
    rows = draw(st.lists(row, min_size=at_least, max_size=30))
    return Table(
        domains,
        [
            KAnonymity(draw(st.integers(1, 4))),
            *draw(st.lists(st.sampled_from(CRITERIA), max_size=2, unique=True)),
        ],
        rows,
        n_pool=draw(st.sampled_from([len(rows), max(1, len(rows) - 4)])),
        weights=[draw(st.sampled_from([1.0, 0.5, 3.0])) for _ in domains],
        loss=draw(st.sampled_from(["glm", "lm", "uncertainty"])),
        missing=missing,
    )
