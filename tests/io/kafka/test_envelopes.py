"""Envelopes that Debezium made of a real Postgres; `record_envelopes.py` says how."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import fastavro
import pytest

from shoal.errors import JobError
from shoal.io.kafka.connector import CONNECTOR
from shoal.io.kafka.envelopes import NO_ENVELOPE, NO_KEY, NO_ROW, AvroEnvelopes
from shoal.io.kafka.json_envelopes import JsonEnvelopes
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.values import JsonValues

HERE = Path(__file__).parent / "envelopes"
FORMS = ("postgres_json", "postgres_json_schema", "postgres_avro")
#: What is in the recording beside inserts, in the mode "inserts".
OTHERS = {"update": 2, "delete": 2, "tombstone": 2, "change of a primary key": 1, "truncate": 1}


def json_envelopes(columns, changes):
    """The reader of JSON."""
    return JsonEnvelopes(JsonValues(columns), changes)


class Message:
    """A recorded message."""

    def __init__(self, value, key=b"1", headers=(), partition=0):
        self._parts = value, key, [(name, b"") for name in headers], partition

    def value(self):
        return self._parts[0]

    def key(self):
        return self._parts[1]

    def headers(self):
        return self._parts[2] or None

    def partition(self):
        return self._parts[3]


def recorded(name):
    """The messages of a recording."""

    def data(text):
        if text is None:
            return None
        return base64.b64decode(text) if "avro" in name else text.encode()

    lines = map(json.loads, (HERE / f"{name}.jsonl").read_text().splitlines())
    return [Message(data(one["value"]), data(one["key"]), one["headers"]) for one in lines]


class Recorded:
    """A registry with the schemas of the recording."""

    is_away = False

    def __init__(self, server):
        self._texts = json.loads((HERE / f"{server}_avro_schemas.json").read_text())

    def check(self):
        pass

    def close(self):
        pass

    def schema(self, number):
        from shoal.io.kafka.schemas.client import Registered

        text = self._texts.get(str(number))
        return None if text is None else Registered("AVRO", text, {})


def envelopes(name, columns, changes):
    """The reader of a recording."""
    server, _, form = name.partition("_")
    if not form.startswith("avro"):
        return json_envelopes(columns, changes)
    from tests.io.kafka.schemas.world import REGISTRY

    settings = KafkaSettings("h:1", "visit", "avro", registry=REGISTRY, changes=changes)
    return AvroEnvelopes(settings, columns, threading.Event(), Recorded(server))


def account(rows, messages):
    """Every message is a row, a bad row, or skipped; the numbers of rows have no gap."""
    assert len(rows.rows) + len(rows.bad) + sum(rows.skipped.values()) == len(messages)
    numbers = sorted([*rows.rows.tolist(), *(row.row for row in rows.bad)])
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True


@pytest.mark.parametrize("name", FORMS)
def test_inserts_and_the_snapshot_are_rows_and_the_rest_is_counted(name):
    messages = recorded(name)
    rows = envelopes(name, ["person", "age"], "inserts").read_messages(messages, 100)
    account(rows, messages)
    assert rows.bad == []
    assert rows.batch.to_pydict() == {
        "person": ["p1", "p2", "p3", "p4", "p5", "p6", "p7"],
        "age": [21, 22, 23, 24, 25, None, 27],
    }
    assert rows.rows.tolist() == list(range(100, 107))
    assert rows.skipped == OTHERS


@pytest.mark.parametrize("name", FORMS)
def test_every_has_updates_too(name):
    messages = recorded(name)
    rows = envelopes(name, ["person", "age"], "every").read_messages(messages, 0)
    account(rows, messages)
    pairs = list(zip(*rows.batch.to_pydict().values(), strict=True))
    assert pairs == [
        ("p1", 21), ("p2", 22), ("p3", 23), ("p4", 24), ("p4", 44), ("p3", 43), ("p2", 22),
        ("p5", 25), ("p6", None), ("p7", 27),
    ]  # fmt: skip
    assert rows.skipped == {"delete": 2, "tombstone": 2, "truncate": 1}


@pytest.mark.parametrize("name", FORMS)
def test_latest_has_the_last_version_of_those_read_together(name):
    messages = recorded(name)
    reader = envelopes(name, ["person", "age"], "latest")
    rows = reader.read_messages(messages, 0)
    account(rows, messages)
    pairs = list(zip(*rows.batch.to_pydict().values(), strict=True))
    # p1 is deleted; p2 has another key now, and its old row is deleted.
    assert pairs == [
        ("p4", 44), ("p3", 43), ("p2", 22), ("p5", 25), ("p6", None), ("p7", 27)
    ]  # fmt: skip
    superseded = {"superseded by a later change": 4}
    assert rows.skipped == {"delete": 2, "tombstone": 2, "truncate": 1} | superseded
    # Read in two parts, the versions of p3 and p4 are rows twice: what was taken stays taken.
    halves = envelopes(name, ["person", "age"], "latest")
    n = sum(len(halves.read_messages(part, 0).rows) for part in (messages[:4], messages[4:]))
    assert n == len(pairs) + 4


@pytest.mark.parametrize("name", ["postgres_json_schema", "postgres_avro"])
def test_types(name):
    columns = ["born", "fee", "arrived", "left_at", "active"]
    rows = envelopes(name, columns, "inserts").read_messages(recorded(name)[:2], 0)
    first = rows.batch.slice(0, 1).to_pylist()[0]
    assert first.pop("left_at") == "2024-02-29T11:30:00.000000Z"
    assert first.pop("active") is True
    values = [date(1990, 1, 2), Decimal("1.50"), datetime(2024, 2, 29, 12, 31, 0, 123456)]
    if name != "postgres_avro":
        values = [v.isoformat() if hasattr(v, "isoformat") else str(v) for v in values]
    assert list(first.values()) == values


def test_a_decimal_without_a_scale_is_read_from_json_with_a_schema():
    messages = recorded("postgres_json_schema")[:1]
    rows = envelopes("postgres_json_schema", ["weight"], "inserts").read_messages(messages, 0)
    assert rows.batch["weight"].to_pylist() == ["1.125"]
    # Without the schema it is a nested value, and a date a number.
    bare = recorded("postgres_json")[:1]
    rows = envelopes("postgres_json", ["weight"], "inserts").read_messages(bare, 0)
    assert [row.reason for row in rows.bad] == ["column weight isn't a plain value"]
    rows = envelopes("postgres_json", ["born", "fee"], "inserts").read_messages(bare, 0)
    assert rows.batch.to_pydict() == {"born": [7306], "fee": ["AJY="]}


@pytest.mark.parametrize("name", FORMS)
def test_a_value_that_the_database_did_not_send_is_never_published(name):
    messages = recorded(name)
    rows = envelopes(name, ["person", "note"], "every").read_messages(messages, 0)
    account(rows, messages)
    [bad] = rows.bad
    assert bad.reason.startswith("column note has no value: an update left it as it was")
    assert not any("debezium" in note for note in rows.batch["note"].to_pylist() if note)
    # Whoever doesn't read the column has the row.
    assert not envelopes(name, ["person"], "every").read_messages(messages, 0).bad


@pytest.mark.parametrize("name", FORMS)
def test_a_column_that_is_added_or_dropped_while_it_runs(name):
    messages = recorded(name)
    rows = envelopes(name, ["person", "ward"], "inserts").read_messages(messages, 0)
    account(rows, messages)
    if name == "postgres_avro":
        # The rules of the registry: a schema without a named column is a bad row.
        assert rows.batch["ward"].to_pylist() == [7, None, None]
        assert "has no field after.ward" in rows.bad[0].reason
    else:
        assert rows.batch["ward"].to_pylist() == [None, None, None, None, 7, None, None]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    ("other", "what"),
    [
        ("transactions", {"transaction marker": 4}),
        ("heartbeats", {"heartbeat": 1}),
        ("messages", {"logical message": 1}),
    ],
)
def test_what_debezium_writes_beside_changes_is_skipped(name, other, what):
    messages = recorded(f"{name}_{other}")
    rows = envelopes(f"{name}_{other}", ["person"], "inserts").read_messages(messages, 0)
    account(rows, messages)
    assert rows.skipped == what


def test_before_is_never_read():
    value = {"op": "d", "before": {"age": 5}, "after": None}
    both = {"op": "u", "before": {"age": 5}, "after": {"age": 6}}
    messages = [Message(json.dumps(one).encode()) for one in (value, both, value)]
    for changes in ("inserts", "latest", "every"):
        rows = json_envelopes(["age"], changes).read_messages(messages, 0)
        assert 5 not in rows.batch["age"].to_pylist()
        account(rows, messages)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'{"op": "c", "after": {"age": 1}', "not a JSON object"),
        (b"\xff\xfe{", "not a JSON object"),
        (b'{"age": 39}', NO_ENVELOPE),
        (b'{"op": "x", "after": {}}', "its op isn't known"),
        (b'{"op": ["c"], "after": {}}', "its op isn't known"),
        (b'{"op": "c", "before": {"age": 1}, "after": null}', NO_ROW),
        (b'{"op": "c", "after": {"age": {"years": 1}}}', "column age isn't a plain value"),
        (b'{"schema": {"fields": 7}, "payload": 7}', "not a JSON object"),
    ],
)
def test_what_is_no_envelope_is_one_bad_row(value, reason):
    good = b'{"op": "r", "after": {"age": 1}}'
    rows = json_envelopes(["age"], "inserts").read([good, value, good], 5)
    assert [(bad.row, bad.reason, bad.raw) for bad in rows.bad] == [(6, reason, value)]
    assert rows.rows.tolist() == [5, 7]


def test_a_value_that_is_none_of_its_type():
    born = {"field": "born", "type": "int32", "name": "io.debezium.time.Date"}
    fee = {
        "field": "fee", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2"},
    }  # fmt: skip
    schema = {"type": "struct", "fields": [{"field": "after", "fields": [born, fee]}]}
    afters = [
        {"born": 2147483647}, {"born": "soon"}, {"born": True}, {"fee": "!"}, {"fee": ""},
        {"fee": base64.b64encode(b"\x7f" * 17).decode()}, {"born": 0, "fee": "/4U="},
    ]  # fmt: skip
    values = [
        json.dumps({"schema": schema, "payload": {"op": "c", "after": after}}).encode()
        for after in afters
    ]
    rows = json_envelopes(["born", "fee"], "inserts").read(values, 0)
    assert [bad.reason.split(" isn't")[0] for bad in rows.bad] == ["column born"] * 3 + [
        "column fee"
    ] * 3
    assert rows.batch.to_pylist() == [{"born": "1970-01-01", "fee": "-1.23"}]


@pytest.mark.parametrize("scale", ["1e400", "NaN", '"two"', "[]", '"' + "9" * 5000 + '"'])
def test_a_scale_that_is_no_number_makes_a_bad_row(scale):
    name = "org.apache.kafka.connect.data.Decimal"
    field = f'{{"field": "fee", "name": "{name}", "parameters": {{"scale": {scale}}}}}'
    schema = f'{{"fields": [{{"field": "after", "fields": [{field}]}}]}}'
    value = f'{{"schema": {schema}, "payload": {{"op": "c", "after": {{"fee": "AJY="}}}}}}'
    rows = json_envelopes(["fee"], "inserts").read([value.encode()], 0)
    assert [bad.reason for bad in rows.bad] == ["its schema isn't one of Kafka Connect"]


def test_a_schema_that_is_kept_is_that_of_the_message():
    def value(name, scale):
        field = {"field": "fee", "name": name, "parameters": {"scale": scale}}
        schema = {"fields": [{"field": "after", "fields": [field]}], "note": ',"payload":{}'}
        whole = {"schema": schema, "payload": {"op": "c", "after": {"fee": "AJY="}}}
        return json.dumps(whole, separators=(",", ":")).encode()

    decimal = "org.apache.kafka.connect.data.Decimal"
    given = [value(decimal, "2"), value(decimal, "2"), value(decimal, "1"), value("x", "1")]
    rows = json_envelopes(["fee"], "inserts").read([*given, given[0]], 0)
    assert rows.batch["fee"].to_pylist() == ["1.50", "1.50", "15.0", "AJY=", "1.50"]


def test_what_a_message_is_doesnt_depend_on_those_before_it():
    """A replay begins elsewhere: the schema that was kept then isn't there."""
    schema = b'{"schema":{"fields":[{"field":"after","fields":[]}]},'
    plain = schema + b'"payload":{"op":"c","after":{"age":1}}}'
    odd = schema + b'"op":"c","after":{"age":2}}'
    together = json_envelopes(["age"], "inserts").read([plain, odd], 0)
    alone = json_envelopes(["age"], "inserts").read([odd], 0)
    assert together.batch["age"].to_pylist()[1:] == alone.batch["age"].to_pylist()
    assert len(together.bad) == len(alone.bad)


