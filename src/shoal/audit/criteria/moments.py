"""Which window a group was measured against, at each moment at which rows of it left.

The window that ends at E has the rows that were the latest when E rows had arrived; suppressed and
held rows count in it, quarantined ones never arrived. The trace names E for every row that left in
a group; this module checks whether that was possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import Array, column, take
from shoal.audit.criteria.phrases import some
from shoal.audit.evidence import EquivalenceClasses, Evidence
from shoal.audit.trace import GROUP, REUSE, Trace
from shoal.spec.policy import Policy, Window

__all__ = [
    "Moments",
    "lines_by_arrival",
    "moments_of_stream",
    "moments_of_table",
    "values_by_arrival",
]

# How many counts are held in memory at once.
_CELLS = 2_000_000


@dataclass(frozen=True, slots=True, repr=False)
class Moments:
    """The moments at which rows left in groups, and the window that each is measured against.

    Parameters
    ----------
    classes
        The groups, or the boxes of a table.
    class_of
        The position among them of each moment's class, in ascending order.
    end
        The end of each moment's window; -1 where the trace names no possible one.
    rows
        Positions in the output, moment after moment.
    moment
        Of each of these rows.
    flaws
        What is wrong with the windows, in words with counts.
    """

    classes: EquivalenceClasses
    class_of: NDArray[np.int64]
    end: NDArray[np.int64]
    rows: NDArray[np.int64]
    moment: NDArray[np.int64]
    flaws: list[str]

    @property
    def n_classes(self) -> int:
        """How many groups or boxes have a moment."""
        return len(np.unique(self.class_of))

    def counts(
        self, values: NDArray[np.int64], n_values: int, counted: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Yield the counts of values in each class after each moment, some moments at a time.

        ``values`` are those of ``rows``, and ``counted`` tells which of them count.
        """
        n_moments = len(self.class_of)
        step = max(1, _CELLS // max(n_values, 1))
        bounds = np.searchsorted(self.moment, np.arange(n_moments + 1))
        before = np.zeros(n_values, dtype=np.int64)
        for start in range(0, n_moments, step):
            stop = min(start + step, n_moments)
            some_rows = slice(bounds[start], bounds[stop])
            cell = (self.moment[some_rows] - start) * n_values + values[some_rows]
            if counted is not None:
                cell = cell[counted[some_rows]]
            came = np.bincount(cell, minlength=(stop - start) * n_values)
            total = np.zeros((stop - start + 1, n_values), dtype=np.int64)
            np.cumsum(came.reshape(stop - start, n_values), axis=0, out=total[1:])
            class_of = self.class_of[start:stop]
            found = total[1:] - total[np.searchsorted(class_of, class_of)]
            if start and class_of[0] == self.class_of[start - 1]:
                found[class_of == class_of[0]] += before
            before = found[-1]
            yield slice(start, stop), found


def lines_by_arrival(trace: Trace) -> NDArray[np.int64] | None:
    """Return the lines of rows in the order of arrival; None if the trace doesn't have it."""
    lines = np.flatnonzero(trace.arrived >= 0)
    lines = lines[np.argsort(trace.arrived[lines], kind="stable")]
    return lines if np.array_equal(trace.arrived[lines], np.arange(len(lines))) else None


def values_by_arrival(
    evidence: Evidence, trace: Trace, lines: NDArray[np.int64], name: str
) -> Array | str:
    """Return the values of rows in the order of arrival, or why they aren't known.

    Where every row was published, the output has them all, and no original is needed.
    """
    if evidence.original is not None:
        at = evidence.located(trace.row[lines])
        if n := int(np.count_nonzero(at < 0)):
            return f"{n:,} rows that arrived aren't in the original"
        return take(column(evidence.original, name), at)
    seq = trace.seq[lines]
    # The output may lack rows at its end: that they are missing is a matter of conservation.
    shown = trace.has(GROUP, REUSE)[lines] & (seq >= 0) & (seq < evidence.n_rows)
    if n := int(np.count_nonzero(~shown)):
        return (
            f"what groups are measured against needs the original to be seen: "
            f"{n:,} rows arrived and weren't published"
        )
    return take(column(evidence.published, name), seq)


def moments_of_table(classes: EquivalenceClasses, n_arrived: int) -> Moments:
    """Return the boxes of a table: all rows left at one moment, measured against the table."""
    class_of = np.arange(len(classes))
    return Moments(
        classes,
        class_of,
        np.full(len(classes), n_arrived, dtype=np.int64),
        classes.rows,
        np.repeat(class_of, np.diff(classes.starts)),
        [],
    )


def moments_of_stream(
    evidence: Evidence, trace: Trace, classes: EquivalenceClasses, n_arrived: int
) -> Moments:
    """Return the moments of the groups of a trace: the release, then each one at which rows joined.

    A window must have existed when the rows left, and must hold those that left; rows that left
    earlier may be older than it. Against an impossible window nothing is measured.
    """
    n_rows = np.diff(classes.starts)
    class_of = np.repeat(np.arange(len(classes)), n_rows)
    rank = np.arange(len(classes.rows)) - np.repeat(classes.starts[:-1], n_rows)
    n_first = classes.n_first[class_of]
    ends = np.where(rank < n_first, rank == n_first - 1, classes.ends_moment)
    # A group without a release is a matter of grouping.
    real = n_first > 0
    rows, class_of, ends = classes.rows[real], class_of[real], ends[real]
    moment = np.cumsum(ends) - ends
    lines = evidence.line[rows]
    end, arrived = trace.window[lines], trace.arrived[lines]

    n_moments = int(np.count_nonzero(ends))
    low, high = np.full(n_moments, np.iinfo(np.int64).max), np.full(n_moments, -1)
    np.minimum.at(low, moment, end)
    np.maximum.at(high, moment, end)
    named = (end >= 0) & (low == high)[moment]
    window = evidence.policy.window
    # The row that caused the decision had arrived; on a tick it is the next one, which hadn't, but
    # a trace doesn't distinguish ticks from rows.
    early = named & (end > np.minimum(trace.published[lines] + 1, n_arrived))
    if isinstance(window, Window):
        astray = named & ((arrived >= end) | (arrived < end - window.rows))
        what = "doesn't hold the rows measured against it"
        if window.advance is None:
            # Without an advance the window has the latest rows when the group leaves.
            astray |= named & (end < trace.published[lines])
            what += ", or isn't that of the latest rows"
    else:
        astray = named & (end != n_arrived)
        what = "isn't the whole table"
    off_grid = named & ~_on_grid(evidence.policy, end, trace.published[lines], n_arrived)
    wrong = {
        "no window is named": end < 0,
        "several windows are named at one moment": (end >= 0) & ~named,
        "the window wasn't there yet": early,
        f"the window {what}": astray & ~early,
        "the window isn't one of those that the advance leads to": off_grid & ~astray & ~early,
    }
    flaws, n_classes = [], len(np.unique(class_of))
    for text, found in wrong.items():
        if found.any():
            numbers = classes.number[np.unique(class_of[found])].tolist()
            flaws.append(f"{text}: {some(classes, numbers, n_classes)}")
            high[moment[found]] = -1
    return Moments(classes, class_of[ends], high, rows, moment, flaws)


def _on_grid(
    policy: Policy, end: NDArray[np.int64], published: NDArray[np.int64], n_arrived: int
) -> NDArray[np.bool_]:
    """Return which windows can be: they advance in steps from the first, or end with the stream.

    Algorithms that publish row by row don't use the advance: their windows have the latest rows.
    Where a clock lets windows advance early, they may end anywhere.
    """
    window, delay = policy.window, policy.delay
    if not isinstance(window, Window) or window.advance is None:
        return np.ones(len(end), dtype=np.bool_)
    if delay is not None and delay.seconds is not None:
        return np.ones(len(end), dtype=np.bool_)
    stepped = end % window.advance == 0
    return np.asarray(stepped | (end >= published) | (end == n_arrived), dtype=np.bool_)
