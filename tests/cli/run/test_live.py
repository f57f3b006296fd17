"""``shoal run`` of jobs that take checkpoints, follow their input, and are watched."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.job import Job
from shoal.job.ends import recovery_of
from shoal.run.state.folder import CHECKPOINT, numbers_of, path_of
from tests.crashes.world import started, wait_until
from tests.world import people, read, shoal, write, write_job

STATE = "checkpoint = { folder = 'state', every = 0.1 }"


class Live:
    """A folder with a job that takes checkpoints, its input and its output."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self._monkeypatch = path, monkeypatch
        path.mkdir(exist_ok=True)
        self.table = people(200)
        self.input = write(self.table, path / "in.csv")
        self.output = path / "out.csv"
        self.job = write_job(path, run=f"seed = 7\n{STATE}")

    @property
    def words(self) -> list[str]:
        return ["run", str(self.job), "-i", str(self.input), "-o", str(self.output)]

    def run(self, *words: object) -> int:
        return shoal(self._monkeypatch, *self.words, *words)

    def add_rows(self, table: pa.Table) -> None:
        """Append rows to the input, as its writer does."""
        more = write(table, self.path / "more.csv").read_bytes()
        with self.input.open("ab") as file:
            file.write(more.partition(b"\n")[2])


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    return Live(tmp_path, monkeypatch)


def test_a_finished_job_resumes_when_its_file_has_grown(live, capfd):
    assert live.run("-q") == 0
    n_first = len(read(live.output))
    assert live.run() == 0
    assert "200 rows in" in capfd.readouterr().err
    assert len(read(live.output)) == n_first
    live.add_rows(people(100, seed=2))
    assert live.run("--json") == 0
    figures = json.loads(capfd.readouterr().out)
    assert figures["rows"]["in"] == 300
    assert figures["rows"]["published"] == len(read(live.output)) > n_first


def test_a_stop_in_good_order_ends_with_0_and_the_next_run_resumes(live):
    with started([*live.words, "--follow"]) as process:
        wait_until(lambda: live.output.exists() and live.output.stat().st_size > 1000)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0
    assert b"are held in checkpoint" in err
    assert b"the next run resumes with them" in err
    n_held = len(live.table) - len(read(live.output))
    assert n_held > 0
    assert live.run("-q") == 0
    assert len(read(live.output)) > len(live.table) - n_held


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_job_moves_with_its_files_and_its_state(live, tmp_path, is_killed):
    """Restored from a backup, or mounted elsewhere: the job file is the same, all paths differ."""
    whole = Live(tmp_path / "whole", live._monkeypatch)
    assert whole.run("-q") == 0
    with started([*live.words, "--follow"]) as process:
        wait_until(lambda: live.output.exists() and live.output.stat().st_size > 1000)
        process.send_signal(signal.SIGKILL if is_killed else signal.SIGTERM)
        process.wait(600)
    moved = Live.__new__(Live)
    moved.__dict__ |= live.__dict__
    moved.path = tmp_path / "elsewhere" / "deeper"
    moved.path.mkdir(parents=True)
    for name in ("job.toml", "town.csv", "in.csv", "out.csv", "state"):
        (live.path / name).rename(moved.path / name)
    moved.job, moved.input, moved.output = (
        moved.path / path.name for path in (live.job, live.input, live.output)
    )
    assert moved.run("-q") == 0
    assert moved.output.read_bytes() == whole.output.read_bytes()


def test_a_job_that_was_followed_and_killed_resumes_without(live):
    live.job = write_job(live.path, run=f"seed = 7\n{STATE.replace('0.1', '1000')}")
    whole = Live(live.path / "whole", live._monkeypatch)
    assert whole.run("-q") == 0
    with started([*live.words, "--follow"]) as process:
        wait_until(lambda: live.output.exists() and live.output.stat().st_size > 1000)
        process.kill()
        process.wait(600)
    assert live.run("-q") == 0
    assert live.output.read_bytes() == whole.output.read_bytes()


def test_a_file_of_another_content_is_refused_after_a_move(live, tmp_path, capfd):
    assert live.run("-q") == 0
    there = tmp_path / "elsewhere"
    there.mkdir()
    for name in ("job.toml", "town.csv", "out.csv", "state"):
        (live.path / name).rename(there / name)
    live.job, live.output = there / "job.toml", there / "out.csv"
    live.input = write(people(200, seed=3), there / "in.csv")
    assert live.run("-q") == 5
    assert "isn't the file that was read before the stop" in capfd.readouterr().err


