"""Read envelopes of changes in JSON column by column: many at once, with Arrow.

Arrow is a parser with views of its own about what JSON is. A message that the two parsers could
read differently isn't read here: it is left to the one that reads message by message, which
decides. So it only matters that nothing is read here in another way, not how much is left.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.io.formats.jsonl import read_objects
from shoal.io.kafka.debezium import PLACEHOLDERS, Convert
from shoal.io.kafka.envelopes import CHANGING_OPS
from shoal.io.utf8 import is_utf8

__all__ = ["Changes", "read_changes"]

#: So many messages, of which at least one can't be read, are read one by one.
_FEW = 64
#: So many messages are looked at together: what is found out about their bytes fits in a cache.
_TOGETHER = 512
#: Python reads no number of more digits, at the least that it can be set to.
_DIGITS = 640
_FAR = 2 * _DIGITS
_MANY_DIGITS = re.compile(rb"[0-9]{%d}" % _DIGITS)
#: Python reads nothing that is nested deeper than some hundreds.
_DEEP = 200
#: A message with these bytes may be an envelope within another object.
_PAYLOAD = b'"payload"'
#: Numbers that JSON doesn't have, and of which each parser takes others.
_NO_NUMBER = re.compile(rb"(?:Infinity|Inf|NaN)[ ,\]}]")


_NONE = np.empty(0, np.int64)


class Changes(NamedTuple):
    """The changes that were read, by the places of their texts, and the rows after them.

    The row of a delete is no row.
    """

    places: list[int]
    ops: list[str]
    rows: pa.RecordBatch


def read_changes(
    texts: Sequence[bytes], schema: pa.Schema, converts: Mapping[str, Convert]
) -> Changes:
    """Read envelopes, without what is around them; those that aren't plain changes are left out.

    Parameters
    ----------
    texts
        The envelopes.
    schema
        The columns of the rows.
    converts
        How the values of some columns are converted; they become texts.

    >>> texts = [b'{"op": "c", "after": {"age": 39}}', b'{"op": "x"}', b'{"op": "d"}', b"7"]
    >>> changes = read_changes(texts, pa.schema([("age", pa.int64())]), {})
    >>> changes.places, changes.ops, changes.rows["age"].to_pylist()
    ([0, 2], ['c', 'd'], [39, None])
    """
    stored = _stored(schema, converts)
    found: list[Changes] = []
    if stored is not None and len(schema):
        whole = pa.schema([("op", pa.string()), ("after", pa.struct(list(stored)))])
        starts = range(0, len(texts), _TOGETHER)
        alike = [n for at in starts for n in _alike(texts[at : at + _TOGETHER], at)]
        for places, batch in _parsed(texts, alike, whole):
            found.append(_plain(places, batch, schema, converts))
    rows = [one.rows for one in found]
    return Changes(
        [place for one in found for place in one.places],
        [op for one in found for op in one.ops],
        pa.concat_batches(rows) if rows else pa.RecordBatch.from_pylist([], schema=schema),
    )


def _stored(schema: pa.Schema, converts: Mapping[str, Convert]) -> pa.Schema | None:
    """Return the types of values before they are converted; None if texts don't fit the schema."""
    fields = []
    for field in schema:
        kind = field.type
        if field.name in converts and not pa.types.is_null(kind):
            if not pa.types.is_string(kind):
                return None
            kind = converts[field.name].stored
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def _alike(texts: Sequence[bytes], first: int) -> list[int]:
    """Return the places of texts that are lines, and that both parsers read in the same way."""
    data = b"\n".join(texts) + b"\n"
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    ends = np.cumsum(lengths + 1)
    found = np.frombuffer(data, np.uint8)
    wrong = (found[ends - 1 - lengths] != ord("{")) | (found[ends - 2] != ord("}"))
    wrong[np.searchsorted(ends, _suspicious(data, ends), side="right")] = True
    for n in np.flatnonzero(lengths > _DIGITS).tolist():
        wrong[n] |= texts[n].count(b"{") + texts[n].count(b"[") > _DEEP
    if not is_utf8(data):
        wrong |= [not is_utf8(text) for text in texts]
    return (np.flatnonzero(~wrong) + first).tolist()


