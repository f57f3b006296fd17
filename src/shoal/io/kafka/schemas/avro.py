"""Avro: read a schema, and the wanted fields of many messages of that schema at once.

The values of a message have no names and no lengths, so all fields are passed over in the order of
the schema. What isn't wanted is skipped, and no object is made of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.io.kafka.schemas.columns import MOST_LOOKS, Column, Leaf
from shoal.io.kafka.schemas.cursor import Cursor, Ints
from shoal.io.utf8 import is_utf8_text

__all__ = ["AvroReader", "SchemaTextError", "Type", "leaf_paths", "parse_avro"]

#: How deep values may be nested: deeper ones are a mistake, or an attack.
MOST_DEPTH = 64
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
#: Logical types of numbers: of which type, the kind of the column, and what to multiply by.
_LOGICAL = {
    "date": ("int", "date", 1),
    "time-millis": ("int", "time", 1000),
    "time-micros": ("long", "time", 1),
    "timestamp-millis": ("long", "timestamp", 1000),
    "timestamp-micros": ("long", "timestamp", 1),
    "timestamp-nanos": ("long", "timestamp in nanoseconds", 1),
    "local-timestamp-millis": ("long", "local timestamp", 1000),
    "local-timestamp-micros": ("long", "local timestamp", 1),
    "local-timestamp-nanos": ("long", "local timestamp in nanoseconds", 1),
}
#: Types of Debezium that have no logical type in Avro, by the names that Kafka Connect gives.
_CONNECT = {
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time-millis",
    "io.debezium.time.MicroTime": "time-micros",
    "io.debezium.time.Timestamp": "local-timestamp-millis",
    "io.debezium.time.MicroTimestamp": "local-timestamp-micros",
    "io.debezium.time.NanoTimestamp": "local-timestamp-nanos",
}
#: Other logical types: of which type and size.
_OTHER_LOGICAL = (("string", 0, "uuid"), ("fixed", 16, "uuid"), ("fixed", 12, "duration"))
_KINDS = {
    "boolean": "boolean",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "bytes": "bytes",
    "string": "text",
    "fixed": "bytes",
    "enum": "text",
}


class SchemaTextError(ValueError):
    """A text isn't a schema; the message says why."""

    def __init__(self, why: str) -> None:
        # Names in it may be no text in UTF-8, and what quotes them is written to files.
        super().__init__(why.encode("utf-8", "backslashreplace").decode())


@dataclass(eq=False)
class Type:
    """A type of an Avro schema."""

    kind: str
    logical: str | None = None
    scale: int = 0
    precision: int = 0
    #: The bytes of a ``fixed``.
    size: int = 0
    symbols: tuple[str, ...] = ()
    #: The fields of a record, in order.
    fields: dict[str, Type] = field(default_factory=dict)
    #: The branches of a union; or the one type of the items of an array or a map.
    parts: tuple[Type, ...] = ()
    #: Whether its values have no bytes at all. Values inside of it are never looked at: types that
    #: contain each other may have more of them than anyone can wait for.
    is_empty: bool = False


def parse_avro(text: str, referenced: Iterable[str] = ()) -> Type:
    """Return the type that a schema describes.

    Parameters
    ----------
    text
        The schema, as JSON.
    referenced
        Schemas whose names it uses, those first that others of them use.

    Raises
    ------
    SchemaTextError
        If it isn't an Avro schema.
    """
    names: dict[str, Type] = {}
    try:
        for other in referenced:
            _parse(_json(other), "", names)
        return _parse(_json(text), "", names)
    except RecursionError:
        raise SchemaTextError("is nested too deeply") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaTextError("isn't JSON") from None


def _parse(given: Any, space: str, names: dict[str, Type], depth: int = 0) -> Type:
    if depth > 8 * MOST_DEPTH:
        raise SchemaTextError("is nested too deeply")
    if isinstance(given, str):
        if given in _PRIMITIVE:
            return Type(given, is_empty=given == "null")
        known = names.get(given if "." in given or not space else f"{space}.{given}")
        known = known or names.get(given)
        if known is None:
            raise SchemaTextError(f"uses type {given!r}, which it doesn't define")
        return known
    if isinstance(given, list):
        return Type("union", parts=tuple(_parse(one, space, names, depth + 1) for one in given))
    if not isinstance(given, dict) or "type" not in given:
        raise SchemaTextError("has a type that is neither a name nor an object with a type")
    kind = given["type"]
    if kind in ("record", "error", "enum", "fixed"):
        return _named(given, kind, space, names, depth)
    if kind in ("array", "map"):
        items = given.get("items" if kind == "array" else "values")
        return Type(kind, parts=(_parse(items, space, names, depth + 1),))
    if not isinstance(kind, str) or kind not in _PRIMITIVE:
        return _parse(kind, space, names, depth + 1)
    return _annotated(Type(kind, is_empty=kind == "null"), given)


