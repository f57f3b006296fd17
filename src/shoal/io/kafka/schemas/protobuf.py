"""Protobuf: read the wanted fields of many messages of one type at once.

Fields come in any order, each with a tag, so all messages move from tag to tag together. What isn't
wanted is skipped by its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from shoal.io.kafka.schemas.columns import MOST_LOOKS, Column, Leaf
from shoal.io.kafka.schemas.cursor import Cursor, Ints
from shoal.io.kafka.schemas.proto_text import Enumeration, Field, Message, ProtoFile

__all__ = ["ProtobufReader", "message_index", "proto_paths"]

_TIMESTAMP = "google.protobuf.Timestamp"
#: The kind, and how values are stored: by a varint, by 4 or 8 bytes, or with their length.
_PLAIN = {
    "int32": ("integer", 0),
    "int64": ("integer", 0),
    "uint32": ("integer", 0),
    "uint64": ("integer", 0),
    "sint32": ("integer", 0),
    "sint64": ("integer", 0),
    "bool": ("boolean", 0),
    "fixed32": ("integer", 5),
    "sfixed32": ("integer", 5),
    "float": ("number", 5),
    "fixed64": ("integer", 1),
    "sfixed64": ("integer", 1),
    "double": ("number", 1),
    "string": ("text", 2),
    "bytes": ("bytes", 2),
}
_FIXED = {
    "fixed32": np.uint32,
    "sfixed32": np.int32,
    "float": np.float32,
    "fixed64": np.uint64,
    "sfixed64": np.int64,
    "double": np.float64,
}
#: How deep the fields are nested that are proposed as columns.
_MOST_DEPTH = 64
#: Up to how many messages go on one by one, which is then faster; and after many steps, when what
#: is left has very many fields.
_FEW, _FEW_LONG = 4, 64
#: From how many steps on a pass is a long one.
_LONG_STEPS = 1000
#: How many wanted values a message may have, at least and for each column. Only an attacker repeats
#: a field so often, and each repetition takes time.
_MOST_VALUES, _MOST_REPEATS = 1000, 10
#: The first number that no tag has: field numbers have 29 bits.
_NO_TAG = 1 << 32
#: The largest number of seconds whose microseconds fit.
_MOST_SECONDS = (1 << 63) // 10**6 - 1


@dataclass
class _Wanted:
    """A field that is wanted: as a column, or for what is in it."""

    kind: str
    column: str | None = None
    leaf: Leaf | None = None
    has_presence: bool = True
    #: The numbers of an enumeration, in order.
    numbers: Ints | None = None
    inner: dict[int, _Wanted] = field(default_factory=dict)

    @property
    def wire(self) -> int:
        """How it is stored."""
        return 2 if self.inner or self.kind == _TIMESTAMP else _PLAIN.get(self.kind, ("", 0))[1]


class ProtobufReader:
    """Reads the wanted fields of messages of one type.

    Parameters
    ----------
    schema
        The types.
    message
        The type of the messages.
    paths
        The wanted columns, and the path of each: names of fields with dots between them.

    Attributes
    ----------
    leaves
        How each column is stored.
    problem
        Why the wanted columns can't be read; None if they can.
    """

    def __init__(self, schema: ProtoFile, message: Message, paths: Mapping[str, str]) -> None:
        self.leaves: dict[str, Leaf] = {}
        self.problem: str | None = None
        self._schema = schema
        self._wanted: dict[int, _Wanted] = {}
        self._also: dict[str, str] = {}
        for name, path in paths.items():
            problem = self._want(message, name, path)
            if problem is not None:
                self.problem = self.problem or f"{problem} (column {name})"

    def _want(self, message: Message, name: str, path: str) -> str | None:
        """Note a column; return why it can't be read."""
        wanted, steps, done = self._wanted, path.split("."), ""
        inside: Message | Enumeration | None = message
        while steps:
            step = steps.pop(0)
            if not isinstance(inside, Message) or step not in inside.fields:
                return f"has no field {done}{step}"
            done += step
            one = inside.fields[step]
            if one.is_repeated:
                return f"field {done} is repeated"
            inside = self._schema.type_of(one)
            if not steps and isinstance(inside, Message) and _is_wrapper(inside):
                steps = ["value"]
            if steps:
                known = wanted.setdefault(one.number, _Wanted(one.type))
                if known.column is not None:
                    return f"field {done} is wanted as a whole, too"
                wanted, done = known.inner, f"{done}."
        return self._note(wanted, one, inside, name, done)

    def _note(
        self,
        wanted: dict[int, _Wanted],
        one: Field,
        kind: Message | Enumeration | None,
        name: str,
        path: str,
    ) -> str | None:
        made = _as_leaf(one, kind)
        if made is None or (one.number in wanted and wanted[one.number].inner):
            return f"field {path} isn't a plain value"
        assert made.leaf is not None
        self.leaves[name] = made.leaf
        first = wanted.setdefault(one.number, made)
        if first is not made:
            # Two columns of one field.
            assert first.column is not None
            self._also[name] = first.column
        made.column = name
        return None

    def read(self, cursor: Cursor) -> dict[str, Column]:
        """Read messages to their ends."""
        n = len(cursor.at)
        columns = {name: Column(leaf, n) for name, leaf in self.leaves.items()}
        _Pass(cursor, columns).message(np.arange(n), cursor.end.copy(), self._wanted)
        for name, first in self._also.items():
            columns[name] = columns[first]
        return columns