def _suspicious(data: bytes, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of bytes that only a careful look at their message can judge."""
    found = np.frombuffer(data, np.uint8)
    controls = np.flatnonzero(found < ord(" "))
    # There is just one at the end of each text.
    controls = controls[~np.isin(controls, ends - 1)] if len(controls) > len(ends) else _NONE
    escapes = np.flatnonzero(found == ord("\\"))
    escapes = escapes[found[escapes + 1] == ord("u")]
    letters = np.flatnonzero((found == ord("I")) | (found == ord("N")))
    before = found[letters - 1]
    letters = letters[np.isin(before, np.frombuffer(b":[, -", np.uint8))]
    constants = [at for at in letters.tolist() if _NO_NUMBER.match(data, at)]
    # "payload", by two letters that are rare together.
    y = np.flatnonzero(found == ord("y"))
    y = y[found[y + 1] == ord("l")]
    inner = [at for at in y.tolist() if data[at - 3 : at + 6] == _PAYLOAD]
    # A long run of digits has one at four steps, one after the other.
    step = _DIGITS // 4
    digits = (found[::step] >= ord("0")) & (found[::step] <= ord("9"))
    runs = np.flatnonzero(digits[:-3] & digits[1:-2] & digits[2:-1] & digits[3:]) * step
    many = [at for at in runs.tolist() if _MANY_DIGITS.search(data, max(0, at - step), at + _FAR)]
    return np.concatenate(
        [controls, escapes, *(np.array(at, np.int64) for at in (constants, inner, many))]
    )


def _parsed(
    texts: Sequence[bytes], places: list[int], schema: pa.Schema
) -> list[tuple[list[int], pa.RecordBatch]]:
    """Parse texts; what Arrow can't read is narrowed down by halves, and left out."""
    found = []
    waiting = [places] if places else []
    while waiting:
        piece = waiting.pop()
        batch = read_objects(b"\n".join([texts[n] for n in piece]), schema, len(piece))
        if batch is not None:
            found.append((piece, batch))
        elif len(piece) > _FEW:
            half = len(piece) // 2
            waiting += [piece[half:], piece[:half]]
    return found


def _plain(
    places: list[int], batch: pa.RecordBatch, schema: pa.Schema, converts: Mapping[str, Convert]
) -> Changes:
    """Return the changes of a batch that are as most changes are."""
    ops, after = batch.column("op"), batch.column("after")
    is_good = _all(pc.is_in(ops, pa.array(CHANGING_OPS)))
    # `pc.or_kleene`: an op that is missing is a bad one already.
    is_good &= _all(pc.or_kleene(after.is_valid(), pc.equal(ops, "d")))
    columns = []
    for place, field in enumerate(schema):
        column = after.field(place)
        is_good &= ~_is_odd(column)
        if field.name in converts and not pa.types.is_null(column.type):
            column, is_made = _converted(column, converts[field.name])
            is_good &= is_made
        columns.append(column)
    rows = pa.RecordBatch.from_arrays(columns, schema=schema)
    names: list[str] = ops.to_pylist()
    if is_good.all():
        return Changes(places, names, rows)
    chosen = is_good.tolist()
    return Changes(
        list(itertools.compress(places, chosen)),
        list(itertools.compress(names, chosen)),
        rows.filter(pa.array(is_good)),
    )


def _all(flags: pa.Array) -> NDArray[np.bool_]:
    """Return flags as an array, with False where one is missing."""
    return np.asarray(flags.fill_null(False)).astype(np.bool_)


def _is_odd(column: pa.Array) -> NDArray[np.bool_]:
    """Return which values mean something else, or are a zero that may have lost its sign."""
    if pa.types.is_string(column.type):
        return _all(pc.is_in(column, pa.array(PLACEHOLDERS)))
    if pa.types.is_floating(column.type):
        numbers = column.to_numpy(zero_copy_only=False)
        odd: NDArray[np.bool_] = (numbers == 0) & np.signbit(numbers)
        return odd
    return np.zeros(len(column), np.bool_)


def _converted(column: pa.Array, convert: Convert) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return values as texts, and for which of them that is possible."""
    if pa.types.is_struct(column.type):
        values, codes = column, None
    else:
        # Dates and prices repeat: each value is converted once.
        coded = column.dictionary_encode()
        values, codes = coded.dictionary, coded.indices
    texts: list[str | None] = []
    failed: list[bool] = []
    for value in values.to_pylist():
        text = None
        try:
            text = None if value is None else convert(value)
        except (KeyError, OverflowError, TypeError, ValueError):
            failed.append(True)
        else:
            failed.append(False)
        texts.append(text)
    made, has_failed = pa.array(texts, pa.string()), pa.array(failed, pa.bool_())
    if codes is not None:
        made, has_failed = made.take(codes), has_failed.take(codes)
    return made, ~_all(has_failed)
