"""Choose the publisher and the tracer of a run: for groups, or for single values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from shoal.arrow.hold import ROW
from shoal.arrow.release import Publish, Publisher
from shoal.arrow.trace import Lines, Tracer
from shoal.arrow.z.release import ZPublisher
from shoal.arrow.z.trace import ZTracer
from shoal.spec.schema import Schema

__all__ = ["fitting", "make_publisher", "make_tracer", "subject_type", "subjects_in"]


def make_publisher(
    schema: Schema,
    publish: Publish,
    types: pa.Schema,
    *,
    first: int = 0,
    with_gaps: bool = False,
    per_value: bool = False,
) -> Publisher | ZPublisher:
    """Return what makes releases, given the types of the payload; see `Publisher` for the rest.

    ``per_value`` says whether each value is decided on its own (`Policy.per_value`).
    """
    names = [*schema.payload]
    if publish.time is not None and schema.time is not None:
        names.append(schema.time)
    payload = pa.schema([types.field(name) for name in names])
    if per_value:
        return ZPublisher(schema, publish, payload, first=first)
    return Publisher(schema, publish, payload, first=first, with_gaps=with_gaps)


def subject_type(schema: Schema, types: pa.Schema) -> Any:
    """Return the Arrow type of the subject in the trace."""
    return pa.int64() if schema.subject is None else types.field(schema.subject).type


def make_tracer(
    schema: Schema,
    lines: Lines,
    subject: Any,
    *,
    per_value: bool = False,
    shard: tuple[int, int] | None = None,
) -> Tracer | ZTracer:
    """Return what writes lines of the trace; see `Tracer`."""
    if per_value:
        return ZTracer(lines, subject, schema)
    return Tracer(lines, subject, shard=shard)


def subjects_in(schema: Schema, payload: pa.RecordBatch) -> Any:
    """Return the subjects of rows; where each row is one, its position in the input."""
    return payload.column(ROW if schema.subject is None else schema.subject)


def fitting(value: Any, kind: Any) -> Any:
    """Return a value as an Arrow type has it, or None if it doesn't fit."""
    try:
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
