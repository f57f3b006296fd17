"""A rank test over all groups: whether the order of their rows follows something private.

If the rows of a group are shuffled, every order of them is equally likely, whatever they are
compared by. So the number of pairs in the wrong order (inversions) among m rows is distributed as
a sum of independent uniform numbers from 0 to 0, 1, …, m - 1. For such a sum over all groups, with
variance V, the chance of being t or more away from its mean is at most 2 exp(-t² / 2V), for any
number of groups and any t: log(sinh(n x) / (n sinh x)) ≤ (n² - 1) x² / 6 makes each part strictly
sub-Gaussian. (No approximation for many groups is used.)

The rows of a group are compared by when they arrived, by their subject (as text, and as a number
if all are numbers), and by each original quasi value. Equal ones are compared by their arrival, so
that there is one order that doesn't depend on the shuffling. Each comparison has an equal share of
the chance of a false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.audit.columns import Array, numbers, take
from shoal.audit.evidence import Evidence
from shoal.audit.trace import GROUP, Trace

__all__ = ["MOST_FALSE", "Shuffling", "inversions", "shuffling"]

#: The largest chance of calling shuffled rows unshuffled, over all comparisons of a run.
MOST_FALSE = 1e-9
#: Larger groups are cut into runs of at most this many rows: the orders inside are independent.
_LONGEST = 32


@dataclass(frozen=True, slots=True)
class Shuffling:
    """How far the order inside groups is from chance.

    Parameters
    ----------
    n_rows
        How many rows were compared.
    deviations
        By what they were compared: the deviation of the inversions from their mean, in standard
        deviations. Negative: in ascending order.
    limit
        The deviation that chance exceeds in at most `MOST_FALSE` of all runs.
    is_enough
        Whether rows in perfect order would exceed the limit.
    """

    n_rows: int
    deviations: dict[str, float]
    limit: float
    is_enough: bool


def shuffling(evidence: Evidence, trace: Trace) -> Shuffling:
    """Compare the order of the rows of each group with private orders; the trace must fit."""
    lines = evidence.line[trace.outcome[evidence.line] == GROUP]
    # Stable: rows of one group stay in the order of the output.
    lines = lines[np.argsort(trace.group[lines], kind="stable")]
    n_rows = np.bincount(np.unique(trace.group[lines], return_inverse=True)[1])
    lengths = _cut(n_rows)
    variance = float(np.sum(lengths * (lengths - 1) * (2 * lengths + 5))) / 72
    most = float(np.sum(lengths * (lengths - 1))) / 4
    compared = list(_keys(evidence, trace, lines))
    limit = math.sqrt(2 * math.log(2 * len(compared) / MOST_FALSE))
    deviations = {}
    for name, key in compared:
        by_key = np.lexsort((trace.arrived[lines], key))
        rank = np.empty(len(lines), dtype=np.int64)
        rank[by_key] = np.arange(len(lines))
        apart = inversions(rank, lengths) - most
        deviations[name] = apart / math.sqrt(variance) if variance else 0.0
    is_enough = most > limit * math.sqrt(variance)
    return Shuffling(len(lines), deviations, limit, is_enough)


def inversions(values: NDArray[np.int64], lengths: NDArray[np.int64]) -> int:
    """Return how many pairs inside runs of these lengths are in descending order.

    >>> inversions(np.array([1, 2, 3, 9, 7, 8]), np.array([3, 3]))
    2
    """
    n, ends = 0, np.cumsum(lengths)
    for length in np.unique(lengths):
        starts = (ends - lengths)[lengths == length]
        runs = values[starts[:, None] + np.arange(length)]
        for step in range(1, int(length)):
            n += int(np.count_nonzero(runs[:, :-step] > runs[:, step:]))
    return n


def _cut(n_rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lengths of runs, group after group.

    >>> _cut(np.array([3, 70])).tolist()
    [3, 32, 32, 6]
    """
    if not len(n_rows) or n_rows.max() <= _LONGEST:
        return n_rows
    n_runs = -(-n_rows // _LONGEST)
    lengths = np.full(int(n_runs.sum()), _LONGEST, dtype=np.int64)
    lengths[np.cumsum(n_runs) - 1] = n_rows - (n_runs - 1) * _LONGEST
    return lengths


def _keys(
    evidence: Evidence, trace: Trace, lines: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[np.float64] | NDArray[np.int64]]]:
    """Yield what an order might follow, for each of these lines."""
    yield "arrival", trace.arrived[lines]
    if not evidence.schema.each_row:
        subjects = take(trace.subject, lines)
        yield "subject", _places(subjects)
        as_numbers = _all_numbers(subjects)
        if as_numbers is not None:
            yield "subject as a number", as_numbers
    if evidence.original is None:
        return
    known, positions = evidence.originals
    place = np.full(len(trace), -1, dtype=np.int64)
    place[known[positions >= 0]] = np.arange(np.count_nonzero(positions >= 0))
    for name, values in evidence.published_values.items():
        yield f"column {name}", np.append(values, np.nan)[place[lines]]


def _places(texts: Array) -> NDArray[np.int64]:
    """Return the place of each text in the order of all of them."""
    found: Array = pc.dictionary_encode(texts, null_encoding="encode")
    place = np.empty(len(found.dictionary), dtype=np.int64)
    place[np.asarray(pc.sort_indices(found.dictionary))] = np.arange(len(place))
    return np.asarray(place[np.asarray(found.indices)], dtype=np.int64)


def _all_numbers(array: Array) -> NDArray[np.float64] | None:
    """Return values as numbers, or None if one of them isn't one."""
    try:
        found = numbers(array.cast(pa.float64()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if np.isnan(found).any() else found
