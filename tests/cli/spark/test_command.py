"""``shoal spark``: refusals before Spark is started, and real runs in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.cli.spark import command, submit
from shoal.job import Job
from shoal.metrics import Summary
from tests.crashes.world import wait_until
from tests.world import beside, people, shoal, write, write_job

pytestmark = pytest.mark.xdist_group("spark")

STATE = "seed = 7\ncheckpoint = { folder = 'state' }"
#: Spark's parts, on this machine alone.
HERE = ("--master", "local[2]")


class Cluster:
    """A folder with a job for two shards, its input and its output."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch, self.path = monkeypatch, path
        self.input, self.output, self.trace = path / "in", path / "out", path / "trace"
        self.input.mkdir()
        self.table = people(3000)
        self.n_files = 0
        self.job = write_job(path, run=STATE)

    def say(self, more: str) -> None:
        """Add something to the job."""
        self.job.write_text(self.job.read_text() + more)

    def add(self, n_rows: int) -> None:
        """Put a file with the next rows into the folder that is read."""
        done = self.n_files * 1500
        write(self.table.slice(done, n_rows), self.input / f"{self.n_files}.csv")
        self.n_files += 1

    @property
    def words(self) -> list[str]:
        ends = ["-i", f"{self.input}/", "--from", "csv", "-o", f"{self.output}/", "--to", "csv"]
        return ["spark", str(self.job), *ends, "--shards", "2", "--trace", f"{self.trace}/"]

    def refused(self, *words: object) -> int:
        return shoal(self._monkeypatch, *self.words, *words)

    def judge(self) -> int:
        return shoal(
            self._monkeypatch, "audit", self.job, f"{self.output}/", "--original",
            f"{self.input}/", "--trace", f"{self.trace}/", "--from", "csv",
        )  # fmt: skip

    @property
    def is_at_work(self) -> bool:
        return any((self.path / "state").glob("commit-*"))


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(tmp_path, monkeypatch)


# -- refusals --------------------------------------------------------------------------------------


def test_a_job_must_keep_its_state(cluster, capfd):
    write_job(cluster.path)
    assert cluster.refused() == 2
    assert "run.checkpoint: is missing: shards keep their state" in capfd.readouterr().err


def test_a_setting_is_a_key_and_a_value(cluster, capfd):
    cluster.add(10)
    assert cluster.refused("--conf", "spark.executor.memory") == 2
    assert "--conf: must be KEY=VALUE" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[spark]\nshards = 0", "spark.shards: must be at least 1; got 0"),
        ("[spark]\ninterval = 0", "spark.interval: must be a number of seconds above 0; got 0"),
        ("[spark]\nfiles = 0\nrows = -1", "spark.files: must be at least 1; got 0"),
        ("[spark]\nshard = 2", "spark.shard: is unknown. Did you mean 'shards'?"),
        ("[input]\ntable = 'a'\npath = 'b'", "input.path: can't be combined with table"),
    ],
)
def test_a_wrong_job(cluster, capfd, more, said):
    cluster.say(more)
    assert cluster.refused() == 2
    assert said in capfd.readouterr().err


def test_spark_must_be_there(cluster, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert cluster.refused() == 2
    assert "pip install '.[spark]'" in capfd.readouterr().err


def test_the_end_of_a_job_that_published_nothing_says_so(cluster, capfd):
    summary = Summary()
    summary.n_in = summary.n_quarantined = 7
    summary.bad_rows.add(["age is missing"] * 7)
    job = Job.load(cluster.job)
    assert command._finish(job, summary, 7, 1.0, [], command.SparkOptions(quiet=True)) == 3
    assert capfd.readouterr().err == (
        "shoal: nothing was published: 7 of 7 rows can't be used: age is missing (7). Correct the "
        "rows, or what the job says about these columns.\n"
    )
    # A signal ended it: more rows may come.
    stopped = [signal.SIGTERM]
    assert command._finish(job, summary, 7, 1.0, stopped, command.SparkOptions(quiet=True)) == 0


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("k = 3\ndelay = { rows = 20 }", "0 rows are held, and the next run resumes with them"),
        ("z = 3\nwindow = { rows = 200 }", "z-anonymity holds no rows, and the next run resumes"),
    ],
)
def test_a_stop_says_what_is_held(policy, said, capfd):
    text = f"""
        [schema]
        subject = "person"
        quasi = {{ town = {{ values = ["berlin", "turin"] }} }}
        [algorithm]
        name = "{"tide" if policy.startswith("k") else "z-anonymity"}"
        [policy]\n{policy}
    """
    job, stopped = Job.from_dict(tomllib.loads(text)), [signal.SIGTERM]
    assert command._finish(job, Summary(), 7, 1.0, stopped, command.SparkOptions()) == 0
    assert f"interrupted: {said}" in capfd.readouterr().err


