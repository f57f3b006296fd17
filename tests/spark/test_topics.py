"""Kafka messages as rows, and rows as messages; without the connector."""

from __future__ import annotations

import json

import pytest

from shoal.errors import JobError
from shoal.io.kafka.settings import KafkaSettings
from shoal.spark.columns import CORRUPT

pytestmark = pytest.mark.xdist_group("spark")

COLUMNS = ("person", "age")


def messages(spark, *values: bytes):
    lines = [("people", i % 2, i, value) for i, value in enumerate(values)]
    return spark.createDataFrame(lines, "topic string, partition int, offset long, value binary")


def settings(**options) -> KafkaSettings:
    return KafkaSettings("localhost:9092", "people", **options)


def rows(spark, kafka, *values: bytes) -> list[dict]:
    from shoal.io.kafka.spark import rows_of_messages

    found = rows_of_messages(messages(spark, *values), kafka, COLUMNS, CORRUPT)
    return [row.asDict() for row in found.orderBy("offset").collect()]


def test_json_is_read_as_text_and_bad_json_is_marked(spark):
    found = rows(spark, settings(), b'{"person": "p1", "age": 31, "more": 1}', b"{torn", b"{}")
    assert [(row["person"], row["age"]) for row in found] == [
        ("p1", "31"),
        (None, None),
        (None, None),
    ]
    assert [row[CORRUPT] for row in found] == [None, "{torn", None]
    assert [(row["topic"], row["partition"], row["offset"]) for row in found] == [
        ("people", 0, 0),
        ("people", 1, 1),
        ("people", 0, 2),
    ]


def test_csv_is_read_by_the_columns_that_are_named(spark):
    kafka = settings(format="csv", columns=("age", "person"))
    found = rows(spark, kafka, b'31,"Ann ""A"" Lee"', b"32")
    assert (found[0]["person"], found[0]["age"], found[0][CORRUPT]) == ('Ann "A" Lee', "31", None)
    assert found[1][CORRUPT] == "32"


@pytest.mark.parametrize("options", [{"format": "csv"}, {"format": "arrow"}])
def test_other_formats_are_refused(spark, options):
    with pytest.raises(JobError, match="must be json, or csv with"):
        rows(spark, settings(**options), b"")


def test_a_message_has_headers_that_no_other_has_and_the_same_again(spark):
    from shoal.io.kafka.spark import messages_of_rows

    lines = [("[20, 30]", None), ("[20, 30]", "flu")]
    public = spark.createDataFrame(lines, "age string, ill string").coalesce(1)

    def messages_made() -> list[tuple]:
        found = messages_of_rows(public, "batch-0000000007").collect()
        return [
            (row["value"], tuple((h["key"], bytes(h["value"])) for h in row["headers"]))
            for row in found
        ]

    twice = [messages_made(), messages_made()]
    assert twice[0] == twice[1]
    assert [json.loads(value) for value, _ in twice[0]] == [
        {"age": "[20, 30]", "ill": None},
        {"age": "[20, 30]", "ill": "flu"},
    ]
    assert [headers for _, headers in twice[0]] == [
        (("shoal-batch", b"batch-0000000007"), ("shoal-row", b"0")),
        (("shoal-batch", b"batch-0000000007"), ("shoal-row", b"1")),
    ]


def test_settings_of_another_client_are_refused(spark):
    from shoal.io.kafka.spark import TopicWriter, _options

    with pytest.raises(JobError, match="another client than Spark's"):
        _options(settings(settings={"client.id": "ward"}))
    assert _options(settings()) == {"kafka.bootstrap.servers": "localhost:9092"}
    with pytest.raises(JobError, match="must be json on Spark"):
        TopicWriter(settings(format="csv", columns=("a",)))
