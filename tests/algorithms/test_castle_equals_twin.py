"""The kernel and the naive twin make the same decisions, row by row."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import (
    Castle,
    Codes,
    Decisions,
    Delay,
    Hierarchy,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
    Sensitive,
)
from shoal.policy import (
    Criterion,
    DistinctLDiversity,
    EntropyLDiversity,
    RecursiveLDiversity,
)
from tests.naive.castle import NaiveCastle

EDUCATION = Hierarchy.from_dict(
    {"Any": {"School": ["Primary", "Secondary"], "University": ["Bachelor", "Master", "PhD"]}}
)
POSTCODE = Hierarchy.digits(2)


@dataclass
class Case:
    """A recipe, a policy and a stream, drawn together."""

    seed: int
    k: int
    l: int  # noqa: E741
    entropy: float
    recursive: tuple[float, int]
    rows: int | None
    seconds: float | None
    n_subjects: int
    n_rows: int
    clusters: int
    recent: int
    kept: int
    reuse: str
    loss: str
    step: float | None
    spread: int
    two_sensitive: bool = False
    domains: list[Hierarchy | Range] = field(init=False)

    def __post_init__(self) -> None:
        self.domains = [Range(0, 100, step=self.step), EDUCATION, POSTCODE]

    @property
    def weights(self) -> list[float]:
        return [1.0, 0.5, 2.0]

    def policy(self) -> Policy:
        criteria: list[Criterion] = [KAnonymity(self.k)]
        if self.l > 1:
            criteria.append(DistinctLDiversity(self.l))
        if self.entropy:
            criteria.append(EntropyLDiversity(self.entropy, "s0"))
        if self.recursive[0]:
            criteria.append(RecursiveLDiversity(self.recursive[1], "s0", c=self.recursive[0]))
        return Policy(*criteria, delay=Delay(rows=self.rows, seconds=self.seconds))

    def schema(self) -> Schema:
        quasi = [
            Quasi(f"q{i}", domain, weight)
            for i, (domain, weight) in enumerate(zip(self.domains, self.weights, strict=True))
        ]
        names = ["s0", "s1"] if self.two_sensitive else ["s0"]
        return Schema(subject="person", quasi=quasi, sensitive=[Sensitive(n) for n in names])

    def codes(self) -> Codes:
        draw = random.Random(self.seed)
        n = self.n_rows
        homes = {
            s: (draw.randrange(101), draw.randrange(5), draw.randrange(100))
            for s in range(self.n_subjects)
        }
        values, subjects, sensitive, times, now = [], [], [], [], 0.0
        for _ in range(n):
            subject = draw.randrange(self.n_subjects)
            age, school, post = homes[subject]
            values.append(
                [
                    min(100.0, max(0.0, age + draw.randint(-self.spread, self.spread) / 2)),
                    float(school if draw.random() < 0.8 else draw.randrange(5)),
                    float(post),
                ]
            )
            subjects.append(subject)
            sensitive.append([draw.choice([0, 0, 0, 1, 1, 2, 3]), draw.randrange(3)])
            now += draw.choice([0.0, 0.0, 0.5, 3.0, -1.0])
            times.append(now)
        return Codes(
            np.array(values),
            np.array(subjects) * 7_919_000_000_000 - 5,
            np.array(sensitive)[:, : 2 if self.two_sensitive else 1].copy(),
            np.array(times),
        )

    def naive(self) -> NaiveCastle:
        m = 2 if self.two_sensitive else 1
        needed = max(
            self.l, int(np.ceil(self.entropy)), self.recursive[1] if self.recursive[0] else 1
        )
        return NaiveCastle(
            self.domains,
            self.weights,
            k=self.k,
            l_needed=[needed, self.l][:m],
            entropy=[self.entropy, 0.0][:m],
            recursive=[self.recursive, (0.0, 0)][:m],
            delay_rows=self.rows,
            delay_seconds=self.seconds,
            clusters=self.clusters,
            recent=self.recent,
            kept=self.kept,
            reuse=self.reuse,
            loss=self.loss,
            seed=b"twins",
        )

    def recipe(self) -> Castle:
        return Castle(
            clusters=self.clusters,
            recent=self.recent,
            kept=self.kept,
            reuse=self.reuse,  # type: ignore[arg-type]
            loss=self.loss,  # type: ignore[arg-type]
        )


def told(decisions: Decisions) -> list[tuple[object, ...]]:
    """What a kernel decided, in words that can be compared."""
    names = ["group", "reuse", "suppressed"]
    rows = []
    for i, row in enumerate(decisions.rows):
        box = int(decisions.boxes[i])
        when = (int(decisions.published[i]), float(decisions.published_s[i]))
        outcome = names[decisions.outcomes[i]]
        if box < 0:
            rows.append((int(row), outcome, None, None, None, 1.0, *when))
        else:
            sides = (tuple(decisions.lo[box]), tuple(decisions.hi[box]))
            number, loss = int(decisions.groups[box]), float(decisions.loss[box])
            rows.append((int(row), outcome, number, *sides, loss, *when))
    return sorted(rows)


def compare(case: Case, batch: int, ticks: bool) -> None:
    codes = case.codes()
    engine = case.recipe().start(case.schema(), case.policy(), seed=b"twins")
    naive = case.naive()
    for begin in range(0, case.n_rows, batch):
        part = Codes(*(array[begin : begin + batch] for array in codes))
        got = told(engine.push(part))
        want = []
        for i in range(begin, min(begin + batch, case.n_rows)):
            want += naive.push(
                list(codes.values[i]), int(codes.subjects[i]), list(codes.sensitive[i]),
                float(codes.times[i]),
            )  # fmt: skip
        if ticks:
            got += told(engine.advance(float(part.times.max()) + 1.0))
            want += naive.advance(float(part.times.max()) + 1.0)
        assert sorted(got) == naively(want)
    assert told(engine.flush()) == naively(naive.flush())
    assert engine.n_held == 0


def naively(decisions: list[object]) -> list[tuple[object, ...]]:
    return sorted(
        (d.row, d.outcome, d.group,  # type: ignore[attr-defined]
         None if d.lo is None else tuple(d.lo),  # type: ignore[attr-defined]
         None if d.hi is None else tuple(d.hi),  # type: ignore[attr-defined]
         d.loss, d.published, d.published_s)  # type: ignore[attr-defined]
        for d in decisions
    )  # fmt: skip


CASES = st.builds(
    Case,
    seed=st.integers(0, 10**6),
    k=st.integers(1, 7),
    l=st.sampled_from([1, 1, 1, 2, 3, 4]),
    entropy=st.sampled_from([0.0, 0.0, 0.0, 1.5, 2.0]),
    recursive=st.sampled_from([(0.0, 0), (0.0, 0), (0.0, 0), (2.0, 2), (1.5, 3)]),
    rows=st.integers(1, 60),
    seconds=st.sampled_from([None, None, 2.5, 20.0]),
    n_subjects=st.sampled_from([1, 3, 9, 40]),
    n_rows=st.integers(1, 120),
    clusters=st.sampled_from([1, 2, 5, 20]),
    recent=st.sampled_from([1, 3, 10]),
    kept=st.sampled_from([0, 1, 4, 100]),
    reuse=st.sampled_from(["random", "random", "best"]),
    loss=st.sampled_from(["glm", "lm"]),
    step=st.sampled_from([None, 1.0, 5.0, 0.3]),
    spread=st.sampled_from([0, 3, 40]),
    two_sensitive=st.booleans(),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(case=CASES, batch=st.sampled_from([1, 7, 1000]), ticks=st.booleans())
def test_kernel_and_twin_decide_alike(case: Case, batch: int, ticks: bool) -> None:
    compare(case, batch, ticks)


@pytest.mark.parametrize("seed", range(4))
def test_on_a_longer_stream(seed: int) -> None:
    case = Case(
        seed=seed, k=5, l=[1, 3][seed % 2], entropy=0.0, recursive=(0.0, 0), rows=150, seconds=None,
        n_subjects=200, n_rows=700, clusters=8, recent=20, kept=30, reuse="random", loss="glm",
        step=5.0, spread=20,
    )  # fmt: skip
    compare(case, 256, ticks=False)
