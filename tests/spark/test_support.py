"""What a job on Spark can't keep is refused before anything is read, all at once."""

from __future__ import annotations

import dataclasses

import pytest

from shoal.errors import JobError
from shoal.spark.partition_map import MOST_SHARDS
from shoal.spark.support import check_support
from tests.spark.world import job_of

EVENTS = "subject = 'person'\n[schema.quasi]\ntown = { hierarchy = 'town.csv' }\n"


def problems(job, n_shards) -> dict[str, str]:
    with pytest.raises(JobError) as refused:
        check_support(job, n_shards)
    return {problem.key: str(problem) for problem in refused.value.problems}


def test_k_and_l_are_kept_by_any_number_of_shards(tmp_path):
    job = job_of(tmp_path)
    for n_shards in (1, 2, MOST_SHARDS):
        check_support(job, n_shards)


@pytest.mark.parametrize("n_shards", [0, -1, MOST_SHARDS + 1, 2.0, True, "2"])
def test_a_number_of_shards_is_a_whole_one(tmp_path, n_shards):
    found = problems(job_of(tmp_path), n_shards)
    assert "must be a whole number from 1 to 10,000" in found["spark.shards"]


def test_groups_are_not_audited_while_spark_runs(tmp_path):
    job = dataclasses.replace(job_of(tmp_path), audit_sample=0.01)
    assert "use `shoal audit`" in problems(job, 1)["audit.sample"]


def test_a_job_without_a_folder_for_its_state(tmp_path):
    found = problems(job_of(tmp_path, run="seed = 7"), 2)
    assert found.keys() == {"run.checkpoint"}
    assert "a folder that all machines reach" in found["run.checkpoint"]


@pytest.mark.parametrize("name", ["mondrian", "tide-table"])
def test_a_table_is_published_once(tmp_path, name):
    schema = "subject = 'person'\n[schema.quasi]\nage = { range = [0, 120], step = 1 }\n"
    job = job_of(tmp_path, schema=schema, name=name, policy="k = 3\nwindow = 'all'")
    for n_shards in (1, 2):
        found = problems(job, n_shards)
        assert found.keys() == {"algorithm.name"}
        assert "a stream has no end" in found["algorithm.name"]


@pytest.mark.parametrize(("promise", "name"), [("t = 0.4", "sabre-w"), ("beta = 1.5", "burel-w")])
def test_what_is_measured_against_all_rows_takes_one_shard(tmp_path, promise, name):
    policy = f"{promise}\nwindow = {{ rows = 100, advance = 25 }}"
    schema = (
        "subject = 'person'\n[schema.quasi]\nage = { range = [0, 120], step = 1 }\n"
        "[schema.sensitive]\nillness = { values = ['flu', 'gout', 'scurvy', 'measles'] }\n"
    )
    job = job_of(tmp_path, schema=schema, policy=policy, name=name)
    check_support(job, 1)
    found = problems(job, 2)
    assert "is measured against all rows" in found["policy"]
    assert "spark.shards = 1" in found["policy"]


def test_several_shards_dont_wait_for_each_other(tmp_path):
    job = job_of(tmp_path, publish="order = 'arrival'")
    check_support(job, 1)
    assert problems(job, 2).keys() == {"publish.order"}


def test_all_problems_are_reported_at_once(tmp_path):
    job = job_of(tmp_path, run="seed = 7", publish="order = 'arrival'")
    assert problems(job, 2).keys() == {"run.checkpoint", "publish.order"}
