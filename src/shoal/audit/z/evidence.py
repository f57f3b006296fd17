"""The output, the trace and the original of a run with z, joined cell by cell.

A row of the output and its lines in the trace are joined by ``seq``, a line and its row of the
original by ``row``. Where the trace doesn't fit (see `ZEvidence.doubt`) no promise that needs it
is called kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.audit.columns import (
    Array,
    canonical_text,
    column,
    encoded,
    is_bytes,
    is_number,
    is_text,
    mask,
    trace_text,
)
from shoal.audit.evidence import Suppressed
from shoal.audit.times import seconds
from shoal.audit.z.trace import GROUP, QUARANTINED, CellTrace
from shoal.audit.z.values import Ladders, read_ladders
from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Schema

__all__ = ["Count", "DecidedRows", "ZEvidence"]

#: Which subjects count for a parent: those whose finer value is neither public nor one subject
#: short of it, or all under it.
Count = Literal["residual", "plain"]


@dataclass(frozen=True, slots=True, repr=False)
class DecidedRows:
    """The rows that the trace calls decided, in the order of arrival.

    Parameters
    ----------
    number
        The position in the input.
    first
        A line of the row.
    line
        The line of each of its cells; -1 where there is none.
    """

    number: NDArray[np.int64]
    first: NDArray[np.int64]
    line: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.number)


class ZEvidence:
    """The output, the trace and the original of a run with z, and what follows from them."""

    def __init__(
        self,
        schema: Schema,
        policy: Policy,
        published: pa.Table,
        *,
        suppressed: Suppressed,
        trace: CellTrace | None,
        original: pa.Table | None,
        original_rows: NDArray[np.int64] | None,
        n_quarantined: int | None,
        n_unreadable: int = 0,
        files: Sequence[Path] = (),
        count: Count,
        pseudonym: bool,
        rotate: float | None,
        time: float | None,
        since: float = np.nan,
        may_hold: bool = False,
    ) -> None:
        self.schema = schema
        self.policy = policy
        self.published = published
        self.suppressed: Suppressed = suppressed
        self.trace = trace
        self.original = original
        self.original_rows = original_rows
        self.n_quarantined = n_quarantined
        self.n_unreadable = n_unreadable
        self.files = files
        self.count: Count = count
        self.pseudonym = pseudonym
        self.rotate = rotate
        self.time = time
        # The latest time of the rows before, if these are a part of a stream; else NaN.
        self.since = since
        # Whether the job may go on later: it holds no cells, but may have rows to read.
        self.may_hold = may_hold

    @property
    def n_rows(self) -> int:
        """How many rows were published."""
        return int(self.published.num_rows)

    @property
    def window(self) -> Window:
        """The window that z is measured against; `Policy` checks that there is one."""
        assert isinstance(self.policy.window, Window)
        return self.policy.window

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns of the output, in order."""
        return (
            *(["pseudonym"] if self.pseudonym else []),
            *(attribute.name for attribute in self.schema.quasi),
            *self.schema.payload,
            *([self.schema.time] if self.time is not None and self.schema.time else []),
        )

    def shown(self, name: str) -> Array | None:
        """Return a column of the output, or None."""
        return column(self.published, name)

    @cached_property
    def rows(self) -> DecidedRows:
        """The rows that were decided, by the trace, which must be given."""
        trace = self.trace
        assert trace is not None
        lines = np.flatnonzero((trace.outcome != QUARANTINED) & (trace.row >= 0))
        number, first, which = np.unique(trace.row[lines], return_index=True, return_inverse=True)
        first = lines[first]
        order = np.lexsort((number, trace.arrived[first]))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        line = np.full((len(number), len(self.schema.quasi)), -1, dtype=np.int64)
        of_cell = trace.attribute[lines] >= 0
        line[place[which[of_cell]], trace.attribute[lines[of_cell]]] = lines[of_cell]
        return DecidedRows(number[order], first[order], line)

    @cached_property
    def doubt(self) -> str | None:
        """Why promises that need trace and original can't be verified, or None."""
        if self.trace is None or self.original is None:
            return f"needs {'a trace' if self.trace is None else 'the original'}"
        if (self.rows.line < 0).any() or (self.positions < 0).any():
            return "the trace doesn't fit the input cell by cell"
        seq = np.sort(self.trace.seq[self.rows.first])
        seq = seq[seq >= 0]
        if len(seq) != self.n_rows or (seq != np.arange(len(seq))).any():
            return "the trace doesn't fit the output row by row"
        return None

    @cached_property
    def seq(self) -> NDArray[np.int64]:
        """Where each decided row is in the output; -1: nowhere."""
        assert self.trace is not None
        seq = self.trace.seq[self.rows.first]
        return np.where(seq < self.n_rows, seq, -1)

    @cached_property
    def is_published(self) -> NDArray[np.bool_]:
        """Which cells of the decided rows are published, by the trace."""
        assert self.trace is not None
        found: NDArray[np.bool_] = self.trace.outcome[self.rows.line] == GROUP
        return found & (self.rows.line >= 0)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Where each decided row is in the original, which must be given; -1: nowhere."""
        return self.places(self.rows.number)

    def places(self, numbered: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where rows with these positions in the input are in the original; -1: nowhere."""
        n_original = 0 if self.original is None else int(self.original.num_rows)
        known = np.arange(n_original) if self.original_rows is None else self.original_rows
        order = np.append(np.argsort(known), -1)
        ordered = np.append(known[order[:-1]], -1)
        at = np.searchsorted(ordered[:-1], numbered)
        return np.where(ordered[at] == numbered, order[at], -1)

    def of_rows(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of decided rows, given those of the original; -1: none."""
        return np.append(values, -1)[self.positions]

    @cached_property
    def subjects(self) -> NDArray[np.int64]:
        """A number for the subject of each decided row, by the original; -1 if it has none."""
        return self.of_rows(self.subject_of_input)

    @cached_property
    def subject_of_input(self) -> NDArray[np.int64]:
        """A number for the subject of each row of the original; -1 if it has none."""
        indices, values = encoded(self.subject_column)
        spelling = [canonical_text(value) for value in values]
        numbers_of = {text: i for i, text in enumerate(dict.fromkeys(spelling)) if text}
        return np.array([numbers_of.get(text, -1) for text in spelling], dtype=np.int64)[indices]

    @property
    def subject_column(self) -> Array:
        """The subjects of the original; as text where Python has no value for some of them."""
        assert self.schema.subject is not None
        array: Array = column(self.original, self.schema.subject)
        has_values = is_text(array.type) or is_number(array.type) or is_bytes(array.type)
        return array if has_values else trace_text(array)

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The time of each decided row, by the original; NaN if it has none."""
        if self.schema.time is None:
            return np.full(len(self.rows), np.nan)
        own = seconds(column(self.original, self.schema.time))
        return np.append(own, np.nan)[self.positions]

    @cached_property
    def clock(self) -> NDArray[np.float64]:
        """The effective time of each decided row: the latest one so far; -inf before the first."""
        latest = np.fmax.accumulate(self.times) if len(self.times) else self.times
        latest = np.fmax(latest, self.since)
        return np.where(np.isnan(latest), -np.inf, latest)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """For each decided row the first row of its window."""
        places = np.arange(len(self.rows))
        if self.window.seconds is None:
            return np.maximum(0, places - self.window.rows + 1)
        return np.searchsorted(self.clock, self.clock - self.window.seconds, side="left")

    @cached_property
    def can_expose(self) -> NDArray[np.bool_]:
        """Which decided rows have a subject, and a time if they need one."""
        has_time = self.window.seconds is None or ~np.isnan(self.times)
        found: NDArray[np.bool_] = (self.subjects >= 0) & has_time
        return found

    @cached_property
    def ladders(self) -> tuple[Ladders, ...]:
        """The values of each attribute, in the original."""
        return tuple(read_ladders(attribute, self.original) for attribute in self.schema.quasi)

    @cached_property
    def is_null(self) -> tuple[NDArray[np.bool_] | None, ...]:
        """For each attribute which rows of the output have no label; None without the column."""
        found = (self.shown(attribute.name) for attribute in self.schema.quasi)
        return tuple(None if array is None else mask(array.is_null()) for array in found)
