"""Policies and streams, drawn together, on which kernels and their twins are compared."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal import Codes, Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.policy import (
    Criterion,
    DistinctLDiversity,
    EntropyLDiversity,
    Missing,
    RecursiveLDiversity,
)

EDUCATION = Hierarchy.from_dict(
    {"Any": {"School": ["Primary", "Secondary"], "University": ["Bachelor", "Master", "PhD"]}}
)
POSTCODE = Hierarchy.digits(2)
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
    loss: str
    step: float | None
    spread: int
    weights: Sequence[float] = (1.0, 0.5, 2.0)
    missing: Missing = "quarantine"
    #: How large a share of the values is missing, if any may be.
    gaps: float = 0.0
    timed: bool = True
    two_sensitive: bool = False
    domains: list[Hierarchy | Range] = field(init=False)

    def __post_init__(self) -> None:
        self.domains = [Range(0, 100, step=self.step), EDUCATION, POSTCODE]
        self.timed = self.timed or self.delay[1] is not None

    def policy(self) -> Policy:
        criteria: list[Criterion] = [KAnonymity(self.k)]
        if self.l > 1:
            criteria.append(DistinctLDiversity(self.l))
        if self.entropy:
            criteria.append(EntropyLDiversity(self.entropy, "s0"))
        if self.recursive[0]:
            criteria.append(RecursiveLDiversity(self.recursive[1], "s0", c=self.recursive[0]))
        rows, seconds = self.delay
        return Policy(*criteria, delay=Delay(rows=rows, seconds=seconds), missing=self.missing)

    def schema(self) -> Schema:
        quasi = [
            Quasi(f"q{i}", domain, weight)
            for i, (domain, weight) in enumerate(zip(self.domains, self.weights, strict=True))
        ]
        sensitive = ["s0", "s1"] if self.two_sensitive else ["s0"]
        return Schema(subject="person", quasi=quasi, sensitive=[Sensitive(n) for n in sensitive])

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
            sensitive.append([draw.choice([0, 0, 0, 1, 1, 2, 3]), draw.randrange(3)])
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
            "delay_rows": self.delay[0],
            "delay_seconds": self.delay[1],
            "kept": self.kept,
            "reuse": self.reuse,
            "loss": self.loss,
            "seed": SEED,
        }
