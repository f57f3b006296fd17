"""The output, the trace and the original of a run, joined: which subject each published row is of.

A published row and its line in the trace are joined by ``seq``. Where the join fails the row counts
as one of a subject of its own: a promise that fails even then is certainly broken, and one that
holds is unverifiable (see `Evidence.doubt`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.audit.columns import Array, column, combined_codes, distinct_codes, mask, numbers, take
from shoal.audit.coordinates import coordinates
from shoal.audit.labels import Numeric, Side, public_columns, read_side
from shoal.audit.times import seconds
from shoal.audit.trace import GROUP, QUARANTINED, REUSE, SUPPRESSED, Trace
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["EquivalenceClasses", "Evidence", "Loss", "Order", "Suppressed"]

Suppressed = Literal["drop", "root"]
#: In which order rows leave; see `shoal.audit.order`.
Order = Literal["released", "shuffled", "arrival"]
#: How a box loses; see `shoal.audit.loss`.
Loss = Literal["glm", "lm", "uncertainty"]


@dataclass(frozen=True, slots=True, repr=False)
class EquivalenceClasses:
    """The equivalence classes that must meet a criterion: all boxes, or all groups.

    Parameters
    ----------
    kind
        ``box`` or ``group``.
    number
        Of each class; for groups as in the trace.
    rows
        Positions in the output, class_of after class_of; in a class_of in the order of release.
    starts
        Where each class begins in ``rows``, and the end.
    n_first
        How many rows of each class were released at once; the others joined later.
    ends_moment
        For each of ``rows``, whether it is the last one of its class at its moment. Rows that leave
        at one moment have no order: an outsider sees the class after all of them.
    """

    kind: Literal["box", "group"]
    number: NDArray[np.int64]
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    n_first: NDArray[np.int64]
    ends_moment: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.number)

    @property
    def kinds(self) -> str:
        """The kind in the plural."""
        return {"box": "boxes", "group": "groups"}[self.kind]

    def first_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows released at once, and for each of them the position of its class."""
        n_rows = np.diff(self.starts)
        class_of = np.repeat(np.arange(len(self)), n_rows)
        rank = np.arange(len(self.rows)) - np.repeat(self.starts[:-1], n_rows)
        first = rank < self.n_first[class_of]
        return self.rows[first], class_of[first]


