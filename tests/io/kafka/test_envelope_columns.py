"""Envelopes in JSON that are read column by column are read as one by one, however odd they are."""

from __future__ import annotations

import json
import random
import sys
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.io.kafka import envelope_columns
from shoal.io.kafka.json_envelopes import JsonEnvelopes
from shoal.io.kafka.values import JsonValues
from tests.io.kafka.test_envelopes import HERE, Message, recorded

COLUMNS = ("age", "name", "fee", "born", "size")
FIELDS = [
    {"field": "age", "type": "int32"},
    {"field": "name", "type": "string"},
    {"field": "fee", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
    {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "size", "name": "io.debezium.data.VariableScaleDecimal"},
]
SCHEMA = {"type": "struct", "fields": [{"field": "after", "fields": FIELDS}]}
OTHER = {"type": "struct", "fields": [{"field": "after", "fields": FIELDS[:3]}]}
#: Values that are usual, and those that parsers are known to differ in.
USUAL = {
    "age": ("39", "0", "7", "null"),
    "name": ('"Ann"', '"Viral Influenza"', '"Br\u00e4u"', '"a\\\\b\\"\\/b"', '""', '"taylor"'),
    "fee": ('"AJY="', '"/4U="', "null"),
    "born": ("0", "7306", "null"),
    "size": ('{"scale":3,"value":"BGU="}', "null"),
}
ODD = (
    "-0",
    "-0.0",
    "0.0",
    "1e400",
    "-1e400",
    "1E5",
    "1e-400",
    "5e-324",
    "007",
    "1.",
    ".5",
    "+1",
    "--1",
    "NaN",
    "Inf",
    "-Inf",
    "Infinity",
    "-Infinity",
    "-NaN",
    "nan",
    "true",
    "nul",
    "null",
    "None",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "0.1000000000000000055",
    "1" * 700,
    "1" * 5000,
    "1e1000000000000",
    "2147483647",
    "1.0",
    '"',
    '"\t"',
    '"\x00"',
    '"\\u0000"',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    '"\\udc00x"',
    '"\\x"',
    '"\\u12"',
    '"\u2028"',
    '"\U0001f600"',
    '"__debezium_unavailable_value"',
    '"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="',
    '"!"',
    '"payload"',
    "{}",
    "[]",
    "[[1],{}]",
    '{"a":null}',
    '{"scale":1}',
    '{"scale":null,"value":"BGU="}',
    '{"scale":1.5,"value":"BGU="}',
    "[" * 300 + "]" * 300,
    "[" * 3000 + "]" * 3000,
    "",
    "1,2",
    "}",
    "{",
    '{"age":1}{"age":2}',
    '"2024-02-29"',
    '"\\ufffd"',
    "\ufeff1",
    "'a'",
    "/*x*/1",
    "1//",
    "NaN ",
    '"Influenza, NaN "',
    '"a\\\\u"',
    "[Inf]",
)


def value(draw, name, odd, schemas):
    if draw.random() < odd:
        return draw.choice(ODD)
    return draw.choice(USUAL[name] if schemas or name != "fee" else ("1.5", "2", "null"))


def obj(draw, pairs, odd):
    """An object with the pairs in some order, some of them twice or missing."""
    pairs = [pair for pair in pairs if draw.random() > odd]
    if pairs and draw.random() < odd:
        pairs.insert(draw.randrange(len(pairs) + 1), draw.choice(pairs))
    if draw.random() < odd:
        pairs.append(
            (draw.choice(["x", "", "payload", "o\\u0070", "a\\/b", "schema"]), draw.choice(ODD))
        )
        draw.shuffle(pairs)
    space = draw.choice(["", "", " ", "\n", "\t", "\r"]) if draw.random() < odd else ""
    return "{" + ",".join(f'{space}"{key}":{space}{text}' for key, text in pairs) + space + "}"


def row(draw, odd, schemas):
    pairs = [(name, value(draw, name, odd / 2, schemas)) for name in COLUMNS]
    return obj(draw, pairs, odd / 4)


def text(draw, odd, schemas):
    """One message; of so many the schema is in it."""
    op = draw.choice(
        ["c", "c", "c", "r", "u", "d", "t", "m", "x"] if draw.random() < odd else "ccru"
    )
    after = "null" if op == "d" else row(draw, odd, schemas)
    if draw.random() < odd / 3:
        after = draw.choice(ODD)
    op = json.dumps(op) if draw.random() > odd / 4 else draw.choice(ODD)
    before, source = row(draw, odd, schemas), row(draw, odd, schemas)
    pairs = [("before", before), ("after", after), ("source", source), ("op", op)]
    message = obj(draw, pairs, odd / 4)
    if draw.random() < schemas:
        schema = json.dumps(OTHER if draw.random() < odd else SCHEMA, separators=(",", ":"))
        if draw.random() < odd / 3:
            schema = draw.choice(["null", "7", "{}", '{"fields":[{"field":1}]}'])
        if draw.random() < odd / 3:
            message = draw.choice(["null", *ODD])
        pairs = [("schema", schema), ("payload", message)]
        if draw.random() < odd / 3:
            pairs.append((draw.choice(["schema", "payload", "op"]), draw.choice(['"c"', *ODD])))
        message = "{" + ",".join(f'"{key}":{item}' for key, item in pairs) + "}"
    return message


def damaged(draw, data, odd):
    """A message, sometimes with a byte changed, cut off, doubled, or nothing."""
    if draw.random() > odd / 4:
        return data
    at = draw.randrange(len(data))
    byte = bytes([draw.choice(b'{}[]",:\\ \n\x00\xff\xedu0-IN')])
    return draw.choice([
        None, b"", data[:at], data[:at] + byte + data[at + 1 :], data[:at] + byte + data[at:],
        data + data, data + b"\n" + data, b" " + data, data + b" ", data[at:], b"[" + data + b"]",
        data.decode(errors="replace").encode("utf-16"), b"\xef\xbb\xbf" + data,
    ])  # fmt: skip


def readers(changes, columns=COLUMNS):
    """One that reads column by column whenever it can, and one that never does."""
    fast, slow = (JsonEnvelopes(JsonValues(columns), changes) for _ in range(2))
    fast._enough, slow._enough = 1, sys.maxsize
    return fast, slow


def result(rows):
    """All that is found, with the signs of zeros; a text that is NaN isn't the number."""
    return (
        str(rows.batch.schema), repr(rows.batch.to_pydict()), rows.rows.tolist(),
        [(bad.row, bad.reason, bad.raw) for bad in rows.bad], dict(rows.skipped),
    )  # fmt: skip


def compare(fast, slow, messages):
    with mock.patch.object(envelope_columns, "_FEW", 2):
        found = fast.read_messages(messages, 5)
    assert result(found) == result(slow.read_messages(messages, 5))
    assert fast.kinds == slow.kinds


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**63),
    changes=st.sampled_from(["inserts", "latest", "every"]),
    odd=st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.6]),
    schemas=st.sampled_from([0.0, 1.0, 0.95, 0.5]),
)
@example(seed=24, changes="every", odd=0.05, schemas=1.0)
def test_both_ways_find_the_same(seed, changes, odd, schemas):
    draw = random.Random(seed)
    # Without a schema the size is nested: each row would be a bad one.
    fast, slow = readers(changes, COLUMNS if schemas == 1 else COLUMNS[: 3 if schemas else 4])
    for part_odd in (0.0, odd, odd):
        messages = []
        for _ in range(draw.choice([1, 3, 20, 40])):
            data = text(draw, part_odd, schemas).encode("utf-8", "surrogatepass")
            data = damaged(draw, data, part_odd)
            key = None if draw.random() < part_odd / 4 else b"%d" % draw.randrange(9)
            headers = ["__debezium.oldkey"] if draw.random() < 0.1 else []
            messages.append(Message(data, key, headers, draw.randrange(2)))
        compare(fast, slow, messages)


