"""The lines of a trace that tell of a change of the job: from there on another promise holds.

Such a line is about no row: its ``outcome`` is the word *changed* and a JSON object with the former
promise, and its numbers say how many rows were read, taken in and published before.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.audit.columns import Array, column, integers, is_text, numbers
from shoal.errors import ParameterError

__all__ = ["changes_in", "without_changes"]

_CHANGED = "changed "
_COUNTS = ("rows_in", "taken_in", "published")


def changes_in(trace: pa.Table) -> list[dict[str, Any]]:
    """Return the changes that a trace tells of, in its order.

    Each has ``what`` changed in words, whether the promise became ``weaker``, the former
    ``sections`` of the job, how many rows were read (``rows_in``), ``taken_in`` and ``published``
    before, and the ``latest`` time of these rows.

    Raises
    ------
    ParameterError
        If such a line can't be read.
    """
    is_change = _is_change(trace)
    if is_change is None:
        return []
    lines = trace.filter(is_change)
    try:
        counts = [integers(column(lines, name)).tolist() for name in ("row", "arrived", "seq")]
        latest = numbers(column(lines, "arrived_s")).tolist()
        outcomes: Array = column(lines, "outcome")
        said = [json.loads(text.removeprefix(_CHANGED)) for text in outcomes.to_pylist()]
        found = [
            {
                "what": [str(each) for each in one["what"]],
                "weaker": bool(one["weaker"]),
                "sections": dict(one["sections"]),
                "rows_in": rows_in,
                "taken_in": taken_in,
                "published": published,
                "latest": None if math.isnan(time) else time,
            }
            for one, rows_in, taken_in, published, time in zip(said, *counts, latest, strict=True)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found = []
    if not found or any(each[name] < 0 for each in found for name in _COUNTS):
        raise ParameterError(
            "trace",
            "has a line about a change of the job that can't be read",
            fix="Give the file as the run wrote it with --trace",
        )
    return found


def without_changes(trace: pa.Table) -> pa.Table:
    """Return the lines of a trace that are about rows.

    >>> trace = pa.table({"row": [0, 1], "outcome": ["group", 'changed {"what": []}']})
    >>> without_changes(trace)["row"].to_pylist()
    [0]
    """
    is_change = _is_change(trace)
    return trace if is_change is None else trace.filter(pc.invert(is_change))


def _is_change(trace: pa.Table) -> Array | None:
    """Return which lines tell of a change; None if there are none."""
    outcome = column(trace, "outcome")
    if outcome is None or not is_text(outcome.type):
        return None
    found = pc.starts_with(outcome, _CHANGED).fill_null(False)
    return found if pc.any(found).as_py() else None
