"""Messages to rows: payloads of all kinds, the topic's levels, and settings that are wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import JobError
from shoal.io.mqtt.settings import MqttSettings
from shoal.io.mqtt.values import Values
from shoal.job import Job
from tests.world import write_job

CSV = MqttSettings("h", "ward/{ward}", "csv", columns=("age", "sex"))
SPARKPLUG = MqttSettings(
    "h", "spBv1.0/{group}/DDATA/+", fields={"pulse": "metrics[name=pulse].value", "at": "timestamp"}
)
LIKELY = [b"1,2", b'{"age": 1}', b'"', b"\xef\xbb\xbf1,2"]


def test_lines_of_csv():
    values = Values(CSV, ["age", "ward"])
    payloads = [b"39,M", b"40,F\r\n", b"41", b"1,2\n3,4", b'"x,2', b",", b'"a,b",M']
    rows = values.read([(f"ward/{i}", payload) for i, payload in enumerate(payloads)], 10)
    assert rows.batch.to_pylist() == [
        {"age": "39", "ward": "0"},
        {"age": "40", "ward": "1"},
        {"age": None, "ward": "5"},
        {"age": "a,b", "ward": "6"},
    ]
    assert rows.rows.tolist() == [10, 11, 15, 16]
    assert [(row.row, row.raw) for row in rows.bad] == [
        (12, payloads[2]), (13, payloads[3]), (14, payloads[4])
    ]  # fmt: skip


def test_nested_objects_by_path():
    values = Values(SPARKPLUG, ["pulse", "at", "group"])
    metrics = [{"name": "age", "value": 3}, {"name": "pulse", "value": 71.5}]
    payloads = [
        json.dumps({"timestamp": 5, "metrics": metrics}, indent=2).encode(),
        b'{"timestamp": 6, "metrics": [{"name": "pulse", "value": {}}]}',
        b'{"timestamp": 7, "metrics": 8}',
    ]
    rows = values.read([("spBv1.0/G/DDATA/d", payload) for payload in payloads], 0)
    assert rows.batch.to_pylist() == [
        {"pulse": 71.5, "at": 5, "group": "G"},
        {"pulse": None, "at": 7, "group": "G"},
    ]
    assert [row.reason for row in rows.bad] == ["column pulse isn't a plain value"]


def test_columns_of_the_topic_alone_need_no_payload():
    rows = Values(MqttSettings("h", "{a}/{b}"), ["b", "a"]).read(
        [("1/2", b""), ("3/4", b"\xff")], 0
    )
    assert rows.batch.to_pylist() == [{"b": "2", "a": "1"}, {"b": "4", "a": "3"}]


@given(
    st.lists(
        st.binary(max_size=30) | st.sampled_from([b"1,2", b'{"age": 1}', b'"', b"\xef\xbb\xbf1,2"])
    )
)
def test_a_message_is_one_row_or_one_bad_row(payloads):
    for settings in (CSV, MqttSettings("h", "ward/{ward}"), SPARKPLUG):
        columns = ["pulse", "group"] if settings is SPARKPLUG else ["age", "ward"]
        messages = [(f"ward/{i}", payload) for i, payload in enumerate(payloads)]
        rows = Values(settings, columns).read(messages, 5)
        numbers = sorted([*rows.rows.tolist(), *(row.row for row in rows.bad)])
        assert numbers == list(range(5, 5 + len(payloads)))
        assert rows.batch.num_rows == len(rows.rows)
        assert [row.raw for row in rows.bad] == [payloads[row.row - 5] for row in rows.bad]
        if settings is not SPARKPLUG:
            wards = [str(number - 5) for number in rows.rows.tolist()]
            assert rows.batch["ward"].to_pylist() == wards


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"server": "a b"}, "mqtt: isn't a broker; got 'a b'"),
        ({"server": "h:99999"}, "mqtt: isn't a broker"),
        ({"topic": "a/#/b"}, "topic: level 2 has a brace, . or # next to other characters"),
        ({"topic": "a/{x}/{x}"}, "topic: names column x twice"),
        ({"topic": "$share/g/a"}, "topic: is a shared subscription"),
        ({"format": "jsn"}, "format: isn't a known format; got 'jsn'. Did you mean 'json'"),
        ({"format": "csv"}, "columns: is missing: CSV messages have no header"),
        ({"columns": ("a",)}, "columns: names the fields of CSV messages"),
        ({"fields": {"a": "x[".strip()}}, "fields.a: isn't a path; got 'x.'"),
        ({"settings": {"pasword": "env:X"}}, "settings.pasword: isn't a known setting"),
        ({"settings": {"username": "u", "password": "p"}}, "settings.password: is a secret"),
        ({"settings": {"password": "env:X"}}, "settings.username: is missing"),
        ({"settings": {"tls": "yes"}}, "settings.tls: must be true or false"),
        ({"settings": {"keepalive": 0}}, "settings.keepalive: must be a number of seconds"),
        ({"settings": {"key": "k.pem"}}, "settings.key: "),
    ],
)
def test_settings_that_are_wrong(given, said):
    with pytest.raises(JobError, match=said):
        MqttSettings(**({"server": "h", "topic": "t"} | given))


def test_ports():
    assert MqttSettings("h", "t").address == ("h", 1883)
    assert MqttSettings("h", "t", settings={"ca": "x"}).address == ("h", 8883)
    assert MqttSettings("[::1]:7", "t").address == ("::1", 7)


def test_a_job_names_the_client_and_the_topic_is_part_of_what_it_is(tmp_path):
    ends = "[input]\nmqtt = 'h'\ntopic = 't/{ward}'\n[output]\npath = 'out.csv'\n"
    path = write_job(tmp_path, run="name = 'beds'\ncheckpoint = { folder = 'state' }")
    path.write_text(path.read_text() + ends)
    job = Job.load(path)
    assert job.input.client == "shoal-beds"
    other = Job.parse(path.read_text().replace("beds", "rooms"), folder=tmp_path)
    assert job.input.identity(tmp_path) != other.input.identity(tmp_path)
    mqtt = path.read_text().replace("path = 'out.csv'", "mqtt = 'h'\ntopic = 'a/+'")
    with pytest.raises(JobError, match=r"output\.topic: has a wildcard or a column"):
        Job.parse(mqtt, folder=tmp_path)
