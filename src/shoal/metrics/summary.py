"""All metrics of a run put together, from its decisions or from its trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.errors import CheckpointError, ParameterError
from shoal.metrics.bad_rows import BadRowCounts, listed
from shoal.metrics.base import GROUP, REUSE, SUPPRESSED, Batch, Metric, registered
from shoal.metrics.delay import Delay
from shoal.metrics.groups import Groups
from shoal.metrics.loss import Loss
from shoal.metrics.pollution import Pollution
from shoal.metrics.reuse import Reuse
from shoal.metrics.suppression import Suppression
from shoal.metrics.trace_lines import rows_of
from shoal.metrics.wording import html_lines, percent
from shoal.metrics.z.counts import ZCounts

__all__ = ["Summary", "summarize"]

_COUNTS = ("n_in", "n_quarantined", "n_held", "n_late")

M = TypeVar("M", bound=Metric)


class Summary:
    """The metrics of a run, counted batch by batch of decisions.

    The caller sets ``n_in``, ``n_quarantined``, ``n_held`` and ``n_late`` (rows published later
    than the delay promises, after an outage), and counts in ``bad_rows`` why rows were quarantined.
    ``skipped`` counts what was received and is no row, such as the deletes of a change stream.
    ``metrics`` has every metric that is registered (see `shoal.metrics.base.in_summary`), by name.

    Parameters
    ----------
    n_quasi
        How many quasi attributes there are, if values may be missing; the caller counts the missing
        ones in ``pollution``.
    cells
        Counts cells, where each is published on its own.

    >>> summary = Summary()
    >>> summary.n_in = 4
    >>> summary.add(
    ...     outcome=np.array([0, 0, 1, 2], dtype=np.int8),
    ...     loss=np.array([0.1, 0.1, 0.1, 1.0]),
    ...     waited_rows=np.array([2, 1, 0, 5]),
    ...     waited_s=None,
    ...     group_rows=np.array([2]),
    ...     group_subjects=np.array([2]),
    ... )
    >>> for line in summary.lines():
    ...     print(line)
    4 rows in, 3 published, 1 suppressed, 0 quarantined, 0 held
    loss: 0.100 of published rows, 0.325 with suppressed rows as 1
    delay: 1 rows on average, median 1, 99 % within 2, at most 2
    groups: 1, of 2 to 2 subjects (median 2) in 2 to 2 rows (median 2)
    reuse: 1 rows, 33.3 % of those published
    suppression: 1 rows, 25.0 % of those decided
    """

    def __init__(self, n_quasi: int | None = None, cells: ZCounts | None = None) -> None:
        self.n_in = 0
        self.n_quarantined = 0
        self.n_held = 0
        self.n_late = 0
        self.metrics: dict[str, Metric] = {kind.name: kind() for kind in registered()}
        self.loss = self._metric(Loss)
        self.delay = self._metric(Delay)
        self.suppression = self._metric(Suppression)
        self.groups = self._metric(Groups)
        self.reuse = self._metric(Reuse)
        self.pollution = None if n_quasi is None else Pollution(n_quasi)
        self.cells = cells
        self.bad_rows = BadRowCounts()
        self.skipped: Counter[str] = Counter()

    def _metric(self, kind: type[M]) -> M:
        found = self.metrics[kind.name]
        assert isinstance(found, kind)
        return found

    def _parts(self) -> dict[str, Any]:
        """Return everything that is merged, saved and restored, by its key in a checkpoint."""
        optional = {"pollution": self.pollution, "cells": self.cells}
        found = {key: part for key, part in optional.items() if part is not None}
        return self.metrics | found | {"bad_rows": self.bad_rows}

    @property
    def n_published(self) -> int:
        """How many rows were published, in groups of their own or by reuse."""
        return self.reuse.n_published

    def add(
        self,
        outcome: NDArray[np.int8],
        loss: NDArray[np.float64],
        waited_rows: NDArray[np.int64],
        waited_s: NDArray[np.float64] | None,
        group_rows: NDArray[np.int64],
        group_subjects: NDArray[np.int64],
        reasons: Mapping[str, int] | None = None,
        n_alone: int = 0,
    ) -> None:
        """Count a batch of decisions; the parameters are those of `shoal.metrics.base.Batch`."""
        batch = Batch(
            outcome, loss, waited_rows, waited_s, group_rows, group_subjects, reasons, n_alone
        )
        for metric in self.metrics.values():
            metric.add_batch(batch)

    def add_groups(self, n_rows: NDArray[np.int64], n_subjects: NDArray[np.int64]) -> None:
        """Count new groups, whose rows are counted when they leave."""
        nothing = np.empty(0)
        self.add(
            nothing.astype(np.int8), nothing, nothing.astype(np.int64), None, n_rows, n_subjects
        )

    def merge(self, other: Summary) -> None:
        """Add the metrics of another run of the same anonymizer, such as that of another shard.

        The figures are then those of one run that decided the rows of both: counts, least and
        largest numbers and quantiles exactly, averages within rounding. A wait in rows stays one in
        rows of the run that the row was in.

        Raises
        ------
        ParameterError
            If it is a run of another anonymizer, with other metrics or other attributes. This
            summary mustn't be used any more then.

        >>> one, other = Summary(), Summary()
        >>> one.n_in, other.n_in = 3, 4
        >>> one.merge(other)
        >>> one.n_in
        7
        """
        own, others = self._parts(), other._parts()
        if own.keys() != others.keys():
            only = ", ".join(sorted(own.keys() ^ others.keys()))
            raise ParameterError("summary", f"counts {only} in one of two runs only")
        for key, part in own.items():
            part.merge(others[key])
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.skipped.update(other.skipped)

    def state(self) -> dict[str, Any]:
        """Return all counts, exactly, as values that JSON can carry: for a checkpoint.

        >>> before, after = Summary(), Summary()
        >>> before.n_in = 7
        >>> after.restore(before.state())
        >>> after.n_in
        7
        """
        counts: dict[str, Any] = {name: int(getattr(self, name)) for name in _COUNTS}
        # Only where there are any, so that a checkpoint of an earlier version still fits.
        skipped = {"skipped": dict(self.skipped)} if self.skipped else {}
        return counts | skipped | {key: part.state() for key, part in self._parts().items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace all counts by those of a state.

        Raises
        ------
        CheckpointError
            If it isn't a state of such a summary. This summary mustn't be used any more then.
        """
        try:
            for name in _COUNTS:
                setattr(self, name, state[name])
            for key, part in self._parts().items():
                part.restore(state[key])
            self.skipped = Counter(state.get("skipped", {}))
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                "the figures in the checkpoint aren't those of a run of this version "
                f"({type(error).__name__})"
            ) from None

    def as_dict(self) -> dict[str, object]:
        """Return all figures as plain values, for JSON; None where there is nothing to average."""
        return {
            "rows": {
                "in": self.n_in,
                "published": self.n_published,
                "suppressed": self.suppression.count,
                "quarantined": self.n_quarantined,
                "held": self.n_held,
                "late": self.n_late,
            },
            **{name: metric.as_dict() for name, metric in self.metrics.items()},
            "quarantine": {
                "count": self.n_quarantined,
                "share": self.n_quarantined / self.n_in if self.n_in else None,
                "reasons": self.bad_rows.as_dict(),
            },
            "skipped": {
                "count": self.skipped.total(),
                "reasons": dict(self.skipped.most_common()),
            },
            "missing": None if self.pollution is None else self.pollution.as_dict(),
            "values": None if self.cells is None else self.cells.as_dict(),
        }

    def __repr__(self) -> str:
        return f"Summary({self.lines()[0]})"

    def _repr_html_(self) -> str:
        return html_lines(self.lines())

    def lines(self) -> list[str]:
        """Return the figures in words, for a terminal."""
        lines = [
            f"{self.n_in:,} rows in, {self.n_published:,} published, "
            f"{self.suppression.count:,} suppressed, {self.n_quarantined:,} quarantined, "
            f"{self.n_held:,} held"
        ]
        if self.n_late:
            lines.append(f"late: {self.n_late:,} rows were published after their delay")
        shown = [part for part in self._parts().values() if part is not self.bad_rows]
        for part in sorted(shown, key=lambda part: part.place):
            # Where cells are published on their own, there are no groups to be used again.
            if part is not self.reuse or self.cells is None:
                lines += part.lines()
        if self.bad_rows.reasons:
            share = percent(self.n_quarantined / self.n_in)
            why = listed(self.bad_rows.reasons)
            lines.append(f"quarantine: {self.n_quarantined:,} rows, {share} of those read: {why}")
        if self.skipped:
            n, why = self.skipped.total(), listed(self.skipped)
            lines.append(f"skipped: {n:,} messages that are no rows here: {why}")
        return lines


