"""Read a Protobuf schema: its messages, their fields and their types.

A registry has the text of a schema, or a compiled descriptor as Base64: Confluent's Python client
registers that, and not every registry turns it into text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from shoal.io.kafka.schemas.avro import SchemaTextError

__all__ = ["Enumeration", "Field", "Message", "ProtoFile", "parse_proto"]

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|([\w.+-]+)|(.)""", re.S
)
#: Types that schemas may use without defining them.
_BUILT_IN = """
syntax = "proto3"; package google.protobuf;
message Timestamp { int64 seconds = 1; int32 nanos = 2; }
message DoubleValue { double value = 1; }
message FloatValue { float value = 1; }
message Int64Value { int64 value = 1; }
message UInt64Value { uint64 value = 1; }
message Int32Value { int32 value = 1; }
message UInt32Value { uint32 value = 1; }
message BoolValue { bool value = 1; }
message StringValue { string value = 1; }
message BytesValue { bytes value = 1; }
"""
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+=*\s*")
#: Plain types by their numbers in a descriptor.
_NUMBERED = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32",
    8: "bool", 9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64",
    17: "sint32", 18: "sint64",
}  # fmt: skip
_GROUP, _REPEATED = 10, 3
#: The number of a field, and the largest one.
_FIELD_NUMBER, _MOST_FIELD = re.compile(r"[0-9]{1,9}"), (1 << 29) - 1
_LABELS = ("optional", "required", "repeated")


@dataclass(frozen=True)
class Field:
    """A field of a message.

    Parameters
    ----------
    name, number
        By which it is known.
    type
        The name of its type, as the schema writes it.
    scope
        The full name of the message that it is in, from which names of types are looked up.
    is_repeated
        Whether it may have many values.
    has_presence
        Whether it can be missing; else its default stands for that.
    """

    name: str
    number: int
    type: str
    scope: str
    is_repeated: bool = False
    has_presence: bool = True


@dataclass
class Message:
    """A message type."""

    name: str
    fields: dict[str, Field] = field(default_factory=dict)
    #: The messages that are defined in it, in order.
    inner: list[Message] = field(default_factory=list)


@dataclass
class Enumeration:
    """An enumeration: its texts by their numbers."""

    name: str
    values: dict[int, str] = field(default_factory=dict)


class ProtoFile:
    """The messages of a schema, and the types that it uses."""

    def __init__(self) -> None:
        #: The messages at the top of the schema, in order.
        self.messages: list[Message] = []
        self._types: dict[str, Message | Enumeration] = {}

    def add(self, found: Message | Enumeration) -> None:
        """Make a type known."""
        self._types[found.name] = found

    def type_of(self, one: Field) -> Message | Enumeration | None:
        """Return the type of a field; None if it is a plain one, or isn't known."""
        if one.type.startswith("."):
            return self._types.get(one.type[1:])
        scope = one.scope
        while True:
            found = self._types.get(f"{scope}.{one.type}" if scope else one.type)
            if found is not None or not scope:
                return found
            scope = scope.rpartition(".")[0]

    def at(self, path: Iterable[int]) -> Message | None:
        """Return the message that a path of places leads to.

        >>> text = "message A { message B {} } message C { message D {} message E {} }"
        >>> parse_proto(text).at([1, 1]).name
        'C.E'
        """
        among, found = self.messages, None
        for place in path:
            if not 0 <= place < len(among):
                return None
            found = among[place]
            among = found.inner
        return found


def parse_proto(text: str, referenced: Iterable[str] = ()) -> ProtoFile:
    """Return the types of a schema.

    Parameters
    ----------
    text
        The schema.
    referenced
        The schemas that it imports.

    Raises
    ------
    SchemaTextError
        If it isn't a Protobuf schema.
    """
    made = ProtoFile()
    for other in (_BUILT_IN, *referenced):
        _read(other, made)
    made.messages = []
    _read(text, made)
    return made


def _read(text: str, made: ProtoFile) -> None:
    if _BASE64.fullmatch(text):
        _Described(text, made)
    else:
        _Parser(text, made).file()