def test_a_stop_before_anything_came_is_resumed_from_as_well(live):
    incoming = live.path / "incoming"
    incoming.mkdir()
    rows, live.input = live.input, incoming
    for _ in range(2):
        with started([*live.words, "--follow"]) as process:
            wait_until(lambda: path_of(live.path / "state", CHECKPOINT, 0).exists())
            process.send_signal(signal.SIGTERM)
            process.wait(600)
    rows.rename(incoming / "1.csv")
    assert live.run("-q") == 0
    assert len(read(live.output)) > 150


def test_interrupted_by_hand_it_ends_with_130_and_keeps_all(live):
    with started([*live.words, "--follow", "--drain"]) as process:
        wait_until(lambda: live.output.exists() and live.output.stat().st_size > 1000)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 130
    assert b" 0 are held in checkpoint" in err


def test_a_second_process_of_the_job_is_refused(live, capfd):
    with started([*live.words, "--follow"]) as process:
        wait_until(lambda: (live.path / "state" / "lock").exists() and live.output.exists())
        assert live.run() == 4
        err = capfd.readouterr().err
        assert f"another process (pid {process.pid})" in err
        assert process.poll() is None


def test_a_changed_job_is_refused_and_named(live, capfd):
    assert live.run("-q") == 0
    before = live.output.read_bytes()
    write_job(live.path, policy="k = 4\ndelay = { rows = 20 }", run=f"seed = 7\n{STATE}")
    assert live.run() == 5
    assert "--accept-weaker" in capfd.readouterr().err
    write_job(live.path, run=f"seed = 7\n{STATE}")
    (live.path / "town.csv").write_text(
        "berlin;east;all\ndresden;east;all\nbonn;west;all\nkoeln;west;all\n"
    )
    assert live.run() == 5
    assert "[schema]" in capfd.readouterr().err
    assert live.output.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "section"),
    [
        (["-i", "other.csv"], "[input]"),
        (["-o", "other.csv"], "[output]"),
        (["--trace", "trace/"], "--trace is not as it was"),
    ],
)
def test_another_input_output_or_trace_is_another_job(live, capfd, monkeypatch, change, section):
    monkeypatch.chdir(live.path)
    assert live.run("-q") == 0
    (live.path / "other.csv").write_bytes(live.input.read_bytes())
    assert live.run(*change) == 5
    err = capfd.readouterr().err
    assert section in err
    is_trace = section.startswith("--trace")
    assert ("compared by format and by their place" in err) == (not is_trace)
    assert ("All runs of a job have a trace, or none" in err) == is_trace


def test_an_output_with_rows_is_not_started_again(live, capfd):
    live.output.write_text("of somebody else\n")
    assert live.run() == 2
    assert "has rows already" in capfd.readouterr().err
    assert live.output.read_text() == "of somebody else\n"


@pytest.mark.parametrize("name", ["out.parquet", "out.csv.gz", "-"])
def test_an_output_that_cant_be_resumed_is_refused_before_anything_is_read(live, capfd, name):
    live.output = name if name == "-" else live.path / name
    assert live.run() == 2
    assert "can't be resumed after a stop" in capfd.readouterr().err


def test_a_pipe_cant_be_read_again(live, capfd):
    live.input = "-"
    assert live.run() == 2
    assert "input: is a pipe" in capfd.readouterr().err


def test_a_topic_needs_checkpoints(live, capfd, monkeypatch):
    job = live.job.read_text().replace(STATE, "")
    live.job.write_text(job + "[input]\nkafka = '127.0.0.1:1'\ntopic = 'people'\n")
    assert shoal(monkeypatch, "run", live.job, "-o", live.output) == 2
    err = capfd.readouterr().err
    assert "input: is a topic, and without checkpoints" in err
    assert "run.checkpoint" in err


@pytest.mark.parametrize("flag", [["--follow"], ["--from", "csv"]])
def test_flags_of_files_dont_go_with_a_topic(live, capfd, monkeypatch, flag):
    with live.job.open("a") as job:
        job.write("[input]\nkafka = '127.0.0.1:1'\ntopic = 'people'\n")
    assert shoal(monkeypatch, "run", live.job, "-o", live.output, *flag) == 2
    assert "can't be combined with a topic" in capfd.readouterr().err


