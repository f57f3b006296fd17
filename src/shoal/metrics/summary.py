"""All metrics of a run put together, from its decisions or from its trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.errors import CheckpointError, ParameterError
from shoal.metrics.delay import Delay
from shoal.metrics.groups import Groups
from shoal.metrics.loss import Loss
from shoal.metrics.pollution import Pollution
from shoal.metrics.reuse import Reuse
from shoal.metrics.suppression import Suppression
from shoal.metrics.z.counts import CellCounts

__all__ = ["GROUP", "REUSE", "SUPPRESSED", "Summary", "summarize"]

GROUP, REUSE, SUPPRESSED = 0, 1, 2

_COUNTS = ("n_in", "n_quarantined", "n_held", "n_late")
_PARTS = ("loss", "delay", "suppression", "groups", "reuse")


class Summary:
    """The metrics of a run, counted batch by batch of decisions.

    ``n_in``, ``n_quarantined``, ``n_held`` and ``n_late`` (published later than the delay promises,
    after an outage) are set by whoever knows them.

    Parameters
    ----------
    n_quasi
        How many quasi attributes there are, where values may be missing: then these are counted
        too, by whoever knows them.
    cells
        What counts values that are published one by one, where they are.

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

    def __init__(self, n_quasi: int | None = None, cells: CellCounts | None = None) -> None:
        self.n_in = 0
        self.n_quarantined = 0
        self.n_held = 0
        self.n_late = 0
        self.loss = Loss()
        self.delay = Delay()
        self.suppression = Suppression()
        self.groups = Groups()
        self.reuse = Reuse()
        self.pollution = None if n_quasi is None else Pollution(n_quasi)
        self.cells = cells

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
    ) -> None:
        """Count a batch of decisions.

        Parameters
        ----------
        outcome
            Of each decided row: 0 in a new group, 1 by reuse, 2 suppressed.
        loss
            Of each decided row; that of a suppressed one isn't looked at.
        waited_rows, waited_s
            How long each decided row was held; no seconds where the stream has no time.
        group_rows, group_subjects
            The rows and subjects of each new group.
        reasons
            How many rows were suppressed for which reason.
        """
        published = outcome != SUPPRESSED
        n_published = int(np.count_nonzero(published))
        n_suppressed = len(outcome) - n_published
        self.loss.add(loss[published], n_suppressed)
        self.delay.add(waited_rows[published], None if waited_s is None else waited_s[published])
        self.suppression.add(len(outcome), n_suppressed, reasons)
        self.groups.add(group_rows, group_subjects)
        self.reuse.add(n_published, int(np.count_nonzero(outcome == REUSE)))

    def merge(self, other: Summary) -> None:
        """Take in the metrics of another run of the recipe, such as that of another shard.

        The figures are then those of one run that decided the rows of both: counts, least and
        largest numbers and quantiles exactly, averages within rounding. What a wait in rows is
        counted in stays the rows of the run that the row was in.

        Raises
        ------
        ParameterError
            If it is a run of another recipe: it counts missing values, or values one by one,
            where this one doesn't, or those of other attributes. This one mustn't be used any
            more then.

        >>> one, other = Summary(), Summary()
        >>> one.n_in, other.n_in = 3, 4
        >>> one.merge(other)
        >>> one.n_in
        7
        """
        if self.pollution is not None and other.pollution is not None:
            self.pollution.merge(other.pollution)
        elif self.pollution is not other.pollution:
            raise ParameterError("summary", "counts missing values in one of two runs only")
        if self.cells is not None and other.cells is not None:
            self.cells.merge(other.cells)
        elif self.cells is not other.cells:
            raise ParameterError("summary", "counts values one by one in one of two runs only")
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _PARTS:
            getattr(self, name).merge(getattr(other, name))

    def state(self) -> dict[str, Any]:
        """Everything that is known, exactly, as values that JSON can carry: for a checkpoint.

        >>> before, after = Summary(), Summary()
        >>> before.n_in = 7
        >>> after.restore(before.state())
        >>> after.n_in
        7
        """
        rows: dict[str, Any] = {name: int(getattr(self, name)) for name in _COUNTS}
        if self.pollution is not None:
            rows["pollution"] = self.pollution.state()
        if self.cells is not None:
            rows["cells"] = self.cells.state()
        return rows | {name: getattr(self, name).state() for name in _PARTS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state; what is counted from then on comes on top of it.

        Raises
        ------
        CheckpointError
            If it isn't a state of a summary. This one mustn't be used any more then.
        """
        try:
            for name in _COUNTS:
                setattr(self, name, state[name])
            for name in _PARTS:
                getattr(self, name).restore(state[name])
            if self.pollution is not None:
                self.pollution.restore(state["pollution"])
            if self.cells is not None:
                self.cells.restore(state["cells"])
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                "the figures in the checkpoint aren't those of a run of this version "
                f"({type(error).__name__})"
            ) from None

    def as_dict(self) -> dict[str, object]:
        """All figures as plain values, for JSON; None where there is nothing to average."""
        return {
            "rows": {
                "in": self.n_in,
                "published": self.n_published,
                "suppressed": self.suppression.count,
                "quarantined": self.n_quarantined,
                "held": self.n_held,
                "late": self.n_late,
            },
            "loss": self.loss.as_dict(),
            "delay": self.delay.as_dict(),
            "groups": self.groups.as_dict(),
            "reuse": self.reuse.as_dict(),
            "suppression": self.suppression.as_dict(),
            "missing": None if self.pollution is None else self.pollution.as_dict(),
            "values": None if self.cells is None else self.cells.as_dict(),
        }

    def lines(self) -> list[str]:
        """The figures in words, for a terminal."""
        lines = [
            f"{self.n_in:,} rows in, {self.n_published:,} published, "
            f"{self.suppression.count:,} suppressed, {self.n_quarantined:,} quarantined, "
            f"{self.n_held:,} held"
        ]
        if self.loss.with_suppressed is not None:
            of_published = (
                "no published rows"
                if self.loss.published is None
                else f"{self.loss.published:.3f} of published rows"
            )
            lines.append(
                f"loss: {of_published}, {self.loss.with_suppressed:.3f} with suppressed rows as 1"
            )
        for unit, found in self.delay.as_dict().items():
            if found is not None and found["mean"] is not None:
                lines.append(
                    f"delay: {_short(found['mean'])} {unit} on average, "
                    f"median {_short(found['p50'])}, 99 % within {_short(found['p99'])}, "
                    f"at most {_short(found['max'])}"
                )
        if self.n_late:
            lines.append(f"late: {self.n_late:,} rows were published after their delay")
        if self.groups.count:
            subjects, rows = self.groups.subjects, self.groups.rows
            lines.append(
                f"groups: {self.groups.count:,}, of {subjects.least:,.0f} to "
                f"{subjects.largest:,.0f} subjects (median {subjects.quantile(0.5):,.0f}) in "
                f"{rows.least:,.0f} to {rows.largest:,.0f} rows (median {rows.quantile(0.5):,.0f})"
            )
        if self.pollution is not None and self.pollution.rate is not None:
            cells = self.pollution.as_dict()
            lines.append(
                f"missing: {_percent(cells['before'])} of the quasi values of published rows, "
                f"{_percent(cells['after'])} as published"
            )
        if self.cells is not None:
            lines += self.cells.lines()
        elif self.reuse.share is not None:
            lines.append(
                f"reuse: {self.reuse.count:,} rows, {_percent(self.reuse.share)} of those published"
            )
        if self.suppression.share is not None:
            why = "".join(f"; {n:,} {why}" for why, n in self.suppression.reasons.most_common())
            lines.append(
                f"suppression: {self.suppression.count:,} rows, "
                f"{_percent(self.suppression.share)} of those decided{why}"
            )
        return lines


def _short(number: float | None) -> str:
    """Three figures are enough to read, but a large number keeps all of its places."""
    if number is None:
        return "none"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} %"


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


def summarize(trace: pa.Table) -> Summary:
    """Count the metrics of a run from its trace.

    Where the trace has no subjects, each row is taken for a subject of its own.
    """
    missing = [name for name in _NEEDED if name not in trace.schema.names]
    if missing:
        raise ParameterError(
            "trace",
            f"lacks the columns {', '.join(missing)}",
            fix="Give the file that the run wrote with --trace",
        )
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
    )
    return summary


def _groups(
    trace: pa.Table, outcome: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows and the different subjects of each group when it was released."""
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
