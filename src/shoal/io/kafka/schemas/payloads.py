"""Write rows as Avro or Protobuf: the schema follows from the columns of the output.

A generalized value isn't of the type that it had: an age of 39 is published as the text
``[30, 40]``, or as two numbers. So the schema is made from the columns that are published, and
registered before the first row.
"""

from __future__ import annotations

import json
import re
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import JobError, Problem
from shoal.io.kafka.payloads import Payloads
from shoal.io.kafka.schemas.client import Registry
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.typed import plain_array

__all__ = ["AvroForm", "Form", "ProtobufForm", "RegisteredPayloads", "varint", "zigzag"]

#: The name of the record, and the space of names that it is in.
RECORD, NAMESPACE = "PublishedRow", "shoal"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class RegisteredPayloads(Payloads):
    """One message for each row: the id of the schema, and the values.

    Parameters
    ----------
    settings
        The topic, the format, the registry and the subject.
    schema
        The columns of the output.
    registry
        The registry; by default the one of the settings.

    Raises
    ------
    JobError
        If a column can't be a field of the format, by its name or its type.
    """

    def __init__(
        self, settings: KafkaSettings, schema: pa.Schema, registry: Registry | None = None
    ) -> None:
        super().__init__(settings)
        assert settings.registry is not None
        self._schema = schema
        self._form: Form = (AvroForm if settings.format == "avro" else ProtobufForm)(schema)
        self._subject = settings.subject or f"{settings.topic}-value"
        self._stopped = threading.Event()
        self._registry = registry or Registry(settings.registry, self._stopped)
        self._head = b""
        self._made: list[bytes] = []

    def open(self) -> None:
        """Register the schema.

        Raises
        ------
        ResourceError
            If it isn't compatible with the subject, or no registry answers.
        """
        try:
            number = self._registry.register(self._subject, self._form.kind, self._form.text)
        finally:
            # It isn't needed any more.
            self._registry.close()
        self._head = struct.pack(">bI", 0, number) + self._form.head

    def stop(self) -> None:
        """End waiting for the registry."""
        self._stopped.set()

    def _take(self, batch: pa.RecordBatch) -> None:
        columns = [self._form.encoded(batch.column(field.name), field) for field in self._schema]
        head = pa.array([self._head], pa.binary()).take(pa.array([0] * batch.num_rows))
        self._made = pc.binary_join_element_wise(head, *columns, b"").to_pylist()

    def _value(self, begin: int, end: int) -> bytes:
        return self._made[begin]


class Form(ABC):
    """How the columns of an output look in a format.

    Parameters
    ----------
    schema
        The columns.
    """

    #: What the registry calls the format.
    kind: str
    #: What comes between the id of the schema and the values.
    head = b""
    #: The schema.
    text: str

    def __init__(self, schema: pa.Schema) -> None:
        self._places = {field.name: place for place, field in enumerate(schema)}
        problems = []
        for field in schema:
            if not _NAME.fullmatch(field.name):
                what = f"can't be the name of a field in {self.kind.capitalize()}"
                fix = (
                    "Use letters, digits and underscores: name the column so in [schema], and its "
                    "place in the input in input.fields"
                )
                problems.append(Problem(f"column {field.name}", what, None, fix))
            elif self._writer(field) is None:
                what = f"is of type {field.type}, which doesn't exist in {self.kind.capitalize()}"
                problems.append(Problem(f"column {field.name}", what))
        if problems:
            raise JobError(problems)

    def encoded(self, column: Any, field: pa.Field) -> Any:
        """Return the values of a column as bytes; each different value is encoded once."""
        write = self._writer(field)
        assert write is not None
        if not pa.types.is_dictionary(column.type):
            column = self._stored(plain_array(column, field.type)).dictionary_encode()
            words = column.dictionary
        else:
            words = self._stored(plain_array(column.dictionary, field.type))
        made = [self._missing if value is None else write(value) for value in words.to_pylist()]
        # A null becomes the last one.
        indices = pc.fill_null(column.indices.cast(pa.int64()), len(made))
        return pa.array([*made, self._missing], pa.binary()).take(indices)

    #: The bytes of a missing value.
    _missing: bytes

    @abstractmethod
    def _writer(self, field: pa.Field) -> Callable[[Any], bytes] | None:
        """Return what encodes a value, as `_stored` has it; None if there is no such type."""

    def _stored(self, array: Any) -> Any:
        """Return times as the numbers that they are stored as: Python's have other limits."""
        return _as_numbers(array)


