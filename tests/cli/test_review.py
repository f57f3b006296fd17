"""What a hostile review broke, each as a test that it stays mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.audit import audit
from shoal.job import Job
from tests.world import people, read, shoal, write, write_job

ID_AND_AGE = 'subject = "id"\n[schema.quasi]\nage = { range = [0, 120], step = 1 }\n'


def test_a_job_with_quasi_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path, schema=ID_AND_AGE, policy="k = 2\ndelay = { rows = 9 }")
    rows = pa.table({"id": [str(i) for i in range(40)], "age": [20 + i % 7 for i in range(40)]})
    data = write(rows, tmp_path / "in.csv")
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", tmp_path / "out.csv") == 0
    assert read(tmp_path / "out.csv").num_rows == 40


def test_one_person_written_as_two_types_on_a_pipe_is_one(tmp_path: Path) -> None:
    job = write_job(tmp_path, schema=ID_AND_AGE, policy="k = 3\ndelay = { rows = 9 }")
    trace = tmp_path / "trace.parquet"
    command = [sys.executable, "-c", "from shoal.cli import main; main()", "run", job]
    command += ["--from", "jsonl", "--to", "jsonl", "--trace", trace]
    with subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=os.environ,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        for line in (
            b'{"id":48123456789,"age":30}\n',
            b'{"id":2.0,"age":31}\n',
            b'{"id":48123456789,"age":30}\n',
        ):
            process.stdin.write(line)
            process.stdin.flush()
            time.sleep(0.3)
        out, _ = process.communicate(timeout=60)
    assert out == b"", "two people are no group of three"
    assert pq.read_table(trace).column("outcome").to_pylist() == ["suppressed"] * 3


@pytest.mark.parametrize("private", ["trace", "quarantine"])
def test_private_files_never_go_to_stdout(
    private: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    job = write_job(tmp_path, bad_rows='file = "-"' if private == "quarantine" else "")
    data = write(people(50), tmp_path / "in.csv")
    words = ["--trace", "-"] if private == "trace" else []
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", tmp_path / "out.csv", *words) == 2
    assert "holds personal data" in capfd.readouterr().err


def test_a_clock_that_goes_back_is_no_reason_for_an_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = people(200)
    times = [float(i - 40 * (i % 3 == 0)) for i in range(200)]
    table = table.set_column(table.schema.names.index("at"), "at", pa.array(times))
    data = write(table, tmp_path / "in.parquet")
    schema = (
        'time = "at"\n'
        + write_job(tmp_path).read_text().split("[schema]\n")[1].split("[policy]")[0]
    )
    job = write_job(tmp_path, schema=schema, policy="k = 3\ndelay = { seconds = 30 }")
    trace, out = tmp_path / "trace.parquet", tmp_path / "out.parquet"
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", out, "--trace", trace) == 0
    capfd.readouterr()
    shoal(monkeypatch, "audit", job, out, "--trace", trace, "--original", data, "--json")
    verdicts = {v["name"]: v["verdict"] for v in json.loads(capfd.readouterr().out)["verdicts"]}
    assert verdicts["delay"] == "kept"
    assert "broken" not in verdicts.values()


def test_roots_above_a_single_child_are_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    schema = 'subject = "id"\n[schema.quasi]\nzip = { mask = ["53703", "53706", "53715"] }\n'
    policy, publish = "k = 5\ndelay = { rows = 3 }", 'suppressed = "root"'
    job = write_job(tmp_path, schema=schema, policy=policy, publish=publish)
    data = write(pa.table({"id": ["a", "b"], "zip": ["53703", "53715"]}), tmp_path / "in.csv")
    trace, out = tmp_path / "trace.parquet", tmp_path / "out.csv"
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", out, "--trace", trace) == 0
    assert shoal(monkeypatch, "audit", job, out, "--trace", trace, "--original", data) == 0


def test_the_audit_knows_one_person_under_two_spellings(tmp_path: Path) -> None:
    job = Job.load(write_job(tmp_path, policy="k = 2\nl = 2\ndelay = { rows = 9 }"))
    published = pa.table(
        {
            "age": ["[20, 30]"] * 2,
            "town": ["any"] * 2,
            "illness": ["flu", "flu "],
            "ward": ["A", "A"],
        }
    )
    trace = pa.table(
        {
            "row": [0, 1],
            "subject": ["a", " a"],
            "outcome": ["group"] * 2,
            "arrived": [0, 1],
            "published": [2, 2],
            "arrived_s": pa.array([None, None], pa.float64()),
            "published_s": pa.array([None, None], pa.float64()),
            "group": [0, 0],
            "window": pa.array([None, None], pa.int64()),
            "loss": [0.5, 0.5],
            "seq": [0, 1],
        }
    )
    report = audit(job.schema, job.policy, published, trace=trace)
    assert report["k-anonymity"].verdict == "broken"
    assert report["distinct l-diversity of illness"].verdict == "broken"


def test_the_audit_refuses_a_file_with_metadata(tmp_path: Path) -> None:
    job = Job.load(write_job(tmp_path, policy="k = 2\ndelay = { rows = 9 }"))
    published = pa.table({"age": ["[20, 30]"], "town": ["any"], "illness": ["flu"], "ward": ["A"]})
    hiding = published.replace_schema_metadata({"ids": "a b c"})
    assert audit(job.schema, job.policy, published)["secrecy"].verdict == "kept"
    assert audit(job.schema, job.policy, hiding)["secrecy"].verdict == "broken"


def test_the_trace_names_the_subject_of_a_quarantined_row_whatever_its_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = write_job(tmp_path, schema=ID_AND_AGE, policy="k = 2\ndelay = { rows = 9 }")
    data = write(pa.table({"id": [7, 8, 9], "age": [20, 21, 999]}), tmp_path / "in.parquet")
    trace = tmp_path / "trace.parquet"
    out = tmp_path / "out.csv"
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", out, "--trace", trace) == 0
    lines = {line["outcome"]: line["subject"] for line in pq.read_table(trace).to_pylist()}
    assert lines["quarantined"] == "9"
