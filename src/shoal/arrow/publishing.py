"""Choose the publisher and the tracer of a run: for groups, or for single values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from shoal.arrow.hold import ROW
from shoal.arrow.release import Publish, Publisher
from shoal.arrow.trace import Lines, Tracer
from shoal.arrow.z.release import CellPublisher
from shoal.arrow.z.trace import CellTracer
from shoal.spec.schema import Schema

__all__ = ["fitting", "publisher_of", "subject_type", "subjects_in", "tracer_of"]


def publisher_of(
    schema: Schema,
    publish: Publish,
    types: pa.Schema,
    *,
    first: int = 0,
    with_gaps: bool = False,
    per_value: bool = False,
) -> Publisher | CellPublisher:
    """Return what makes releases, given the types of the payload; see `Publisher` for the rest.

    ``per_value`` says whether each value is decided on its own (`Policy.per_value`).
    """
    names = [*schema.payload]
    if publish.time is not None and schema.time is not None:
        names.append(schema.time)
    payload = pa.schema([types.field(name) for name in names])
    if per_value:
        return CellPublisher(schema, publish, payload, first=first)
    return Publisher(schema, publish, payload, first=first, with_gaps=with_gaps)


def subject_type(schema: Schema, types: pa.Schema) -> Any:
    """The Arrow type of a subject in the trace."""
    return pa.int64() if schema.subject is None else types.field(schema.subject).type


def tracer_of(
    schema: Schema,
    lines: Lines,
    subject: Any,
    *,
    per_value: bool = False,
    shard: tuple[int, int] | None = None,
) -> Tracer | CellTracer:
    """Return what writes lines of the trace; see `Tracer`."""
    if per_value:
        return CellTracer(lines, subject, schema)
    return Tracer(lines, subject, shard=shard)


def subjects_in(schema: Schema, payload: pa.RecordBatch) -> Any:
    """The subjects of rows; where each row is one, its position in the input names it."""
    return payload.column(ROW if schema.subject is None else schema.subject)


def fitting(value: Any, kind: Any) -> Any:
    """A value that fits a type, or None where it doesn't."""
    try:
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
