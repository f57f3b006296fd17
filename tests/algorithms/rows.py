"""Short streams for engines, written down as values and people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal import Policy, Quasi, Range, Schema, Sensitive
from shoal.engine import Codes, Decisions
from shoal.engine.base import Outcome
from shoal.testing.streams import Stream

GAP = np.nan


def stream(rows: Sequence[tuple[Any, ...]], policy: Policy) -> Stream:
    """Rows of (a number or several, a subject, a sensitive value if it matters).

    All numbers are from 0 to 100.
    """
    values = np.array([np.atleast_1d(row[0]) for row in rows], float)
    numbers = {subject: n for n, subject in enumerate(dict.fromkeys(row[1] for row in rows))}
    quasi = [Quasi(f"x{d}", Range(0, 100)) for d in range(values.shape[1])]
    codes = Codes(
        values,
        np.array([numbers[row[1]] for row in rows], np.int64),
        np.array([[row[2] if len(row) > 2 else 0] for row in rows], np.int64),
        np.full(len(rows), np.nan),
    )
    return Stream(Schema("person", quasi, [Sensitive("s")]), policy, codes)


def groups(decided: Decisions) -> list[set[int]]:
    """The rows of each group as it was formed, in the order of the groups."""
    return [
        set(decided.rows[decided.boxes == box].tolist())
        for box in range(len(decided.lo))
        if decided.n_rows[box] > 0
    ]


def outcomes(decided: Decisions) -> dict[int, str]:
    """What became of each row."""
    names = [Outcome(outcome).name for outcome in decided.outcomes]
    return dict(sorted(zip(decided.rows.tolist(), names, strict=True)))


def sides(decided: Decisions, row: int) -> list[tuple[float, float]]:
    """The box that a row was published in."""
    box = decided.boxes[decided.rows.tolist().index(row)]
    return list(zip(decided.lo[box].tolist(), decided.hi[box].tolist(), strict=True))
