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

__all__ = ["Codec", "Encoded", "words"]

#: What is said of a row that can't be used; the first complaint about a row counts.
Complain: TypeAlias = Callable[[Bools, str], None]

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(?i:nan|inf|infinity)$"
ZONE = r"[0-9]([zZ]|[+-][0-9]{2}:?[0-9]{2})$"
MISSING_CODE = -1
#: Whole numbers up to here are exact as fractions.
EXACT = 2.0**53


class Encoded(NamedTuple):
    """A batch after the codec: codes and payload of the good rows, and what is wrong with others.

    ``good`` are the indices of the good rows in the batch; ``reasons`` are given by index;
    ``payload`` has the columns that are published as they are, and the subject if a trace wants it.
    """

    codes: Codes
    payload: dict[str, Any]
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
    with_gaps
        Whether a quasi value may be missing, and is NaN then; otherwise such a row is bad.
    complete
        The sensitive attributes in which a row without a value is bad; elsewhere it has one more.

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

    def __init__(
        self,
        schema: Schema,
        *,
        key: bytes,
        with_subject: bool = False,
        with_gaps: bool = False,
        complete: frozenset[str] = frozenset(),
    ) -> None:
        self._schema = schema
        self._with_gaps = with_gaps
        self._complete = complete
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
            missing = _is_missing(column)
            if not self._with_gaps:
                complain(missing, f"{quasi.name} is missing")
            values[:, i] = _quasi(column, quasi.name, quasi.domain, missing, complain)
        # What is counted is what will be published: the payload in its final types.
        payload = self._fitted(batch, complain)
        sensitive = np.empty((n, len(schema.sensitive)), np.int64)
        for j, attribute in enumerate(schema.sensitive):
            column = payload[attribute.name]
            sensitive[:, j] = self._sensitive(column, attribute.name, attribute.domain, complain)
        if reasons:
            mask = np.ones(n, np.bool_)
            mask[list(reasons)] = False
            good = np.flatnonzero(mask)
            payload = {name: column.take(pa.array(good)) for name, column in payload.items()}
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
    def key(self) -> Ints:
        """What subjects and open sensitive values are hashed under: as secret as the rows."""
        return self._key

    @property
    def is_bound(self) -> bool:
        """Whether the types of the payload are known."""
        return bool(self._types) or not self._payload

    def restore(self, n_rows: int, key: Ints, types: pa.Schema | None) -> None:
        """Go on after so many rows, with a key and, if they are known, types of the payload."""
        self.n_rows = n_rows
        self._key = key
        if types is not None:
            self._types = {name: types.field(name).type for name in self._payload}

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
            is_text = pa.types.is_null(kind) or _is_text(kind) or name == self._schema.subject
            self._types[name] = pa.string() if is_text else kind

    def _subjects(self, column: Any, name: str, complain: Complain) -> Ints:
        if pa.types.is_floating(column.type):
            large = pc.fill_null(pc.greater(pc.abs(column), EXACT), False)
            complain(np.asarray(large), f"{name} is a fraction too large to tell people apart by")
        text = _text(column)
        complain(_is_missing(text), f"{name} is missing")
        return self._hashes(text)

    def _sensitive(self, column: Any, name: str, domain: Domain | None, complain: Complain) -> Ints:
        missing = _is_missing(column)
        if pa.types.is_floating(column.type):
            # Whatever way nothing is told in, it is told as one value.
            missing |= np.isnan(np.asarray(pc.fill_null(column, np.nan)))
        if name in self._complete:
            complain(missing, f"{name} is missing")
        if isinstance(domain, Hierarchy):
            codes = _leaves(column, domain)
            complain((codes < 0) & ~missing, f"{name} has a category that its hierarchy lacks")
            return np.where(missing, MISSING_CODE, codes)
        if isinstance(domain, Range):
            numbers = _numbers(column, name, missing, complain)
            complain((numbers < domain.lo) | (numbers > domain.hi), f"{name} is out of its range")
            return np.where(missing, MISSING_CODE, _in_order(numbers))
        return np.where(missing, MISSING_CODE, self._hashes(_text(column)))

    def _hashes(self, text: Any) -> Ints:
        """Hash each text under the key; a null becomes the hash of nothing."""
        if pa.types.is_dictionary(text.type):
            hashes = self._hashes(text.dictionary)
            return hashes[_indices(text)]
        text = pc.fill_null(text.cast(pa.large_binary()), b"")
        _, offsets, data = text.buffers()
        begin = text.offset
        cuts = np.frombuffer(offsets, np.int64)[begin : begin + len(text) + 1].copy()
        octets = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return hash_strings(self._key, cuts, octets)

    def _fitted(self, batch: pa.RecordBatch, complain: Complain) -> dict[str, Any]:
        """The payload, in the types of the first batch."""
        if not self._types:
            self._bind(batch.schema)
        columns = {}
        for name in self._payload:
            column, kind = _plain(batch.column(name)), self._types[name]
            if name == self._schema.subject:
                # The trace tells subjects in words: their type must not decide anything.
                column = words(column)
            elif column.type != kind:
                column, misfits = _cast(column, kind)
                complain(misfits, f"{name} isn't of the type it had before ({kind})")
            columns[name] = column
        return columns


