"""Policies and streams, drawn together, on which kernels and their twins are compared."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.engine import Codes
from shoal.spec.policy import (
    BasicLikeness,
    Criterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    Measured,
    Missing,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
    Window,
)
from tests.naive.measured import Measure, order_code

EDUCATION = Hierarchy.from_dict(
    {"Any": {"School": ["Primary", "Secondary"], "University": ["Bachelor", "Master", "PhD"]}}
)
POSTCODE = Hierarchy.digits(2)
#: What the first sensitive attribute may be, and the codes of the values that it takes.
DOMAINS: dict[str, tuple[Hierarchy | Range | None, list[int]]] = {
    "open": (None, [0, 1, 2, 3]),
    "tree": (
        Hierarchy.from_dict({"Any": {"Ill": ["a", "b"], "Well": ["c"], "d": {}}}),
        [0, 1, 2, 3],
    ),
    "numbers": (Range(-5, 20), [order_code(number) for number in (-2.5, 0.0, 1.5, 7.0)]),
}
#: Of engines and twins: they draw the same numbers.
SEED = b"twins"


@dataclass(kw_only=True)
class Case:
    """A policy and a stream, and the knobs that all algorithms have."""

    seed: int
    k: int
    l: int  # noqa: E741
    entropy: float
    recursive: tuple[float, int]
    #: In rows and in seconds.
    delay: tuple[int | None, float | None]
    n_subjects: int
    n_rows: int
    kept: int
    reuse: str
    joins: str
    loss: str
    step: float | None
    spread: int
    weights: Sequence[float] = (1.0, 0.5, 2.0)
    missing: Missing = "quarantine"
    #: How large a share of the values is missing, if any may be.
    gaps: float = 0.0
    timed: bool = True
    two_sensitive: bool = False
    #: What is measured, and the kind of the first sensitive attribute that this needs.
    measured: tuple[str, Sequence[Measured]] = ("open", ())
    #: Against how many rows; more, if some row could be held longer.
    window: int = 20
    domains: list[Hierarchy | Range] = field(init=False)

    def __post_init__(self) -> None:
        self.domains = [Range(0, 100, step=self.step), EDUCATION, POSTCODE]
        self.timed = self.timed or self.delay[1] is not None
        self.window = max(self.window, (self.delay[0] or 0) + 1)
        if self.measured[1] and self.delay[0] is None:
            # No row may outlive the window that it is measured against.
            self.window = max(self.window, 2)
            self.delay = (self.window - 1, self.delay[1])

    def policy(self) -> Policy:
        criteria: list[Criterion] = [KAnonymity(self.k)]
        if self.l > 1:
            criteria.append(DistinctLDiversity(self.l))
        if self.entropy:
            criteria.append(EntropyLDiversity(self.entropy, "s0"))
        if self.recursive[0]:
            criteria.append(RecursiveLDiversity(self.recursive[1], "s0", c=self.recursive[0]))
        criteria += self.measured[1]
        rows, seconds = self.delay
        return Policy(
            *criteria,
            delay=None if self.delay == (None, None) else Delay(rows=rows, seconds=seconds),
            missing=self.missing,
            window=Window(self.window) if self.measured[1] else None,
        )

    def schema(self) -> Schema:
        quasi = [
            Quasi(f"q{i}", domain, weight)
            for i, (domain, weight) in enumerate(zip(self.domains, self.weights, strict=True))
        ]
        sensitive = [Sensitive("s0", DOMAINS[self.measured[0]][0]), Sensitive("s1")]
        return Schema("person", quasi, sensitive[: 2 if self.two_sensitive else 1])

    def codes(self) -> Codes:
        draw = random.Random(self.seed)
        homes = {
            s: (draw.randrange(101), draw.randrange(5), draw.randrange(100))
            for s in range(self.n_subjects)
        }
        values, subjects, sensitive, times, now = [], [], [], [], 0.0
        for _ in range(self.n_rows):
            subject = draw.randrange(self.n_subjects)
            age, school, post = homes[subject]
            row = [
                min(100.0, max(0.0, age + draw.randint(-self.spread, self.spread) / 2)),
                float(school if draw.random() < 0.8 else draw.randrange(5)),
                float(post),
            ]
            if self.missing != "quarantine":
                row = [math.nan if draw.random() < self.gaps else value for value in row]
            values.append(row)
            subjects.append(subject)
            value = DOMAINS[self.measured[0]][1][draw.choice([0, 0, 0, 1, 1, 2, 3])]
            sensitive.append([value, draw.randrange(3)])
            now += draw.choice([0.0, 0.0, 0.5, 0.1, 3.0, -1.0])
            times.append(now if self.timed else math.nan)
        return Codes(
            np.array(values),
            np.array(subjects) * 7_919_000_000_000 - 5,
            np.array(sensitive)[:, : 2 if self.two_sensitive else 1].copy(),
            np.array(times),
        )

    def naively(self) -> dict[str, Any]:
        """The policy and the knobs, as twins take them."""
        m = 2 if self.two_sensitive else 1
        needed = max(
            self.l, int(np.ceil(self.entropy)), self.recursive[1] if self.recursive[0] else 1
        )
        return {
            "k": self.k,
            "l_needed": [needed, self.l][:m],
            "entropy": [self.entropy, 0.0][:m],
            "recursive": [self.recursive, (0.0, 0)][:m],
            "measures": [
                Measure(criterion, j, attribute.domain)
                for criterion in self.measured[1]
                for j, attribute in enumerate(self.schema().sensitive)
                if criterion.attribute in (None, attribute.name)
            ],
            "window": self.window,
            "delay_rows": self.delay[0],
            "delay_seconds": self.delay[1],
            "kept": self.kept,
            "reuse": self.reuse,
            "joins": self.joins,
            "loss": self.loss,
            "seed": SEED,
        }


def _several(domain: str, *kinds: st.SearchStrategy[Measured]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(domain), st.lists(st.one_of(kinds), min_size=1, max_size=2))


#: Promises that are measured, or none of them, with the domain that they need.
NAMED = st.sampled_from([None, "s0"])
BETAS = st.sampled_from([0.3, 1.0, 4.0])
LIKENESS = st.builds(BasicLikeness, BETAS, attribute=NAMED) | st.builds(
    EnhancedLikeness, BETAS, attribute=NAMED
)
DISCLOSURE = st.builds(DeltaDisclosure, st.sampled_from([0.5, 1.5, 4.0]), attribute=NAMED)
TS = st.sampled_from([0.0, 0.1, 0.25, 0.5])
CLOSENESS = st.builds(TCloseness, TS, attribute=st.just("s0"))
ALIKE = st.one_of(
    st.builds(form, TS, attribute=NAMED)
    for form in (EuclideanCloseness, VariationalCloseness, JensenShannonCloseness)
)
SEMANTIC = st.builds(
    SemanticLikeness, BETAS, level=st.sampled_from([1, 2]), attribute=st.just("s0")
)
RANGES = st.builds(RangeLikeness, BETAS, epsilon=st.sampled_from([0, 2]), attribute=st.just("s0"))
MEASURED = st.one_of(
    _several("open", LIKENESS, DISCLOSURE, ALIKE),
    _several("tree", CLOSENESS, SEMANTIC, LIKENESS, DISCLOSURE, ALIKE),
    _several("numbers", CLOSENESS, RANGES, DISCLOSURE, ALIKE),
)
