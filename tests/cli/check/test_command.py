"""``shoal check``: what a job would do with some data, in words and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.io import formats
from tests.world import ID_AND_AGE, POLICY, people, shoal, write, write_job

EVENTS = """
[schema]
subject = "person"
time = "at"
[schema.quasi]
town = {}
[policy]
z = 3
window = { seconds = 100 }
[algorithm]
name = "z-anonymity"
"""


class Place:
    """A folder with a job, and transcripts of checks of it."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._monkeypatch, self._capfd = folder, monkeypatch, capfd
        self.job = write_job(folder, run="")
        monkeypatch.chdir(folder)

    def check(self, *words: object, data: str = "in.csv") -> tuple[int, str, str]:
        before = sorted(self.folder.rglob("*"))
        given = () if not data else ("-i", data)
        code = shoal(self._monkeypatch, "check", "job.toml", *given, *words)
        out, err = self._capfd.readouterr()
        assert sorted(self.folder.rglob("*")) == before, "a check writes nothing"
        for text in (out, err):
            assert "CANARY" not in text
            assert "person-" not in text
        return code, out, err

    def shoal(self, *words: object) -> int:
        return shoal(self._monkeypatch, *words)

    def found(self, *words: object, data: str = "in.csv") -> tuple[int, dict[str, Any]]:
        code, out, err = self.check("--json", *words, data=data)
        assert err == ""
        found: dict[str, Any] = json.loads(out)
        assert found["exit_code"] == code
        return code, found


@pytest.fixture
def place(tmp_path, monkeypatch, capfd):
    return Place(tmp_path, monkeypatch, capfd)


def spoilt() -> pa.Table:
    rows = people(400).to_pylist()
    rows[3]["age"] = 999
    rows[4]["age"] = None
    rows[5]["town"] = "CANARY"
    # Two things are wrong with it: it is one bad row, but two bad values.
    rows[6] |= {"age": -1, "town": "CANARY"}
    return pa.Table.from_pylist(rows)


def test_words_for_people(place):
    write(spoilt(), place.folder / "in.csv")
    code, out, err = place.check()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "400 rows read, all of the input; nothing is published"
    assert "  age      quasi      text, 1 missing, 2 out of its range" in lines
    assert "  town     quasi      text, 2 with a category that its hierarchy lacks" in lines
    assert "  person   subject    text" in lines
    assert (
        "quarantine: 4 rows, 1.0 % of those read: age is out of its range (2), age is missing (1), "
        "town has a category that its hierarchy lacks (1)"
    ) in lines
    assert any(line.startswith("people: ") and "different, with" in line for line in lines)
    assert any(line.startswith("uniqueness: ") for line in lines)
    promise = next(line for line in lines if line.startswith("promise: "))
    assert promise.startswith("promise: k = 3, l = 2 within 20 rows: ")
    assert lines[-1] == "The job works on these rows."


def test_figures_for_programs(place):
    write(spoilt(), place.folder / "in.csv")
    code, found = place.found()
    assert code == 0
    assert found["verdict"] == "works"
    assert found["rows"] == {"read": 400, "whole": True, "quarantined": 4, "share": 0.01}
    assert {reason["column"]: reason["rows"] for reason in found["reasons"][:1]} == {"age": 2}
    columns = {column["name"]: column for column in found["columns"]}
    assert columns["age"]["problems"] == {"age is out of its range": 2}
    assert columns["age"]["missing"] == 1
    assert columns["town"]["problems"] == {"town has a category that its hierarchy lacks": 2}
    assert [columns[name]["role"] for name in ("person", "illness", "ward")] == [
        "subject", "sensitive", "keep",
    ]  # fmt: skip
    n_people = len({row["person"] for i, row in enumerate(people(400).to_pylist()) if i not in
                    (3, 4, 5, 6)})  # fmt: skip
    assert found["people"]["count"] == n_people
    assert 0.3 < found["people"]["unique"] < 1
    promise = found["promise"]
    assert promise["published"] + promise["suppressed"] == 396
    assert found["problems"] == []
    (warning,) = found["warnings"]
    assert warning.startswith("schema.keep publishes ward unchanged, and no promise covers that")


def test_a_check_decides_as_a_run_does(place, monkeypatch, capfd):
    write_job(place.folder, policy="k = 9\nl = 3\ndelay = { rows = 15 }", run="")
    write(people(300), place.folder / "in.csv")
    promise = place.found()[1]["promise"]
    words = ("run", "job.toml", "-i", "in.csv", "-o", "out.csv", "--json")
    assert shoal(monkeypatch, *words) == 0
    rows = json.loads(capfd.readouterr().out)["rows"]
    # Both draw their own random numbers.
    assert abs(rows["suppressed"] - promise["suppressed"]) <= 15


