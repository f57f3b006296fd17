"""The keys of a job that names a registry, and what Spark says to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import JobError
from shoal.io.connector import SparkInput
from shoal.io.kafka.settings import KafkaSettings
from shoal.io.kafka.spark import TopicWriter, read_stream
from shoal.io.registry import endpoint
from tests.io.kafka.schemas.world import REGISTRY

ENDS = {"kafka": "h:1", "topic": "people", "format": "avro", "registry": "https://h"}


def test_paths_and_secrets_are_relative_to_the_job():
    given = {"username": "ann", "password": "file:word", "ca": "ca.pem"}
    made = endpoint("input", {**ENDS, "registry_settings": given}, Path("/jobs"))
    registry = made.kafka.registry
    assert dict(registry.settings) == {
        "username": "ann", "password": "file:/jobs/word", "ca": "/jobs/ca.pem"
    }  # fmt: skip
    assert "word" not in repr(registry)


def test_where_columns_are_is_part_of_what_a_checkpoint_means():
    state = Path("/state")
    plain = endpoint("input", ENDS, Path("/jobs")).identity(state)
    nested = endpoint("input", {**ENDS, "fields": {"age": "a.age"}}, Path("/jobs")).identity(state)
    elsewhere = {**ENDS, "registry": "http://other"}
    assert plain == endpoint("input", elsewhere, Path("/jobs")).identity(state)
    assert plain != nested
    # As it was before there were registries, so that such a job can be resumed.
    json = endpoint("input", {"kafka": "h:1", "topic": "people"}, Path("/jobs")).identity(state)
    assert json == ("people", "json", None, None)


@pytest.mark.parametrize(
    ("section", "more", "words"),
    [
        ("output", {"rows": 7}, "output.rows: must be 1: a message of format avro is one row"),
        ("input", {"registry": None, "format": "json", "registry_settings": {"ca": "x"}},
         "input.registry_settings: are those of registry, which is missing"),
        ("input", {"registry": None}, "input.registry: is missing, and the format is avro"),
        ("input", {"format": "json"}, "input.registry: is for avro and protobuf"),
        ("input", {"columns": ["a"]}, "input.columns: names the fields of CSV messages"),
    ],
)  # fmt: skip
def test_keys_that_dont_go_together_are_refused(section, more, words):
    given = {key: value for key, value in (ENDS | more).items() if value is not None}
    with pytest.raises(JobError, match=words):
        endpoint(section, given, Path("/jobs"))


def test_spark_refuses_them():
    settings = KafkaSettings("h:1", "public", "avro", rows=1, registry=REGISTRY)
    with pytest.raises(JobError, match=r"output\.registry: isn't supported on Spark"):
        TopicWriter(settings)
    with pytest.raises(JobError, match=r"input\.registry: isn't supported on Spark"):
        read_stream(None, settings, SparkInput(("age",), "corrupt", None, None, Path()))
