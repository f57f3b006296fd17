"""How well published data answer COUNT queries (thesis §3.5.2, §5.7.2).

A query asks how many rows lie in an interval of each of some attributes::

    SELECT COUNT(*) WHERE 20 <= age <= 45 AND sex = 'F' AND ... AND 3 <= salary <= 30

The truth is counted in the input. The answer is estimated from the output: the rows of a box are
taken to be spread evenly over it, and a row counts by the share of its box that the query covers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from shoal.engine.kernels.arrays import Any1, Floats, Ints
from shoal.errors import ParameterError
from shoal.metrics.axes import Axis
from shoal.metrics.compared import Compared

__all__ = [
    "Queries",
    "QueryError",
    "WindowedQueryError",
    "counts",
    "draw",
    "estimates",
    "query_error",
    "windowed_query_error",
]

N_QUERIES = 10_000
#: For each window of a stream, as in the thesis.
N_QUERIES_OF_A_WINDOW = 5_000


class Queries(NamedTuple):
    """A workload. By query and predicate: which quasi attribute, and its first and last place.

    ``secrets`` are the first and last place of the sensitive attribute, by query.
    """

    attributes: Ints
    first: Floats
    last: Floats
    secrets: Floats


@dataclass(frozen=True, slots=True, repr=False)
class QueryError:
    """The relative errors |estimate - truth| / truth of a workload.

    ``errors`` are those of the queries whose truth isn't 0, in no particular order; ``n_dropped``
    counts the others, for which a relative error isn't defined.
    """

    errors: Floats
    n_dropped: int

    def __repr__(self) -> str:
        return f"QueryError(median={_short(self.median)}, {len(self.errors)} queries)"

    @classmethod
    def of(cls, truth: Ints, estimated: Floats) -> QueryError:
        """Compare estimates with the truth.

        >>> QueryError.of(np.array([10, 4, 0]), np.array([9.0, 6.0, 1.0])).as_dict()["median"]
        0.3
        """
        asked = truth > 0
        errors = np.abs(estimated[asked] - truth[asked]) / truth[asked]
        return cls(errors, int(np.count_nonzero(~asked)))

    @property
    def median(self) -> float | None:
        """The workload error of the papers; None if every query was dropped."""
        return self.quantile(0.5)

    @property
    def mean(self) -> float | None:
        """The mean error: a few queries with a truth of 1 or 2 weigh much in it."""
        return float(self.errors.mean()) if len(self.errors) else None

    def quantile(self, share: float) -> float | None:
        """Return the error that this share of the queries doesn't exceed."""
        return float(np.quantile(self.errors, share)) if len(self.errors) else None

    def as_dict(self) -> dict[str, float | int | None]:
        """Return median, mean, quartiles, 95th percentile and counts, as plain values for JSON."""
        return {
            "median": self.median,
            "mean": self.mean,
            "p25": self.quantile(0.25),
            "p75": self.quantile(0.75),
            "p95": self.quantile(0.95),
            "queries": len(self.errors),
            "dropped": self.n_dropped,
        }


@dataclass(frozen=True, slots=True)
class WindowedQueryError:
    """The errors of one workload in each window of a stream."""

    windows: tuple[QueryError, ...]

    @property
    def medians(self) -> tuple[float | None, ...]:
        """The median of each window; None where every query was dropped."""
        return tuple(window.median for window in self.windows)

    @property
    def mean(self) -> float | None:
        """The mean of the medians: the workload error of §5.7.2."""
        found = [median for median in self.medians if median is not None]
        return math.fsum(found) / len(found) if found else None


def query_error(
    compared: Compared,
    *,
    n_queries: int = N_QUERIES,
    selectivity: float = 0.1,
    n_quasi: int = 3,
    seed: int = 0,
    asked: Sequence[int] | None = None,
) -> QueryError:
    """Measure how far COUNT queries on the output are from the truth.

    Each query has a predicate on the sensitive attribute, where there is one, and on some quasi
    attributes, drawn at random. Suppressed rows aren't in the output, and so in no estimate.

    Parameters
    ----------
    compared
        The input and the output.
    n_queries
        How many queries are drawn.
    selectivity
        The share of rows that a query would find in evenly spread data (theta).
    n_quasi
        How many quasi attributes a query has predicates on (lambda); all, if there are fewer.
    seed
        Of the draw: the same seed and axes give the same queries, whatever the rows are.
    asked
        The places of the quasi attributes in the schema that queries ask for; all, by default.

    >>> import pyarrow as pa
    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.schema import Quasi, Schema
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(0, 99, step=1))])
    >>> original = pa.table({"age": [31, 34, 47, 49]})
    >>> published = pa.table({"age": ["[31, 34]", "[31, 34]", "[47, 49]", "[47, 49]"]})
    >>> query_error(Compared.from_tables(schema, original, published), n_queries=1000).median
    0.0
    >>> coarse = pa.table({"age": ["[0, 99]"] * 4})
    >>> query_error(Compared.from_tables(schema, original, coarse), n_queries=1000).median
    0.8
    """
    queries = draw(
        compared,
        n_queries=n_queries,
        selectivity=selectivity,
        n_quasi=n_quasi,
        seed=seed,
        asked=asked,
    )
    return QueryError.of(counts(compared, queries), estimates(compared, queries))


