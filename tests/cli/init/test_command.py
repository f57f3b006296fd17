"""``shoal init``: what it drafts can be run and audited."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.job import Job
from tests.world import people, shoal, write


def sample(n_rows: int) -> pa.Table:
    names = ["patient_id", "age", "city", "diagnosis", "ward", "admitted_at"]
    return people(n_rows).rename_columns(names)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_draft_can_be_run_and_the_audit_finds_it_kept(ending, tmp_path, monkeypatch, capfd):
    data, job = write(sample(400), tmp_path / f"data.{ending}"), tmp_path / "job.toml"
    assert shoal(monkeypatch, "init", data, "-o", job) == 0
    out, err = capfd.readouterr()
    assert out == f"shoal run {job} -i {data} -o published.csv\n"
    assert "from 400 rows" in err
    assert "person-" not in out + err
    published, trace = tmp_path / "published.csv", tmp_path / "trace.parquet"
    words = ("run", job, "-i", data, "-o", published, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0
    words = ("audit", job, published, "--original", data, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out


def test_nothing_is_overwritten_unless_forced(tmp_path, monkeypatch, capfd):
    data, job = write(sample(200), tmp_path / "data.csv"), tmp_path / "job.toml"
    job.write_text("mine")
    assert shoal(monkeypatch, "init", data, "-o", job) == 2
    assert f"{job} would be overwritten. Use --force" in capfd.readouterr().err
    assert job.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path not in (data, job)] == []
    assert shoal(monkeypatch, "init", data, "-o", job, "--force") == 0
    assert Job.load(job).schema.subject == "patient_id"


def test_the_given_number_of_rows_is_read(tmp_path, monkeypatch, capfd):
    data = write(sample(200), tmp_path / "data.csv")
    words = ("init", data, "-o", tmp_path / "job.toml", "--rows", 50)
    assert shoal(monkeypatch, *words) == 0
    assert "from 50 rows" in capfd.readouterr().err


def test_data_that_can_not_be_drafted_from(tmp_path, monkeypatch, capfd):
    job = tmp_path / "job.toml"
    empty = write(sample(1).slice(0, 0), tmp_path / "empty.csv")
    assert shoal(monkeypatch, "init", empty, "-o", job) == 4
    assert "has no rows" in capfd.readouterr().err
    assert shoal(monkeypatch, "init", tmp_path / "gone.csv", "-o", job) == 4
    data = write(sample(100), tmp_path / "data.csv")
    assert shoal(monkeypatch, "init", data, "-o", tmp_path / "no" / "job.toml") == 4
    assert "can't be written" in capfd.readouterr().err
    assert not job.exists()