def test_rows_of_a_table_that_look_like_a_marker_are_bad_rows():
    rows = json_envelopes(["age"], "inserts").read([b'{"id": 7, "status": "in", "age": 39}'], 0)
    assert [bad.reason for bad in rows.bad] == [NO_ENVELOPE]
    assert not rows.skipped


def test_an_insert_without_a_row_is_a_bad_row_in_avro_too():
    message = recorded("postgres_avro")[0].value()
    texts = json.loads((HERE / "postgres_avro_schemas.json").read_text())
    schema = fastavro.parse_schema(json.loads(texts[str(int.from_bytes(message[1:5], "big"))]))
    envelope = fastavro.schemaless_reader(io.BytesIO(message[5:]), schema, None)
    assert envelope["after"] is not None
    data = io.BytesIO()
    fastavro.schemaless_writer(data, schema, {**envelope, "after": None})
    empty = message[:5] + data.getvalue()
    rows = envelopes("postgres_avro", ["age"], "inserts").read([message, empty], 0)
    assert rows.rows.tolist() == [0]
    assert [(bad.row, bad.reason) for bad in rows.bad] == [(1, NO_ROW)]


def test_a_null_with_a_schema_is_a_tombstone():
    rows = json_envelopes(["age"], "inserts").read([b'{"schema":null,"payload":null}', None], 0)
    assert rows.skipped == {"tombstone": 2}