def _named(
    given: dict[str, Any], kind: str, space: str, names: dict[str, Type], depth: int
) -> Type:
    name = given.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SchemaTextError(f"has a {kind} without a valid name")
    if "." not in name:
        own = given.get("namespace", space)
        name = f"{own}.{name}" if own else name
    if name in names:
        raise SchemaTextError(f"defines {name} twice")
    inner = name.rpartition(".")[0]
    found = names[name] = Type("record" if kind == "error" else kind)
    if kind == "enum":
        symbols = given.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(one, str) for one in symbols):
            raise SchemaTextError(f"has an enum {name} without symbols")
        if not all(is_utf8_text(one) for one in symbols):
            raise SchemaTextError(f"has an enum {name} with a symbol that isn't text")
        found.symbols = tuple(symbols)
    elif kind == "fixed":
        size = given.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise SchemaTextError(f"has a fixed {name} without a size")
        found.size, found.is_empty = size, size == 0
        return _annotated(found, given)
    else:
        fields = given.get("fields")
        if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
            raise SchemaTextError(f"has a record {name} without fields")
        for one in fields:
            if not isinstance(one.get("name"), str) or one["name"] in found.fields:
                raise SchemaTextError(f"has a field of {name} without a name of its own")
            found.fields[one["name"]] = _parse(one.get("type"), inner, names, depth + 1)
        # A type inside of itself isn't empty: its values have no end.
        found.is_empty = all(one.is_empty for one in found.fields.values())
    return found


def _annotated(found: Type, given: dict[str, Any]) -> Type:
    """Note the logical type; one that isn't valid is ignored, as the specification says."""
    logical = given.get("logicalType") or _CONNECT.get(str(given.get("connect.name")))
    logical = logical if isinstance(logical, str) else None
    scale, precision = given.get("scale", 0), given.get("precision", 0)
    if logical == "decimal" and found.kind in ("bytes", "fixed"):
        if type(scale) is type(precision) is int and 0 <= scale <= precision:
            found.logical, found.scale, found.precision = logical, scale, precision
    elif (found.kind, found.size, logical) in _OTHER_LOGICAL or (
        logical in _LOGICAL and _LOGICAL[logical][0] == found.kind
    ):
        found.logical = logical
    return found


def _leaf(found: Type) -> Leaf | None:
    """Return how a type becomes a column; None if its values aren't plain."""
    if found.logical in _LOGICAL:
        _, kind, factor = _LOGICAL[found.logical]
        return Leaf(kind, factor=factor)
    if found.logical == "decimal":
        return Leaf(f"decimal of scale {found.scale}") if found.precision <= 38 else None
    if found.logical == "uuid":
        return Leaf("text", is_uuid=found.kind == "fixed")
    if found.kind not in _KINDS or found.logical == "duration":
        return None
    if found.kind == "enum" and not found.symbols:
        return None
    return Leaf(_KINDS[found.kind], symbols=found.symbols)


def _present(found: Type) -> list[Type]:
    """Return what a value may be, if it isn't missing."""
    if found.kind != "union":
        return [found]
    return [part for part in found.parts if part.kind != "null"]


def leaf_paths(
    found: Type,
    *,
    only: str | None = None,
    before: str = "",
    inside: tuple[Type, ...] = (),
    looks: Iterator[int] | None = None,
) -> Iterator[tuple[str, Leaf]]:
    """Yield the plain values of a record, or of ``only`` one field of it, by their paths.

    A record inside of itself is left out: its paths have no end. It ends after `MOST_LOOKS` fields,
    which ``looks`` counts for records inside of others.

    >>> text = '{"type": "record", "name": "A", "fields": [{"name": "x", "type": ["null", "int"]}]}'
    >>> [(path, leaf.kind, leaf.is_optional) for path, leaf in leaf_paths(parse_avro(text))]
    [('x', 'integer', True)]
    """
    inside = (*inside, found)
    looks = iter(range(MOST_LOOKS)) if looks is None else looks
    for (name, inner), _ in zip(found.fields.items(), looks, strict=False):
        there = _present(inner)
        if len(there) != 1 or only not in (None, name):
            continue
        is_optional = inner.kind == "union" and len(inner.parts) > 1
        leaf = _leaf(there[0])
        if leaf is not None:
            yield before + name, replace(leaf, is_optional=is_optional)
        elif there[0].kind == "record" and there[0] not in inside and len(inside) < MOST_DEPTH:
            part = f"{before}{name}."
            for path, one in leaf_paths(there[0], before=part, inside=inside, looks=looks):
                yield path, replace(one, is_optional=one.is_optional or is_optional)