@pytest.mark.parametrize("ending", [*formats.names(), "csv.gz"])
def test_every_format_and_its_types(ending, place):
    write(people(90), place.folder / f"in.{ending}")
    code, found = place.found(data=f"in.{ending}")
    assert code == 0
    assert found["rows"]["read"] == 90
    (kind,) = next(column["types"] for column in found["columns"] if column["name"] == "age")
    assert kind == ("text" if "sv" in ending else "int64")


def test_a_sample_is_said_to_be_one(place):
    write(people(200), place.folder / "in.csv")
    code, out, _ = place.check("--rows", 50)
    assert code == 0
    first = out.splitlines()[0]
    assert first == "50 rows read, the first of the input (--all reads all); nothing is published"
    for words, read, whole in (
        (("--rows", 200), 200, True),
        (("--rows", 50, "--all"), 200, True),
        (("--rows", 7), 7, False),
    ):
        rows = place.found(*words)[1]["rows"]
        assert (rows["read"], rows["whole"]) == (read, whole)


def test_a_sample_that_is_cut_inside_a_chunk_has_its_bad_rows_only(place):
    lines = ["person,age,town,illness,ward"]
    lines += [f"person-{i},40" + ",bonn,flu,A" * (i % 3 > 0) for i in range(20)]
    (place.folder / "in.csv").write_text("\n".join(lines) + "\n")
    for n in (1, 2, 10):
        rows = place.found("--rows", n)[1]["rows"]
        assert (rows["read"], rows["quarantined"]) == (n, len(range(0, n, 3)))


def test_a_folder_is_checked_too(place):
    (place.folder / "in").mkdir()
    for n in range(3):
        write(people(50, seed=n), place.folder / "in" / f"{n}.csv")
    code, found = place.found(data="in")
    assert (code, found["rows"]["read"]) == (0, 150)


def test_the_input_of_the_job_is_the_default_and_is_not_waited_for(place):
    write(people(50), place.folder / "in.csv")
    text = place.job.read_text()
    place.job.write_text(f'{text}\n[input]\npath = "in.csv"\nfollow = true\n')
    assert place.found(data="")[0] == 0
    place.job.write_text(text)
    code, _, err = place.check(data="")
    assert code == 2
    assert "shoal: input: isn't named in the job. Give the data with -i." in err


def test_a_topic_needs_a_file_to_check(place):
    text = write_job(place.folder, run='checkpoint = { folder = "state" }').read_text()
    place.job.write_text(f'{text}\n[input]\nkafka = "localhost:9092"\ntopic = "people"\n')
    code, _, err = place.check(data="")
    assert code == 2
    assert "input: is a topic, and a check reads a file. Give a file of such rows with -i" in err
    write(people(50), place.folder / "in.csv")
    assert place.check()[0] == 0


def test_a_run_that_would_be_refused_is(place):
    text = place.job.read_text()
    place.job.write_text(f'{text}\n[input]\nkafka = "localhost:9092"\ntopic = "people"\n')
    write(people(50), place.folder / "in.csv")
    code, _, err = place.check()
    assert code == 2
    assert "without checkpoints a restart would publish rows twice" in err


# -- jobs that can't work --------------------------------------------------------------------------


def test_a_promise_that_can_not_be_met_ends_with_3(place):
    write_job(place.folder, policy="k = 40\ndelay = { rows = 20 }", run="")
    write(people(200), place.folder / "in.csv")
    code, out, _ = place.check()
    assert code == 3
    assert "0 rows would be published, 200 suppressed (100.0 %)" in out
    assert "problem: nothing would be published: 200 of 200 rows were suppressed" in out
    assert "k = 40 needs a delay of at least " in out
    assert out.splitlines()[-1] == "The job can't work on these rows."
    code, found = place.found()
    assert (code, found["verdict"], len(found["problems"])) == (3, "fails", 1)


def test_too_many_bad_rows_end_with_3(place):
    rows = people(200).to_pylist()
    for row in rows[::5]:
        row["age"] = 999
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    code, out, _ = place.check()
    assert code == 3
    assert (
        "problem: a run would end at row 95: 20 of the first 96 rows can't be used (20.8 %), "
        "clearly more than bad_rows.limit = 0.05 allows."
    ) in out
    write_job(place.folder, run="", bad_rows="limit = 0.3")
    assert place.check()[0] == 0
    write_job(place.folder, run="", bad_rows='action = "stop"')
    code, out, _ = place.check()
    assert code == 3
    assert 'a run would end at the first of 40 bad rows, because of bad_rows.action = "stop"' in out


