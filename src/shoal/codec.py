"""From Arrow to arrays: a batch of records becomes `Codes`, once, and bad rows are set apart.

The codec keeps no dictionary. Subjects and open sensitive values become keyed hashes of their
text, so that ``7``, ``7.0`` and ``"7"`` are one person, whatever type a reader chose, and memory
doesn't grow with the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.hierarchy import Domain, Hierarchy, Range
from shoal.kernels.arrays import Bools, Floats, Ints
from shoal.kernels.hashing import hash_strings
from shoal.schema import Schema
from shoal.space import Codes

__all__ = ["Codec", "Encoded"]

#: What is said of a row that can't be used; the first complaint about a row counts.
Complain: TypeAlias = Callable[[Bools, str], None]

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(?i:nan|inf|infinity)$"
MISSING_CODE = -1


class Encoded(NamedTuple):
    """A batch after the codec: codes and payload of the good rows, and what is wrong with others.

    ``good`` are the indices of the good rows in the batch; ``reasons`` are given by index.
    """

    codes: Codes
    payload: pa.RecordBatch
    good: Ints
    reasons: dict[int, str]

    def __repr__(self) -> str:
        return f"Encoded({len(self.good)} good rows, {len(self.reasons)} bad ones)"


class Codec:
    """Turn record batches into codes, by the schema.

    Parameters
    ----------
    schema
        The columns, their roles and domains.
    key
        A secret of at least 8 bytes, under which subjects are hashed.
    with_subject
        Whether the payload carries the subject too (for a private trace).

    >>> from shoal.schema import Quasi
    >>> schema = Schema(subject="id", quasi=[Quasi("age", Range(0, 120, step=1))], keep=["ward"])
    >>> codec = Codec(schema, key=bytes(8))
    >>> batch = pa.record_batch(
    ...     {"id": ["a", "b", None], "age": ["31", "x", "47"], "ward": ["w1", "w2", "w1"]}
    ... )
    >>> encoded = codec.encode(batch)
    >>> encoded.codes.values, encoded.reasons
    (array([[31.]]), {1: "age isn't a number", 2: 'id is missing'})
    """

    def __init__(self, schema: Schema, *, key: bytes, with_subject: bool = False) -> None:
        self._schema = schema
        self._key = np.frombuffer(key[:8], "<u4").astype(np.int64)
        self._types: dict[str, Any] = {}
        self._payload = [*schema.payload]
        if with_subject and schema.subject is not None:
            self._payload.append(schema.subject)
        #: How many good rows there have been; it numbers the subjects where each row is one.
        self.n_rows = 0

    def __repr__(self) -> str:
        return f"Codec({self._schema!r})"

    def encode(self, batch: pa.RecordBatch) -> Encoded:
        """Turn a batch into codes; rows that can't be are set apart with a reason."""
        n = batch.num_rows
        reasons: dict[int, str] = {}

        def complain(rows: Bools, reason: str) -> None:
            for row in np.flatnonzero(rows):
                reasons.setdefault(int(row), reason)

        schema = self._schema
        subjects = np.empty(n, np.int64)
        if schema.subject is not None:
            subjects = self._subjects(batch.column(schema.subject), schema.subject, complain)
        times = np.full(n, np.nan)
        if schema.time is not None:
            times = _times(batch.column(schema.time), schema.time, complain)
        values = np.empty((n, len(schema.quasi)))
        for i, quasi in enumerate(schema.quasi):
            column = batch.column(quasi.name)
            values[:, i] = _quasi(column, quasi.name, quasi.domain, complain)
        sensitive = np.empty((n, len(schema.sensitive)), np.int64)
        for j, attribute in enumerate(schema.sensitive):
            column = batch.column(attribute.name)
            sensitive[:, j] = self._sensitive(column, attribute.name, attribute.domain, complain)
        payload = self._fitted(batch, complain)
        if reasons:
            mask = np.ones(n, np.bool_)
            mask[list(reasons)] = False
            good = np.flatnonzero(mask)
            payload = payload.take(pa.array(good))
            values, sensitive = values[good], sensitive[good]
            subjects, times = subjects[good], times[good]
        else:
            good = np.arange(n)
        if schema.subject is None:
            subjects = np.arange(self.n_rows, self.n_rows + len(good))
        self.n_rows += len(good)
        codes = Codes(values, subjects, sensitive, times)
        return Encoded(codes, payload, good, dict(sorted(reasons.items())))

    @property
    def types(self) -> pa.Schema:
        """The columns of the payload, in the types of the first batch; text if there was none."""
        return pa.schema([(name, self._types.get(name, pa.string())) for name in self._payload])

    def _bind(self, schema: pa.Schema) -> None:
        """Fix the types of the payload."""
        for name in self._payload:
            kind = schema.field(name).type
            if pa.types.is_dictionary(kind):
                kind = kind.value_type
            self._types[name] = pa.string() if pa.types.is_null(kind) else kind

    def _subjects(self, column: Any, name: str, complain: Complain) -> Ints:
        text = _text(column)
        complain(_is_missing(text), f"{name} is missing")
        return self._hashes(text)

    def _sensitive(self, column: Any, name: str, domain: Domain | None, complain: Complain) -> Ints:
        missing = _is_missing(column)
        if isinstance(domain, Hierarchy):
            codes = _leaves(column, domain)
            complain((codes < 0) & ~missing, f"{name} has a category that its hierarchy lacks")
            return np.where(missing, MISSING_CODE, codes)
        if isinstance(domain, Range):
            numbers = _numbers(column, name, missing, complain)
            complain((numbers < domain.lo) | (numbers > domain.hi), f"{name} is out of its range")
            # Adding 0.0 makes one zero of two; the bits then tell numbers apart.
            return np.where(missing, MISSING_CODE, (numbers + 0.0).view(np.int64))
        return np.where(missing, MISSING_CODE, self._hashes(_text(column)))

    def _hashes(self, text: Any) -> Ints:
        """Hash each text under the key; a null becomes the hash of nothing."""
        if pa.types.is_dictionary(text.type):
            hashes = self._hashes(text.dictionary)
            return hashes[_indices(text)]
        text = pc.fill_null(text, "").cast(pa.large_string())
        _, offsets, data = text.buffers()
        begin = text.offset
        cuts = np.frombuffer(offsets, np.int64)[begin : begin + len(text) + 1].copy()
        octets = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return hash_strings(self._key, cuts, octets)

    def _fitted(self, batch: pa.RecordBatch, complain: Complain) -> pa.RecordBatch:
        """The payload, in the types of the first batch."""
        if not self._types:
            self._bind(batch.schema)
        arrays = []
        for name in self._payload:
            column, kind = _plain(batch.column(name)), self._types[name]
            if column.type != kind:
                column, misfits = _cast(column, kind)
                complain(misfits, f"{name} isn't of the type it had before ({kind})")
            arrays.append(column)
        return pa.record_batch(arrays, names=self._payload)


