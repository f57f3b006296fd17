"""Rows become messages that other libraries read; columns that can't be fields are refused."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import JobError
from shoal.io.kafka.schemas.payloads import AvroForm, ProtobufForm, RegisteredPayloads
from shoal.io.kafka.settings import KafkaSettings
from tests.io.kafka.schemas.world import REGISTRY, Memory

UTC = dt.UTC
AT = dt.datetime(1960, 5, 6, 7, 8, 9, 10, UTC)
TABLE = pa.table(
    {
        "age": pa.array(["[30, 40]", None, "[30, 40]", "é"]).dictionary_encode(),
        "age_min": pa.array([30, -(2**63), None, 2**63 - 1]),
        "weight": pa.array([0.1, None, float("inf"), -1.5]),
        "at": pa.array([AT, None, AT, AT], pa.timestamp("us", "UTC")),
        "born": pa.array([dt.date(1900, 1, 1), None, dt.date(2026, 1, 1), dt.date(1970, 1, 1)]),
        "fee": pa.array([Decimal("-1.23"), None, Decimal("99999999.99"), Decimal(0)],
                        pa.decimal128(10, 2)),
        "debt": pa.array([Decimal(f"-9{'8' * 35}.76"), None, Decimal("0.01"), Decimal(1)],
                         pa.decimal128(38, 2)),
        "is_new": pa.array([True, False, None, True]),
        "raw": pa.array([b"", b"\x00", None, b"x" * 300]),
        "hour": pa.array([dt.time(6, 24), None, dt.time(23, 59, 59, 7), dt.time(0)]),
        "nothing": pa.nulls(4),
    }
)  # fmt: skip


class Registering(Memory):
    """A registry in memory that finds everything compatible."""

    def payloads(self, schema: pa.Schema, kind: str = "avro") -> RegisteredPayloads:
        self.client.test_compatibility = lambda *_: True
        settings = KafkaSettings("h:1", "public", kind, rows=1, registry=REGISTRY)
        made = RegisteredPayloads(settings, schema, self.registry)
        made.open()
        return made


def test_fastavro_reads_what_is_written():
    registry = Registering()
    payloads = registry.payloads(TABLE.schema)
    batch = TABLE.to_batches()[0]
    made = list(payloads.cut(batch.slice(1), 8))
    assert [(one.first, one.n_rows) for one in made] == [(8, 1), (9, 1), (10, 1)]
    text = registry.client.get_latest_version("public-value").schema.schema_str
    schema = fastavro.parse_schema(json.loads(text))
    rows = []
    for one in made:
        assert struct.unpack(">bI", one.data[:5]) == (0, 1)
        file = io.BytesIO(one.data[5:])
        rows.append(fastavro.schemaless_reader(file, schema, None))
        assert not file.read()
    assert rows == batch.slice(1).to_pylist()


def test_what_is_written_can_be_read_again_in_both_formats():
    for kind in ("avro", "protobuf"):
        registry = Registering()
        made = list(registry.payloads(TABLE.schema, kind).cut(TABLE.to_batches()[0], 0))
        rows = registry.values(TABLE.schema.names, kind=kind).read([one.data for one in made], 0)
        assert not rows.bad
        assert rows.batch.to_pylist() == [
            row if kind == "avro" else row | AS_TEXT[place]
            for place, row in enumerate(TABLE.to_pylist())
        ]


#: Values for which Protobuf has no type.
AS_TEXT = [
    {"born": "1900-01-01", "fee": "-1.23", "debt": f"-9{'8' * 35}.76", "hour": "06:24:00"},
    {"born": None, "fee": None, "debt": None, "hour": None},
    {"born": "2026-01-01", "fee": "99999999.99", "debt": "0.01", "hour": "23:59:59.000007"},
    {"born": "1970-01-01", "fee": "0.00", "debt": "1.00", "hour": "00:00:00"},
]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.date64(), dt.date(1969, 12, 31), "1969-12-31"),
        (pa.time32("s"), dt.time(1, 2, 3), "01:02:03"),
        (pa.time64("ns"), dt.time(1, 2, 3, 4), "01:02:03.000004000"),
        (pa.decimal128(20, 10), Decimal("0.0000000012"), "0.0000000012"),
        (pa.decimal128(38, 0), Decimal("1E+37"), "1" + "0" * 37),
    ],
)
def test_protobuf_has_dates_times_and_decimals_as_texts(kind, value, text):
    schema = pa.schema([("x", kind)])
    form = ProtobufForm(schema)
    assert "  optional string x = 1;\n" in form.text
    for column in (pa.array([value], kind), pa.array([value], kind).dictionary_encode()):
        (data,) = form.encoded(column, schema.field(0)).to_pylist()
        assert data == b"\x0a" + bytes([len(text)]) + text.encode()


@given(st.lists(st.tuples(st.none() | st.text(), st.none() | st.integers(-(2**63), 2**63 - 1))))
def test_any_text_and_number(pairs):
    for form, read in ((AvroForm, _avro), (ProtobufForm, None)):
        schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
        batch = pa.record_batch(list(zip(*pairs, strict=True)) or [[], []], schema=schema)
        made = form(schema)
        columns = [made.encoded(batch.column(field.name), field) for field in schema]
        whole = [b"".join(parts) for parts in zip(*(c.to_pylist() for c in columns), strict=True)]
        if read is not None:
            assert [read(made.text, data) for data in whole] == batch.to_pylist()
        else:
            assert len(whole) == len(pairs)


def _avro(text: str, data: bytes) -> object:
    return fastavro.schemaless_reader(io.BytesIO(data), json.loads(text), None)


def test_the_schema_says_what_is_published():
    schema = pa.schema([("age", pa.string()), ("at", pa.timestamp("ms")), ("n", pa.int32())])
    assert json.loads(AvroForm(schema).text) == {
        "type": "record", "name": "PublishedRow", "namespace": "shoal",
        "fields": [
            {"name": "age", "type": ["null", "string"], "default": None},
            {"name": "at", "default": None,
             "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}]},
            {"name": "n", "type": ["null", "long"], "default": None},
        ],
    }  # fmt: skip
    assert ProtobufForm(schema).text == (
        'syntax = "proto3";\npackage shoal;\n\nimport "google/protobuf/timestamp.proto";\n\n'
        "message PublishedRow {\n  optional string age = 1;\n"
        "  google.protobuf.Timestamp at = 2;\n  optional int64 n = 3;\n}\n"
    )


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("marital-status", pa.string(), "can't be the name of a field in"),
        ("x", pa.list_(pa.int64()), "is of type list<item: int64>, which doesn't exist in"),
        ("x", pa.uint64(), "which doesn't exist in"),
    ],
)
def test_columns_that_cant_be_fields_are_refused(form, name, kind, words):
    with pytest.raises(JobError, match=words):
        form(pa.schema([(name, kind)]))