# -- columns ---------------------------------------------------------------------------------------


def _is_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_bytes(kind: Any) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _plain(column: Any) -> Any:
    """Without dictionary, and all kinds of text as one."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_text(column.type) and not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return column


def _text(column: Any) -> Any:
    """One text for what is one value, whatever type and spelling it comes in; a dictionary stays.

    7, 7.0 and " 7" are one, and so are the two ways that Unicode has to write é. What is merged
    here wrongly makes groups larger; what isn't merged would make one person count as two.
    """
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _text(column.dictionary))
    kind = column.type
    if _is_bytes(kind):
        return column.cast(pa.binary())
    if pa.types.is_floating(kind):
        return _number_text(column.cast(pa.float64()))
    text = _plain(column)
    if not pa.types.is_string(text.type):
        text = text.cast(pa.string())
    if not pc.all(pc.fill_null(pc.string_is_ascii(text), True)).as_py():
        text = pc.utf8_normalize(text, form="NFC")
        text = pc.replace_substring_regex(text, r"\p{Cf}", "")
    text = pc.utf8_trim_whitespace(text)
    if pc.any(pc.match_substring(text, ".")).as_py():
        text = pc.replace_substring_regex(text, r"^([+-]?[0-9]+)\.0*$", r"\1")
        text = pc.replace_substring_regex(text, r"^([+-]?[0-9]*\.[0-9]*[1-9])0+$", r"\1")
    return text


def _plain_text(column: Any) -> Any:
    """Categories as they are written, without white space around them."""
    text = _text(column) if not _is_text(column.type) else _plain(column)
    return pc.utf8_trim_whitespace(text) if pa.types.is_string(text.type) else text.cast("string")


def _number_text(column: Any) -> Any:
    """Fractions as text: whole ones without a point, and what isn't a number as missing."""
    numbers = np.asarray(pc.fill_null(column, np.nan))
    whole = np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) <= EXACT)
    texts = column.cast(pa.string())
    as_int = pa.array(np.where(whole, numbers, 0.0).astype(np.int64)).cast(pa.string())
    texts = pc.if_else(pa.array(whole), as_int, texts)
    return pc.if_else(pa.array(np.isnan(numbers)), pa.scalar(None, pa.string()), texts)


def words(column: Any) -> Any:
    """Any values as text, for the trace; bytes in hexadecimal digits, since they may be no text."""
    column = _plain(column)
    if _is_bytes(column.type):
        return pa.array([None if v is None else v.hex() for v in column.to_pylist()], pa.string())
    return column.cast(pa.string())


def _is_missing(column: Any) -> Bools:
    """Null, or text with nothing in it."""
    kind = column.type
    missing: Bools = np.asarray(column.is_null())
    if pa.types.is_dictionary(kind):
        empty = _is_missing(column.dictionary)
        return missing | empty[_indices(column)] if empty.any() else missing
    if _is_text(kind):
        blank = pc.equal(pc.utf8_trim_whitespace(_plain(column)), "")
    elif _is_bytes(kind):
        blank = pc.equal(pc.binary_length(column.cast(pa.binary())), 0)
    else:
        return missing
    return missing | np.asarray(pc.fill_null(blank, True), np.bool_)


