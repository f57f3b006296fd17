"""Labels: each published cell is the label of its original, at the level of the trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import column, encoded, is_text, same, shared_codes, take, trace_text
from shoal.audit.report import Figure, Verdict, decide
from shoal.audit.times import seconds
from shoal.audit.z.evidence import ZEvidence
from shoal.audit.z.trace import CellTrace
from shoal.audit.z.values import texts

__all__ = ["check"]

#: By how many seconds a published time may be off: timestamps are rounded to it.
_SLACK = 1e-6
#: Whole numbers up to here are exact as fractions.
_EXACT = 2.0**53
#: Steps below this are too small to be checked against rounding.
_FINEST = 1e-5


def check(cells: ZEvidence) -> Verdict:
    """Compare what is published with the rows of the input that the trace joins it to.

    Each label is, character by character, that of the original value at the level of the trace;
    kept columns are unchanged; the trace names the right subjects.
    """
    trace = cells.trace
    if trace is None or cells.original is None:
        doubt = f"what the labels stand for {cells.doubt}"
        return decide("labels", [], kept="", doubt=doubt)
    flaws, n_compared = [], 0
    for a in range(len(cells.schema.quasi)):
        found, n = _compared(cells, trace, a)
        flaws += found
        n_compared += n
    flaws += _kept(cells)
    flaws += _times(cells)
    flaws += _subjects(cells, trace)
    figures: dict[str, Figure] = {"n_compared": n_compared}
    return decide(
        "labels",
        flaws,
        kept=f"each of {n_compared:,} published cells is a label of its original",
        doubt=cells.doubt,
        figures=figures,
    )


def _compared(cells: ZEvidence, trace: CellTrace, a: int) -> tuple[list[str], int]:
    """Return what is wrong with the labels of an attribute, and how many cells were compared."""
    name, ladders = cells.schema.quasi[a].name, cells.ladders[a]
    array = cells.shown(name)
    if array is None:
        return [], 0
    rows = np.flatnonzero(cells.is_published[:, a] & (cells.seq >= 0))
    level = trace.level[cells.rows.line[rows, a]]
    value = cells.of_rows(ladders.value)[rows]
    flaws = []
    is_known = (level >= 0) & (level < ladders.nodes.shape[1])
    if n := int(np.count_nonzero(~is_known)):
        flaws.append(f"{n:,} published cells of column {name} have no level that there is")
    if n := int(np.count_nonzero(value < 0)):
        flaws.append(f"{n:,} published cells of column {name} have no value in the original")
    is_known &= value >= 0
    node = ladders.nodes[value[is_known], level[is_known]]
    numbers_of: dict[str | None, int] = {}
    labels = [numbers_of.setdefault(label, len(numbers_of)) for label in ladders.labels]
    true = np.array(labels, dtype=np.int64)[node]
    # Another way to write a label, even with an invisible mark, would distinguish people. A format
    # without types may have turned labels into numbers.
    which, written = encoded(array) if is_text(array.type) else texts(array)
    shown = np.array([numbers_of.get(label, -1) for label in written], dtype=np.int64)[which]
    if n := int(np.count_nonzero(shown[cells.seq[rows[is_known]]] != true)):
        flaws.append(f"{n:,} published cells of column {name} aren't labels of their original")
    return flaws, len(rows)


def _in_output(cells: ZEvidence) -> NDArray[np.int64]:
    """Return the decided rows that are in the output and have a published cell."""
    has_any = cells.is_published.any(axis=1)
    return np.flatnonzero((cells.seq >= 0) & (cells.positions >= 0) & has_any)


def _kept(cells: ZEvidence) -> list[str]:
    flaws = []
    rows = _in_output(cells)
    for name in cells.schema.payload:
        shown = cells.shown(name)
        if shown is None:
            continue
        given = take(column(cells.original, name), cells.positions[rows])
        if n := int(np.count_nonzero(~same(take(shown, cells.seq[rows]), given))):
            flaws.append(f"in {n:,} rows column {name} isn't as in the original")
    return flaws


def _times(cells: ZEvidence) -> list[str]:
    """Check that a published time is that of the row, or the latest so far, rounded down."""
    if cells.time is None or cells.schema.time is None:
        return []
    array = cells.shown(cells.schema.time)
    if array is None:
        return []
    rows = _in_output(cells)
    shown = seconds(array)[cells.seq[rows]]
    shown[~np.isfinite(shown)] = np.nan
    right = _rounded_down(cells.times[rows], shown, cells.time)
    right |= _rounded_down(cells.clock[rows], shown, cells.time)
    n = int(np.count_nonzero(~right))
    return [f"in {n:,} rows the time isn't that of the original, rounded down"] if n else []


def _rounded_down(
    times: NDArray[np.float64], shown: NDArray[np.float64], step: float
) -> NDArray[np.bool_]:
    """Return which times are shown as the last multiple of a step that isn't later."""
    right: NDArray[np.bool_]
    with np.errstate(invalid="ignore", over="ignore"):
        # Multiples of a fraction are off by the last places, and so are very large ones.
        places = 2 * np.spacing(np.abs(times))
        slack = np.maximum(_SLACK, places)
        places[(np.abs(times) <= _EXACT) & float(step).is_integer()] = 0.0
        if step < _FINEST:
            right = np.abs(times - shown) <= step + slack
            return right
        n_steps = np.round(shown / step)
        right = np.abs(shown - n_steps * step) <= slack
        right &= (n_steps * step <= times + places) & (times - places < (n_steps + 1) * step)
    return right


def _subjects(cells: ZEvidence, trace: CellTrace) -> list[str]:
    rows = np.flatnonzero(cells.positions >= 0)
    named = take(trace.subject, cells.rows.first[rows])
    given = take(cells.subject_column, cells.positions[rows])
    one, other, as_text = shared_codes(named, given, trace_text(given))
    n = int(np.count_nonzero((one != other) & (one != as_text)))
    return [f"in {n:,} rows the trace names another subject than the original"] if n else []