# -- columns ---------------------------------------------------------------------------------------


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _text(column: Any) -> Any:
    """The values as text without white space around it; a dictionary stays one."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _text(column.dictionary))
    if pa.types.is_floating(column.type):
        # Not a number is not a person: pyarrow would write "nan".
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return pc.utf8_trim_whitespace(column)


def _is_missing(column: Any) -> Bools:
    """Null, or text with nothing in it."""
    missing: Any = column.is_null()
    if pa.types.is_dictionary(column.type):
        empty = _is_missing(column.dictionary)
        if empty.any():
            return np.asarray(missing) | empty[_indices(column)]
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        missing = pc.or_kleene(missing, pc.equal(pc.utf8_trim_whitespace(column), ""))
        missing = pc.fill_null(missing, True)
    return np.asarray(missing)


def _indices(column: Any) -> Ints:
    """The indices of a dictionary column; a null points to the first entry."""
    indices = pc.fill_null(column.indices.cast(pa.int64()), 0)
    return np.asarray(indices)


def _cast(column: Any, kind: Any) -> tuple[Any, Bools]:
    """Cast, and tell which values don't fit (they become null)."""
    nothing = np.zeros(len(column), np.bool_)
    try:
        return column.cast(kind), nothing
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values = []
        for i, value in enumerate(column):
            try:
                values.append(value.cast(kind).as_py())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                nothing[i] = True
                values.append(None)
        return pa.array(values, kind), nothing


def _numbers(column: Any, name: str, missing: Bools, complain: Complain) -> Floats:
    """The values as numbers, NaN where they are missing; complain of what isn't one."""
    column = _plain(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = pc.utf8_trim_whitespace(column)
        try:
            column = text.cast(pa.float64())
        except pa.ArrowInvalid:
            is_number = pc.fill_null(pc.match_substring_regex(text, NUMBER), False)
            complain(~np.asarray(is_number) & ~missing, f"{name} isn't a number")
            column = pc.if_else(is_number, text, pa.scalar(None, text.type)).cast(pa.float64())
    elif pa.types.is_temporal(kind):
        column = _seconds(column)
    elif pa.types.is_boolean(kind) or not _is_numeric(kind):
        complain(~missing, f"{name} isn't a number")
        return np.full(len(column), np.nan)
    numbers = np.array(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan))
    given = np.asarray(column.is_valid())
    complain(given & ~missing & ~np.isfinite(numbers), f"{name} isn't a finite number")
    return numbers


def _is_numeric(kind: Any) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _seconds(column: Any) -> Any:
    """Dates and timestamps as seconds since 1970."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(column.type):
        return pc.divide(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()), 1e6)
    return column.cast(pa.int64(), safe=False)


def _quasi(column: Any, name: str, domain: Domain, complain: Complain) -> Floats:
    missing = _is_missing(column)
    complain(missing, f"{name} is missing")
    if isinstance(domain, Hierarchy):
        codes = _leaves(column, domain)
        complain((codes < 0) & ~missing, f"{name} has a category that its hierarchy lacks")
        return codes.astype(np.float64)
    numbers = _numbers(column, name, missing, complain)
    complain((numbers < domain.lo) | (numbers > domain.hi), f"{name} is out of its range")
    return numbers


def _leaves(column: Any, hierarchy: Hierarchy) -> Ints:
    """The code of each category, -1 where the hierarchy has no such leaf."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    labels = _text(column.dictionary).to_pylist()
    codes = np.array(
        [-1 if (code := hierarchy.code(label or "")) is None else code for label in labels],
        np.int64,
    )
    if len(codes) == 0:
        return np.full(len(column), -1, np.int64)
    return np.where(np.asarray(column.is_null()), -1, codes[_indices(column)])


def _times(column: Any, name: str, complain: Complain) -> Floats:
    missing = _is_missing(column)
    complain(missing, f"{name} is missing")
    column = _plain(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        text = pc.utf8_trim_whitespace(column)
        try:
            return _numbers(text.cast(pa.float64()), name, missing, complain)
        except pa.ArrowInvalid:
            column, misfits = _cast(text, pa.timestamp("us"))
            complain(misfits & ~missing, f"{name} isn't a time")
    return _numbers(column, name, missing, complain)