#: What is wanted of a record: for each field, the column it becomes, or what is wanted of it.
_Wanted = dict[str, "str | _Wanted"]


class AvroReader:
    """Reads the wanted fields of messages of one schema.

    Parameters
    ----------
    schema
        The schema.
    paths
        The wanted columns, and the path of each: names of fields with dots between them.

    Attributes
    ----------
    leaves
        How each column is stored.
    problem
        Why the wanted columns can't be read; None if they can.
    """

    def __init__(self, schema: Type, paths: Mapping[str, str]) -> None:
        self.leaves: dict[str, Leaf] = {}
        self.problem: str | None = None
        self._schema = schema
        self._wanted: _Wanted = {}
        self._also: dict[str, list[str]] = {}
        if schema.kind != "record":
            self.problem = "isn't a record"
            return
        for name, path in paths.items():
            found = self._find(path)
            if isinstance(found, str):
                self.problem = self.problem or f"{found} (column {name})"
                continue
            self.leaves[name] = found
            self._want(path.split("."), name)

    def _find(self, path: str) -> Leaf | str:
        found, done = self._schema, ""
        for step in path.split("."):
            there = _present(found)
            inner = [one.fields[step] for one in there if step in one.fields]
            if len(there) != 1 and done:
                return f"field {done} may be of {len(there)} types"
            if not inner:
                return f"has no field {done}{'.' * bool(done)}{step}"
            found, done = inner[0], f"{done}{'.' * bool(done)}{step}"
        there = _present(found)
        if len(there) != 1:
            return f"field {done} may be of {len(there)} types"
        return _leaf(there[0]) or f"field {done} isn't a plain value"

    def _want(self, steps: Sequence[str], name: str) -> None:
        wanted = self._wanted
        for step in steps[:-1]:
            inner = wanted.setdefault(step, {})
            assert isinstance(inner, dict)
            wanted = inner
        first = wanted.setdefault(steps[-1], name)
        if first != name:
            # Two columns of one field.
            assert isinstance(first, str)
            self._also.setdefault(first, []).append(name)

    def read(self, cursor: Cursor) -> dict[str, Column]:
        """Read messages to their ends."""
        n = len(cursor.at)
        columns = {name: Column(leaf, n) for name, leaf in self.leaves.items()}
        _Pass(cursor, columns).record(self._schema, np.arange(n), self._wanted, 0)
        # What is left over is no part of the value: the message has another schema.
        rest = cursor.at != cursor.end
        if rest.any():
            cursor.fail(np.flatnonzero(rest))
        for first, others in self._also.items():
            for other in others:
                columns[other] = columns[first]
        return columns


