"""Read tables as codes and sides of boxes, to evaluate a run from outside."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow.codec import Codec
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.space import Codes
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["read_codes", "read_sensitive", "read_sides"]

#: Values are only distinguished here and don't leave: a public key will do.
_KEY = bytes(8)
_RANGE = re.compile(r"\[([^\s,\[\]]+), ([^\s,\[\]]+)\]")


def read_codes(schema: Schema, table: pa.Table) -> tuple[Codes, Ints]:
    """Return the codes of the valid rows, and which rows these are.

    A row that lacks a quasi value is valid: whether that is allowed is up to a policy.
    """
    _need(table, "original", schema.columns)
    encoded = Codec(schema, key=_KEY, with_gaps=True).encode(_batch(table, schema.columns))
    return encoded.codes, encoded.good


def read_sensitive(attribute: Sensitive, table: pa.Table) -> Ints:
    """Return the codes of a sensitive attribute as published, as those of `read_codes`."""
    _need(table, "published", [attribute.name])
    # The codec needs a quasi attribute: a constant one is added.
    beside = f"beside {attribute.name}"
    schema = Schema(None, [Quasi(beside, Range(0, 1))], [attribute])
    batch = _batch(table, [attribute.name])
    batch = batch.append_column(beside, pa.array(np.zeros(batch.num_rows)))
    encoded = Codec(schema, key=_KEY).encode(batch)
    if encoded.reasons:
        raise ParameterError(
            "published",
            f"the column {attribute.name} has values that its domain lacks",
            got=f"{len(encoded.reasons):,} rows",
            fix="Give the output of a run with this schema",
        )
    return encoded.codes.sensitive[:, 0]


def read_sides(schema: Schema, table: pa.Table) -> tuple[Floats, Floats]:
    """Return the box of each published row, as numbers and codes of leaves.

    A side that was published as missing goes from infinity to minus infinity.

    >>> schema = Schema(
    ...     None, [Quasi("age", Range(0, 99)), Quasi("sex", Hierarchy.flat(["F", "M"]))]
    ... )
    >>> read_sides(schema, pa.table({"age": ["[20, 35]", "[40, 41]"], "sex": ["*", "M"]}))
    (array([[20.,  0.],
           [40.,  1.]]), array([[35.,  1.],
           [41.,  1.]]))
    """
    lo = np.empty((table.num_rows, len(schema.quasi)))
    hi = np.empty_like(lo)
    for d, quasi in enumerate(schema.quasi):
        lo[:, d], hi[:, d] = _side(quasi, table)
    return lo, hi


def _side(quasi: Quasi, table: pa.Table) -> tuple[Floats, Floats]:
    ends = [f"{quasi.name}_min", f"{quasi.name}_max"]
    is_range = isinstance(quasi.domain, Range)
    if is_range and quasi.name not in table.column_names and ends[0] in table.column_names:
        _need(table, "published", ends)
        low, high = (_column(table, name) for name in ends)
        gap = np.asarray(low.is_null()) & np.asarray(high.is_null())
        lo, hi = _floats(low), _floats(high)
    else:
        _need(table, "published", [quasi.name])
        column = _column(table, quasi.name)
        gap = np.asarray(column.is_null())
        lo, hi = _labels(quasi, column)
    wrong: Bools = ~(lo <= hi) & ~gap
    if wrong.any():
        raise ParameterError(
            "published",
            f"the column {quasi.name} has labels that aren't sides of a box",
            got=f"{np.count_nonzero(wrong):,} rows",
            fix=f"Give the output of a run with this schema{_FORMS if is_range else ''}",
        )
    return np.where(gap, np.inf, lo), np.where(gap, -np.inf, hi)


_FORMS = ', with numeric = "range" or "bounds": a midpoint doesn\'t tell how wide its box was'


def _labels(quasi: Quasi, column: Any) -> tuple[Floats, Floats]:
    """Read each different label once."""
    encoded = column.cast(pa.string()).dictionary_encode()
    read = [_read(quasi.sided, label) for label in encoded.dictionary.to_pylist()]
    # The last element is for null.
    ends = np.array([*read, (np.nan, np.nan)])
    places = np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), len(read)))
    return ends[places, 0], ends[places, 1]


def _read(domain: Hierarchy | Range, label: str) -> tuple[float, float]:
    nothing = np.nan, np.nan
    if isinstance(domain, Hierarchy):
        node = domain.node(label.strip())
        return nothing if node is None else (domain.lows[node], domain.highs[node])
    parts = _RANGE.fullmatch(label.strip())
    try:
        lo, hi = (float(part) for part in parts.groups()) if parts else nothing
    except ValueError:
        return nothing
    return lo, hi


def _floats(column: Any) -> Floats:
    """Return numbers, from text too; NaN where there is none."""
    try:
        numbers = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # The error would quote a value; rows without a number are counted by the caller.
        return np.full(len(column), np.nan)
    return np.asarray(pc.fill_null(numbers, np.nan))


def _column(table: pa.Table, name: str) -> Any:
    """Return one plain array; empty text is null, as files without types write it."""
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
    return column


def _batch(table: pa.Table, names: Any) -> pa.RecordBatch:
    columns = {name: table.column(name) for name in names}
    arrays = [
        pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
        for column in map(_decoded, columns.values())
    ]
    return pa.record_batch(arrays, names=list(columns))


def _decoded(column: Any) -> Any:
    """Return a column without its dictionaries, which may differ between chunks."""
    is_dictionary = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_dictionary else column


def _need(table: pa.Table, key: str, names: Any) -> None:
    lacking = [name for name in names if name not in table.column_names]
    if lacking:
        raise ParameterError(
            key,
            f"lacks the columns {', '.join(lacking)}",
            fix="Give the table that belongs to the schema",
        )