@pytest.mark.parametrize("schemas", [0.0, 1.0])
def test_what_is_drawn_without_oddities_is_read_by_columns(schemas):
    """Or the comparison would be one of the slow way with itself."""
    draw = random.Random(1)
    fast, _ = readers("every", COLUMNS if schemas else COLUMNS[:4])
    usual = [text(draw, 0, schemas).encode() for _ in range(400)]
    fast.read(usual, 0)
    with (
        mock.patch.object(JsonEnvelopes, "_open_one", side_effect=AssertionError),
        mock.patch.object(JsonValues, "read", side_effect=AssertionError),
    ):
        assert len(fast.read(usual, 0).rows) == 400


@pytest.mark.parametrize("place", ["age", "name", "fee", "born", "before", "op", "after"])
@pytest.mark.parametrize("with_schema", [False, True])
def test_an_odd_value_anywhere_is_the_same_both_ways(place, with_schema):
    def message(odd=None):
        pairs = {
            "age": "39",
            "name": '"Ann"',
            "fee": '"AJY="' if with_schema else "1.5",
            "born": "7",
        }
        whole = {"before": "null", "after": "", "op": '"c"'}
        if odd is not None and place in pairs:
            pairs[place] = odd
        whole["after"] = "{" + ",".join(f'"{k}":{v}' for k, v in pairs.items()) + "}"
        if odd is not None and place in whole:
            whole[place] = odd
        data = "{" + ",".join(f'"{k}":{v}' for k, v in whole.items()) + "}"
        if with_schema:
            data = f'{{"schema":{json.dumps(SCHEMA, separators=(",", ":"))},"payload":{data}}}'
        return Message(data.encode("utf-8", "surrogatepass"))

    for odd in ODD:
        fast, slow = readers("inserts", COLUMNS[:4])
        for value_of_odd in (None, odd, None):
            compare(fast, slow, [*(message() for _ in range(5)), message(value_of_odd), message()])