def test_bad_rows_at_the_beginning_are_too_many_though_few_of_all_are_bad(place):
    rows = [row | {"age": 999} for row in people(30).to_pylist()] + people(2000).to_pylist()
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    code, found = place.found()
    assert (code, found["rows"]["share"] < 0.05) == (3, True)
    assert "a run would end at row 19" in found["problems"][0]
    words = ("run", "job.toml", "-i", "in.csv", "-o", "out.csv", "-q")
    assert place.shoal(*words) == 3


def test_a_seed_makes_the_check_decide_as_the_run_does(place, capfd):
    write(people(300), place.folder / "in.csv")
    losses = set()
    for seed in (1, 2, 3):
        write_job(place.folder, run=f"seed = {seed}")
        found = [place.found()[1]["promise"] for _ in range(2)]
        assert found[0] == found[1]
        capfd.readouterr()
        assert place.shoal("run", "job.toml", "-i", "in.csv", "-o", f"{seed}.csv", "--json") == 0
        ran = json.loads(capfd.readouterr().out)
        assert found[0]["loss"] == ran["loss"]["published"]
        assert found[0]["groups"] == ran["groups"]
        losses.add(found[0]["loss"])
    assert len(losses) > 1


def test_a_wrong_job_and_a_column_that_is_not_there_end_with_2(place):
    write(people(50).drop_columns(["town"]), place.folder / "in.csv")
    code, _, err = place.check()
    assert code == 2
    assert "column town: isn't in the input" in err
    place.job.write_text("[schema]\n")
    assert place.check()[0] == 2


def test_an_input_without_rows_ends_with_3_and_one_that_is_not_there_with_4(place):
    write(people(1).slice(0, 0), place.folder / "in.csv")
    code, _, err = place.check()
    assert code == 3
    assert "has no rows, so nothing can be checked" in err
    assert place.check(data="nowhere.csv")[0] == 4


# -- warnings --------------------------------------------------------------------------------------


def test_all_warnings_are_in_the_report(place):
    schema = ID_AND_AGE.replace('"id"', "{ each_row = true }") + '[schema.keep]\ncolumns = ["note"]'
    write_job(place.folder, schema=schema, policy="k = 1\ndelay = { seconds = 5 }")
    rows = {"age": [i % 90 for i in range(200)], "note": [f"CANARY-{i}" for i in range(200)]}
    write(pa.table(rows), place.folder / "in.csv")
    code, out, _ = place.check()
    assert code == 0
    assert "people: each of 200 rows counts as another person" in out
    assert "fewer than 1" not in out
    for text in (
        "warning: each row counts as another person",
        "warning: policy.k = 1 doesn't hide whose row it is",
        "warning: run.seed makes every random choice predictable",
        "warning: schema.keep: column note has 200 different values in 200 rows",
        "warning: policy.delay.seconds counts the time that passes while rows arrive",
    ):
        assert text in out
    assert len(place.found()[1]["warnings"]) == 5


def test_many_suppressed_rows_are_warned_about(place):
    policy = "k = 7\nl = 4\ndelay = { rows = 6 }"
    write_job(place.folder, policy=policy, algorithm="kept = 0", run="")
    write(people(300), place.folder / "in.csv")
    code, found = place.found()
    share = found["promise"]["suppressed"] / 300
    said = any("of the rows would be suppressed" in text for text in found["warnings"])
    assert code == 0
    assert 0.1 < share < 1
    assert said


def test_a_part_of_a_table_is_not_taken_for_the_table(place):
    place.job.write_text(
        '[schema]\nsubject = "person"\n[schema.quasi]\nage = { range = [0, 120] }\n'
        '[policy]\nk = 3\nwindow = "all"\n[algorithm]\nname = "mondrian"\n'
    )
    write(people(60), place.folder / "in.csv")
    assert "the whole table decides" in str(place.found("--rows", 30)[1]["warnings"])
    assert place.found()[1]["warnings"] == []


def test_missing_values_that_the_job_allows_are_counted_but_not_quarantined(place):
    write_job(place.folder, policy=f'{POLICY}\nmissing = "extended"', run="")
    rows = [
        row | {"age": None} if i % 4 == 0 else row for i, row in enumerate(people(80).to_pylist())
    ]
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    code, found = place.found()
    assert (code, found["rows"]["quarantined"]) == (0, 0)
    assert next(c["missing"] for c in found["columns"] if c["name"] == "age") == 20


def test_z_is_tried_value_by_value(place):
    place.job.write_text(EVENTS)
    write(people(200), place.folder / "in.csv")
    code, found = place.found()
    assert code == 0
    assert found["promise"]["promise"] == "z = 3"
    assert found["promise"]["within"] == "100 seconds"
    assert found["promise"]["published"] > 100
    place.job.write_text(EVENTS.replace("z = 3", "z = 3000"))
    code, out, _ = place.check()
    assert code == 3
    assert "z can be at most" in out
