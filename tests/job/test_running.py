"""``shoal.run``: the job of a file, with files and with frames, as the command line runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import DataError, JobError, ParameterError
from shoal.job import Job
from tests.world import COLUMNS, ID_AND_AGE, people, read, write, write_job
from tests.world import shoal as command

pytestmark = pytest.mark.filterwarnings("ignore:run.seed:UserWarning")


def test_a_job_file_is_run_as_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = write_job(tmp_path)
    source = write(people(60), tmp_path / "people.csv")
    assert command(monkeypatch, "run", job, "-i", source, "-o", tmp_path / "a.csv", "-q") == 0
    done = shoal.run(job, input=source, output=tmp_path / "b.csv", trace=tmp_path / "t.parquet")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert done.frame is None
    assert done.output == str(tmp_path / "b.csv")
    assert len(done) == done.summary.n_published == read(tmp_path / "b.csv").num_rows
    assert f"{len(done)} rows in {tmp_path}/b.csv" in repr(done)
    assert read(tmp_path / "t.parquet").num_rows == 60


def test_a_trace_is_a_part_of_the_result_if_no_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = write_job(tmp_path)
    done = shoal.run(job, input=people(60), trace=True)
    assert done.trace is not None
    assert done.trace.num_rows == 60
    assert "trace: 60 lines; private" in repr(done)
    assert shoal.audit(job, done, original=people(60)).verdict == "kept"
    assert shoal.run(job, input=people(60), trace=False).trace is None
    assert not (tmp_path / "True").exists()
    resumed = write_job(tmp_path, run="checkpoint = { folder = 'state' }")
    with pytest.raises(JobError, match=r"^trace: can't be in memory if the job has run\."):
        shoal.run(resumed, input=people(60), trace=True)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda table: table, pa.Table),
        (lambda table: table.to_pandas(), pd.DataFrame),
        (pl.from_arrow, pl.DataFrame),
        (lambda table: table.to_pylist(), list),
    ],
)
def test_a_frame_is_run_to_a_frame_of_its_kind(make: Any, kind: type, tmp_path: Path) -> None:
    job = Job.load(write_job(tmp_path))
    table = people(60)
    done = shoal.run(job, input=make(table))
    assert type(done.frame) is kind
    source = write(table, tmp_path / "people.parquet")
    by_file = shoal.run(job, input=source)
    assert isinstance(by_file.frame, pa.Table)
    assert len(done) == by_file.frame.num_rows > 0
    shown = done.frame if kind is list else pa.table(done.frame).to_pylist() if kind is not (
        pl.DataFrame) else done.frame.to_dicts()  # fmt: skip
    assert shown == by_file.frame.to_pylist()


def test_sections_are_a_job(tmp_path: Path) -> None:
    sections = {
        "schema": {"subject": "person", "quasi": {"age": {"range": [0, 120], "step": 1}}},
        "policy": {"k": 3, "delay": {"rows": 20}},
        "algorithm": {"name": "castle"},
        "run": {"seed": 3},
    }
    before = repr(sections)
    done = shoal.run(sections, input=people(60), output=tmp_path / "out.csv")
    assert read(tmp_path / "out.csv").num_rows == len(done)
    assert repr(sections) == before
    with pytest.raises(JobError, match="policy: is missing"):
        shoal.run({"schema": sections["schema"]}, input=people(3))


def test_bad_rows_go_where_the_job_says(tmp_path: Path) -> None:
    rows = people(60).to_pylist()
    rows[3]["age"] = "CANARY"
    done = shoal.run(write_job(tmp_path), input=rows)
    assert done.quarantine == tmp_path / "job.quarantine.jsonl"
    assert "CANARY" in done.quarantine.read_text()
    assert "CANARY" not in repr(done) + done._repr_html_()
    with pytest.raises(DataError, match="frame: row 3: age isn't a number"):
        shoal.run(write_job(tmp_path, bad_rows="action = 'stop'"), input=rows)


def test_warnings_of_a_job_are_warnings(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    with pytest.warns(UserWarning, match=r"run\.seed makes every random choice predictable"):
        shoal.run(job, input=people(9))


def test_a_run_that_publishes_nothing_warns_with_what_could_be_kept(tmp_path: Path) -> None:
    job = write_job(tmp_path, policy="k = 50\ndelay = { rows = 20 }", run="")
    with pytest.warns(
        UserWarning, match="nothing was published: 30 of 30 .* k can be at"
    ) as warned:
        done = shoal.run(job, input=people(30))
    assert (len(done), done.summary.suppression.count) == (0, 30)
    assert [Path(warning.filename).name for warning in warned] == ["test_running.py"] * 2
    assert str(warned[0].message).startswith("schema.keep publishes ward unchanged")


def test_an_existing_output_is_overwritten_only_by_force(tmp_path: Path) -> None:
    job, there = write_job(tmp_path), tmp_path / "out.csv"
    there.write_text("mine")
    fix = "Choose another with output=, move it away, or overwrite it with force=True"
    with pytest.raises(JobError, match=fix):
        shoal.run(job, input=people(60), output=there)
    assert there.read_text() == "mine"
    assert len(shoal.run(job, input=people(60), output=there, force=True))
    resumed = write_job(tmp_path, run="checkpoint = { folder = 'state' }")
    source = write(people(60), tmp_path / "in.csv")
    with pytest.raises(JobError, match=r"^force: can't be combined with run\.checkpoint"):
        shoal.run(resumed, input=source, output=tmp_path / "other.csv", force=True)


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    with pytest.raises(JobError, match="input: is missing: the job names none"):
        shoal.run(job)
    with pytest.raises(JobError, match="doesn't exist"):
        shoal.run(tmp_path / "nothing.toml")
    with pytest.raises(ParameterError, match=r"^input: must be a dict, a list of dicts"):
        shoal.run(job, input=7)
    with pytest.raises(JobError, match="output: is the same file as the job"):
        shoal.run(job, input=people(9), output=job)
    with pytest.raises(JobError, match="trace: would go to standard output"):
        shoal.run(job, input=people(9), trace="-")
    with pytest.raises(JobError, match="input: is in memory, and can't be read again"):
        shoal.run(write_job(tmp_path, run="checkpoint = { folder = 'state' }"), input=people(9))
    wall = write_job(tmp_path, schema=ID_AND_AGE, policy="k = 3\ndelay = { seconds = 3 }")
    with pytest.raises(ParameterError, match="a table has no arrival times"):
        shoal.run(wall, input=people(9).rename_columns(["id", *COLUMNS[1:]]))
