"""What leaves the system: public rows and nothing else.

A `Release` is the only thing that a sink is given. It holds public columns and has never seen a
subject. A `Publisher` makes releases of what an engine decided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from shoal.engine import Outcome
from shoal.errors import JobError, Problem, did_you_mean
from shoal.kernels.arrays import Ints
from shoal.labels import Labels, Numeric, whole
from shoal.order import Arranged, ByArrival, ByInstant, Ordering
from shoal.schema import Schema

__all__ = ["Order", "Publish", "Publisher", "Release", "Suppressed"]

Order: TypeAlias = Literal["released", "arrival", "shuffled"]
Suppressed: TypeAlias = Literal["drop", "root"]


@dataclass(frozen=True, slots=True)
class Publish:
    """How a release looks.

    Parameters
    ----------
    numeric
        ``"range"``, ``"bounds"`` or ``"midpoint"``; see `shoal.labels.Labels`.
    order
        ``"released"``, ``"arrival"`` or ``"shuffled"``; see `shoal.order`.
    suppressed
        ``"drop"`` leaves suppressed rows out; ``"root"`` publishes them with every quasi attribute
        at its root, and nothing sensitive or kept.
    """

    numeric: Numeric = "range"
    order: Order = "released"
    suppressed: Suppressed = "drop"

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
        if problems:
            raise JobError(problems)

    def ordering(self, seed: bytes) -> Ordering:
        """What puts rows in the order that is asked for."""
        if self.order == "arrival":
            return ByArrival()
        return ByInstant(seed) if self.order == "shuffled" else Ordering()


@dataclass(frozen=True, slots=True)
class Release:
    """Public rows: ``batch``, of which the first is row ``first`` of the whole output."""

    batch: pa.RecordBatch = field(repr=False)
    first: int

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.batch.num_rows)


class Publisher:
    """Make releases: boxes as labels, payload as it is, suppressed rows as asked.

    Parameters
    ----------
    schema
        The columns and their roles.
    publish
        How a release looks.
    payload
        The Arrow schema of the columns that are published as they are.
    first
        The place in the output of the first row that it will release.
    with_gaps
        Whether what is missing of a row stays missing; otherwise it has the label of its box.
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
        #: The columns of the output; labels are plain text there, dictionaries on the way.
        self.schema = pa.schema([*self._labels.schema, *payload])
        roots = [whole(quasi.sided) for quasi in schema.quasi]
        self._root_lo = np.array([[lo for lo, _ in roots]])
        self._root_hi = np.array([[hi for _, hi in roots]])

    @property
    def upcoming(self) -> int:
        """The place in the output of the next row."""
        return self._next

    def release(self, arranged: Arranged) -> tuple[Release, Ints]:
        """Give a release, and the place in the output of each row (-1: it isn't in it)."""
        suppressed = arranged.outcomes == Outcome.suppressed
        boxes, lo, hi, gaps = arranged.boxes, arranged.lo, arranged.hi, arranged.gaps
        payload = arranged.payload.select(self._payload.names)
        seq = np.arange(self._next, self._next + len(boxes))
        if suppressed.any():
            if self._root:
                boxes = np.where(suppressed, len(lo), boxes)
                lo, hi = np.concatenate((lo, self._root_lo)), np.concatenate((hi, self._root_hi))
                # Of these rows nothing but the root is public, not even what they lack. An index
                # that is null takes a null.
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
