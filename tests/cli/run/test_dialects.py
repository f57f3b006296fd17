"""``shoal run`` and ``shoal audit`` on CSV files as other programs write them."""

from __future__ import annotations

import pytest

from shoal.errors import JobError
from shoal.io import Dialect
from shoal.io.files.spark import dialect_options
from shoal.job import Job
from tests.world import people, read, shoal, write, write_job

SCHEMA = """\
subject = "person"
[schema.quasi]
size = { range = [0, 120], step = 0.5 }
town = { values = ["köln", "bonn"] }
[schema.sensitive]
illness = {}
"""
POLICY = "k = 3\ndelay = { rows = 20 }\nmissing = 'maybe'"
KEYS = '[input]\ndelimiter = ";"\nencoding = "{}"\ndecimal = ","\nnull = ["?", "k.A."]\n'


def rows():
    """Sizes with a half, towns with an umlaut, and gaps."""
    for number, row in enumerate(people(120).to_pylist()):
        size = None if number % 10 == 0 else f"{row['age']}.5"
        town = None if number % 7 == 0 else ("köln", "bonn")[number % 2]
        yield row["person"], size, town, row["illness"]


def plain():
    lines = [",".join(value or "" for value in row) for row in rows()]
    return "\n".join(["person,size,town,illness", *lines]) + "\n"


def foreign():
    lines = [
        ";".join(
            [person, "?" if size is None else size.replace(".", ","), town or '"k.A."', illness]
        )
        for person, size, town, illness in rows()
    ]
    return "\r\n".join(["person;size;town;illness", *lines]) + "\r\n"


def job_of(folder, more="", **parts):
    job = write_job(folder, schema=SCHEMA, policy=POLICY, **parts)
    with job.open("a") as file:
        file.write(more)
    return job


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_what_is_published_is_the_same_in_whatever_dialect_it_came(
    tmp_path, encoding, monkeypatch, capfd
):
    (tmp_path / "plain.csv").write_text(plain())
    (tmp_path / "foreign.csv").write_bytes(foreign().encode(encoding))
    for name, more in (("plain", ""), ("foreign", KEYS.format(encoding))):
        words = ("-i", tmp_path / f"{name}.csv", "-o", tmp_path / f"{name}-out.csv", "-q")
        trace = tmp_path / f"{name}-trace.parquet"
        job = job_of(tmp_path, more)
        assert shoal(monkeypatch, "run", job, *words, "--trace", trace) == 0, capfd.readouterr()
        audit = ("audit", job, tmp_path / f"{name}-out.csv", "--original", tmp_path / f"{name}.csv")
        assert shoal(monkeypatch, *audit, "--trace", trace) == 0, capfd.readouterr()
    published = (tmp_path / "foreign-out.csv").read_bytes()
    assert published == (tmp_path / "plain-out.csv").read_bytes()
    assert read(tmp_path / "foreign-out.csv").num_rows > 100
    assert "köln" in published.decode()


def test_a_wrong_delimiter_is_one_error_that_names_the_right_one(tmp_path, monkeypatch, capfd):
    (tmp_path / "in.csv").write_text(foreign())
    words = ("-i", tmp_path / "in.csv", "-o", tmp_path / "out.csv")
    assert shoal(monkeypatch, "run", job_of(tmp_path), *words, "-q") == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert 'The header has them with ";": set delimiter = ";" in [input].' in said
    assert not (tmp_path / "out.csv").exists()


def test_another_dialect_is_another_input_for_a_checkpoint(tmp_path, monkeypatch, capfd):
    (tmp_path / "in.csv").write_bytes(foreign().encode("cp1252"))
    words = ("-i", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "-q")
    run = "seed = 7\ncheckpoint = { folder = 'state', every = 100 }"
    job = job_of(tmp_path, KEYS.format("cp1252"), run=run)
    assert shoal(monkeypatch, "run", job, *words) == 0
    assert shoal(monkeypatch, "run", job, *words) == 0
    job = job_of(tmp_path, KEYS.format("latin-1"), run=run)
    assert shoal(monkeypatch, "run", job, *words) == 5
    assert "input" in capfd.readouterr().err


def test_a_dialect_goes_with_csv_only(tmp_path, monkeypatch):
    job = job_of(tmp_path, '[input]\npath = "in.parquet"\ndelimiter = ";"\n')
    with pytest.raises(JobError, match=r"input\.delimiter: is for CSV only"):
        Job.load(job)
    # Another file of the command line may be of another format.
    job = job_of(tmp_path, KEYS.format("cp1252"), bad_rows="limit = 1")
    table = people(60).rename_columns(["person", "size", "town", "illness", "ward", "at"])
    write(table, tmp_path / "in.jsonl")
    words = ("-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.csv", "-q")
    assert shoal(monkeypatch, "run", job, *words) == 0


def test_what_spark_would_read_differently_is_refused():
    assert dialect_options(Dialect("|", quote="'", null=("?",))) == {
        "sep": "|",
        "quote": "'",
        "escape": "'",
        "nullValue": "?",
    }
    wrong = Dialect(";", encoding="utf-16", decimal=",", null=("?", "NA"))
    with pytest.raises(JobError) as caught:
        dialect_options(wrong)
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["input.encoding", "input.decimal", "input.null"]


def test_another_encoding_is_suggested_where_text_is_no_utf_8(tmp_path, monkeypatch, capfd):
    job = write_job(tmp_path, schema=SCHEMA, policy=POLICY)
    latin = tmp_path / "in.csv"
    latin.write_bytes(plain().encode("latin-1"))
    for words in (("run", job, "-i", latin, "-o", tmp_path / "o.csv"), ("check", job, "-i", latin)):
        assert shoal(monkeypatch, *words) == 3
        said = "".join(capfd.readouterr())
        assert "broken UTF-8 in column town" in said
        assert "set input.encoding; `shoal init` finds it" in said
