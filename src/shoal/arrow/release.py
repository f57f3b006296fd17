"""Releases: the public rows that are written to a sink.

A `Release` is the only thing that a sink receives. It holds public columns and no subject. A
`Publisher` makes releases from the decisions of an engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from shoal.arrow.labels import Labels, Numeric, whole
from shoal.arrow.order import ByArrival, ByInstant, Departures, Ordering
from shoal.arrow.pseudonyms import COLUMN, Pseudonym
from shoal.engine.base import Outcome
from shoal.engine.kernels.arrays import Ints
from shoal.errors import JobError, ParameterError, Problem, did_you_mean
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Order", "Publish", "Publisher", "Release", "Suppressed"]

Order: TypeAlias = Literal["released", "arrival", "shuffled"]
Suppressed: TypeAlias = Literal["drop", "root"]


@dataclass(frozen=True, slots=True)
class Publish:
    """How a release looks.

    Parameters
    ----------
    numeric
        ``"range"``, ``"bounds"`` or ``"midpoint"``; see `shoal.arrow.labels.Labels`.
    order
        ``"released"``, ``"arrival"`` or ``"shuffled"``; see `shoal.arrow.order`.
    suppressed
        ``"drop"`` leaves suppressed rows out; ``"root"`` publishes them with every quasi attribute
        at its root, and nothing sensitive or kept.
    time
        Under z-anonymity: publish the time, rounded down to this many seconds; 0: unrounded.
    pseudonym
        Under z-anonymity: publish rotating pseudonyms of the subjects.
    """

    numeric: Numeric = "range"
    order: Order = "released"
    suppressed: Suppressed = "drop"
    time: float | None = None
    pseudonym: Pseudonym | None = None

    def __post_init__(self) -> None:
        problems = [
            Problem(
                f"publish.{name}",
                f"must be one of {', '.join(known)}",
                repr(value),
                did_you_mean(str(value), known),
            )
            for name, known in (
                ("numeric", get_args(Numeric)),
                ("order", get_args(Order)),
                ("suppressed", get_args(Suppressed)),
            )
            if (value := getattr(self, name)) not in known
        ]
        if self.time is not None and not _is_step(self.time):
            what = "must be a finite number of seconds of at least 0"
            problems.append(Problem("publish.time", what, repr(self.time)))
        if problems:
            raise JobError(problems)

    def check(self, policy: Policy, schema: Schema) -> None:
        """Refuse what doesn't go with the way in which a policy is kept."""
        problems = self._misfits_of_one(schema) if policy.per_value else self._misfits_of_groups()
        if problems:
            raise JobError(problems)

    def check_trace(self, *, undo_pseudonyms: bool = False) -> None:
        """Raise if a trace would undo the pseudonyms, unless that is wanted."""
        if self.pseudonym is not None and not undo_pseudonyms:
            raise ParameterError(
                "trace",
                "would undo the pseudonyms: it holds the subject of every published row",
                fix="Leave out the trace or publish.pseudonym; `shoal run --undo-pseudonyms` and "
                "Pipeline.run(undo_pseudonyms=True) write it all the same",
            )

    def _misfits_of_groups(self) -> list[Problem]:
        problems = []
        if self.pseudonym is not None:
            problems.append(
                Problem(
                    "publish.pseudonym",
                    "is for z-anonymity only: it would show which boxes belong to one person",
                    None,
                    "Leave it out",
                )
            )
        if self.time is not None:
            problems.append(
                Problem(
                    "publish.time",
                    "is for z-anonymity only: elsewhere holding rows hides when they came",
                    None,
                    "Leave it out, or make the time a quasi attribute",
                )
            )
        return problems

    def _misfits_of_one(self, schema: Schema) -> list[Problem]:
        problems = [
            Problem(
                f"publish.{name}",
                "isn't used by z-anonymity: " + why,
                repr(getattr(self, name)),
                "Leave it out",
            )
            for name, usual, why in (
                ("numeric", "range", "a number is published as the step it lies in"),
                ("order", "released", "rows leave at once, in the order of their arrival"),
            )
            if getattr(self, name) != usual
        ]
        if self.time is not None and schema.time is None:
            fix = "Name the column under schema.time"
            problems.append(Problem("publish.time", "needs rows that have a time", None, fix))
        if self.time is not None and schema.time in [quasi.name for quasi in schema.quasi]:
            problems.append(
                Problem(
                    "publish.time",
                    f"publishes column {schema.time}, which is a quasi attribute and decided as "
                    "such: it can't be both",
                    None,
                    "Leave publish.time out, or take the column out of schema.quasi",
                )
            )
        names = [*schema.columns, *(quasi.name for quasi in schema.quasi)]
        if self.pseudonym is not None and COLUMN in names:
            problems.append(
                Problem(
                    f"schema.{COLUMN}",
                    "is also the name of the published pseudonyms",
                    None,
                    "Rename the column",
                )
            )
        return problems

    def ordering(self, seed: bytes) -> Ordering:
        """Return the `Ordering` of the chosen order."""
        if self.order == "arrival":
            return ByArrival()
        return ByInstant(seed) if self.order == "shuffled" else Ordering()


