"""Columns that are filled while messages are read, and become Arrow arrays."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shoal.io.kafka.schemas.cursor import Cursor, Ints, decimals, texts
from shoal.io.kafka.schemas.kinds import arrow_type, scale_of

__all__ = ["MOST_LOOKS", "Column", "Leaf"]

#: How many fields of a schema are looked at for columns. Types that nest each other can have more
#: paths than anyone can wait for, with no plain value at the end of any.
MOST_LOOKS = 20_000

_INT32, _INT64 = np.iinfo(np.int32), np.iinfo(np.int64)


@dataclass(frozen=True)
class Leaf:
    """A value in each message of a schema that becomes a column.

    Parameters
    ----------
    kind
        What its column is; see `shoal.io.kafka.schemas.kinds`.
    symbols
        The texts of an enumeration, whose values are stored as their places.
    factor
        What its numbers are multiplied by.
    is_uuid
        Whether it is 16 bytes that stand for a UUID.
    is_optional
        Whether the schema lets it be missing; said by those who list the fields of a schema only.
    """

    kind: str
    symbols: tuple[str, ...] = ()
    factor: int = 1
    is_uuid: bool = False
    is_optional: bool = False

    @property
    def is_sliced(self) -> bool:
        """Whether its values are slices of the messages, and not numbers."""
        if self.symbols:
            return False
        return self.kind in ("text", "bytes") or scale_of(self.kind) is not None


class Column:
    """The values of a leaf in many messages.

    Parameters
    ----------
    leaf
        What is stored.
    n
        The number of messages.
    """

    def __init__(self, leaf: Leaf, n: int) -> None:
        self.leaf = leaf
        self._nulls = np.ones(n, np.bool_)
        self._values = np.zeros(n, np.float64 if leaf.kind == "number" else np.int64)
        self._lengths = np.zeros(n, np.int64)

    def put(self, who: Ints, values: Ints) -> None:
        """Store numbers of some messages."""
        self._values[who] = values
        self._nulls[who] = False

    def put_slices(self, who: Ints, start: Ints, lengths: Ints) -> None:
        """Store slices of some messages."""
        self._values[who] = start
        self._lengths[who] = lengths
        self._nulls[who] = False

    def put_default(self, who: Ints, value: int) -> None:
        """Store a number, or an empty slice, where there is nothing yet."""
        nobody = who[self._nulls[who]]
        if self.leaf.is_sliced:
            self.put_slices(nobody, np.zeros_like(nobody), np.zeros_like(nobody))
        else:
            self.put(nobody, np.full(len(nobody), value))

    def numbers(self, who: Ints) -> Ints:
        """Return the numbers of some messages."""
        return self._values[who].astype(np.int64)

    def array(self, cursor: Cursor) -> pa.Array:
        """Return the column; messages with a value that can't be one are marked as broken."""
        leaf, nulls = self.leaf, self._nulls | cursor.broken
        values, lengths = np.where(nulls, 0, self._values), np.where(nulls, 0, self._lengths)
        if leaf.symbols:
            known = (values >= 0) & (values < len(leaf.symbols))
            self._refuse(cursor, ~known)
            indices = pa.array(np.where(known, values, 0), mask=nulls | ~known)
            return pa.array(leaf.symbols, pa.string()).take(indices)
        scale = scale_of(leaf.kind)
        if scale is not None:
            array, wrong = decimals(cursor.data, values, lengths, nulls, scale)
            self._refuse(cursor, wrong)
            return array
        if leaf.is_uuid:
            plain = texts(cursor.data, values, lengths, nulls, pa.binary())
            found = [None if v is None else str(uuid.UUID(bytes=v)) for v in plain.to_pylist()]
            return pa.array(found, pa.string())
        if leaf.is_sliced:
            return texts(cursor.data, values, lengths, nulls, arrow_type(leaf.kind))
        if leaf.kind == "number":
            return pa.array(values, mask=nulls)
        return self._numbers(cursor, values, nulls)

    def _numbers(self, cursor: Cursor, values: Ints, nulls: np.ndarray) -> pa.Array:
        kind = arrow_type(self.leaf.kind)
        least, most = (_INT32.min, _INT32.max) if kind == pa.date32() else (_INT64.min, _INT64.max)
        if kind == pa.time64("us"):
            least, most = 0, 86_399_999_999
        factor = self.leaf.factor
        wrong = (values < -(-least // factor)) | (values > most // factor)
        self._refuse(cursor, wrong)
        values = np.where(wrong, 0, values) * factor
        if pa.types.is_boolean(kind):
            return pa.array(values != 0, mask=nulls)
        if kind == pa.date32():
            return pa.array(values.astype(np.int32), mask=nulls).view(kind)
        return pa.array(values, mask=nulls).view(kind)

    def _refuse(self, cursor: Cursor, wrong: np.ndarray) -> None:
        if wrong.any():
            cursor.fail(np.flatnonzero(wrong))