def _as_numbers(array: Any) -> Any:
    kind = array.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return array.view(pa.int32())
    if pa.types.is_date64(kind):
        return array.cast(pa.date32()).view(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return array.view(pa.int64())
    return array


def varint(number: int) -> bytes:
    """Return an unsigned number in bytes of seven bits.

    >>> varint(150).hex(), varint(-1).hex()
    ('9601', 'ffffffffffffffffff01')
    """
    number &= (1 << 64) - 1
    if number < 128:
        return bytes((number,))
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def zigzag(number: int) -> bytes:
    """Return a signed number as Avro stores it.

    >>> zigzag(-1).hex(), zigzag(75).hex()
    ('01', '9601')
    """
    return varint((number << 1) ^ (number >> 63))


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return zigzag(len(data)) + data


def _bytes(value: bytes) -> bytes:
    return zigzag(len(value)) + value


class AvroForm(Form):
    """A record in which each field may be missing.

    >>> form = AvroForm(pa.schema([("age", pa.string()), ("ward", pa.int64())]))
    >>> form.encoded(pa.array(["[30, 40]", None]), pa.field("age", pa.string())).to_pylist()
    [b'\\x02\\x10[30, 40]', b'\\x00']
    """

    kind = "AVRO"
    _missing = b"\x00"

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        fields = [
            {"name": field.name, "type": ["null", _avro_type(field.type)], "default": None}
            for field in schema
        ]
        record = {"type": "record", "name": RECORD, "namespace": NAMESPACE, "fields": fields}
        self.text = json.dumps(record)

    def _writer(self, field: pa.Field) -> Callable[[Any], bytes] | None:
        name = _avro_type(field.type)
        if name is None:
            return None
        write = _AVRO_WRITERS[name if isinstance(name, str) else name["type"]]
        if pa.types.is_decimal(field.type):
            scale = field.type.scale
            return lambda value: b"\x02" + _bytes(_unscaled(value, scale))
        return lambda value: b"\x02" + write(value)


def _avro_type(kind: Any) -> Any:
    """Return the Avro type of an Arrow type; None if there is none."""
    if pa.types.is_dictionary(kind):
        return _avro_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        unit = {"s": "", "ms": "millis", "us": "micros", "ns": "nanos"}[kind.unit]
        name = f"{'' if kind.tz else 'local-'}timestamp-{unit}"
        return {"type": "long", "logicalType": name} if unit else None
    if pa.types.is_decimal(kind):
        return {
            "type": "bytes", "logicalType": "decimal", "precision": kind.precision,
            "scale": kind.scale,
        }  # fmt: skip
    if pa.types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if kind == pa.time64("us"):
        return {"type": "long", "logicalType": "time-micros"}
    for is_kind, name in _AVRO_TYPES:
        if is_kind(kind):
            return name
    return None


_AVRO_TYPES: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (pa.types.is_null, "string"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_boolean, "boolean"),
    (lambda kind: pa.types.is_integer(kind) and kind != pa.uint64(), "long"),
    (pa.types.is_floating, "double"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
)
_AVRO_WRITERS: dict[str, Callable[[Any], bytes]] = {
    "string": _text,
    "bytes": _bytes,
    "boolean": lambda value: b"\x01" if value else b"\x00",
    "int": zigzag,
    "long": zigzag,
    "double": struct.Struct("<d").pack,
}


def _unscaled(value: Any, scale: int) -> bytes:
    """Return a decimal as a signed number of its smallest units, in big-endian bytes."""
    sign, digits, exponent = value.as_tuple()
    # Decimal's own arithmetic rounds to 28 digits.
    number: int = int("".join(map(str, digits))) * 10 ** (exponent + scale) * (-1 if sign else 1)
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)