class _Pass:
    """One pass over messages."""

    def __init__(self, cursor: Cursor, columns: Mapping[str, Column]) -> None:
        self._cursor, self._columns = cursor, columns

    def record(self, schema: Type, who: Ints, wanted: _Wanted, depth: int) -> None:
        """Pass over the fields of a record."""
        if depth > MOST_DEPTH:
            self._cursor.fail(who)
            return
        # What is behind the end of a message must not lead into ever deeper records.
        who = who[~self._cursor.broken[who]]
        if not len(who):
            return
        for name, inner in schema.fields.items():
            self._value(inner, who, wanted.get(name), depth)

    def _value(self, schema: Type, who: Ints, wanted: str | _Wanted | None, depth: int) -> None:
        kind = schema.kind
        if schema.is_empty and wanted is None:
            return
        if kind == "union":
            self._union(schema, who, wanted, depth)
        elif kind == "record":
            self.record(schema, who, wanted if isinstance(wanted, dict) else {}, depth + 1)
        elif kind in ("array", "map"):
            self._skip_blocks(schema, who)
        elif kind != "null":
            self._plain(schema, who, wanted if isinstance(wanted, str) else None)

    def _union(self, schema: Type, who: Ints, wanted: str | _Wanted | None, depth: int) -> None:
        branch = self._cursor.zigzag(who)
        strange = (branch < 0) | (branch >= len(schema.parts))
        if strange.any():
            self._cursor.fail(who[strange])
        for place, part in enumerate(schema.parts):
            if part.kind == "null":
                continue
            chosen = (branch == place) & ~self._cursor.broken[who]
            if chosen.all():
                self._value(part, who, wanted, depth)
            elif chosen.any():
                self._value(part, who[chosen], wanted, depth)

    def _plain(self, schema: Type, who: Ints, name: str | None) -> None:
        cursor, kind = self._cursor, schema.kind
        column = None if name is None else self._columns[name]
        if kind in ("int", "long", "enum"):
            numbers = cursor.zigzag(who)
            if column is not None:
                column.put(who, numbers)
        elif kind in ("string", "bytes"):
            start, lengths = cursor.slices(who, cursor.zigzag(who))
            if column is not None:
                column.put_slices(who, start, lengths)
        elif kind == "fixed":
            start, lengths = cursor.slices(who, np.full(len(who), schema.size))
            if column is not None:
                column.put_slices(who, start, lengths)
        else:
            n_bytes = {"boolean": 1, "float": 4, "double": 8}[kind]
            raw = cursor.fixed(who, n_bytes)
            if kind == "boolean":
                strange = raw[:, 0] > 1
                if strange.any():
                    cursor.fail(who[strange])
            if column is not None:
                form = {"boolean": np.uint8, "float": np.float32, "double": np.float64}[kind]
                column.put(who, np.ascontiguousarray(raw).view(np.dtype(form))[:, 0])

    def _skip_blocks(self, schema: Type, who: Ints) -> None:
        """Skip arrays and maps, message by message: each has a length of its own."""
        cursor = self._cursor
        for message in who[~cursor.broken[who]].tolist():
            skip = _Skip(cursor.raw, int(cursor.at[message]), int(cursor.end[message]))
            try:
                skip.value(schema, 0)
                cursor.at[message] = skip.at
            except _TruncatedError:
                cursor.fail(np.array([message]))


class _TruncatedError(Exception):
    """A message ends too early."""


class _Skip:
    """Skips values of one message."""

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self._data, self.at, self._end = data, at, end
        self._by_kind: dict[str, Callable[[Type, int], None]] = {
            "union": self._union,
            "record": self._record,
            "array": self._blocks,
            "map": self._blocks,
            "string": lambda _, __: self._pass(self._number()),
            "bytes": lambda _, __: self._pass(self._number()),
            "fixed": lambda schema, _: self._pass(schema.size),
            "boolean": lambda _, __: self._pass(1),
            "float": lambda _, __: self._pass(4),
            "double": lambda _, __: self._pass(8),
            "null": lambda _, __: None,
        }

    def value(self, schema: Type, depth: int) -> None:
        """Skip a value."""
        if schema.is_empty:
            return
        if depth > MOST_DEPTH:
            raise _TruncatedError
        skip = self._by_kind.get(schema.kind)
        if skip is None:
            self._number()
        else:
            skip(schema, depth)

    def _pass(self, n_bytes: int) -> None:
        if not 0 <= n_bytes <= self._end - self.at:
            raise _TruncatedError
        self.at += n_bytes

    def _number(self) -> int:
        number = shift = 0
        while True:
            if self.at >= self._end or shift > 63:
                raise _TruncatedError
            byte = self._data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return (number >> 1) ^ -(number & 1)
            shift += 7

    def _union(self, schema: Type, depth: int) -> None:
        branch = self._number()
        if not 0 <= branch < len(schema.parts):
            raise _TruncatedError
        self.value(schema.parts[branch], depth + 1)

    def _record(self, schema: Type, depth: int) -> None:
        for inner in schema.fields.values():
            self.value(inner, depth + 1)

    def _blocks(self, schema: Type, depth: int) -> None:
        while count := self._number():
            if count < 0:
                self._pass(self._number())
                continue
            if schema.kind == "array" and schema.parts[0].is_empty:
                # Items without a byte: nothing to skip, however many.
                continue
            for _ in range(count):
                if schema.kind == "map":
                    self._pass(self._number())
                self.value(schema.parts[0], depth + 1)
