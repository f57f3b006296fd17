"""``shoal compare``: what it prints, writes and refuses, and its exit codes."""

from __future__ import annotations

import json
import re
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from shoal.cli.compare import command
from shoal.job import Job
from tests.world import beside, people, shoal, write, write_job


class Place:
    """A folder with a job and data, and transcripts of comparisons there."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._monkeypatch, self._capfd = folder, monkeypatch, capfd
        write_job(folder, policy="k = 2\ndelay = { rows = 30 }  # short", run="")
        write(people(60), folder / "in.csv")
        monkeypatch.chdir(folder)
        monkeypatch.setenv("SHOAL_CACHE_DIR", str(folder / "cache"))

    def compare(self, *words: object, code: int = 0) -> tuple[str, str]:
        given = ("compare", "job.toml", "-i", "in.csv", "--jobs", 1, *words)
        assert shoal(self._monkeypatch, *given) == code
        out, err = self._capfd.readouterr()
        assert "person-" not in out + err
        return out, err


@pytest.fixture
def place(tmp_path, monkeypatch, capfd):
    return Place(tmp_path, monkeypatch, capfd)


def test_a_table_for_people_and_files_for_programs(place):
    out, err = place.compare(
        "--algorithms", "castle,mondrian", "--k", "2,4", "--report", "r.html", "-o", "r.csv",
        "--write", "best.toml",
    )  # fmt: skip
    lines = out.splitlines()
    assert lines[0] == "2 of 4 runs on 60 rows, all with delay = 30 rows"
    assert lines[2].split()[:4] == ["algorithm", "k", "loss", "query"]
    assert re.match(r"\*> +castle +2 ", lines[3])
    assert re.match(r"\* +castle +4 ", lines[4])
    assert "mondrian: can't (2 runs): 'mondrian' publishes a whole table at once." in out
    assert "recommended: castle with k = 2, delay = 30 rows: that is what the job promises" in out
    assert err == "wrote r.csv\nwrote r.html\nwrote best.toml\n"
    table = pyarrow.csv.read_csv("r.csv")
    assert table["status"].to_pylist() == ["done"] * 2 + ["unsupported"] * 2
    assert table["pareto"].to_pylist() == [True, True, False, False]
    assert Path("r.html").stat().st_mode & 0o077 == 0
    html = Path("r.html").read_text()
    assert html.startswith("<!DOCTYPE html>")
    for heading in ("Recommended", "Utility against risk", "Loss over k", "Loss by attribute",
                    "Delay", "Not run"):  # fmt: skip
        assert f">{heading}</h2>" in html
    assert not re.search(r"<script|(?:src|href)=\"(?!#)", html)
    best = Path("best.toml").read_text()
    assert "delay = { rows = 30 }  # short" in best
    assert Job.load("best.toml").policy == Job.load("job.toml").policy


def test_json_and_parquet_and_results_that_are_found_again(place):
    out, err = place.compare("--algorithms", "castle", "--json", "-o", "r.parquet")
    found: dict[str, Any] = json.loads(out)
    assert err == "wrote r.parquet\n"
    assert found["recommended"]["promise"] == {"k": 2, "delay": 30}
    (run,) = found["runs"]
    assert (run["audit"], run["cached"], run["n_rows"]) == ("kept", False, 60)
    assert pyarrow.parquet.read_table("r.parquet")["loss"].to_pylist() == [run["loss"]]
    out, _ = place.compare("--algorithms", "castle", "--json", "-o", "r.json")
    assert json.loads(out)["runs"][0] == run | {"cached": True}
    assert json.loads(Path("r.json").read_text()) == json.loads(out)


def test_a_sample_is_the_first_rows_and_said(place):
    out, err = place.compare("--algorithms", "castle", "--sample", 20)
    assert out.startswith("1 of 1 runs on 20 rows")
    assert err == "20 rows are compared: the first rows of the stream; --all takes all rows\n"


def test_a_sample_of_a_table_is_drawn_and_said(place):
    job = write_job(place.folder, policy='k = 2\nwindow = "all"', run="")
    job.write_text(job.read_text().replace("castle", "mondrian"))
    out, err = place.compare("--algorithms", "mondrian", "--sample", 20)
    assert re.match(r"1 of 1 runs on (1\d|20) rows", out)
    assert re.match(
        r"\d+ rows are compared: people drawn at random, of 60 rows; --all takes all rows\n", err
    )


def test_several_seeds_are_one_line_with_its_spread(place):
    out, _ = place.compare("--algorithms", "castle", "--seeds", 3, "-o", "r.csv")
    assert out.startswith(
        "1 of 1 runs on 60 rows, each the mean of 3 seeds (± one standard deviation)"
    )
    assert re.search(r"castle +0\.\d{3} ±0\.\d{3} ", out)
    (sd,) = pyarrow.csv.read_csv("r.csv")["loss_sd"].to_pylist()
    assert sd > 0


def test_nothing_could_be_run(place):
    out, err = place.compare("--algorithms", "mondrian", "--write", "best.toml", code=3)
    assert "mondrian: can't" in out
    assert "best.toml isn't written: no run kept its promise" in err
    assert "shoal: no combination could run" in err
    assert not Path("best.toml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--algorithms", "castel"],
            "--algorithms: isn't the name of an algorithm; got 'castel'. Did",
        ),
        (
            ["--k", "two"],
            "--k: must be whole numbers above 0, with commas between them; got 'two'.",
        ),
        (
            ["--t", "0.2"],
            "policy.window: is missing: t-closeness is measured against it. Write it into [policy]",
        ),
        (["-o", "r.txt"], "--output: has an ending of no known format; got '.txt'."),
        (["--write", "sub/best.toml"], "--write: must be in the folder of the job"),
        (["--report", "town.csv", "--force"], "--report: town.csv is an input file"),
        (["-o", "in.csv", "--force"], "--output: in.csv is an input file"),
        (["--report", "sub"], "--report: sub is a folder"),
        (["--report", "there.html"], "there.html exists already, and would be overwritten"),
        (["-o", "r.json", "--report", "r.json"], "--report: names the file of another option"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_run(place, words, message):
    Path("sub").mkdir()
    Path("there.html").write_text("mine")
    out, err = place.compare(*words, code=2)
    assert out == ""
    assert message in err
    assert not Path("cache").exists()
    assert Path("there.html").read_text() == "mine"


def test_what_is_there_is_overwritten_if_asked_to(place):
    Path("best.toml").write_text("mine")
    place.compare("--algorithms", "castle", "--write", "best.toml", code=2)
    assert Path("best.toml").read_text() == "mine"
    place.compare("--algorithms", "castle", "--write", "best.toml", "--force")
    assert Job.load("best.toml").anonymizer.name == "castle"


def test_data_without_rows_and_without_a_name(place):
    Path("in.csv").write_text("person,age,town,illness,ward\n")
    _, err = place.compare(code=3)
    assert "has no rows, so nothing can be compared" in err
    assert shoal(place._monkeypatch, "compare", "job.toml") == 2


def test_a_broken_promise_is_exit_1(place, monkeypatch):
    made = command.compare_cells

    def forged(*given: Any, **options: Any) -> Any:
        found = made(*given, **options)
        for run in found.runs:
            object.__setattr__(run.figures, "audit", "broken")
        return found

    monkeypatch.setattr(command, "compare_cells", forged)
    _, err = place.compare("--algorithms", "castle", code=1)
    assert "the audit found a broken promise: castle" in err


def test_results_are_private(place):
    place.compare("--algorithms", "castle")
    (entry,) = Path("cache/shoal/compare").iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_ctrl_c_keeps_what_is_done_and_ends_with_130(place):
    write(people(3000), place.folder / "in.csv")
    entries = place.folder / "cache" / "shoal" / "compare"
    words = ("compare", "job.toml", "-i", "in.csv", "--algorithms", "castle", "--k",
             ",".join(map(str, range(2, 40))), "--jobs", 2, "--json")  # fmt: skip
    with beside(*words, cwd=place.folder) as process:
        while process.poll() is None and not (entries.exists() and [*entries.glob("*.json")]):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    found = json.loads(out)
    assert found["interrupted"]
    done = [run for run in found["runs"] if run["status"] == "done"]
    assert 1 <= len(done) < 38
    assert len([*entries.glob("*.json")]) >= len(done)
    assert b"interrupted: finished runs are cached" in err
