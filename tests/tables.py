"""Short tables and streams with sensitive values, for kernels, engines and twins alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal import Hierarchy, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import find
from shoal.engine import Codes, Decisions, Engine
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.predicate import Limits
from shoal.engine.kernels.window_counts import window_counts_of
from shoal.engine.space import Space
from shoal.spec.criteria import Criterion
from shoal.spec.hierarchy import Domain
from shoal.spec.policy import Delay
from tests.naive.measured import Promises, order_code
from tests.naive.space import Row

__all__ = ["FIGURE_4_1", "SALARY", "Table", "codes", "drifting", "spread", "start", "windowed"]

SALARY = Range(0, 10)
#: Of chapter 4: as Figure 3.1, with hepatitis for the gastric flu.
FIGURE_4_1 = Hierarchy.from_dict(
    {
        "respiratory and digestive diseases": {
            "respiratory diseases": ["SARS", "pneumonia", "bronchitis"],
            "digestive diseases": ["hepatitis", "gastric ulcer", "intestinal cancer"],
        }
    }
)
#: A place from 0 to 100, a subject, and a sensitive value, or one for each attribute.
Point = tuple[Any, ...]


def schema(domains: Sequence[Domain | None], time: str | None = None) -> Schema:
    """One quasi attribute, and sensitive ones named s0, s1 and so on."""
    sensitive = [Sensitive(f"s{j}", domain) for j, domain in enumerate(domains)]
    return Schema("person", [Quasi("x", Range(0, 100))], sensitive, time=time)


def spread(counts: Sequence[int]) -> list[Point]:
    """As many rows of each value as told, dealt out over places, each of another subject."""
    values = [value for value, n in enumerate(counts) for _ in range(n)]
    return [((7 * i) % 101, i, value) for i, value in enumerate(values)]


def codes(
    points: Sequence[Point], domains: Sequence[Domain | None], times: Sequence[float] | None = None
) -> Codes:
    """Rows as arrays; a value of a `Range` is a number, any other is its code."""
    n = len(points)
    sensitive = np.zeros((n, len(domains)), np.int64)
    for i, (_, _, *values) in enumerate(points):
        for j, (domain, value) in enumerate(zip(domains, values, strict=True)):
            sensitive[i, j] = order_code(value) if isinstance(domain, Range) else value
    return Codes(
        np.array([[point[0]] for point in points], float).reshape(n, 1),
        np.array([point[1] for point in points], np.int64),
        sensitive,
        np.full(n, np.nan) if times is None else np.array(times, float),
    )


def start(
    name: str,
    *criteria: Criterion,
    domains: Sequence[Domain | None],
    window: Any = "all",
    seconds: float | None = None,
    seed: bytes = b"1",
    **knobs: Any,
) -> Engine:
    """Begin a run over one quasi attribute and such sensitive ones."""
    delay = None if seconds is None else Delay(seconds=seconds)
    policy = Policy(*criteria, window=window, delay=delay)
    named = schema(domains, None if seconds is None else "at")
    return find(name)(**knobs).start(named, policy, seed=seed)


class Table:
    """Rows that are a table by themselves, what is promised of them, and what both sides see."""

    def __init__(
        self, points: Sequence[Point], *criteria: Criterion, domains: Sequence[Domain | None]
    ) -> None:
        self.policy = Policy(*criteria, window="all")
        self.schema = schema(domains)
        self.space = Space(self.schema, self.policy)
        self.codes = codes(points, domains)
        self.promises = Promises.of(self.schema, self.policy)
        #: As the twins see them.
        self.naive = naive(self.codes)

    @property
    def rows(self) -> RowArrays:
        """As the kernels see them."""
        lo, hi = self.space.points(self.codes.values)
        gaps = np.zeros(len(lo), np.int64)
        return RowArrays(lo.T.copy(), hi.T.copy(), self.codes.subjects, self.codes.sensitive, gaps)

    @property
    def limits(self) -> Limits:
        """What is promised, measured against all rows."""
        return self.space.limits._replace(window=window_counts_of(self.codes.sensitive))

    def keeps(self, members: Sequence[int]) -> bool:
        """Whether some rows keep the promise, by the definitions."""
        return self.promises.hold([self.naive[i] for i in members], self.naive)

    def run(self, name: str, *, seed: bytes = b"1", **knobs: Any) -> Decisions:
        """Publish the table."""
        engine = find(name)(**knobs).start(self.schema, self.policy, seed=seed)
        assert len(engine.push(self.codes).rows) == 0
        return engine.flush()


def naive(batch: Codes) -> list[Row]:
    """Rows as the twins see them."""
    return [
        Row(n, ((float(values[0]), float(values[0])),), int(subject), tuple(sensitive.tolist()))
        for n, (values, subject, sensitive) in enumerate(
            zip(batch.values, batch.subjects, batch.sensitive, strict=True)
        )
    ]


def windowed(decided: Decisions) -> list[tuple[list[int], int]]:
    """The rows of each group, and the window that it was measured against."""
    return [
        (sorted(decided.rows[decided.boxes == box].tolist()), int(decided.windows[box]))
        for box in range(len(decided.lo))
    ]


def drifting(seed: int, n_rows: int, n_subjects: int = 10) -> list[Point]:
    """Rows whose values come in runs: windows differ from what is left of them."""
    draw, value, rows = random.Random(seed), 0, []
    for _ in range(n_rows):
        value = value if draw.random() < 0.8 else draw.randrange(4)
        rows.append((draw.randrange(101), draw.randrange(n_subjects), value))
    return rows
