"""Events for z-anonymity: written by hand, or drawn, and what its twin makes of them."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable
from typing import Any

from hypothesis import strategies as st

from tests.naive.z_anonymity import Row, run

#: Rungs of each attribute in drawn streams.
N_LEVELS = (3, 1, 2)


def event(time: float | None, subject: Hashable, *values: str | None) -> Row:
    """A row whose values are written from coarse to fine, as in ``italy*turin``."""
    cells = []
    for value in values:
        parts = [] if value is None else value.split("*")
        whole = tuple("*".join(parts[:n]) for n in range(len(parts), 0, -1))
        cells.append(whole or None)
    return time, subject, cells


def levels(rows: Iterable[Row], **options: Any) -> list[int | None]:
    """The levels of the one attribute there is."""
    decisions, _ = run(rows, **options)
    return [level for decision in decisions for level in decision.levels]


def numbered(*events: tuple[Hashable, str | None]) -> list[Row]:
    """Rows without a time."""
    return [event(None, subject, value) for subject, value in events]


def stream(
    seed: int, n_rows: int, n_subjects: int, *, gaps: float = 0.0, timed: bool = True
) -> list[Row]:
    """A stream over attributes of three levels, one and two, some popular, with late rows."""
    draw = random.Random(seed)
    rows: list[Row] = []
    now = 50.0
    for _ in range(n_rows):
        cells = []
        for n_levels in N_LEVELS:
            parts = [draw.choice("aaabbc") for _ in range(n_levels)]
            labels = tuple("*".join(parts[:n]) for n in range(n_levels, 0, -1))
            cells.append(None if draw.random() < gaps else labels)
        now += draw.choice([0.0, 0.0, 0.5, 1.0, 0.1, 7.0])
        late = draw.choice([0.0, 0.0, 0.0, 2.5, 9.0])
        rows.append((now - late if timed else None, draw.randrange(n_subjects), cells))
    return rows


STREAMS = st.builds(
    stream,
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 60),
    n_subjects=st.sampled_from([1, 3, 8, 30]),
    gaps=st.sampled_from([0.0, 0.0, 0.3]),
)
WINDOWS = st.sampled_from(
    [{"window_rows": 1}, {"window_rows": 9}, {"window_rows": 40}]
    + [{"window_seconds": seconds} for seconds in (0.5, 6.0, 1000.0)]
)