def windowed_query_error(
    compared: Compared,
    *,
    rows: int,
    n_queries: int = N_QUERIES_OF_A_WINDOW,
    selectivity: float = 0.1,
    n_quasi: int = 3,
    seed: int = 0,
) -> WindowedQueryError:
    """Measure how far COUNT queries on a window of the output are from those on one of the input.

    The i-th window of a stream are its rows from position ``i * rows`` on, of the output as of the
    input; so an answer is wrong also because rows came late. An incomplete last window of the input
    is left out. A suppressed row leaves no hole in the output, unless it is published at the
    root: where many are suppressed the windows of the output run ahead of those of the input.

    Parameters
    ----------
    compared
        The input and the output, each in its order.
    rows
        How many rows a window has.
    n_queries, selectivity, n_quasi, seed
        As of `query_error`; the queries are the same in all windows.
    """
    _whole("rows", rows, 1)
    n_windows = compared.n_rows // rows
    if not n_windows:
        raise ParameterError(
            "rows",
            "must be at most the rows of the input",
            got=f"{rows:,} of {compared.n_rows:,}",
            fix="Choose a shorter window",
        )
    queries = draw(
        compared, n_queries=n_queries, selectivity=selectivity, n_quasi=n_quasi, seed=seed
    )
    windows = (compared.window(i * rows, (i + 1) * rows) for i in range(n_windows))
    return WindowedQueryError(
        tuple(QueryError.of(counts(each, queries), estimates(each, queries)) for each in windows)
    )


def draw(
    compared: Compared,
    *,
    n_queries: int,
    selectivity: float,
    n_quasi: int,
    seed: int,
    asked: Sequence[int] | None = None,
) -> Queries:
    """Draw a workload; see `query_error`.

    An interval is ``length * selectivity ** (1 / predicates)`` long, and lies anywhere in the
    domain with equal probability. Of cells it has a whole number, rounded half up, at least one.
    """
    _whole("n_queries", n_queries, 1)
    _whole("n_quasi", n_quasi, 1)
    if not 0 < selectivity < 1:
        raise ParameterError("selectivity", "must be between 0 and 1", got=selectivity)
    axes, random = compared.axes, np.random.default_rng(seed)
    places = list(range(len(axes))) if asked is None else sorted(set(asked))
    if not places or not 0 <= places[0] <= places[-1] < len(axes):
        raise ParameterError("asked", "must be places of quasi attributes", got=len(places))
    n_asked = min(n_quasi, len(places))
    # By the ranks of random numbers, all choices of attributes are equally likely.
    ranks = random.random((n_queries, len(axes)))[:, places].argsort(axis=1)[:, :n_asked]
    attributes = np.array(places)[ranks]
    share = selectivity ** (1 / (n_asked + (compared.sensitive is not None)))
    where = random.random((n_queries, n_asked + 1))
    first, last = np.empty((n_queries, n_asked)), np.empty((n_queries, n_asked))
    for d, axis in enumerate(axes):
        here = attributes == d
        first[here], last[here] = _intervals(axis, share, where[:, :n_asked][here])
    secrets = np.zeros((n_queries, 2))
    if compared.sensitive is not None:
        ends = _intervals(compared.sensitive, share, where[:, n_asked])
        secrets[:, 0], secrets[:, 1] = ends
    return Queries(attributes, first, last, secrets)


def _intervals(axis: Axis, share: float, where: Floats) -> tuple[Floats, Floats]:
    """Return the first and last places of intervals, given their relative positions."""
    if axis.unit:
        n_cells = max(1, math.floor(axis.length * share + 0.5))
        first = np.floor(where * (axis.length - n_cells + 1))
        return first, first + n_cells - 1
    first = axis.lowest + where * axis.length * (1 - share)
    return first, first + axis.length * share