def _is_wrapper(kind: Message) -> bool:
    # A schema may define messages of its own under such a name.
    value = kind.fields.get("value")
    is_plain = value is not None and value.type in _PLAIN and not value.is_repeated
    return is_plain and kind.name.startswith("google.protobuf.") and kind.name.endswith("Value")


def _as_leaf(one: Field, kind: Message | Enumeration | None) -> _Wanted | None:
    """Return how a field becomes a column; None if its values aren't plain."""
    if isinstance(kind, Enumeration):
        numbers = sorted(kind.values)
        symbols = tuple(kind.values[number] for number in numbers)
        leaf = Leaf("text", symbols=symbols)
        ordered = np.array(numbers, np.int64)
        wanted = _Wanted("enum", None, leaf, one.has_presence, ordered)
        return wanted if symbols else None
    if isinstance(kind, Message):
        is_time = kind.name == _TIMESTAMP
        return _Wanted(_TIMESTAMP, None, Leaf("timestamp")) if is_time else None
    if one.type not in _PLAIN:
        return None
    return _Wanted(one.type, None, Leaf(_PLAIN[one.type][0]), one.has_presence)


def proto_paths(
    schema: ProtoFile,
    message: Message,
    before: str = "",
    inside: tuple[str, ...] = (),
    looks: Iterator[int] | None = None,
) -> Iterator[tuple[str, Leaf]]:
    """Yield the plain values of a message type by their paths.

    A message inside of itself is left out: its paths have no end. It ends after `MOST_LOOKS`
    fields, which ``looks`` counts for messages inside of others.
    """
    inside = (*inside, message.name)
    looks = iter(range(MOST_LOOKS)) if looks is None else looks
    for (name, one), _ in zip(message.fields.items(), looks, strict=False):
        kind = schema.type_of(one)
        if one.is_repeated:
            continue
        is_optional = one.has_presence or isinstance(kind, Message) or before != ""
        if isinstance(kind, Message) and kind.name != _TIMESTAMP:
            if not _is_wrapper(kind):
                if kind.name not in inside and len(inside) < _MOST_DEPTH:
                    yield from proto_paths(schema, kind, f"{before}{name}.", inside, looks)
                continue
            one, kind = kind.fields["value"], None
        found = _as_leaf(one, kind)
        if found is not None and found.leaf is not None:
            yield before + name, replace(found.leaf, is_optional=is_optional)