def test_falling_back_needs_checkpoints(live, capfd):
    live.job.write_text(live.job.read_text().replace(STATE, ""))
    assert live.run("--fall-back") == 2
    assert "the job has none" in capfd.readouterr().err


def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_can_be_used(live, capfd):
    assert live.run("-q") == 0
    whole = live.output.read_bytes()
    state = live.path / "state"
    newest = path_of(state, CHECKPOINT, numbers_of(state, CHECKPOINT)[-1])
    data = newest.read_bytes()
    newest.write_bytes(data[: len(data) // 2])
    assert live.run() == 5
    assert "--fall-back" in capfd.readouterr().err
    assert live.run("-q", "--fall-back") == 0
    assert live.output.read_bytes() == whole


def test_sealed_checkpoints_show_nothing_and_need_their_key(live, capfd, monkeypatch):
    sealed = "checkpoint = { folder = 'state', every = 0.1, seal = 'env:SHOAL_TEST_KEY' }"
    write_job(live.path, run=f"seed = 7\n{sealed}")
    monkeypatch.setenv("SHOAL_TEST_KEY", "ab" * 32)
    assert live.run("-q") == 0
    for file in (live.path / "state").iterdir():
        data = file.read_bytes()
        assert b"person-" not in data
        assert b"scurvy" not in data
    monkeypatch.setenv("SHOAL_TEST_KEY", "cd" * 32)
    assert live.run() == 5
    assert "another key" in capfd.readouterr().err
    monkeypatch.delenv("SHOAL_TEST_KEY")
    assert live.run() == 5
    monkeypatch.setenv("SHOAL_TEST_KEY", "ab" * 32)
    assert live.run("-q") == 0


def test_a_key_may_be_in_a_file_beside_the_job(live, monkeypatch, tmp_path_factory):
    (live.path / "key").write_text("ab" * 32)
    sealed = "checkpoint = { folder = 'state', every = 0.1, seal = 'file:key' }"
    write_job(live.path, run=f"seed = 7\n{sealed}")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert live.run("-q") == 0
    assert live.run("-q") == 0


def test_without_checkpoints_a_folder_gets_whole_files_too(live):
    live.job.write_text(live.job.read_text().replace(STATE, ""))
    live.output = f"{live.path}/out/"
    assert live.run("-q", "--to", "parquet") == 0
    [part] = Path(live.output).iterdir()
    assert part.name.startswith("rows-000000000000-")
    assert len(read(part)) > 150


def test_a_folder_can_be_followed_without_checkpoints(live):
    live.job.write_text(live.job.read_text().replace(STATE, ""))
    incoming = live.path / "incoming"
    incoming.mkdir()
    live.input.rename(incoming / "1.csv")
    live.input = incoming
    with started([*live.words, "--follow", "--drain"]) as process:
        wait_until(lambda: live.output.exists() and live.output.stat().st_size > 1000)
        write(people(100, seed=2), incoming / ".2.csv", "csv").rename(incoming / "2.csv")
        before = live.output.stat().st_size
        wait_until(lambda: live.output.stat().st_size > before)
        process.send_signal(signal.SIGTERM)
        process.wait(600)
        # Nothing was kept to go on from, so it isn't 0; but what was held is out.
        assert process.returncode == 143
    assert len(read(live.output)) > 290


def test_input_and_output_may_stand_in_the_job(live, monkeypatch):
    with live.job.open("a") as job:
        job.write(
            "[input]\npath = 'in.csv'\n[output]\npath = 'out/'\nformat = 'jsonl'\nrows = 50\n"
        )
    assert shoal(monkeypatch, "run", live.job, "-q") == 0
    names = sorted(path.name for path in (live.path / "out").iterdir())
    assert names[0] == "rows-000000000000-000000000050.jsonl"
    assert len(names) >= 4


def ask(url: str) -> tuple[int, str]:
    """The answer to a request, whatever it is."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_run_with_metrics_reports_its_health(live):
    write_job(live.path, run="checkpoint = { folder = 'state', every = 100 }")
    with started([*live.words, "--follow", "--metrics", "127.0.0.1:0"]) as process:
        assert process.stderr is not None
        # What the job warns of comes first.
        said = next(line.decode() for line in process.stderr if b"/metrics" in line)
        address = said.split()[-1].removesuffix("/metrics")
        wait_until(lambda: ask(f"{address}/health")[0] == 200)
        assert json.loads(ask(f"{address}/health")[1])["status"] == "ok"
        status, metrics = ask(f"{address}/metrics")
        assert status == 200
        assert "shoal_up" in metrics
        for canary in ("person-", "scurvy", "illness", "berlin"):
            assert canary not in metrics
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0


def test_events_of_a_live_run_are_logged(live, capfd):
    assert live.run("--log", "json") == 0
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert {"warning", "checkpoint saved", "run ended"} <= {line["event"] for line in events}
    assert events[-1]["rows_in"] == 200
    assert live.run("--log", "text") == 0
    assert "resumed from a checkpoint (number" in capfd.readouterr().err


def test_a_wrong_kind_of_log_is_refused(live, capfd):
    assert live.run("--log", "xml") == 2
    assert "--log: must be text or json" in capfd.readouterr().err


def test_state_files_are_readable_by_the_owner_only(live):
    assert live.run("-q", "--trace", f"{live.path}/trace/") == 0
    for folder in (live.path / "state", live.path / "trace"):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("output", ["out.csv", "out.jsonl", "out/"])
def test_a_job_may_be_started_before_there_is_a_row(live, output, capfd):
    whole = live.input.read_bytes()
    live.input.write_bytes(whole.partition(b"\n")[0] + b"\n")
    live.output = f"{live.path}/{output}"
    assert live.run("-q") == 0
    live.input.write_bytes(whole)
    assert live.run("--json") == 0
    assert json.loads(capfd.readouterr().out)["rows"]["in"] == len(live.table)


def test_bad_rows_that_were_set_apart_must_be_where_they_were(live, capfd):
    with live.input.open("ab") as file:
        file.write(b"a row of too few fields\n")
    assert live.run("-q") == 0
    write_job(live.path, run=f"seed = 7\n{STATE}", bad_rows="file = 'other.jsonl'")
    before = sorted(live.path.rglob("*"))
    assert live.run("-q") == 5
    said = "bad_rows.file was ../job.quarantine.jsonl (plain), and is now ../other.jsonl (plain)"
    assert said in capfd.readouterr().err
    assert sorted(live.path.rglob("*")) == before
    write_job(live.path, run=f"seed = 7\n{STATE}")
    assert live.run("-q") == 0


@pytest.mark.parametrize("name", ["output", "trace", "quarantine"])
def test_an_output_that_was_edited_is_named(live, name, capfd):
    with live.input.open("ab") as file:
        file.write(b"a row of too few fields\n")
    words = ("-q", "--trace", live.path / "trace.jsonl")
    assert live.run(*words) == 0
    path = {
        "output": live.output,
        "trace": live.path / "trace.jsonl",
        "quarantine": live.path / "job.quarantine.jsonl",
    }[name]
    with path.open("ab") as file:
        file.write(b"one line more\n")
    assert live.run(*words) == 5
    err = capfd.readouterr().err
    assert f"{path}: has rows that neither the checkpoint nor the journal accounts for" in err
    assert "an edit has added them, or files of the checkpoint folder" in err
    assert "files of the checkpoint folder are missing or out of date" in err


def test_a_topic_under_another_name_of_the_job_is_another_job(tmp_path):
    def identity(name: str, output: str) -> dict[str, str]:
        path = write_job(tmp_path, run=f"name = '{name}'\n{STATE}")
        with path.open("a") as file:
            file.write(f"[output]\n{output}\n")
        job = Job.load(path)
        found = recovery_of(job, job.input, job.output, None)
        assert found is not None
        return dict(found.job)

    topic = "kafka = '127.0.0.1:1'\ntopic = 'public'"
    assert identity("a", topic) != identity("b", topic)
    assert identity("a", "path = 'out/'") == identity("b", "path = 'out/'")


@pytest.mark.parametrize(
    ("private", "key"),
    [
        ({"bad_rows": "file = 'out/bad.jsonl'"}, "bad_rows.file"),
        ({"run": STATE.replace("state", "out/state")}, "run.checkpoint.folder"),
    ],
)
def test_what_isnt_published_has_no_place_in_the_folder_of_the_output(live, capfd, private, key):
    live.output = f"{live.path}/out/"
    write_job(live.path, **({"run": STATE} | private))
    assert live.run("-q") == 2
    assert f"{key}: lies in the folder of the output" in capfd.readouterr().err
    write_job(live.path, run=STATE)
    assert live.run("-q", "--trace", f"{live.path}/out/trace/") == 2
    assert not (live.path / "out").exists()
