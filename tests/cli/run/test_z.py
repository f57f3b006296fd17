"""``shoal run`` and ``shoal audit`` on a job of z-anonymity."""

from __future__ import annotations

import json
import signal
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from tests.audit.z.world import stream
from tests.crashes.world import started, wait_until
from tests.crashes.z_world import EVENTS, PSEUDONYM, events
from tests.world import read, shoal, write

PLACES = """\
[schema]
subject = "who"
time = "at"
[schema.quasi]
cell = { grid = ["lat", "lon", 50, 5000] }
age = { range = [0, 99], step = 10 }
[policy]
z = 4
window = { rows = 12 }
[algorithm]
name = "z-anonymity"
[run]
seed = 7
"""


class Folder:
    """A job, an input and where the results go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self._monkeypatch, self.path = monkeypatch, path
        self.job, self.trace = path / "job.toml", path / "trace.parquet"
        self.input, self.output = write(events(240), path / "in.csv"), path / "out.csv"
        self.job.write_text(EVENTS)

    def run(self, *words: object) -> int:
        ends = ["-i", self.input, "-o", self.output]
        if "checkpoint" not in self.job.read_text():
            ends.append("--force")
        return shoal(self._monkeypatch, "run", self.job, *ends, *words)

    def audit(self, *, alone: bool = False) -> int:
        """The audit, by the output alone or by all that there is."""
        known = () if alone else ("--original", self.input, "--trace", self.trace)
        return shoal(self._monkeypatch, "audit", self.job, self.output, *known)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    return Folder(monkeypatch, tmp_path)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "csv.gz"])
def test_run_and_audit(folder, ending, capfd):
    folder.output = folder.path / f"out.{ending}"
    assert folder.run("--trace", folder.trace) == 0
    err = capfd.readouterr().err
    assert "values: " in err
    assert "published" in err
    assert "indistinguishable from others; z = " in err
    assert "changed" in err
    published = read(folder.output)
    assert published.schema.names == ["page", "area", "note", "at"]
    assert folder.audit() == 0, capfd.readouterr()
    out = capfd.readouterr().out
    assert "broken" not in out
    assert "unverifiable" not in out
    for private in (folder.trace, folder.path / "job.quarantine.jsonl"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o600


def test_figures_for_programs(folder, capfd):
    assert folder.run("--json", "-q") == 0
    printed = json.loads(capfd.readouterr().out)
    values = printed["values"]
    assert 0 < values["published"] < values["cells"]
    assert values["z"]["least"] == 3
    assert values["z"]["most"] > 3
    assert values["z"]["changes"] > 0
    assert 0 < values["window"]["k_anonymous"] <= 1
    assert printed["rows"]["quarantined"] > 0


def test_warnings_are_said_aloud(folder, capfd):
    folder.job.write_text(EVENTS.replace("probability = 0.8", 'count = "plain"'))
    assert folder.run() == 0
    err = capfd.readouterr().err
    assert 'warning: algorithm.count = "plain"' in err
    assert "warning: schema.keep publishes note as it is" in err
    # The audit counts as the job says.
    assert folder.run("--trace", folder.trace, "-q") == 0
    assert folder.audit() == 0, capfd.readouterr()


def test_a_grid_and_steps_from_file_to_file(folder, capfd):
    folder.job.write_text(PLACES)
    folder.input = write(pa.Table.from_pylist(stream(4, 150)), folder.path / "in.parquet")
    assert folder.run("--trace", folder.trace, "-q") == 0
    assert read(folder.output).schema.names == ["cell", "age"]
    shown = {cell for cell in read(folder.output)["cell"].to_pylist() if cell}
    assert {cell.split("/")[1] for cell in shown} == {"50", "5000"}
    assert folder.audit() == 0, capfd.readouterr()


def test_pseudonyms(folder, capfd):
    folder.job.write_text(EVENTS + PSEUDONYM)
    assert folder.run("--trace", folder.trace, "-q") == 2
    assert "would undo the pseudonyms" in capfd.readouterr().err
    assert not folder.output.exists()
    assert not folder.trace.exists()
    assert folder.run("-q") == 0
    first = read(folder.output)["pseudonym"].to_pylist()
    assert all(len(name) == 32 for name in first)
    assert b"person" not in folder.output.read_bytes()
    # Without a trace it can't be told who stands behind what.
    assert folder.audit(alone=True) == 6
    assert folder.run("--trace", folder.trace, "--undo-pseudonyms", "-q") == 0
    assert not set(first) & set(read(folder.output)["pseudonym"].to_pylist())
    capfd.readouterr()
    assert folder.audit() == 0, capfd.readouterr()
    assert "pseudonyms" in capfd.readouterr().out


def test_a_job_that_makes_no_sense_says_all_of_it(folder, capfd):
    text = EVENTS.replace("z = 3", "z = 0").replace("levels = 3", "levels = 0")
    folder.job.write_text(text.replace("time = 5", "time = -5"))
    assert folder.run() == 2
    err = capfd.readouterr().err
    for key in ("policy.z", "schema.quasi.area.levels", "publish.time"):
        assert key in err


@pytest.mark.parametrize("words", [[], ["--drain"]])
@pytest.mark.parametrize("has_checkpoints", [False, True])
def test_a_run_that_is_stopped_speaks_of_no_held_rows(folder, has_checkpoints, words):
    if has_checkpoints:
        folder.job.write_text(EVENTS + "[run]\ncheckpoint = { folder = 'state', every = 5 }\n")
    command = ["run", folder.job, "-i", folder.input, "-o", folder.output, "--follow", *words]
    with started([str(word) for word in command]) as process:
        wait_until(lambda: folder.output.exists() and folder.output.stat().st_size > 1000)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 130
    (said,) = [line for line in err.decode().splitlines() if line.startswith("interrupted: ")]
    n_rows, _, rest = said.removeprefix("interrupted: ").partition(" rows were published; ")
    assert int(n_rows) == read(folder.output).num_rows
    more = ", and the next run resumes from checkpoint " if has_checkpoints else ""
    assert rest.rstrip("0123456789") == f"z-anonymity holds no rows{more}"


def test_a_run_resumes_from_a_checkpoint_with_the_same_pseudonyms(folder, capfd):
    incoming = folder.path / "incoming"
    incoming.mkdir()
    folder.input, folder.output = incoming, folder.path / "out.jsonl"
    checkpoint = "[run]\ncheckpoint = { folder = 'state', every = 5 }\n"
    folder.job.write_text(EVENTS + PSEUDONYM.replace("25", "1000") + checkpoint)
    table = events(120)
    for i in range(0, 120, 40):
        write(table.slice(i, 40), incoming / f"part-{i:03d}.csv")
        assert folder.run("-q") == 0, capfd.readouterr()
    rows = {row["note"]: row["pseudonym"] for row in read(folder.output).to_pylist()}
    by_person: dict[str, set[str]] = {}
    for row in table.to_pylist():
        if row["note"] in rows:
            by_person.setdefault(row["who"], set()).add(rows[row["note"]])
    assert len(by_person) > 5
    # All in one period, before and after each stop.
    assert sum(map(len, by_person.values())) == len(set(rows.values()))
    assert max(map(len, by_person.values())) == 1