_NEEDED = (
    "subject",
    "outcome",
    "arrived",
    "published",
    "arrived_s",
    "published_s",
    "group",
    "loss",
)


def summarize(trace: pa.Table, k: int = 2) -> Summary:
    """Count the metrics of a run from its trace.

    Where the trace has no subjects, each row counts as a subject of its own. ``k`` is how many rows
    must leave at one moment, if those that join earlier groups aren't to count as alone.
    """
    missing = [name for name in _NEEDED if name not in trace.schema.names]
    if missing:
        raise ParameterError(
            "trace",
            f"lacks the columns {', '.join(missing)}",
            fix="Give the file that the run wrote with --trace",
        )
    trace = rows_of(trace)
    outcomes = np.asarray(trace.column("outcome").to_numpy(), dtype=object)
    outcome = np.full(len(outcomes), -1, dtype=np.int8)
    for code, name in ((GROUP, "group"), (REUSE, "reuse"), (SUPPRESSED, "suppressed")):
        outcome[outcomes == name] = code
    decided = outcome >= 0
    waited = _floats(trace, "published") - _floats(trace, "arrived")
    waited_s = _floats(trace, "published_s") - _floats(trace, "arrived_s")
    group_rows, group_subjects = _groups(trace, outcome)
    summary = Summary()
    summary.n_in = len(outcomes)
    summary.n_quarantined = int(np.count_nonzero(outcomes == "quarantined"))
    summary.n_held = int(np.count_nonzero(outcomes == "held"))
    summary.add(
        outcome[decided],
        _floats(trace, "loss")[decided],
        waited[decided].astype(np.int64),
        None if np.all(np.isnan(waited_s)) else waited_s[decided],
        group_rows,
        group_subjects,
        n_alone=_n_alone(trace, outcome, k),
    )
    return summary


