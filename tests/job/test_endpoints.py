"""Where a job's rows come from and go to, and where it keeps its state."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import JobError
from shoal.io.files.connector import FileOutput
from shoal.io.kafka.connector import KafkaInput, KafkaOutput
from shoal.job import Job

BASE = """
[schema]
subject = "person"
[schema.quasi]
age = { range = [0, 120], step = 1 }
[policy]
k = 2
delay = { rows = 10 }
[algorithm]
name = "castle"
"""


def job(text: str, where: str | None = None) -> Job:
    return Job.parse(BASE + text, folder=Path("/jobs"), where=where)


def problems(text: str) -> str:
    with pytest.raises(JobError) as caught:
        job(text)
    return str(caught.value)


def test_without_a_word_rows_come_from_and_go_to_pipes_and_nothing_is_kept():
    found = job("")
    assert (found.input.path, found.output.path) == ("-", "-")
    assert found.checkpoints is None
    assert found.name == "job"


def test_paths_are_relative_to_the_job_and_a_folder_stays_one():
    found = job("[input]\npath = 'in.csv'\n[output]\npath = 'out/'\nrows = 5\nseconds = 1.5")
    assert found.input.path == "/jobs/in.csv"
    assert found.output.path == "/jobs/out/"
    assert isinstance(found.output, FileOutput)
    assert (found.output.rows, found.output.seconds) == (5, 1.5)


def test_a_topic_and_its_settings():
    found = job(
        "[input]\nkafka = ['a:1', 'b:2']\ntopic = 't'\npartitions = [0, 2]\nformat = 'csv'\n"
        "columns = ['person', 'age']\nstart = 'latest'\n"
        "[input.settings]\n'security.protocol' = 'SASL_SSL'\n'sasl.password' = 'file:secret'\n"
        "'fetch.min.bytes' = 7\n"
        "[output]\nkafka = 'a:1'\ntopic = 'u'\nrows = 100\n"
    )
    assert isinstance(found.input, KafkaInput)
    assert isinstance(found.output, KafkaOutput)
    source, sink = found.input.kafka, found.output.kafka
    assert (source.servers, source.topic, source.format) == ("a:1,b:2", "t", "csv")
    assert (source.partitions, source.columns, source.start) == (
        (0, 2),
        ("person", "age"),
        "latest",
    )
    assert dict(source.settings) == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "file:/jobs/secret",
        "fetch.min.bytes": 7,
    }
    assert (sink.topic, sink.format, sink.rows) == ("u", "json", 100)


def test_a_message_has_one_row_unless_the_job_says_otherwise():
    found = job("[output]\nkafka = 'a:1'\ntopic = 'u'\n")
    assert isinstance(found.output, KafkaOutput)
    assert found.output.kafka.rows == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[input]\ntopic = 't'", "input.topic: is for kafka only"),
        ("[input]\nstart = 'latest'", "input.start: is for kafka only"),
        ("[input]\nkafka = 'a:1'", "input.topic: is missing"),
        (
            "[input]\nkafka = 'a:1'\ntopic = 't'\npath = 'x'",
            "input.path: can't be combined with kafka",
        ),
        (
            "[input]\nkafka = 'a:1'\ntopic = 't'\nfollow = true",
            "input.follow: can't be combined with",
        ),
        (
            "[output]\nkafka = 'a:1'\ntopic = 't'\nseconds = 1",
            "output.seconds: can't be combined with",
        ),
        ("[output]\nrows = 0", "output.rows: must be above 0; got 0"),
        ("[output]\nseconds = -1", "output.seconds: must be above 0; got -1"),
        ("[input]\nkafka = 'a:1'\ntopic = 't'\nformat = 'xml'", "input.format"),
        ("[input]\nkafk = 'a:1'", "Did you mean 'kafka'?"),
        ("[run]\ncheckpoint = 'state'", "run.checkpoint: must be a table"),
        ("[run]\ncheckpoint = {}", "run.checkpoint.folder: is missing"),
        ("[run]\ncheckpoint = { folder = 's', evry = 1 }", "Did you mean 'every'?"),
        ("[run]\ncheckpoint = { folder = 's', every = 0 }", "run.checkpoint.every: must be"),
        ("[run]\nname = 'a b'", "run.name: must have only letters"),
    ],
)
def test_what_is_wrong_is_reported_with_its_key(text, expected):
    assert expected in problems(text)


def test_a_key_or_password_in_the_job_is_refused_and_not_shown():
    secret = "hunter2" * 9
    found = problems(f"[run]\ncheckpoint = {{ folder = 's', seal = '{secret}' }}")
    assert "run.checkpoint.seal: must say where the key is, not what it is" in found
    assert secret not in found
    found = problems(
        f"[input]\nkafka = 'a:1'\ntopic = 't'\n[input.settings]\n'sasl.password' = '{secret}'"
    )
    assert "sasl.password" in found
    assert secret not in found


def test_the_name_of_a_job_is_that_of_its_file():
    assert job("", where="/jobs/day ward.toml").name == "day-ward"
    assert job("[run]\nname = 'ward-7'", where="/jobs/x.toml").name == "ward-7"


def test_a_key_in_a_file_lies_beside_the_job():
    found = job("[run]\ncheckpoint = { folder = 'state', every = 1, seal = 'file:key' }")
    assert found.checkpoints is not None
    assert found.checkpoints.folder == Path("/jobs/state")
    assert found.checkpoints.seal == "file:/jobs/key"
    assert "key" not in repr(found.checkpoints)


def test_whose_seconds_a_delay_counts():
    text = BASE.replace("delay = { rows = 10 }", "delay = { seconds = 5, clock = 'wall' }")
    assert Job.parse(text).policy.delay.clock == "wall"
    with pytest.raises(JobError, match=r"delay\.clock: needs rows that have a time"):
        Job.parse(text.replace("wall", "stream"))
    with pytest.raises(JobError, match="tells whose seconds"):
        Job.parse(text.replace("seconds = 5", "rows = 5"))
    late = BASE.replace("k = 2", "k = 2\nlateness = 3")
    with pytest.raises(JobError, match=r"policy\.lateness: needs rows that have a time"):
        Job.parse(late)
    timed = late.replace('"person"', '"person"\ntime = "at"')
    assert Job.parse(timed).policy.lateness == 3
    with pytest.raises(JobError, match=r"policy\.lateness: must be a finite number of at least 0"):
        Job.parse(timed.replace("lateness = 3", "lateness = -3"))


def test_how_far_ahead_a_row_may_be():
    soon = BASE.replace("k = 2", "k = 2\nahead = 3")
    with pytest.raises(JobError, match=r"policy\.ahead: needs rows that have a time"):
        Job.parse(soon)
    timed = soon.replace('"person"', '"person"\ntime = "at"')
    assert Job.parse(timed).policy.ahead == 3
    assert Job.parse(timed.replace("ahead = 3", "")).policy.ahead is None
    with pytest.raises(JobError, match=r"policy\.ahead: must be a finite number of at least 0"):
        Job.parse(timed.replace("ahead = 3", "ahead = -3"))
    with pytest.raises(JobError, match=r"policy\.ahead: "):
        Job.parse(timed.replace("ahead = 3", "ahead = 'soon'"))


def test_the_digests_change_with_what_is_held_depends_on():
    before = job("").digests
    assert set(before) == {"schema", "policy", "algorithm", "publish"}
    assert job("[bad_rows]\nfile = 'x.csv'").digests == before
    changed = Job.parse(BASE.replace("k = 2", "k = 3")).digests
    assert {name for name in before if before[name] != changed[name]} == {"policy"}


def test_the_digests_dont_change_with_a_knob_that_decides_nothing():
    def with_workers(name: str, workers: int) -> dict[str, str]:
        knobs = f'name = "{name}"\nworkers = {workers}'
        return dict(Job.parse(BASE.replace('name = "castle"', knobs)).digests)

    unset = dict(Job.parse(BASE.replace("castle", "tide")).digests)
    assert with_workers("tide", 1) == with_workers("tide", 2) == unset
    assert with_workers("fast", 1) != with_workers("fast", 2)