def counts(compared: Compared, queries: Queries) -> Ints:
    """Return how many original rows each query selects; none with a missing value."""
    order = np.argsort(compared.secrets, kind="stable")
    columns = [_narrow(axis, compared.values[order, d]) for d, axis in enumerate(compared.axes)]
    whole = [axis.unit > 0 for axis in compared.axes]
    found = np.empty(len(queries.first), np.int64)
    for i, (begin, end) in enumerate(_runs(compared.secrets[order], queries)):
        fits = []
        for d, first, last in _predicates(queries, i):
            column = columns[d][begin:end]
            # Small whole numbers are compared as such, which is several times faster.
            bounds = (int(first), int(last)) if whole[d] else (first, last)
            fits += [column >= bounds[0], column <= bounds[1]]
        found[i] = np.count_nonzero(reduce(np.logical_and, fits))
    return found


def _narrow(axis: Axis, places: Floats) -> Any1:
    """Return cells in as few bytes as possible, missing as one past the last; points unchanged."""
    if not axis.unit:
        return places
    behind = int(axis.length)
    return np.where(np.isnan(places), behind, places).astype(np.min_scalar_type(behind))


def estimates(compared: Compared, queries: Queries) -> Floats:
    """Return how many rows each query finds in the boxes, with rows spread evenly inside them."""
    boxes, secrets, n_rows = _rows_of_boxes(compared)
    sides = [
        _Side(compared.lo[:, d], compared.hi[:, d], axis.unit)
        for d, axis in enumerate(compared.axes)
    ]
    found = np.empty(len(queries.first))
    for i, (begin, end) in enumerate(_runs(secrets, queries)):
        shares = [sides[d].shares(first, last) for d, first, last in _predicates(queries, i)]
        covered = reduce(np.multiply, shares)
        # Not a dot product: the threads of BLAS cost more than they save on so few numbers.
        found[i] = np.einsum("i,i", n_rows[begin:end], covered[boxes[begin:end]])
    return found


def _rows_of_boxes(compared: Compared) -> tuple[Ints, Floats, Floats]:
    """Return boxes and sensitive values that occur together, by value, and their rows."""
    known = ~np.isnan(compared.published_secrets)
    values, at = np.unique(compared.published_secrets[known], return_inverse=True)
    n_boxes = len(compared.lo)
    pairs, n_rows = np.unique(at * n_boxes + compared.boxes[known], return_counts=True)
    n_boxes = max(1, n_boxes)
    return pairs % n_boxes, values[pairs // n_boxes], n_rows.astype(np.float64)


def _runs(secrets: Floats, queries: Queries) -> Iterator[tuple[int, int]]:
    """Return for each query the range of sorted sensitive values that meet its predicate."""
    begin = np.searchsorted(secrets, queries.secrets[:, 0], side="left")
    end = np.searchsorted(secrets, queries.secrets[:, 1], side="right")
    return zip(begin.tolist(), end.tolist(), strict=True)


def _predicates(queries: Queries, i: int) -> Iterator[tuple[int, float, float]]:
    """Return attribute, first and last place of each predicate of a query."""
    return zip(
        queries.attributes[i].tolist(), queries.first[i].tolist(), queries.last[i].tolist(),
        strict=True,
    )  # fmt: skip


class _Side:
    """One side of all boxes, prepared for many queries."""

    def __init__(self, lo: Floats, hi: Floats, unit: float) -> None:
        self._lo, self._hi = np.ascontiguousarray(lo), np.ascontiguousarray(hi)
        self._unit = unit
        length = self._hi - self._lo + unit
        # A point is either covered or not; an empty side never is.
        self._points = np.flatnonzero(length == 0)
        self._per_length = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)

    def shares(self, first: float, last: float) -> Floats:
        """Return the share of each side that lies between two places."""
        covered = np.minimum(self._hi, last)
        covered -= np.maximum(self._lo, first)
        covered += self._unit
        inside = covered[self._points] >= 0
        np.maximum(covered, 0.0, out=covered)
        covered *= self._per_length
        covered[self._points] = inside
        return covered


def _whole(key: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParameterError(key, f"must be a whole number of at least {least}", got=repr(value))


def _short(number: float | None) -> str:
    return "none" if number is None else f"{number:.3g}"