@pytest.mark.parametrize("changes", ["inserts", "latest", "every"])
@pytest.mark.parametrize("name", sorted(p.stem for p in HERE.glob("*json*.jsonl")))
def test_recorded_messages_are_the_same_both_ways(name, changes):
    columns = ["person", "age", "born", "fee", "weight", "arrived", "left_at", "active", "note"]
    fast, slow = readers(changes, columns)
    for _ in range(3):
        compare(fast, slow, recorded(name))


@pytest.mark.parametrize(
    "odd",
    [
        b'{"op":"c","after":{"age":39},"schema":null,"payload":null}',
        b'{"op":"c","after":{"age":39},"schema":{},"payload":{"op":"d"}}',
        b'{"op":"c","after":{"age":39},"schema":null,"p\\u0061yload":null}',
        b'{"op":"c","after":{"age":39},"before":{"name":"\xff"}}',
        b'{"op":"c","after":{"age":39,"name":"\xed\xa0\x80"}}',
        b'{"op":"c","after":{"age":39},"op":"d"}',
        b'{"op":"c","after":{"age":39}}{}',
    ],
)
def test_an_odd_message_is_the_same_both_ways(odd):
    usual = [Message(b'{"op":"c","after":{"age":39,"name":"Ann"}}')] * 5
    fast, slow = readers("inserts", ("age", "name"))
    for messages in (usual, [*usual, Message(odd), *usual]):
        compare(fast, slow, messages)


def test_one_bad_message_costs_no_other_its_speed(monkeypatch):
    good = b'{"op":"c","after":{"age":1}}'
    reader = JsonEnvelopes(JsonValues(["age"]), "inserts")
    reader.read([good], 0)
    opened = []
    one_by_one = JsonEnvelopes._open_one
    monkeypatch.setattr(
        JsonEnvelopes,
        "_open_one",
        lambda self, place, value, all_: (
            opened.append(place) or one_by_one(self, place, value, all_)
        ),
    )
    bad = [b'{"op":"c","after":{"age":1}', b'{"op":"c","after":7}', b'{"op":"c"}{}', b'{"\x00":1}']
    messages = [good] * 4000
    for place, message in zip((7, 1500, 2900, 3999), bad, strict=True):
        messages[place] = message
    rows = reader.read(messages, 0)
    assert [row.row for row in rows.bad] == [7, 1500, 2900, 3999]
    assert len(rows.rows) == 3996
    assert len(opened) <= 4 * 64