class ProtobufForm(Form):
    """A message in which each field is optional, numbered in the order of the columns.

    Protobuf has no type for dates, times of day and decimals: they are texts, such as
    ``2026-03-01``, ``06:24:00`` and ``-1.20``.

    >>> form = ProtobufForm(pa.schema([("age", pa.string()), ("ward", pa.int64())]))
    >>> form.encoded(pa.array([7, None]), pa.field("ward", pa.int64())).to_pylist()
    [b'\\x10\\x07', b'']
    """

    kind = "PROTOBUF"
    # The first message of the schema.
    head = b"\x00"
    _missing = b""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        names = [_protobuf_type(field.type) for field in schema]
        lines = ['syntax = "proto3";', f"package {NAMESPACE};", ""]
        if _TIMESTAMP in names:
            lines += ['import "google/protobuf/timestamp.proto";', ""]
        lines.append(f"message {RECORD} {{")
        for place, (field, name) in enumerate(zip(schema, names, strict=True), 1):
            # A message can be missing anyway.
            optional = "" if name == _TIMESTAMP else "optional "
            lines.append(f"  {optional}{name} {field.name} = {place};")
        self.text = "\n".join([*lines, "}", ""])

    def _writer(self, field: pa.Field) -> Callable[[Any], bytes] | None:
        kind, name = field.type, _protobuf_type(field.type)
        if name is None:
            return None
        wire = {"string": 2, "bytes": 2, _TIMESTAMP: 2, "double": 1}.get(name, 0)
        tag = varint((self._places[field.name] + 1) << 3 | wire)
        if pa.types.is_decimal(kind):
            # Never with an exponent, as Arrow writes small ones.
            return lambda value: tag + _delimited(f"{value:f}".encode())
        if name == _TIMESTAMP:
            per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
            return lambda value: tag + _timestamp(value, per)
        write = _PROTOBUF_WRITERS[name]
        return lambda value: tag + write(value)

    def _stored(self, array: Any) -> Any:
        is_text = pa.types.is_date(array.type) or pa.types.is_time(array.type)
        return _iso(array) if is_text else super()._stored(array)


_TIMESTAMP = "google.protobuf.Timestamp"


def _protobuf_type(kind: Any) -> str | None:
    """Return the Protobuf type of an Arrow type; None if there is none."""
    if pa.types.is_dictionary(kind):
        return _protobuf_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return _TIMESTAMP
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return "string"
    name = _avro_type(kind)
    return {"long": "int64", "boolean": "bool"}.get(name, name) if isinstance(name, str) else None


def _iso(array: Any) -> Any:
    """Return dates and times of day as texts; a time has a fraction only if one isn't zero.

    >>> _iso(pa.array([23_040_000_000, 1, None]).view(pa.time64("us"))).to_pylist()
    ['06:24:00', '00:00:00.000001', None]
    """
    kind = array.type
    if pa.types.is_date64(kind):
        array = array.cast(pa.date32())
    texts = array.cast(pa.string())
    if pa.types.is_time(kind):
        texts = pc.replace_substring_regex(texts, r"\.0*$", "")
    return texts


def _delimited(data: bytes) -> bytes:
    return varint(len(data)) + data


def _timestamp(value: int, per: int) -> bytes:
    seconds, rest = divmod(value, per)
    nanos = rest * (10**9 // per)
    made = b"\x08" + varint(seconds) if seconds else b""
    return _delimited(made + (b"\x10" + varint(nanos) if nanos else b""))


_PROTOBUF_WRITERS: dict[str, Callable[[Any], bytes]] = {
    "string": lambda value: _delimited(value.encode("utf-8", "surrogatepass")),
    "bytes": _delimited,
    "bool": lambda value: b"\x01" if value else b"\x00",
    "int64": varint,
    "double": struct.Struct("<d").pack,
}