class _Pass:
    """One pass over messages."""

    def __init__(self, cursor: Cursor, columns: Mapping[str, Column]) -> None:
        self._cursor, self._columns = cursor, dict(columns)
        self._data = cursor.raw
        self._n_steps = 0
        self._most_values = max(_MOST_VALUES, _MOST_REPEATS * len(columns))
        # A value has two bytes at least: short messages needn't be counted.
        n_bytes = int((cursor.end - cursor.at).max(initial=0))
        self._is_counted = n_bytes > 2 * self._most_values
        self._n_values: Ints = np.zeros(len(cursor.at), np.int64)

    def message(self, who: Ints, end: Ints, wanted: Mapping[int, _Wanted]) -> None:
        """Pass over messages up to positions; ``end`` has one for each of ``who``."""
        cursor = self._cursor
        for one in wanted.values():
            self._set_default(one, who)
        while True:
            is_inside = cursor.at[who] < end
            if not is_inside.all():
                who, end = who[is_inside], end[is_inside]
            if not len(who):
                return
            self._n_steps += 1
            if len(who) <= (_FEW_LONG if self._n_steps > _LONG_STEPS else _FEW):
                self._skip_each(who, end, wanted)
                is_inside = cursor.at[who] < end
                who, end = who[is_inside], end[is_inside]
                if not len(who):
                    return
            tags = cursor.varint(who)
            first = int(tags[0])
            for tag in [first] if (tags == first).all() else np.unique(tags).tolist():
                some = tags == tag
                self._value(who[some], tag, wanted)
            # Whatever goes beyond a message inside another one is no value of it.
            beyond = cursor.at[who] > end
            if beyond.any():
                cursor.fail(who[beyond])

    def _count(self, who: Ints) -> Ints:
        """Count wanted values; refuse messages with too many, and return the others."""
        self._n_values[who] += 1
        over = self._n_values[who] > self._most_values
        if not over.any():
            return who
        self._cursor.fail(who[over])
        return who[~over]

    def _set_default(self, one: _Wanted, who: Ints) -> None:
        """Set what a field is that isn't there; what an earlier part of its message had stays."""
        if not one.has_presence and one.column is not None:
            zero = 0 if one.numbers is None else int(np.searchsorted(one.numbers, 0))
            self._columns[one.column].put_default(who, zero)

    def _value(self, who: Ints, tag: int, wanted: Mapping[int, _Wanted]) -> None:
        cursor, wire = self._cursor, tag & 7
        one = wanted.get(tag >> 3)
        if not 8 <= tag < _NO_TAG or wire in (3, 4, 6, 7):
            cursor.fail(who)
        elif one is None or one.wire != wire:
            self._skip(who, wire)
        else:
            self._wanted(self._count(who) if self._is_counted else who, one)

    def _wanted(self, who: Ints, one: _Wanted) -> None:
        cursor = self._cursor
        if one.inner:
            self._inside(who, one.inner)
            return
        if one.kind == _TIMESTAMP:
            self._timestamp(who, one)
            return
        assert one.column is not None
        column = self._columns[one.column]
        if one.wire == 2:
            start, lengths = cursor.slices(who, cursor.varint(who))
            column.put_slices(who, start, lengths)
        elif one.wire == 0:
            column.put(who, self._integers(who, one))
        else:
            self._fixed(who, one, column)

    def _skip(self, who: Ints, wire: int) -> None:
        cursor = self._cursor
        if wire == 0:
            cursor.varint(who)
        elif wire == 2:
            cursor.slices(who, cursor.varint(who))
        else:
            cursor.slices(who, np.full(len(who), 8 if wire == 1 else 4))

    def _inside(self, who: Ints, wanted: Mapping[int, _Wanted]) -> None:
        cursor = self._cursor
        start, lengths = cursor.slices(who, cursor.varint(who))
        good = ~cursor.broken[who]
        who, start, lengths = who[good], start[good], lengths[good]
        cursor.at[who] = start
        self.message(who, start + lengths, wanted)

    def _timestamp(self, who: Ints, one: _Wanted) -> None:
        """Read times; a second one of a message adds to the first, as with all messages inside."""
        # No column has such a name.
        parts = [f"{one.column}\0{part}" for part in ("seconds", "nanos")]
        inner = {
            place: _Wanted("int64", name, Leaf("integer"), has_presence=False)
            for place, name in enumerate(parts, 1)
        }
        for name in parts:
            if name not in self._columns:
                self._columns[name] = Column(Leaf("integer"), len(self._cursor.at))
        self._inside(who, inner)
        seconds, nanos = (self._columns[name].numbers(who) for name in parts)
        strange = (
            (seconds > _MOST_SECONDS) | (seconds < -_MOST_SECONDS) | (nanos < 0) | (nanos >= 10**9)
        )
        if strange.any():
            self._cursor.fail(who[strange])
            seconds, nanos = np.where(strange, 0, seconds), np.where(strange, 0, nanos)
        assert one.column is not None
        self._columns[one.column].put(who, seconds * 10**6 + nanos // 1000)

    def _integers(self, who: Ints, one: _Wanted) -> Ints:
        cursor = self._cursor
        if one.kind in ("sint32", "sint64"):
            return cursor.zigzag(who)
        values = cursor.varint(who)
        if one.kind == "uint32":
            return values & 0xFFFFFFFF
        if one.kind == "bool":
            return np.not_equal(values, 0).astype(np.int64)
        if one.kind == "uint64" and (values < 0).any():
            cursor.fail(who[values < 0])
        if one.kind in ("int32", "enum"):
            values = values.astype(np.int32).astype(np.int64)
        if one.numbers is None:
            return values
        places = np.minimum(np.searchsorted(one.numbers, values), len(one.numbers) - 1)
        # A number that the schema doesn't know makes the message a bad row.
        known: Ints = np.where(one.numbers[places] == values, places, -1)
        return known

    def _fixed(self, who: Ints, one: _Wanted, column: Column) -> None:
        form = np.dtype(_FIXED[one.kind])
        raw = np.ascontiguousarray(self._cursor.fixed(who, form.itemsize))
        values = raw.view(form)[:, 0]
        if one.kind == "fixed64" and (values >> np.uint64(63)).any():
            self._cursor.fail(who[values >> np.uint64(63) == 1])
            values = values & np.uint64(2**63 - 1)
        column.put(who, values.astype(np.float64 if form.kind == "f" else np.int64))

    def _skip_each(self, who: Ints, end: Ints, wanted: Mapping[int, _Wanted]) -> None:
        """Go on to the next wanted field, or the end, of each of a few messages."""
        for message, stop in zip(who.tolist(), end.tolist(), strict=True):
            at = int(self._cursor.at[message])
            while at < stop:
                tag, after = self._number(at, stop)
                wire = tag & 7
                is_strange = not 8 <= tag < _NO_TAG or wire in (3, 4, 6, 7)
                if is_strange or after > stop or tag >> 3 in wanted:
                    # It is read, or refused, with all others.
                    break
                if wire == 0:
                    _, after = self._number(after, stop)
                elif wire == 2:
                    length, after = self._number(after, stop)
                    after += length
                else:
                    after += 8 if wire == 1 else 4
                if after > stop:
                    self._cursor.fail(np.array([message]))
                    at = int(self._cursor.at[message])
                    break
                at = after
            self._cursor.at[message] = at

    def _number(self, at: int, stop: int) -> tuple[int, int]:
        """Return a number, and the position after it; behind the end if there is none."""
        number = shift = 0
        while at < stop and shift < 64:
            byte = self._data[at]
            at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number & ((1 << 64) - 1), at
            shift += 7
        return 0, stop + 1


def message_index(
    data: bytes | memoryview, at: int, end: int
) -> tuple[tuple[int, ...], int] | None:
    """Return the path of a message type, and where the value begins; None if it is damaged.

    >>> message_index(b"\\x00", 0, 1), message_index(b"\\x04\\x02\\x00", 0, 3)
    (((0,), 1), ((1, 0), 3))
    """
    numbers: list[int] = []
    n_left = 1
    while n_left:
        number = shift = 0
        while True:
            if at >= end or shift > 28:
                return None
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        number = (number >> 1) ^ -(number & 1)
        if not numbers:
            if number == 0:
                return (0,), at
            if not 0 < number <= 64:
                return None
            n_left = number + 1
        numbers.append(number)
        n_left -= 1
    return tuple(numbers[1:]), at
