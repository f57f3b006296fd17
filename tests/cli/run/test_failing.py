"""``shoal run`` that fails or publishes nothing says so, and why; and it overwrites nothing."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tests.world import COMMAND, people, shoal, write, write_job

Monkey = pytest.MonkeyPatch


class Place:
    """A folder with a job and an input, and transcripts of what is run there."""

    def __init__(
        self, folder: Path, monkeypatch: Monkey, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._monkeypatch, self._capfd = folder, monkeypatch, capfd
        self.job = write_job(folder, run="")
        write(people(60), folder / "in.csv")
        monkeypatch.chdir(folder)

    def shoal(self, *words: object) -> tuple[int, str, str]:
        code = shoal(self._monkeypatch, *words)
        out, err = self._capfd.readouterr()
        assert "person-" not in err
        assert "Traceback" not in err
        return code, out, err

    def run(self, *words: object) -> tuple[int, str, str]:
        return self.shoal("run", "job.toml", "-i", "in.csv", "-o", "out.csv", *words)


@pytest.fixture
def place(tmp_path, monkeypatch, capfd):
    return Place(tmp_path, monkeypatch, capfd)


# -- nothing is published --------------------------------------------------------------------------


def test_too_few_people_for_k(place):
    write_job(place.folder, policy="k = 50\ndelay = { rows = 20 }", run="")
    code, out, err = place.run()
    assert (code, out) == (3, "")
    assert "0 published, 60 suppressed" in err
    assert "suppression: 60 rows, 100.0 % of those decided; 40 found no group that keeps" in err
    assert err.splitlines()[-1].startswith(
        "shoal: nothing was published: 60 of 60 rows were suppressed, since no group of them keeps "
        "k = 50 within 20 rows. Only "
    )
    assert ": k can be at most " in err


def test_a_delay_that_is_too_short_for_k(place):
    write_job(place.folder, policy="k = 12\ndelay = { rows = 5 }", run="")
    code, _, err = place.run("-q")
    assert code == 3
    assert (
        "came within 5 rows: with this delay k can be at most 6, and k = 12 needs a delay " in err
    )
    needed = int(err.rpartition("at least ")[2].partition(" ")[0])
    # What is said to be needed is enough here, and less isn't.
    for rows, expected in ((needed, 0), (needed - 1, 3)):
        write_job(place.folder, policy=f"k = 12\ndelay = {{ rows = {rows} }}", run="")
        assert place.run("-q", "--force")[0] == expected


def test_too_few_values_for_l(place):
    rows = [row | {"illness": "flu"} for row in people(60).to_pylist()]
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    code, _, err = place.run("-q")
    assert code == 3
    assert "illness had only 1 different value: l can be at most 1 there." in err


def test_rows_that_all_are_bad(place):
    rows = [row | {"town": "atlantis"} for row in people(15).to_pylist()]
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    code, _, err = place.run()
    assert code == 3
    assert "quarantine: 15 rows, 100.0 % of those read: town has a category" in err
    assert "shoal: nothing was published: 15 of 15 rows can't be used: town has a category " in err
    assert "atlantis" not in err


def test_programs_are_told_the_reasons(place):
    write_job(place.folder, policy="k = 50\ndelay = { rows = 20 }", run="")
    rows = people(60).to_pylist()
    rows[3]["age"] = 999
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    code, out, err = place.run("--json")
    found = json.loads(out)
    assert code == 3
    assert found["quarantine"]["reasons"] == {"age is out of its range": 1}
    assert sum(found["suppression"]["reasons"].values()) == 59
    assert f"shoal: {found['problem']}\n" in err
    assert "1 of 60 rows can't be used: age is out of its range (1)." in found["problem"]
    write_job(place.folder, run="")
    code, out, _ = place.run("--json", "--force")
    assert (code, json.loads(out)["problem"]) == (0, None)


def test_programs_are_told_of_too_many_bad_rows(place):
    rows = [row | {"age": 999} for row in people(60).to_pylist()]
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    code, out, err = place.run("--json")
    assert code == 3
    assert "20 of the first 20 rows can't be used (100.0 %)" in json.loads(out)["problem"]
    assert json.loads(out)["problem"] in err


def test_an_empty_input_is_published_as_it_is(place):
    write(people(60).slice(0, 0), place.folder / "in.csv")
    code, _, err = place.run()
    assert code == 0
    assert "nothing was published" not in err


def test_a_stopped_run_of_checkpoints_says_less_but_the_truth(place):
    """After a resume it isn't known who came before."""
    run = 'checkpoint = { folder = "state", every = 1 }'
    write_job(place.folder, policy="k = 50\ndelay = { rows = 20 }", run=run)
    (place.folder / "in").mkdir()
    write(people(30), place.folder / "in" / "1.csv")
    words = ("run", "job.toml", "-i", "in", "-o", "out.csv", "-q")
    code, _, err = place.shoal(*words)
    assert (code, "k can be at most" in err) == (3, True)
    write(people(30, seed=2), place.folder / "in" / "2.csv")
    code, _, err = place.shoal(*words)
    assert code == 3
    assert "60 of 60 rows were suppressed" in err
    assert "can be at most" not in err