def test_too_many_bad_rows_are_judged_by_the_committed_batches(cluster):
    summary, job = Summary(), Job.load(cluster.job)
    summary.n_in, summary.n_quarantined = 100, 19
    assert not command._has_too_many_bad(job, summary)
    summary.n_quarantined = 20
    assert command._has_too_many_bad(job, summary)
    stops = write_job(cluster.path, run=STATE, bad_rows='action = "stop"')
    assert not command._has_too_many_bad(Job.load(stops), summary)


@pytest.mark.nightly
def test_too_many_bad_rows_end_the_job_with_3_and_it_resumes(cluster):
    cluster.add(1500)
    rows = people(300).to_pylist()
    bad = pa.Table.from_pylist([row | {"age": 999} for row in rows])
    write(bad, cluster.input / "bad.csv")
    with beside(*cluster.words, *HERE) as process:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 3, err
    assert b"300 of the first 1,800 rows can't be used (16.7 %)" in err
    cluster.job.write_text(cluster.job.read_text().replace("[bad_rows]", "[bad_rows]\nlimit = 1"))
    with beside(*cluster.words, *HERE) as process:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err


@pytest.mark.parametrize("more", ["[input]\ntable = 'people'", "[output]\npath = 's3a://here/'"])
def test_what_only_spark_reads_is_no_matter_of_the_embedded_runner(
    cluster, capfd, monkeypatch, more
):
    cluster.say(more)
    assert shoal(monkeypatch, "run", cluster.job) == 2
    assert "Use `shoal spark`" in capfd.readouterr().err


# -- runs ------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_job_that_is_stopped_and_resumed(cluster, capfd):
    cluster.add(1500)
    with beside(*cluster.words, *HERE, "--follow", "--json") as running:
        wait_until(lambda: cluster.is_at_work or running.poll() is not None, seconds=180)
        running.send_signal(signal.SIGTERM)
        printed, said = running.communicate(timeout=600)
    assert running.returncode == 0, said.decode()
    figures = json.loads(printed)
    assert figures["interrupted"] is True
    assert figures["rows"]["in"] == 1500
    assert figures["rows"]["held"] > 0
    assert b"the next run resumes with them" in said
    cluster.add(1500)
    with beside(*cluster.words, *HERE) as running:
        _, said = running.communicate(timeout=180)
    assert running.returncode == 0, said.decode()
    assert b"3,000 rows in, 3,000 published, 0 suppressed, 0 quarantined, 0 held" in said
    assert cluster.judge() == 0
    assert "kept: 12 of 12 promises, over 3,000 published rows" in capfd.readouterr().out


@pytest.mark.nightly
def test_spark_submit(cluster, capfd):
    cluster.add(1500)
    script = Path(sys.executable).with_name("spark-submit")
    said = subprocess.run(
        [script, *HERE, submit.__file__, *cluster.words[1:], "--json"],
        env={
            **os.environ, "NUMBA_DISABLE_JIT": "1", "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        },
        capture_output=True, check=False, timeout=240,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr.decode()
    # Spark puts what goes to stderr there as well.
    assert json.loads(said.stdout.splitlines()[-1])["rows"]["published"] == 1500
    assert cluster.judge() == 0
    capfd.readouterr()
