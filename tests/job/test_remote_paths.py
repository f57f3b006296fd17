"""Addresses of object storage where a local path is asked for: one clear sentence, no folder."""

from __future__ import annotations

import pytest

from tests.world import people, shoal, write, write_job

STATE = "checkpoint = { folder = 'state', every = 10 }"
AWAY = "s3://ann:hunter2@bucket/x"


@pytest.mark.parametrize(
    ("run", "bad_rows", "words", "key"),
    [
        (f"checkpoint = {{ folder = '{AWAY}' }}", "", [], "run.checkpoint.folder: is an address"),
        (STATE, f"file = '{AWAY}.jsonl'", [], "bad_rows.file: is an address"),
        (STATE, "", ["--trace", AWAY + "/"], "--trace: is an address"),
        (STATE, "", ["-o", AWAY + ".csv"], "output.path: isn't on the file system"),
        (STATE, "", ["-i", AWAY + ".csv"], "input.path: isn't on the file system"),
    ],
)
def test_object_storage_is_refused(tmp_path, monkeypatch, capfd, run, bad_rows, words, key):
    monkeypatch.chdir(tmp_path)
    write(people(20), tmp_path / "in.csv")
    job = write_job(tmp_path, run=run, bad_rows=bad_rows)
    ends = {"-i": "in.csv", "-o": "out.csv"} | dict(zip(words[::2], words[1::2], strict=True))
    before = sorted(tmp_path.iterdir())
    assert shoal(monkeypatch, "run", job, *(word for pair in ends.items() for word in pair)) == 2
    said = capfd.readouterr().err
    assert key in said
    assert "object storage isn't supported here" in said
    assert "hunter2" not in said
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ("init", AWAY + ".csv"),
        ("audit", "job.toml", AWAY + ".csv"),
        ("audit", "job.toml", "in.csv", "--original", AWAY),
        ("report", "job.toml", AWAY + ".csv"),
        ("attack", "job.toml", AWAY, "--original", "in.csv"),
    ],
)
def test_object_storage_is_refused_by_those_who_read_data(tmp_path, monkeypatch, capfd, words):
    monkeypatch.chdir(tmp_path)
    write(people(20), tmp_path / "in.csv")
    write_job(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert shoal(monkeypatch, *words) == 4
    said = capfd.readouterr().err
    assert "a path that begins with s3:// isn't on the file system of this machine" in said
    assert "hunter2" not in said
    assert sorted(tmp_path.iterdir()) == before