def _indices(column: Any) -> Ints:
    """The indices of a dictionary column; a null points to the first entry."""
    return np.asarray(pc.fill_null(column.indices.cast(pa.int64()), 0))


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
    if pa.types.is_string(kind):
        text = pc.utf8_trim_whitespace(column)
        try:
            column = text.cast(pa.float64())
        except pa.ArrowInvalid:
            is_number = pc.fill_null(pc.match_substring_regex(text, NUMBER), False)
            complain(~np.asarray(is_number) & ~missing, f"{name} isn't a number")
            column = pc.if_else(is_number, text, pa.scalar(None, text.type)).cast(pa.float64())
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = _seconds(column)
    elif pa.types.is_boolean(kind) or not _is_numeric(kind):
        complain(~missing, f"{name} isn't a number")
        return np.full(len(column), np.nan)
    numbers = np.array(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan))
    given = np.asarray(column.is_valid())
    complain(given & ~missing & ~np.isfinite(numbers), f"{name} isn't a finite number")
    return numbers


def _in_order(numbers: Floats) -> Ints:
    """Whole numbers that are ordered as these are, and equal where these are."""
    # Adding 0.0 makes one zero of two: that of minus zero would be the code of what is missing.
    bits = (numbers + 0.0).view(np.int64)
    # The bits of a float are its sign and its magnitude, so those below 0 are in reverse order.
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _is_numeric(kind: Any) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _seconds(column: Any) -> Any:
    """Dates and timestamps as seconds since 1970."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    return pc.divide(micros.cast(pa.float64(), safe=False), 1e6)


def _quasi(column: Any, name: str, domain: Domain, missing: Bools, complain: Complain) -> Floats:
    """The values as numbers or codes of leaves, NaN where they are missing."""
    if isinstance(domain, Hierarchy):
        codes = _leaves(column, domain)
        complain((codes < 0) & ~missing, f"{name} has a category that its hierarchy lacks")
        return np.where(missing, np.nan, codes)
    numbers = _numbers(column, name, missing, complain)
    complain((numbers < domain.lo) | (numbers > domain.hi), f"{name} is out of its range")
    return numbers


def _leaves(column: Any, hierarchy: Hierarchy) -> Ints:
    """The code of each category, -1 where the hierarchy has no such leaf."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if len(column.dictionary) == 0:
        return np.full(len(column), -1, np.int64)
    labels = _plain_text(column.dictionary).to_pylist()
    codes = np.array(
        [-1 if (code := hierarchy.code(label or "")) is None else code for label in labels],
        np.int64,
    )
    return np.where(np.asarray(column.is_null()), -1, codes[_indices(column)])


def _times(column: Any, name: str, complain: Complain) -> Floats:
    missing = _is_missing(column)
    complain(missing, f"{name} is missing")
    column = _plain(column)
    if not pa.types.is_string(column.type):
        return _numbers(column, name, missing, complain)
    # Each value is told by itself, so that what one row holds decides nothing about another.
    text = pc.utf8_trim_whitespace(column)
    nothing = pa.scalar(None, pa.string())
    is_number = pc.fill_null(pc.match_substring_regex(text, NUMBER), False)
    has_zone = pc.fill_null(pc.match_substring_regex(text, ZONE), False)
    numbers = pc.if_else(is_number, text, nothing).cast(pa.float64())
    clock = pc.if_else(pc.or_(is_number, has_zone), nothing, text)
    zoned = pc.if_else(pc.and_(has_zone, pc.invert(is_number)), text, nothing)
    local, wrong = _cast(pc.if_else(pa.array(missing), nothing, clock), pa.timestamp("us"))
    universal, wrong_too = _cast(zoned, pa.timestamp("us", "UTC"))
    complain((wrong | wrong_too) & ~missing, f"{name} isn't a time")
    seconds = pc.coalesce(numbers, _seconds(local), _seconds(universal))
    found = np.array(pc.fill_null(seconds, np.nan))
    complain(np.asarray(is_number) & ~np.isfinite(found), f"{name} isn't a finite number")
    return found