class Evidence:
    """The output, the trace and the original of a run, and what follows from them."""

    def __init__(
        self,
        schema: Schema,
        policy: Policy,
        published: pa.Table,
        *,
        numeric: Numeric,
        suppressed: Suppressed,
        trace: Trace | None,
        original: pa.Table | None,
        original_rows: NDArray[np.int64] | None,
        n_quarantined: int | None,
        order: Order | None = None,
        loss: Loss | None = None,
        reuse: bool | None = None,
        n_unreadable: int = 0,
        files: Sequence[Path] = (),
        since: float = np.nan,
        may_hold: bool = False,
    ) -> None:
        self.schema = schema
        self.policy = policy
        self.published = published
        self.numeric: Numeric = numeric
        self.suppressed: Suppressed = suppressed
        self.trace = trace
        self.original = original
        self.original_rows = original_rows
        self.n_quarantined = n_quarantined
        self.order: Order | None = order
        self.loss: Loss | None = loss
        self.reuse = reuse
        self.n_unreadable = n_unreadable
        self.files = files
        # The latest time of the rows before, if these are a part of a stream; else NaN.
        self.since = since
        # Whether the job may go on with rows that it holds.
        self.may_hold = may_hold

    @property
    def n_rows(self) -> int:
        """How many rows were published."""
        return int(self.published.num_rows)

    @property
    def given_rows(self) -> NDArray[np.int64]:
        """The number of each row of the original, which must be given."""
        if self.original_rows is not None:
            return self.original_rows
        assert self.original is not None
        return np.arange(self.original.num_rows, dtype=np.int64)

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """The labels of every quasi attribute that is in the output."""
        maybe = self.policy.missing == "maybe"
        read = (
            read_side(self.published, attribute, self.numeric, with_gaps=maybe)
            for attribute in self.schema.quasi
        )
        return tuple(side for side in read if side is not None)

    @property
    def public_quasi(self) -> tuple[str, ...]:
        """The columns that quasi attributes are published in."""
        return tuple(
            name
            for attribute in self.schema.quasi
            for name in public_columns(attribute, self.numeric)
        )

    @cached_property
    def unlabelled(self) -> tuple[str, ...]:
        """The quasi attributes that have no column, or not all of theirs, in the output."""
        labelled = {side.name for side in self.sides}
        return tuple(each.name for each in self.schema.quasi if each.name not in labelled)

    @cached_property
    def has_gaps(self) -> bool:
        """Whether missing values match any other, and there are some in the output.

        Then rows with one box aren't a group: other rows of the group may lack a value.
        """
        return any(bool(side.gap.any()) for side in self.sides)

    @cached_property
    def box(self) -> NDArray[np.int64]:
        """Equal numbers for published rows with equal labels."""
        if not self.sides:
            return np.zeros(self.n_rows, dtype=np.int64)
        return combined_codes(*(side.labels for side in self.sides))

    @cached_property
    def line(self) -> NDArray[np.int64]:
        """For each published row its line in the trace, -1 where there isn't exactly one."""
        line = np.full(self.n_rows, -1, dtype=np.int64)
        if self.trace is not None:
            seq = self.trace.seq
            inside = np.flatnonzero((seq >= 0) & (seq < self.n_rows))
            line[seq[inside]] = inside
            line[np.bincount(seq[inside], minlength=self.n_rows) > 1] = -1
        return line

    @cached_property
    def fits(self) -> bool:
        """Whether each published row has exactly one line in the trace."""
        return self.trace is not None and bool(np.all(self.line >= 0))

    @cached_property
    def doubt(self) -> str | None:
        """Why boxes, or the subjects of the published rows, aren't known for certain, or None."""
        if self.unlabelled:
            names = ", ".join(self.unlabelled)
            return f"the output has no labels of {names}: which rows share a box can't be told"
        if self.trace is None:
            if self.has_gaps:
                return (
                    "which rows are a group can't be told without a trace, where a missing value "
                    "matches any other"
                )
            if self.schema.each_row:
                return None
            return "whose rows these are can't be told without a trace"
        return None if self.fits else "the trace doesn't fit the output row by row"

    @cached_property
    def people(self) -> NDArray[np.int64]:
        """A number for the subject of each line of the trace, which must be given."""
        assert self.trace is not None
        return distinct_codes(self.trace.subject)

    @cached_property
    def subjects(self) -> NDArray[np.int64]:
        """A number for the subject of each published row; of its own where it isn't known."""
        alone = np.arange(self.n_rows, dtype=np.int64)
        if self.trace is None or self.schema.each_row:
            return alone
        known = self.line >= 0
        # The numbers of people are below that of the lines.
        subjects = alone + len(self.people)
        subjects[known] = self.people[self.line[known]]
        return subjects

    @cached_property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which published rows are empty: every quasi at the root, everything else null."""
        empty = np.ones(self.n_rows, dtype=np.bool_)
        for side in self.sides:
            empty &= side.root
        for name in self.schema.payload:
            array = column(self.published, name)
            if array is not None:
                empty &= mask(array.is_null())
        return empty

    @cached_property
    def in_group(self) -> NDArray[np.bool_]:
        """Which published rows belong to a group; suppressed ones don't."""
        suppressed = self.is_empty & (self.suppressed == "root")
        if self.trace is not None:
            known = self.line >= 0
            suppressed[known] = self.trace.outcome[self.line[known]] == SUPPRESSED
        return ~suppressed

    def values(self, name: str) -> NDArray[np.int64] | None:
        """Return a number for each published value of a sensitive attribute; null is one value."""
        array = column(self.published, name)
        if array is None:
            return None
        domain = next(a.domain for a in self.schema.sensitive if a.name == name)
        # "1" and "1.0" are one value of a number.
        return distinct_codes(pa.array(numbers(array)) if isinstance(domain, Range) else array)

    @cached_property
    def classes(self) -> tuple[EquivalenceClasses, ...]:
        """The boxes of the output, unless it has gaps, and, with a trace that fits, its groups.

        Without the labels of a quasi attribute there are no boxes.
        """
        boxes = () if self.has_gaps or self.unlabelled else (self._boxes(),)
        if self.trace is None or not self.fits:
            return boxes
        return *boxes, self._groups(self.trace)

    @cached_property
    def originals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The lines of rows published in groups, and their positions in the original (-1: none)."""
        nothing = np.empty(0, dtype=np.int64)
        trace = self.trace
        if trace is None or self.original is None:
            return nothing, nothing
        inside = (trace.seq >= 0) & (trace.seq < self.n_rows)
        lines = np.flatnonzero(trace.has(GROUP, REUSE) & inside)
        return lines, self.located(trace.row[lines])

    @cached_property
    def published_values(self) -> dict[str, NDArray[np.float64]]:
        """The original values of `originals` that the original has, by quasi attribute."""
        _, positions = self.originals
        positions = positions[positions >= 0]
        found = {}
        for attribute in self.schema.quasi:
            array = take(column(self.original, attribute.name), positions)
            is_time = attribute.name == self.schema.time
            found[attribute.name] = coordinates(array, attribute.sided, is_time=is_time)
        return found

    def located(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where rows of the input are in the original, which must be given; -1: nowhere."""
        assert self.original is not None
        if self.original_rows is None:
            return np.where(rows < self.original.num_rows, rows, -1)
        known: Array = pa.array(self.original_rows, pa.int64())
        at: Array = pc.index_in(pa.array(rows), value_set=known)
        return np.asarray(at.fill_null(-1), dtype=np.int64)

    def latest_time(
        self, rows: NDArray[np.int64], side: Literal["left", "right"]
    ) -> NDArray[np.float64]:
        """Return the latest time before each row of the input, or with it, of rows that arrived.

        NaN if there is none. The original must be given. A row that is held has no line in the
        trace, but a time.
        """
        assert self.trace is not None
        bad = self.trace.row[self.trace.outcome == QUARANTINED]
        arrived = np.flatnonzero(~np.isin(self.given_rows, bad))
        arrived = arrived[np.argsort(self.given_rows[arrived], kind="stable")]
        time = seconds(take(column(self.original, str(self.schema.time)), arrived))
        # Unknown times are left out, as is that of the rows before.
        latest = np.fmax.accumulate(np.append(self.since, time))
        return np.asarray(latest[np.searchsorted(self.given_rows[arrived], rows, side)])

    def _boxes(self) -> EquivalenceClasses:
        rows = np.flatnonzero(self.in_group)
        number, counts = np.unique(self.box[rows], return_counts=True)
        order = np.argsort(self.box[rows], kind="stable")
        starts = _starts(counts)
        ends_moment = np.zeros(len(rows), dtype=np.bool_)
        ends_moment[starts[1:] - 1] = True
        return EquivalenceClasses("box", number, rows[order], starts, counts, ends_moment)

    def _groups(self, trace: Trace) -> EquivalenceClasses:
        lines = np.zeros(len(trace), dtype=np.bool_)
        lines[self.line[self.line >= 0]] = True
        lines &= trace.has(GROUP, REUSE) & (trace.group >= 0)
        chosen = np.flatnonzero(lines)
        order = np.lexsort(
            (
                trace.seq[chosen],
                trace.window[chosen],
                trace.published_s[chosen],
                trace.published[chosen],
                trace.outcome[chosen] == REUSE,
                trace.group[chosen],
            )
        )
        chosen = chosen[order]
        number, inverse, counts = np.unique(
            trace.group[chosen], return_inverse=True, return_counts=True
        )
        first = np.bincount(inverse[trace.outcome[chosen] == GROUP], minlength=len(number))
        starts, ends_moment = _starts(counts), _ends_moment(trace, chosen)
        return EquivalenceClasses("group", number, trace.seq[chosen], starts, first, ends_moment)


def _ends_moment(trace: Trace, lines: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of these lines, sorted by group and moment, are the last of their moment."""
    ends = np.ones(len(lines), dtype=np.bool_)
    line, following = lines[:-1], lines[1:]
    # The release of a group is a moment of its own, even if rows join at the same time.
    same = trace.group[line] == trace.group[following]
    same &= trace.outcome[line] == trace.outcome[following]
    # A row without a moment must not be judged together with another one.
    same &= (trace.published[line] == trace.published[following]) & (trace.published[line] >= 0)
    seconds, later = trace.published_s[line], trace.published_s[following]
    same &= (seconds == later) | (np.isnan(seconds) & np.isnan(later))
    # A tick and the row after it may have all of this in common, but different windows.
    same &= trace.window[line] == trace.window[following]
    ends[:-1] = ~same
    return ends


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