def test_latest_needs_keys_and_tells_partitions_apart():
    value = b'{"op": "u", "after": {"age": 1}}'
    messages = [
        Message(value, None), Message(value, b"1", partition=0), Message(value, b"1", partition=1),
    ]  # fmt: skip
    rows = json_envelopes(["age"], "latest").read_messages(messages, 0)
    assert [bad.reason for bad in rows.bad] == [NO_KEY]
    assert rows.rows.tolist() == [1, 2]


def test_replay_is_the_same():
    for name in FORMS:
        messages, columns = recorded(name), ["person", "age", "fee"]
        once = envelopes(name, columns, "latest")
        first = [once.read_messages(part, 0) for part in (messages[:5], messages[5:])]
        again = envelopes(name, columns, "latest")
        again.read_messages(messages[:5], 0)
        resumed = envelopes(name, columns, "latest")
        resumed.restore(again.kinds)
        second = resumed.read_messages(messages[5:], 0)
        assert second.batch.equals(first[1].batch)
        assert second.skipped == first[1].skipped and second.bad == first[1].bad


def test_settings():
    assert CONNECTOR.input_keys["changes"]
    with pytest.raises(JobError, match="changes: isn't a known choice; got 'all'"):
        KafkaSettings("h:1", "visit", changes="all")
    with pytest.raises(JobError, match="changes: is for json and avro, and the format is csv"):
        KafkaSettings("h:1", "visit", "csv", changes="inserts")