class _Described:
    """Reads a compiled descriptor."""

    def __init__(self, text: str, made: ProtoFile) -> None:
        try:
            from google.protobuf.descriptor_pb2 import FileDescriptorProto
            from google.protobuf.message import DecodeError
        except ImportError:
            raise SchemaTextError("is compiled, and protobuf isn't installed to read it") from None
        try:
            file = FileDescriptorProto.FromString(base64.b64decode(text))
        except (ValueError, DecodeError):
            raise SchemaTextError("is neither a text nor a descriptor") from None
        self._made = made
        self._is_implicit = file.syntax == "proto3"
        made.messages += [self._message(one, file.package) for one in file.message_type]
        for one in file.enum_type:
            self._enum(one, file.package)

    def _message(self, given: Any, scope: str) -> Message:
        made = Message(f"{scope}.{given.name}" if scope else given.name)
        self._made.add(made)
        for one in given.enum_type:
            self._enum(one, made.name)
        made.inner = [self._message(one, made.name) for one in given.nested_type]
        for one in given.field:
            if one.type == _GROUP:
                raise SchemaTextError("has a group, which isn't supported")
            has_presence = not self._is_implicit or one.HasField("oneof_index")
            made.fields[one.name] = Field(
                one.name, one.number, _NUMBERED.get(one.type, one.type_name), made.name,
                one.label == _REPEATED, has_presence,
            )  # fmt: skip
        return made

    def _enum(self, given: Any, scope: str) -> None:
        made = Enumeration(f"{scope}.{given.name}" if scope else given.name)
        self._made.add(made)
        for one in given.value:
            made.values.setdefault(one.number, one.name)


class _Parser:
    """Reads one text."""

    def __init__(self, text: str, made: ProtoFile) -> None:
        self._words: list[str] = []
        for match in _TOKEN.finditer(text):
            word = match[1] or match[2] or match[3]
            if word:
                self._words.append(word)
        self._at, self._made = 0, made
        self._is_implicit = False
        self._depth = 0

    def _next(self) -> str:
        if self._at >= len(self._words):
            raise SchemaTextError("ends in the middle of a definition")
        self._at += 1
        return self._words[self._at - 1]

    def _expect(self, word: str) -> None:
        if (got := self._next()) != word:
            raise SchemaTextError(f"has {got!r} where {word!r} is expected")

    def _skip(self) -> None:
        """Skip to the end of a statement, or of the block that it has."""
        depth = 0
        while True:
            word = self._next()
            depth += (word in "{[(") - (word in "}])")
            if depth <= 0 and word in (";", "}"):
                return

    def file(self) -> None:
        """Read all definitions."""
        package = ""
        while self._at < len(self._words):
            word = self._next()
            if word == "syntax":
                self._expect("=")
                self._is_implicit = self._next().strip("\"'") == "proto3"
                self._expect(";")
            elif word == "package":
                package = self._next()
                self._expect(";")
            elif word == "message":
                self._made.messages.append(self._message(package))
            elif word == "enum":
                self._enum(package)
            elif word in ("import", "option", "service", "extend", "edition"):
                self._skip()
            elif word != ";":
                raise SchemaTextError(f"has {word!r} where a definition is expected")

    def _message(self, scope: str) -> Message:
        self._depth += 1
        if self._depth > 64:
            raise SchemaTextError("is nested too deeply")
        name = self._next()
        made = Message(f"{scope}.{name}" if scope else name)
        self._made.add(made)
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "message":
                made.inner.append(self._message(made.name))
            elif word == "enum":
                self._enum(made.name)
            elif word == "oneof":
                self._oneof(made)
            elif word in ("option", "reserved", "extensions", "extend"):
                self._skip()
            elif word != ";":
                self._field(made, word)
        self._depth -= 1
        return made

    def _oneof(self, made: Message) -> None:
        self._next()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                self._skip()
            elif word != ";":
                self._field(made, word, in_oneof=True)

    def _field(self, made: Message, word: str, *, in_oneof: bool = False) -> None:
        label = word if word in _LABELS else ""
        kind = self._next() if label else word
        if kind == "group":
            raise SchemaTextError("has a group, which isn't supported")
        is_map = kind == "map"
        if is_map:
            for _ in range(5):
                self._next()
        name = self._next()
        self._expect("=")
        number = self._next()
        if not _FIELD_NUMBER.fullmatch(number) or int(number) > _MOST_FIELD:
            raise SchemaTextError(f"has a field {name} without a number")
        while (word := self._next()) != ";":
            if word == "[":
                self._options()
        has_presence = in_oneof or bool(label) or not self._is_implicit
        made.fields[name] = Field(
            name, int(number), kind, made.name, label == "repeated" or is_map, has_presence
        )

    def _options(self) -> None:
        depth = 1
        while depth:
            word = self._next()
            depth += (word in "{[(") - (word in "}])")

    def _enum(self, scope: str) -> None:
        name = self._next()
        made = Enumeration(f"{scope}.{name}" if scope else name)
        self._made.add(made)
        self._expect("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved"):
                self._skip()
            elif word != ";":
                self._expect("=")
                number = self._next()
                # Of two texts with one number, the first is the canonical one.
                made.values.setdefault(_enum_number(word, number), word)
                while (word := self._next()) != ";":
                    if word == "[":
                        self._options()


def _enum_number(word: str, text: str) -> int:
    with suppress(ValueError):
        number = int(text, 0)
        if -1 << 31 <= number < 1 << 31:
            return number
    raise SchemaTextError(f"has a value {word} without a number of 32 bits")