def _n_alone(trace: pa.Table, outcome: NDArray[np.int8], k: int) -> int:
    """Return how many rows joined an earlier group when fewer than k rows left.

    A trace tells instants apart by row count and time; two at the same moment count as one.
    """
    out = (outcome == GROUP) | (outcome == REUSE)
    names = ("published", "published_s", "shard")
    moments = np.stack([_floats(trace, n)[out] for n in names if n in trace.schema.names])
    known = np.nan_to_num(moments, nan=-1.0)
    _, at, n = np.unique(known, axis=1, return_inverse=True, return_counts=True)
    return int(np.count_nonzero((outcome[out] == REUSE) & (n[at.ravel()] < k)))


def _groups(
    trace: pa.Table, outcome: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and the different subjects of each group when it was released."""
    lines = outcome == GROUP
    group = _floats(trace, "group")[lines].astype(np.int64)
    column: Any = trace.column("subject")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count == len(column):
        people = np.arange(len(column))
    else:
        subject: Any = column.combine_chunks()
        encoded: Any = pc.dictionary_encode(subject, null_encoding="encode")
        people = encoded.indices.to_numpy(zero_copy_only=False)
    _, position, n_rows = np.unique(group, return_inverse=True, return_counts=True)
    width = int(people.max(initial=0)) + 1
    pairs = np.unique(position * width + people[lines].astype(np.int64))
    n_subjects = np.bincount(pairs // width, minlength=len(n_rows))
    return n_rows.astype(np.int64), n_subjects.astype(np.int64)


def _floats(trace: pa.Table, name: str) -> NDArray[np.float64]:
    column = trace.column(name).cast(pa.float64())
    return np.asarray(column.to_numpy(), dtype=np.float64)
