"""How much the published groups disclose about sensitive values, whatever was promised.

For each group, with q the share of a value among its rows and p that among the rows of its window:

- **closeness**: the Earth Mover's Distance of the two distributions (thesis, §3.2);
- **likeness**: the largest gain (q - p) / p of a value;
- **disclosure**: the largest absolute value of ln(q / p), infinite where the group lacks a value.

The figure of a release is that of its worst group (§3.5.1). All are infinite for a group with a
value that its window lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.errors import ParameterError
from shoal.metrics.axes import MISSING
from shoal.metrics.reading import read_codes
from shoal.metrics.trace_lines import by_shard, decided_lines, numbers, rows_of
from shoal.spec.hierarchy import Domain, Hierarchy
from shoal.spec.policy import Window
from shoal.spec.schema import Schema

__all__ = ["Exposure", "GroupExposure", "exposure", "group_exposure"]

#: How many counts are computed at a time, so that memory is bounded.
_COUNTS = 4_000_000


@dataclass(frozen=True, slots=True)
class Exposure:
    """The figures of the worst group, separately for each kind.

    ``closeness`` is None where no distance is defined: the domain is open, or values are missing.
    """

    n_groups: int
    closeness: float | None
    likeness: float
    disclosure: float


class GroupExposure(NamedTuple):
    """The figures of each group, in the order of the groups' numbers, or of events of a stream.

    ``closeness`` is NaN where no distance is defined.
    """

    groups: Ints
    closeness: Floats
    likeness: Floats
    disclosure: Floats

    def worst(self) -> Exposure:
        """Return the largest figure of each kind; 0 where there is no group."""
        undefined = bool(np.isnan(self.closeness).any())
        return Exposure(
            n_groups=len(np.unique(self.groups)),
            closeness=None if undefined else float(self.closeness.max(initial=0.0)),
            likeness=float(self.likeness.max(initial=0.0)),
            disclosure=float(self.disclosure.max(initial=0.0)),
        )


def group_exposure(
    groups: Ints, sensitive: Ints, window: Ints, domain: Domain | None
) -> GroupExposure:
    """Measure every group against one window.

    Parameters
    ----------
    groups, sensitive
        The group of each published row and the code of its sensitive value.
    window
        The codes of the rows of the window.
    domain
        That of the attribute: it and the values of the window define the distances of codes.

    >>> codes = np.array([0, 0, 1, 1])
    >>> found = group_exposure(np.array([7, 7, 9, 9]), codes, codes, Hierarchy.flat(["a", "b"]))
    >>> found.groups, found.closeness, found.likeness
    (array([7, 9]), array([0.5, 0.5]), array([1., 1.]))
    """
    numbers_of, at = np.unique(groups, return_inverse=True)
    values = _ValueCodes(np.concatenate([sensitive, window]), domain)
    held = np.bincount(values.of(window), minlength=values.n)
    measured = _measured(at.reshape(-1), len(numbers_of), values.of(sensitive), held, values)
    return GroupExposure(numbers_of, *measured)


def exposure(
    schema: Schema,
    original: pa.Table,
    trace: pa.Table,
    *,
    window: Window | Literal["all"] = "all",
) -> dict[str, Exposure]:
    """Measure what was published, for each sensitive attribute, by the trace of the run.

    Parameters
    ----------
    schema
        The columns.
    original
        The rows that were read.
    trace
        The outcome of each, of a run without shards: they have no common order of arrival.
    window
        What groups are compared with. ``"all"``: all good rows, whatever was promised. With the
        window of the policy, each group is compared with the window that the trace names, and again
        after each later moment at which rows joined it.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.schema import Quasi, Sensitive
    >>> schema = Schema(None, [Quasi("age", Range(0, 99))], [Sensitive("illness")])
    >>> original = pa.table({"age": [20, 21, 50, 51], "illness": ["flu", "flu", "flu", "gout"]})
    >>> trace = pa.table(
    ...     {
    ...         "row": [0, 1, 2, 3], "outcome": ["group"] * 4, "arrived": [0, 1, 2, 3],
    ...         "published": [4] * 4, "group": [0, 0, 1, 1], "window": [4] * 4,
    ...     }
    ... )
    >>> exposure(schema, original, trace)["illness"]
    Exposure(n_groups=2, closeness=None, likeness=1.0, disclosure=inf)
    """
    lines = decided_lines(trace, "row", "arrived", "group", "published", "window")
    if len(by_shard(trace)) > 1:
        raise ParameterError(
            "trace",
            "is of several shards, which have no order of arrival, and so no window, in common",
            fix="Give the trace of a run on its own",
        )
    trace = rows_of(trace)
    # Held rows are in the windows of others.
    good_lines = trace.filter(trace.column("arrived").is_valid())
    rows, arrived = (numbers(good_lines, name).astype(np.int64) for name in ("row", "arrived"))
    if rows.max(initial=-1) >= original.num_rows:
        raise ParameterError(
            "trace",
            "has lines of rows that the input doesn't have",
            got=f"rows up to {rows.max()} of {original.num_rows:,}",
            fix="Give the input and the trace of one run",
        )
    codes, good = read_codes(schema, original)
    coded = np.full((original.num_rows, len(schema.sensitive)), MISSING)
    coded[good] = codes.sensitive
    stream = np.full((int(arrived.max(initial=-1)) + 1, len(schema.sensitive)), MISSING)
    stream[arrived] = coded[rows]
    events = _events(lines, window, len(stream))
    found = {}
    for j, attribute in enumerate(schema.sensitive):
        parts = [*_against_windows(events, stream[:, j], window, attribute.domain)]
        joined = (np.concatenate(column) for column in zip(*parts, strict=True))
        found[attribute.name] = (GroupExposure(*joined) if parts else _NOTHING).worst()
    return found


_NOTHING = GroupExposure(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0))


class _Events(NamedTuple):
    """Published rows sorted by group and moment, and the moments at which groups are measured.

    By row: its position in the stream, and its group. By event: the window, the moment, and the
    range of the rows that the group has by then.
    """

    arrived: Ints
    groups: Ints
    windows: Ints
    moments: Ints
    begin: Ints
    end: Ints


def _events(lines: pa.Table, window: Window | Literal["all"], n_rows: int) -> _Events:
    group = numbers(lines, "group")
    out: Bools = ~np.isnan(group)
    arrived, groups = numbers(lines, "arrived")[out], group[out]
    if window == "all":
        # Each group is measured once, as it is in the end.
        windows, moments = np.full(len(groups), float(n_rows)), np.zeros(len(groups))
    else:
        windows, moments = numbers(lines, "window")[out], numbers(lines, "published")[out]
        if np.isnan(windows).any():
            raise ParameterError(
                "trace",
                "doesn't say which windows groups were measured against",
                got=f"{np.count_nonzero(np.isnan(windows)):,} lines without a window",
                fix='Compare with all rows: window="all"',
            )
    table = np.stack([groups, windows, moments, arrived]).astype(np.int64)
    table = table[:, np.lexsort(table[2::-1])]
    is_last = np.append((table[:3, 1:] != table[:3, :-1]).any(axis=0), True)
    end = np.flatnonzero(is_last[: table.shape[1]]) + 1
    begin = np.searchsorted(table[0], table[0, end - 1])
    return _Events(table[3], table[0], table[1, end - 1], table[2, end - 1], begin, end)


def _against_windows(
    events: _Events, stream: Ints, window: Window | Literal["all"], domain: Domain | None
) -> Iterator[GroupExposure]:
    """Yield the figures of the events, those of one window and moment together."""
    values = _ValueCodes(stream, domain)
    codes = values.of(stream)
    published = codes[events.arrived]
    order = np.lexsort((events.moments, events.windows))
    keys = np.stack([events.windows[order], events.moments[order]])
    cuts = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    for batch in np.split(order, cuts) if len(order) else ():
        end = int(events.windows[batch[0]])
        begin = 0 if window == "all" else max(0, end - window.rows)
        held = np.bincount(codes[begin:end], minlength=values.n)
        length = events.end[batch] - events.begin[batch]
        at = np.repeat(np.arange(len(batch)), length)
        skipped = np.repeat(events.begin[batch] - (np.cumsum(length) - length), length)
        rows = published[np.arange(len(at)) + skipped]
        groups = events.groups[events.begin[batch]]
        yield GroupExposure(groups, *_measured(at, len(batch), rows, held, values))


class _ValueCodes:
    """The different codes there are, numbered in their order; those of a hierarchy as they are."""

    def __init__(self, codes: Ints, domain: Domain | None) -> None:
        self.domain = domain
        self.known = np.unique(codes)
        self.has_distance = domain is not None and MISSING not in self.known
        if isinstance(domain, Hierarchy) and self.has_distance:
            # Nodes are intervals of leaves, so absent leaves need a place too.
            self.known = np.arange(len(domain))
        self.n = len(self.known)

    def of(self, codes: Ints) -> Ints:
        """Return the numbers of codes."""
        return np.searchsorted(self.known, codes)


def _measured(
    at: Ints, n_groups: int, values: Ints, held: Ints, known: _ValueCodes
) -> tuple[Floats, Floats, Floats]:
    """Return closeness, likeness and disclosure of groups 0, 1, …, given the group of each row."""
    order = np.argsort(at, kind="stable")
    at, values = at[order], values[order]
    at_once = max(1, _COUNTS // max(1, known.n))
    found = np.empty((3, n_groups))
    for first in range(0, n_groups, at_once):
        last = min(n_groups, first + at_once)
        begin, end = np.searchsorted(at, (first, last))
        pairs = (at[begin:end] - first) * known.n + values[begin:end]
        counts = np.bincount(pairs, minlength=(last - first) * known.n).reshape(-1, known.n)
        found[:, first:last] = _compared(counts, held, known)
    return found[0], found[1], found[2]


def _compared(counts: Ints, held: Ints, known: _ValueCodes) -> Floats:
    """Return the three figures of groups, given the counts of values in them and in the window."""
    n_group, n_window = counts.sum(axis=1, keepdims=True), int(held.sum())
    inside = held > 0
    ratio = counts[:, inside] * n_window / (held[inside] * n_group)
    likeness = ratio.max(axis=1, initial=0.0) - 1
    with np.errstate(divide="ignore"):
        disclosure = np.abs(np.log(ratio)).max(axis=1, initial=0.0)
    if not known.has_distance:
        closeness = np.full(len(counts), np.nan)
    else:
        # Whole numbers, scaled by n_group * n_window: no rounding before the end.
        extra = counts * n_window - held * n_group
        if isinstance(known.domain, Hierarchy):
            closeness = _tree_distance(extra, known.domain)
        else:
            closeness = _ordered_distance(extra[:, inside])
        closeness = closeness / (n_group[:, 0] * float(max(1, n_window)))
    lacking = counts[:, ~inside].any(axis=1)
    return np.where(lacking, np.inf, np.stack([closeness, likeness, disclosure]))


def _ordered_distance(extra: Ints) -> Floats:
    """Return what is moved from each value to the next, over the longest distance."""
    moved: Ints = np.abs(np.cumsum(extra, axis=1)).sum(axis=1)
    return moved / float(max(1, extra.shape[1] - 1))


def _tree_distance(extra: Ints, tree: Hierarchy) -> Floats:
    """Return what is moved through each edge of a tree, over its height.

    The distance of two leaves is the height of their lowest common ancestor, so the length of an
    edge is half of the difference in height.
    """
    parents = np.array(tree.parents)
    heights = np.zeros(len(parents), np.int64)
    for node in range(len(parents) - 1, 0, -1):
        heights[parents[node]] = max(heights[parents[node]], heights[node] + 1)
    edges = heights[parents] - heights
    before = np.concatenate([np.zeros((len(extra), 1), np.int64), np.cumsum(extra, axis=1)], axis=1)
    through = np.abs(before[:, np.array(tree.highs) + 1] - before[:, np.array(tree.lows)])
    moved: Ints = (through * edges).sum(axis=1)
    return moved / float(2 * max(1, heights[0]))
