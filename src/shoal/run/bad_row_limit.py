"""End a run in which too many rows can't be used."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from shoal.errors import DataError
from shoal.metrics import Summary
from shoal.metrics.bad_rows import hint, listed
from shoal.metrics.wording import percent
from shoal.run.encoder import EncodedChunk

__all__ = ["FIX", "check_limit", "is_above", "passed_at", "too_many"]

#: A limit isn't passed before there are this many bad rows, unless it is 0.
LEAST = 20
#: By how many standard deviations bad rows must be more frequent than the limit.
DEVIATIONS = 3.0
FIX = (
    "Correct the rows, or what the job says about these columns; `shoal check` counts them by "
    "column. To accept this many, raise bad_rows.limit."
)


def is_above(n_bad: int, n_rows: int, limit: float) -> bool:
    """Return whether bad rows are clearly more frequent than a limit, and not by chance.

    >>> is_above(1, 10, 0.05), is_above(20, 60, 0.05), is_above(60, 1000, 0.05)
    (False, True, False)
    >>> is_above(1, 10, 0.0)
    True
    """
    if limit <= 0:
        return n_bad > 0
    deviation = math.sqrt(limit * (1 - limit) * n_rows)
    return n_bad >= LEAST and n_bad > limit * n_rows + DEVIATIONS * deviation


def passed_at(summary: Summary, chunk: EncodedChunk, limit: float) -> tuple[int, int] | None:
    """Return the bad rows and all rows up to where a chunk that isn't taken in passes the limit.

    It is judged at each bad row, over all rows up to it. So however the rows are cut into chunks,
    it is the same row. None if the limit isn't passed.
    """
    if not chunk.bad or limit >= 1:
        return None
    rows = np.array([row.row for row in chunk.bad])
    n_good = np.searchsorted(chunk.inputs, rows)
    for i, good in enumerate(n_good.tolist()):
        n_bad, n_rows = summary.n_quarantined + i + 1, summary.n_in + good + i + 1
        if is_above(n_bad, n_rows, limit):
            return n_bad, n_rows
    return None


def check_limit(summary: Summary, chunk: EncodedChunk, limit: float, where: str) -> None:
    """Raise `DataError` if the limit is passed at a bad row of a chunk that isn't taken in yet."""
    passed = passed_at(summary, chunk, limit)
    if passed is not None:
        new = chunk.bad[: passed[0] - summary.n_quarantined]
        reasons = summary.bad_rows.reasons + Counter(row.reason for row in new)
        text = f"{where}: {too_many(*passed, limit)}: {listed(reasons)}."
        raise DataError(" ".join(filter(None, (text, hint(reasons), FIX))))


def too_many(n_bad: int, n_rows: int, limit: float) -> str:
    """Return in words that the limit is passed."""
    return (
        f"{n_bad:,} of the first {n_rows:,} rows can't be used ({percent(n_bad / n_rows)}), "
        f"clearly more than bad_rows.limit = {limit:g} allows"
    )
