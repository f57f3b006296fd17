"""The algorithms for tables and windows and their twins decide alike, row by row."""

from __future__ import annotations

import random
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import find, names
from shoal.engine import Codes
from shoal.spec.policy import (
    BasicLikeness,
    BetaLikeness,
    Closeness,
    Criterion,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
    Window,
)
from shoal.testing.streams import joined
from tests.algorithms.cases import EDUCATION, POSTCODE, SEED
from tests.algorithms.test_on_deadline_equals_twin import as_tuples, naively
from tests.examples import examples
from tests.naive.measured import order_code
from tests.naive.measured_twins import FOR_STREAMS, FOR_TABLES, twin

ILLNESS = Hierarchy.from_dict(
    {"ill": {"lungs": ["flu", "cold"], "gut": {"upper": ["ulcer"], "lower": ["colic", "worms"]}}}
)
PAY = Range(-5, 5)
EXAMPLES = examples(4 if numba.config.DISABLE_JIT else 60)
NAMES = [name for name in (*FOR_TABLES, *FOR_STREAMS) if name in names()]


def drawn(name: str, draw: random.Random) -> tuple[Schema, Policy, dict[str, Any]]:
    """A schema, a policy that the algorithm can keep, and knobs."""
    enforces = find(name).enforces
    first = draw.choice([("ill", ILLNESS), ("pay", PAY)])
    sensitive = [first] + ([("pay2", PAY)] if draw.random() < 0.3 else [])
    quasi = [
        Quasi("age", Range(0, 100, step=draw.choice([None, 5])), draw.choice([1.0, 0.5])),
        Quasi("education", EDUCATION),
        Quasi("postcode", POSTCODE, draw.choice([1.0, 2.0])),
    ][: draw.randint(1, 3)]
    criteria: list[Criterion] = [KAnonymity(draw.randint(1, 4))]
    if draw.random() < 0.2:
        criteria.append(draw.choice([DistinctLDiversity(2), EntropyLDiversity(1.5)]))
    strict = draw.choice([0.0, 0.1, 0.25, 0.5, 1.0])
    if issubclass(TCloseness, enforces):
        forms = [TCloseness]
        if issubclass(Closeness, enforces):
            forms += [EuclideanCloseness, VariationalCloseness, JensenShannonCloseness]
        form = draw.choice(forms)
        criteria.append(form(strict, attribute=draw.choice([None, first[0]])))
    if BetaLikeness in enforces:
        beta = 2 * strict + 0.2
        likenesses: list[BetaLikeness] = [
            BasicLikeness(beta), EnhancedLikeness(beta),
            SemanticLikeness(beta, attribute="ill", level=draw.randint(1, 2))
            if first[0] == "ill" else RangeLikeness(beta, attribute="pay", epsilon=2.0),
        ]  # fmt: skip
        criteria.append(draw.choice(likenesses))
    if DeltaDisclosure in enforces:
        criteria.append(DeltaDisclosure(strict + 0.3))
    window: Any = "all"
    delay = None
    if find(name).publishes == "windows":
        advance = draw.randint(1, 6)
        window = Window(rows=advance * draw.randint(1, 5), advance=advance)
        if draw.random() < 0.4:
            delay = Delay(seconds=draw.choice([2.0, 9.0]))
    if not any(c.name.endswith(("closeness", "likeness", "disclosure")) for c in criteria):
        assert window == "all"
    schema = Schema("person", quasi, [Sensitive(*s) for s in sensitive])
    missing: Any = draw.choice(["quarantine", "extended"])
    policy = Policy(*criteria, delay=delay, window=window, missing=missing)
    knobs: dict[str, Any] = {"loss": draw.choice(["glm", "lm", "uncertainty"])}
    if hasattr(find(name), "look"):
        knobs["look"] = draw.choice([1, 2, 8])
    if hasattr(find(name), "retry"):
        knobs["side"] = draw.choice(["loss", "widest"])
        knobs["cut"] = draw.choice(["code", "hierarchy"])
        knobs["retry"] = draw.random() < 0.7
    if hasattr(find(name), "history"):
        knobs["history"] = draw.choice([1, 10, 8000])
    return schema, policy, knobs


def stream(schema: Schema, policy: Policy, n: int, draw: random.Random) -> Codes:
    """Rows in which the sensitive values drift, so that windows differ."""
    values = np.empty((n, len(schema.quasi)))
    sensitive = np.empty((n, len(schema.sensitive)), np.int64)
    for i in range(n):
        for d, attribute in enumerate(schema.quasi):
            domain = attribute.domain
            top = len(domain) - 1 if isinstance(domain, Hierarchy) else domain.hi
            values[i, d] = draw.randint(0, int(top))
            if policy.missing == "extended" and draw.random() < 0.1:
                values[i, d] = np.nan
        for j, attribute in enumerate(schema.sensitive):
            lean = draw.randint(0, 4) if draw.random() < 0.5 else (i // 12) % 5
            is_tree = isinstance(attribute.domain, Hierarchy)
            sensitive[i, j] = lean if is_tree else order_code(float(lean - 2))
    subjects = np.array([draw.randrange(max(1, n // draw.choice([1, 2]))) for _ in range(n)])
    times = np.cumsum([draw.choice([0.0, 0.5, 3.0]) for _ in range(n)])
    return Codes(values, subjects, sensitive, times.astype(float))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**32))
def test_kernel_and_twin_decide_alike(name: str, seed: int) -> None:
    draw = random.Random(seed)
    schema, policy, knobs = drawn(name, draw)
    codes = stream(schema, policy, draw.choice([1, 7, 25, 60]), draw)
    engine = find(name)(**knobs).start(schema, policy, seed=SEED)
    slow = twin(name, schema, policy, seed=SEED, **knobs)
    one = joined([engine.push(codes), engine.flush()])
    rows = zip(codes.values, codes.subjects, codes.sensitive, codes.times, strict=True)
    other = [
        decision
        for values, subject, sensitive, time in rows
        for decision in slow.push(values.tolist(), int(subject), sensitive.tolist(), float(time))
    ]
    other += slow.flush()
    assert as_tuples(one) == naively(other)