def test_reasons_are_counted_in_the_summary():
    from shoal.metrics import Summary

    summary, again = Summary(), Summary()
    summary.skipped.update({"delete": 2, "update": 3})
    again.restore(summary.state())
    again.merge(summary)
    assert again.skipped == Counter({"delete": 4, "update": 6})
    assert again.lines()[-1] == "skipped: 10 messages that are no rows here: update (6), delete (4)"
    assert again.as_dict()["skipped"] == {"count": 10, "reasons": {"update": 6, "delete": 4}}
    # A checkpoint of a version that counted none.
    Summary().restore(Summary().state())
    assert "skipped" not in Summary().state()


def test_spark_refuses_envelopes():
    from shoal.io.connector import SparkInput
    from shoal.io.kafka.spark import read_stream

    asked = SparkInput(("age",), "corrupt", None, None, Path())
    with pytest.raises(JobError, match="changes: reads envelopes of changes, which isn't support"):
        read_stream(None, KafkaSettings("h:1", "visit", changes="inserts"), asked)


@pytest.mark.parametrize("changes", ["latest", "every"])
def test_versions_of_a_row_never_count_as_people(changes):
    from types import SimpleNamespace

    from shoal.io.kafka.connector import KafkaInput
    from shoal.job.ends import refuse_repeated_rows

    source = KafkaInput(KafkaSettings("h:1", "visit", changes=changes))
    by_rows, by_people = (
        SimpleNamespace(schema=SimpleNamespace(each_row=each)) for each in (True, False)
    )
    with pytest.raises(JobError, match="a group of k rows could be one person"):
        refuse_repeated_rows(by_rows, source)
    refuse_repeated_rows(by_people, source)
    inserts = KafkaInput(KafkaSettings("h:1", "visit", changes="inserts"))
    refuse_repeated_rows(by_rows, inserts)
    assert source.identity(Path()) != inserts.identity(Path())


def test_an_envelope_of_mysql():
    """Written by hand after Debezium's documentation, not recorded: a DATETIME and a TIMESTAMP."""
    fields = [
        {"field": "id", "type": "int32"},
        {"field": "came", "type": "int64", "name": "io.debezium.time.Timestamp"},
        {"field": "left", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTime"},
    ]
    schema = {"type": "struct", "fields": [{"field": "after", "fields": fields}]}
    row = {"id": 7, "came": 1709209800123, "left": "2024-02-29T11:30:00Z", "at": 45000000000}
    source = {"connector": "mysql", "db": "shop", "table": "visit", "file": "binlog.000002"}
    payload = {"before": None, "after": row, "source": source, "op": "c", "ts_ms": 1}
    change = {"source": source, "ddl": "CREATE TABLE visit (id int)", "tableChanges": []}
    values = [
        json.dumps({"schema": schema, "payload": payload}).encode(), json.dumps(change).encode(),
    ]  # fmt: skip
    rows = json_envelopes(["id", "came", "left", "at"], "inserts").read(values, 0)
    [found] = rows.batch.to_pylist()
    assert found == {
        "id": 7, "came": "2024-02-29T12:30:00.123000", "left": row["left"], "at": "12:30:00",
    }  # fmt: skip
    assert rows.skipped == {"schema change": 1}
