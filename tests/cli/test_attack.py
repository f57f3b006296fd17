"""``shoal attack``: figures, exit codes, and words that help."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import shoal as package
from tests.world import people, read, shoal, write, write_job


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The job of a run, its output, its input and its trace; no test changes them."""
    folder = tmp_path_factory.mktemp("attacked")
    job = write_job(folder)
    source = write(people(120), folder / "in.csv")
    out, trace = folder / "out.csv", folder / "trace.parquet"
    with pytest.warns(UserWarning, match="run.seed"):
        package.run(job, input=source, output=out, trace=trace)
    return job, out, source, trace


def test_a_kept_promise_is_not_exceeded(done, monkeypatch, capfd):
    job, out, source, trace = done
    before = sorted(job.parent.iterdir())
    words = ("attack", job, out, "--original", source, "--trace", trace, "--control", "0.3")
    assert shoal(monkeypatch, *words) == 0
    said = capfd.readouterr()
    assert "linking" in said.out
    assert "exceeded  " not in said.out
    assert said.err == ""
    for value in ("person-", "berlin", "scurvy"):
        assert value not in said.out
    assert shoal(monkeypatch, *words, "--json", "--attacks", "linking,inference") == 0
    report = json.loads(capfd.readouterr().out)
    assert {each["attack"] for each in report["attacks"]} == {"linking", "inference"}
    assert all(each["control"]["attempts"] > 0 for each in report["attacks"])
    assert report["attacks"][0]["bound"] == pytest.approx(1 / 3)
    # The run without the control writes nothing.
    assert sorted(job.parent.iterdir()) == before


def test_it_is_the_same_every_time(done, monkeypatch, capfd):
    job, out, source, trace = done
    words = ("attack", job, out, "--original", source, "--trace", trace, "--control", "0.3")
    words += ("--attacks", "linking,inference")
    found = []
    for seed in (1, 1, 2):
        assert shoal(monkeypatch, *words, "--seed", seed, "--targets", 20) == 0
        found.append(capfd.readouterr().out)
    assert found[0] == found[1] != found[2]


def test_without_a_trace_it_can_not_tell_and_ends_with_6(done, monkeypatch, capfd):
    job, out, source, _ = done
    assert shoal(monkeypatch, "attack", job, out, "--original", source) == 6
    assert "unverifiable" in capfd.readouterr().out


def test_groups_of_one_end_with_1(done, monkeypatch, capfd, tmp_path):
    job, out, source, trace = done
    rows, lines = read(source), read(trace).to_pylist()
    table, forged = read(out), tmp_path / "forged.csv"
    ages = {line["seq"]: rows["age"][line["row"]].as_py() for line in lines}
    towns = {line["seq"]: rows["town"][line["row"]].as_py() for line in lines}
    n = table.num_rows
    table = table.set_column(0, "age", pa.array([f"[{ages[i]}, {ages[i]}]" for i in range(n)]))
    write(table.set_column(1, "town", pa.array([towns[i] for i in range(n)])), forged)
    assert shoal(monkeypatch, "attack", job, forged, "--original", source, "--trace", trace) == 1
    said = capfd.readouterr().out
    assert "succeeded more often than the policy promises" in said
    assert "person-" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--attacks", "linkng"), "Did you mean 'linking'"),
        (("--attacks", ","), "names nothing"),
        (("--known", "agee"), "Did you mean 'age'"),
        (("--control", "2"), "between 0 and 1"),
    ],
)
def test_wrong_words_are_answered(words, said, done, monkeypatch, capfd):
    job, out, source, _ = done
    assert shoal(monkeypatch, "attack", job, out, "--original", source, *words) == 2
    assert said in capfd.readouterr().err


def test_the_original_is_needed(done, monkeypatch, capfd):
    job, out, _, _ = done
    assert shoal(monkeypatch, "attack", job, out) == 2
    assert "--original: is missing" in capfd.readouterr().err


def test_known_attributes_are_a_grade(done, monkeypatch, capfd):
    job, out, source, trace = done
    words = ("attack", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words, "--known", "age", "--attacks", "linking") == 0
    assert "linking  age " in capfd.readouterr().out


def test_from_python(done):
    job, out, source, trace = done
    report = package.attack(job, out, original=source, trace=trace, attacks=["linking"])
    assert report.exit_code == 0
    assert report.of("linking")[0].verdict == "within"
    frames = package.attack(
        job, read(out), original=read(source), trace=read(trace), attacks=["linking"]
    )
    assert frames == report