def test_k_of_1_is_warned_about(place):
    write_job(place.folder, policy="k = 1\ndelay = { rows = 20 }", run="")
    code, _, err = place.run()
    assert code == 0
    assert "warning: policy.k = 1 doesn't hide whose row it is" in err


@pytest.mark.parametrize("run", ["", 'checkpoint = { folder = "state", every = 1 }'])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-o", "out.csv", "--trace", "one"), "one: has an ending that stands for no known format"),
        (("-o", "one"), "one: has an ending that stands for no known format"),
        (("-o", "out.csv", "--to", "one"), "format: isn't a known format"),
    ],
)
def test_an_output_of_no_known_format_is_refused_before_anything_is_made(run, words, says, place):
    write_job(place.folder, run=run)
    before = sorted(place.folder.rglob("*"))
    code, out, err = place.shoal("run", "job.toml", "-i", "in.csv", *words)
    assert (code, out) == (2, "")
    assert says in err
    assert sorted(place.folder.rglob("*")) == before


def test_a_trace_that_cannot_be_resumed_is_refused_before_anything_is_made(place):
    write_job(place.folder, run='checkpoint = { folder = "state", every = 1 }')
    before = sorted(place.folder.rglob("*"))
    code, _, err = place.run("--trace", "trace.parquet")
    assert code == 2
    assert "--trace: trace.parquet can't be resumed after a stop" in err
    assert sorted(place.folder.rglob("*")) == before


# -- what is there stays there ---------------------------------------------------------------------


def test_an_existing_output_is_overwritten_only_by_force(place):
    trace = ("--trace", "trace.parquet")
    assert place.run("-q", *trace)[0] == 0
    before = {path: (place.folder / path).read_bytes() for path in ("out.csv", "trace.parquet")}
    code, out, err = place.run(*trace)
    assert (code, out) == (2, "")
    assert err == (
        "shoal: 2 problems:\n"
        "  - output: out.csv exists already, and would be overwritten. Choose another with -o, "
        "move it away, or overwrite it with --force.\n"
        "  - --trace: trace.parquet exists already, and would be overwritten. Choose another with "
        "--trace, move it away, or overwrite it with --force.\n"
    )
    assert before == {path: (place.folder / path).read_bytes() for path in before}
    assert place.run("-q", *trace, "--force")[0] == 0
    assert (place.folder / "out.csv").read_bytes() != b""


def test_an_existing_quarantine_is_kept_too_and_named_by_its_key(place):
    rows = people(60).to_pylist()
    rows[3]["age"] = 999
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    assert place.run("-q")[0] == 0
    quarantine = place.folder / "job.quarantine.jsonl"
    before = quarantine.read_bytes()
    code, _, err = place.shoal("run", "job.toml", "-i", "in.csv", "-o", "other.csv")
    assert code == 2
    assert "shoal: bad_rows.file: " in err
    assert f"{quarantine.name} exists already, and would be overwritten" in err
    assert quarantine.read_bytes() == before
    assert not (place.folder / "other.csv").exists()
    assert place.shoal("run", "job.toml", "-i", "in.csv", "-o", "other.csv", "--force")[0] == 0


def test_an_input_that_is_not_there_comes_before_outputs_that_are(place):
    assert place.run("-q")[0] == 0
    code, _, err = place.shoal("run", "job.toml", "-i", "inn.csv", "-o", "out.csv")
    assert (code, err) == (4, "shoal: inn.csv: can't be read: it doesn't exist. Check the path.\n")


def test_two_jobs_of_a_folder_have_two_quarantines(place):
    rows = people(60).to_pylist()
    rows[3]["age"] = 999
    write(pa.Table.from_pylist(rows), place.folder / "in.csv")
    other = place.job.rename(place.folder / "other.toml")
    write_job(place.folder, run="")
    assert place.run("-q")[0] == 0
    assert place.shoal("run", other, "-i", "in.csv", "-o", "other.csv", "-q")[0] == 0
    assert (place.folder / "job.quarantine.jsonl").exists()
    assert (place.folder / "other.quarantine.jsonl").exists()