def _is_step(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0  # type: ignore[arg-type, operator]


@dataclass(frozen=True, slots=True)
class Release:
    """Public rows: ``batch``, of which the first is row ``first`` of the whole output."""

    batch: pa.RecordBatch = field(repr=False)
    first: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.batch.num_rows)


class Publisher:
    """Make releases: boxes as labels, payload as it is, suppressed rows as `Publish` says.

    Parameters
    ----------
    schema
        The columns and their roles.
    publish
        How a release looks.
    payload
        The Arrow schema of the columns that are published as they are.
    first
        The place in the output of the first row to release.
    with_gaps
        Whether a missing value stays missing; otherwise it has the label of its box.
    """

    def __init__(
        self,
        schema: Schema,
        publish: Publish,
        payload: pa.Schema,
        *,
        first: int = 0,
        with_gaps: bool = False,
    ) -> None:
        self._root = publish.suppressed == "root"
        self._with_gaps = with_gaps
        self._labels = Labels(schema, publish.numeric)
        self._payload = payload
        self._next = first
        #: The columns of the output, with labels as plain text; releases have dictionaries.
        self.schema = pa.schema([*self._labels.schema, *payload])
        roots = [whole(quasi.sided) for quasi in schema.quasi]
        self._root_lo = np.array([[lo for lo, _ in roots]])
        self._root_hi = np.array([[hi for _, hi in roots]])

    @property
    def upcoming(self) -> int:
        """The place in the output of the next row."""
        return self._next

    def release(self, departures: Departures) -> tuple[Release, Ints]:
        """Return a release, and the place of each row in the output (-1: not in it)."""
        suppressed = departures.outcomes == Outcome.suppressed
        boxes, lo, hi, gaps = departures.boxes, departures.lo, departures.hi, departures.gaps
        payload = departures.payload.select(self._payload.names)
        seq = np.arange(self._next, self._next + len(boxes))
        if suppressed.any():
            if self._root:
                boxes = np.where(suppressed, len(lo), boxes)
                lo, hi = np.concatenate((lo, self._root_lo)), np.concatenate((hi, self._root_hi))
                # Only the root is public of these rows, not even their gaps. A null index takes a
                # null.
                gaps = np.where(suppressed, 0, gaps)
                rows = pa.array(np.arange(len(boxes)), mask=suppressed)
            else:
                seq = np.where(suppressed, -1, self._next + np.cumsum(~suppressed) - 1)
                boxes, gaps = boxes[~suppressed], gaps[~suppressed]
                rows = pa.array(np.flatnonzero(~suppressed))
            payload = (
                pa.record_batch(
                    [column.take(rows) for column in payload.columns], schema=self._payload
                )
                if payload.num_columns
                else payload
            )
        labels = self._labels.columns(lo, hi, boxes, gaps if self._with_gaps else None)
        batch = pa.record_batch([*labels, *payload.columns], names=self.schema.names)
        release = Release(batch, self._next)
        self._next += release.n_rows
        return release, seq