def test_a_folder_is_overwritten_only_by_force_and_others_files_never(place):
    words = ("run", "job.toml", "-i", "in.csv", "-o", "out/", "--trace", "trace/", "-q")
    assert place.shoal(*words)[0] == 0
    parts = sorted(path.name for path in (place.folder / "out").iterdir())
    code, _, err = place.shoal(*words)
    assert code == 2
    assert "output: out/ exists already, and would be overwritten" in err
    write(people(30), place.folder / "in.csv")
    assert place.shoal(*words, "--force")[0] == 0
    now = sorted(path.name for path in (place.folder / "out").iterdir())
    assert len(now) == len(parts) == 1
    assert now != parts
    (place.folder / "out" / "notes.csv").write_text("mine\n")
    code, _, err = place.shoal(*words, "--force")
    assert code == 2
    assert "has rows already" in err
    assert (place.folder / "out" / "notes.csv").read_text() == "mine\n"


def test_an_empty_file_a_device_and_a_pipe_have_nothing_to_lose(place):
    (place.folder / "out.csv").touch()
    assert place.run("-q")[0] == 0
    for _ in range(2):
        assert place.shoal("run", "job.toml", "-i", "in.csv", "-o", "/dev/null", "-q")[0] == 0
    os.mkfifo("pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_bytes()), daemon=True)
    reader.start()
    words = ("run", "job.toml", "-i", "in.csv", "-o", "pipe", "--to", "csv", "-q")
    assert place.shoal(*words)[0] == 0
    reader.join(600)
    assert len(got[0].splitlines()) == 61


def test_a_job_with_checkpoints_resumes_and_has_no_use_for_force(place):
    write_job(place.folder, run='checkpoint = { folder = "state", every = 1 }')
    assert place.run("-q")[0] == 0
    assert place.run("-q")[0] == 0
    code, _, err = place.run("-q", "--force")
    assert code == 2
    assert "--force: can't be combined with run.checkpoint" in err


@pytest.mark.parametrize(
    ("there", "key"),
    [("out.csv", "output"), ("trace.csv", "--trace"), ("job.quarantine.jsonl", "bad_rows.file")],
)
def test_a_new_job_with_checkpoints_names_the_key_of_what_is_there(there, key, place):
    write_job(place.folder, run='checkpoint = { folder = "state", every = 1 }')
    (place.folder / there).write_text("something\n")
    code, _, err = place.run("--trace", "trace.csv")
    assert code == 2
    assert f"shoal: {key}: " in err
    assert f"{there} has rows already, and the job starts from the beginning" in err
    assert "Choose another output" not in err
    assert "rows were published" not in err


def test_a_quarantine_that_can_not_be_resumed_is_named_by_its_key(place):
    run = 'checkpoint = { folder = "state", every = 1 }'
    write_job(place.folder, run=run, bad_rows='file = "bad.parquet"')
    code, _, err = place.run()
    assert code == 2
    assert "shoal: bad_rows.file: " in err
    assert "bad.parquet can't be resumed after a stop" in err


# -- the start -------------------------------------------------------------------------------------


def test_errors_of_the_start_come_alone(place):
    for words in (("-o", "nowhere/out.csv"), ("-o", "out.csv", "--trace", "nowhere/t.parquet")):
        code, _, err = place.shoal("run", "job.toml", "-i", "in.csv", *words)
        assert code == 4
        assert "rows were published" not in err
        assert "the folder nowhere doesn't exist. Create it first." in err


def test_a_folder_that_is_missing_is_noticed_before_a_row_is_read(place):
    # Otherwise the quarantine would be there already, and refuse the next run.
    with (place.folder / "in.csv").open("a", encoding="utf-8") as file:
        file.write("not a row\n")
    for path in ("nowhere/out.csv", "nowhere/parts/"):
        code, _, err = place.shoal("run", "job.toml", "-i", "in.csv", "-o", path)
        assert code == 4
        assert f"{path}: can't be written: the folder nowhere doesn't exist" in err
        assert not list(place.folder.glob("*.jsonl"))


def test_a_folder_that_can_not_be_written_is_named(place, monkeypatch):
    (place.folder / "shut").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "shut")
    for path in ("shut/out.csv", "shut", "shut/"):
        code, _, err = place.shoal("run", "job.toml", "-i", "in.csv", "-o", path)
        assert code == 4
        folder = "shut" if path != "shut/out.csv" else place.folder / "shut"
        assert f"{path}: can't be written: the folder {folder} can't be written to" in err


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder where root can't write")
def test_a_file_that_can_not_be_made_blames_the_folder_that_is_there(place):
    code, _, err = place.shoal("run", "job.toml", "-i", "in.csv", "-o", "/proc/out.csv")
    assert code == 4
    assert "/proc/out.csv: can't be written: the folder /proc can't be written to" in err


def test_head_ends_quietly(place):
    write(people(5000), place.folder / "in.csv")
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -2', "-", *COMMAND, "run", "job.toml", "-i", "in.csv"],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        timeout=600,
    )
    assert done.stdout.splitlines()[0] == "age,town,illness,ward"
    assert len(done.stdout.splitlines()) == 2
    # The warning of the job, and nothing about a reader that is gone.
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("warning: schema.keep publishes ward unchanged")
