"""``shoal run`` on files: formats, looks of the output, refusals, exit codes."""

from __future__ import annotations

import contextlib
import json
import re
import stat
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from shoal.cli.run import command as run_module
from shoal.cli.run.monitor import WAITING, Monitor
from shoal.cli.terminal import Progress
from shoal.io import formats
from shoal.metrics import Summary
from tests.world import ID_AND_AGE, POLICY, SCHEMA, people, read, shoal, with_gaps, write, write_job

Monkey = pytest.MonkeyPatch
PUBLIC = ["age", "town", "illness", "ward"]


class Folder:
    """A job, an input and where the results go."""

    def __init__(self, monkeypatch: Monkey, path: Path) -> None:
        self._monkeypatch, self.path = monkeypatch, path
        self.input, self.output = path / "in.csv", path / "out.csv"
        self.trace = path / "trace.parquet"
        self.job = write_job(path)

    def run(self, *options: object, table: pa.Table | None = None) -> int:
        write(people(120) if table is None else table, self.input)
        return shoal(
            self._monkeypatch, "run", self.job, "-i", self.input, "-o", self.output,
            "--trace", self.trace, "--force", *options,
        )  # fmt: skip

    def audit(self, *options: object) -> int:
        return shoal(
            self._monkeypatch, "audit", self.job, self.output, "--original", self.input,
            "--trace", self.trace, *options,
        )  # fmt: skip


@pytest.fixture
def folder(monkeypatch, tmp_path):
    return Folder(monkeypatch, tmp_path)


ENDINGS = [*formats.names(), "csv.gz", "jsonl.zst", "tsv.bz2"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_in_and_out(ending, folder, capfd):
    folder.input = folder.path / f"in.{ending}"
    folder.output = folder.path / f"out.{ending}"
    assert folder.run("-q") == 0
    published = read(folder.output)
    assert published.schema.names == PUBLIC
    assert published.num_rows == 120
    assert sorted(published["illness"].to_pylist()) == sorted(people(120)["illness"].to_pylist())
    assert folder.audit() == 0, capfd.readouterr()


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "arrow", "csv.gz"])
def test_formats_can_be_given(ending, folder, monkeypatch):
    data = write(people(60), folder.path / "data", ending)
    out = folder.path / "result"
    words = ("run", folder.job, "-i", data, "-o", out, "--from", ending, "--to", ending, "-q")
    assert shoal(monkeypatch, *words) == 0
    assert read(out, ending).num_rows == 60
    assert shoal(monkeypatch, "audit", folder.job, out, "--from", ending) == 6


def test_a_format_that_is_not_known(folder, capfd):
    assert folder.run("--to", "parket") == 2
    assert "Did you mean 'parquet'?" in capfd.readouterr().err


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("every", [{"age": 3, "town": 4}, {"age": 1, "town": 2}])
def test_missing_values_in_every_format(every, ending, folder, capfd):
    """In the second case nobody has an age: such a column has no type in a file of text."""
    folder.input = folder.path / f"in.{ending}"
    folder.output = folder.path / f"out.{ending}"
    table = with_gaps(people(120), every)
    for missing in ("maybe", "extended"):
        write_job(folder.path, policy=f"{POLICY}\nmissing = '{missing}'")
        assert folder.run("-q", table=table) == 0, capfd.readouterr()
        assert read(folder.output).num_rows == 120
        assert folder.audit() == 0, capfd.readouterr()


@pytest.mark.parametrize("numeric", ["range", "bounds", "midpoint"])
def test_missing_values_however_numbers_look(numeric, folder, capfd):
    write_job(folder.path, policy=f"{POLICY}\nmissing = 'maybe'", publish=f"numeric = '{numeric}'")
    assert folder.run(table=with_gaps(people(120))) == 0
    assert "warning: policy.missing" in capfd.readouterr().err
    text = folder.output.read_text()
    assert "null" not in text.lower()
    assert "nan" not in text.lower()
    assert "inf" not in text.lower()
    assert folder.audit() == 0, capfd.readouterr()


def test_rows_that_lack_something_are_bad_unless_the_job_says_what_it_means(folder, capfd):
    write_job(folder.path, bad_rows="limit = 0.5")
    assert folder.run(table=with_gaps(people(120))) == 0
    assert " 60 quarantined, 0 held" in capfd.readouterr().err
    assert folder.audit() == 0, capfd.readouterr()


@pytest.mark.parametrize("missing", ["maybe", "extended"])
def test_a_key_that_json_lines_leave_out_is_a_gap(missing, folder, capfd, monkeypatch):
    rows = with_gaps(people(120)).to_pylist()
    assert rows[0]["town"] is None
    kept = [{name: v for name, v in row.items() if v is not None} for row in rows]
    write_job(folder.path, policy=f"{POLICY}\nmissing = '{missing}'")
    outputs = []
    for name, table in (("null", rows), ("left-out", kept)):
        source = folder.path / f"{name}.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in table))
        words = ("run", folder.job, "-i", source, "-o", folder.output, "--force")
        assert shoal(monkeypatch, *words) == 0
        assert "120 rows in, 120 published" in capfd.readouterr().err
        outputs.append(folder.output.read_bytes())
    assert outputs[0] == outputs[1]


def test_a_file_and_a_different_format_give_the_same_groups(folder):
    outputs = []
    for ending in ("csv", "parquet"):
        folder.input = folder.path / f"in.{ending}"
        assert folder.run("-q") == 0
        outputs.append(folder.output.read_bytes())
    assert outputs[0] == outputs[1]


def test_the_summary_is_on_stderr_and_stdout_is_empty(folder, capfd):
    assert folder.run() == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "120 rows in, 120 published, 0 suppressed, 0 quarantined, 0 held" in err
    assert "warning: run.seed" in err
    assert "person-" not in err
    assert folder.run("--quiet") == 0
    assert capfd.readouterr() == ("", "")


def test_json_is_on_stdout_unless_the_rows_are(folder, capfd, monkeypatch):
    assert folder.run("--json") == 0
    figures = json.loads(capfd.readouterr().out)
    assert figures["rows"] == {
        "in": 120, "published": 120, "suppressed": 0, "quarantined": 0, "held": 0, "late": 0,
    }  # fmt: skip
    assert figures["interrupted"] is False
    words = ("run", folder.job, "-i", folder.input, "--json", "--to", "jsonl")
    assert shoal(monkeypatch, *words) == 0
    out, err = capfd.readouterr()
    assert len([json.loads(line) for line in out.splitlines()]) == 120
    assert json.loads(err.splitlines()[-1])["rows"]["published"] == 120


def test_the_trace_is_private(folder):
    assert folder.run("-q") == 0
    assert stat.S_IMODE(folder.trace.stat().st_mode) == 0o600


# -- what the output looks like --------------------------------------------------------------------


def test_bounds_are_two_columns(folder):
    folder.job = write_job(folder.path, publish='numeric = "bounds"')
    assert folder.run("-q") == 0
    published = read(folder.output)
    assert published.schema.names == ["age_min", "age_max", *PUBLIC[1:]]
    assert all(pa.compute.less_equal(published["age_min"], published["age_max"]).to_pylist())
    assert folder.audit() == 0


def test_midpoints_are_numbers(folder):
    folder.job = write_job(folder.path, publish='numeric = "midpoint"')
    folder.output = folder.path / "out.parquet"
    assert folder.run("-q") == 0
    assert read(folder.output)["age"].type == pa.float64()
    # A midpoint doesn't say how wide its box is, so whether rows are covered can't be told.
    assert folder.audit() in (0, 6)


ROOT = {"age": "[0, 120]", "town": "any", "illness": None, "ward": None}


def test_suppressed_rows_are_dropped_or_at_the_root(folder):
    table = people(60, n_people=2)
    assert folder.run("-q", table=table) == 3
    assert folder.output.read_text().splitlines() == [",".join(PUBLIC)]
    assert folder.audit() == 0
    folder.job = write_job(folder.path, publish='suppressed = "root"')
    folder.output = folder.path / "out.jsonl"
    assert folder.run("-q", table=table) == 3
    lines = [json.loads(line) for line in folder.output.read_text().splitlines()]
    assert lines == [ROOT] * 60
    assert folder.audit() == 0


def test_some_suppressed_rows_at_the_root_among_others(folder):
    # The oldest of all, and ill with what nobody else has: alone until its time is up.
    table = people(60)
    policy = "k = 3\nl = { illness = 4 }\ndelay = { rows = 4 }"
    folder.job = write_job(folder.path, policy=policy, publish='suppressed = "root"')
    folder.output = folder.path / "out.jsonl"
    assert folder.run("-q", table=table) == 0
    lines = [json.loads(line) for line in folder.output.read_text().splitlines()]
    assert 0 < lines.count(ROOT) < 60
    assert len(lines) == 60
    assert folder.audit() == 0


@pytest.mark.parametrize(
    "options",
    [
        {"publish": 'order = "shuffled"'},
        {"publish": 'order = "arrival"'},
        {"publish": 'order = "arrival"\nsuppressed = "root"', "policy": "k = 9\ndelay.rows = 9"},
        {"algorithm": 'loss = "lm"'},
        {"algorithm": 'reuse = "best"\nclusters = 2\nkept = 0'},
        {"schema": SCHEMA.replace("step = 1", "step = 5, weight = 0.5")},
        {"schema": SCHEMA.replace('subject = "person"', "subject = { each_row = true }")},
        {"schema": SCHEMA.replace('"person"', '"person"\ntime = "at"'),
         "policy": "k = 3\ndelay = { seconds = 8 }"},
        {"policy": "k = 3\nl = { recursive = 2, c = 3 }\ndelay = { rows = 30 }"},
        {"policy": "k = 2\nl = { entropy = 2 }\ndelay = { rows = 30, seconds = 60 }"},
    ],
    ids=lambda options: " ".join(options),
)  # fmt: skip
def test_the_audit_finds_every_promise_kept(options, folder, capfd):
    folder.job = write_job(folder.path, **options)
    assert folder.run("-q") == 0
    assert folder.audit() == 0, capfd.readouterr().out


def test_a_run_and_its_audit_say_that_subjects_are_rows(folder, capfd):
    schema = SCHEMA.replace('subject = "person"', "subject = { each_row = true }")
    folder.job = write_job(folder.path, schema=schema)
    assert folder.run() == 0
    err = capfd.readouterr().err
    assert "warning: each row counts as another person" in err
    assert "subjects are counted by rows" in err
    folder.output.unlink()
    folder.trace.unlink()
    assert folder.run("--json") == 0
    assert json.loads(capfd.readouterr().out)["each_row"] is True
    assert folder.audit() == 0
    assert "note: subjects are counted by rows" in capfd.readouterr().out
    assert folder.audit("--json") == 0
    assert json.loads(capfd.readouterr().out)["each_row"] is True


def test_an_input_without_rows(folder, capfd):
    assert folder.run(table=people(1).slice(0, 0)) == 0
    assert "0 rows in" in capfd.readouterr().err
    assert folder.output.read_text() == ",".join(PUBLIC) + "\n"
    assert folder.audit() == 0


# -- refusals and failures -------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_an_input_without_a_byte_ends_with_4(ending, folder, capfd, monkeypatch):
    empty = folder.path / f"empty.{ending}"
    empty.write_bytes(b"")
    assert shoal(monkeypatch, "run", folder.job, "-i", empty, "-o", folder.output) == 4
    assert f"empty.{ending}: can't be read: it has no" in capfd.readouterr().err


def test_input_and_output_must_be_different_files(folder, capfd, monkeypatch):
    write(people(10), folder.input)
    before = folder.input.read_bytes()
    wrong = [
        ("-i", folder.input, "-o", folder.input),
        ("-i", folder.input, "-o", folder.job),
        ("-i", folder.input, "-o", folder.output, "--trace", folder.path / "." / "in.csv"),
        ("-i", folder.input, "-o", folder.output, "--trace", folder.output),
        ("-i", folder.input, "-o", folder.path / "job.quarantine.jsonl"),
    ]
    for words in wrong:
        assert shoal(monkeypatch, "run", folder.job, *words) == 2
        assert "is the same file as" in capfd.readouterr().err
    assert folder.input.read_bytes() == before


def test_a_column_that_the_input_lacks(folder, capfd):
    assert folder.run(table=people(10).rename_columns(
        ["person", "agee", "town", "illness", "ward", "at"]
    )) == 2  # fmt: skip
    assert "column age: isn't in the input. Did you mean 'agee'?" in capfd.readouterr().err
    assert not folder.output.exists()


@pytest.mark.parametrize("what", ["input", "output", "trace"])
def test_files_that_can_not_be_reached_end_with_4(what, folder, capfd, monkeypatch):
    write(people(10), folder.input)
    paths = {"input": folder.input, "output": folder.output, "trace": folder.trace}
    paths[what] = folder.path / "nowhere" / paths[what].name
    words = ("-i", paths["input"], "-o", paths["output"], "--trace", paths["trace"])
    assert shoal(monkeypatch, "run", folder.job, *words) == 4
    err = capfd.readouterr().err
    assert str(paths[what]) in err
    assert "exist" in err
    assert "Traceback" not in err


def test_a_broken_file_ends_with_4_and_what_came_before_is_published(folder, capfd, monkeypatch):
    folder.input = folder.path / "in.arrow"
    write(pa.Table.from_batches(people(300).to_batches(max_chunksize=30)), folder.input)
    folder.input.write_bytes(folder.input.read_bytes()[:-3000])
    words = ("run", folder.job, "-i", folder.input, "-o", folder.output, "--trace", folder.trace)
    assert shoal(monkeypatch, *words) == 4
    err = capfd.readouterr().err
    assert "it isn't a whole Arrow stream or file" in err
    counts = re.search(r"(\d+) rows were published; (\d+) are still held", err)
    assert counts is not None, err
    n_published, n_held = map(int, counts.groups())
    assert read(folder.output).num_rows == n_published > 0
    assert read(folder.trace)["outcome"].to_pylist().count("held") == n_held > 0
    assert "person-" not in err


def test_a_terminal_is_no_input(folder, capfd, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert shoal(monkeypatch, "run", folder.job) == 2
    assert "input: is the terminal" in capfd.readouterr().err


def test_a_bug_ends_with_70_and_shows_no_value(folder, capfd, monkeypatch):
    def broken(*args: object, **options: object) -> None:
        raise ValueError("CANARY")

    monkeypatch.setattr(run_module, "resolve_input", broken)
    assert folder.run() == 70
    err = capfd.readouterr().err
    assert "CANARY" not in err
    assert "ValueError in test_command.py, line" in err
    assert "bug" in err
    monkeypatch.setenv("SHOAL_DEBUG", "1")
    assert folder.run() == 70
    assert "ValueError: CANARY" in capfd.readouterr().err


@pytest.mark.parametrize(
    "place", ["shoal.arrow.codec.Codec.encode", "shoal.run.writer.Writer._write"]
)
def test_a_bug_in_a_thread_ends_with_70_too(place, folder, capfd, monkeypatch):
    def broken(*args: object, **options: object) -> None:
        raise ValueError("CANARY")

    monkeypatch.setattr(place, broken)
    assert folder.run() == 70
    err = capfd.readouterr().err
    assert "CANARY" not in err
    assert "ValueError in test_command.py" in err


TABLE_JOB = """
[schema]
subject = "person"
[schema.quasi]
age = { range = [0, 100] }
[schema.sensitive]
pay = { range = [0, 9] }
[policy]
k = 2
t = T
window = "all"
[algorithm]
name = "sabre-ak"
"""


@pytest.mark.parametrize(
    ("option", "said"), [("--drain", "a part of it"), ("--follow", "has no end")]
)
def test_a_table_without_an_end_is_refused(option, said, folder, capfd):
    folder.job.write_text(TABLE_JOB.replace("T", "0.5"))
    assert folder.run(option) == 2
    assert said in capfd.readouterr().err


def test_a_t_that_promises_nothing_is_said_aloud(folder, capfd):
    folder.job.write_text(TABLE_JOB.replace("T", "20"))
    table = pa.table({"person": [1, 2, 3], "age": [1, 2, 3], "pay": [1, 1, 2]})
    assert folder.run(table=table) == 0
    assert "policy.t promises nothing" in capfd.readouterr().err


def test_a_job_with_quasi_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path, schema=ID_AND_AGE, policy="k = 2\ndelay = { rows = 9 }")
    rows = pa.table({"id": [str(i) for i in range(40)], "age": [20 + i % 7 for i in range(40)]})
    data = write(rows, tmp_path / "in.csv")
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", tmp_path / "out.csv") == 0
    assert read(tmp_path / "out.csv").num_rows == 40


@pytest.mark.parametrize("private", ["trace", "quarantine"])
def test_private_files_never_go_to_stdout(
    private: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    job = write_job(tmp_path, bad_rows='file = "-"' if private == "quarantine" else "")
    data = write(people(50), tmp_path / "in.csv")
    words = ["--trace", "-"] if private == "trace" else []
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", tmp_path / "out.csv", *words) == 2
    assert "holds personal data" in capfd.readouterr().err


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary_view(), pa.string_view()])
def test_people_known_by_bytes_or_by_views_of_text_are_counted_and_audited(folder, kind, capfd):
    folder.input = folder.path / "in.parquet"
    table = people(120)
    names = [name.encode() for name in table["person"].to_pylist()]
    column = pa.array(names, pa.binary()).cast(kind)
    table = table.set_column(table.schema.names.index("person"), "person", column)
    assert folder.run("-q", table=table) == 0
    assert folder.audit() == 0, capfd.readouterr()


@pytest.mark.parametrize(
    ("is_compiling", "quiet", "said"),
    [(True, False, f"{run_module.STOPPING}\n"), (True, True, ""), (False, False, "")],
)
def test_who_stops_a_run_while_kernels_are_compiled_is_told_to_wait(
    is_compiling: bool, quiet: bool, said: str, capfd
) -> None:
    stopped: list[str] = []
    watch: Any = SimpleNamespace(is_compiling=is_compiling)
    stop = run_module.stop_and_say(
        lambda: stopped.append("stopped"), watch, Progress(quiet=True), quiet=quiet
    )
    before = threading.active_count()
    stop()
    while threading.active_count() > before:
        time.sleep(0.01)
    assert stopped == ["stopped"]
    assert capfd.readouterr().err == said


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("is_stopped", [False, True])
def test_who_stops_a_run_that_waits_for_its_output_is_told_so_once(
    quiet: bool, is_stopped: bool, capfd
) -> None:
    job: Any = None
    run: Any = SimpleNamespace(ending="stopping" if is_stopped else None, blocked_seconds=30.0)
    with contextlib.ExitStack() as stack:
        monitor = Monitor(job, Progress(quiet=True), None, stack, quiet=quiet)
        monitor.observe(run)
        monitor.show(Summary())
        # What it has waited before the stop doesn't count.
        assert capfd.readouterr().err == ""
        for _ in range(20):
            run.blocked_seconds += 0.1
            monitor.show(Summary())
    assert capfd.readouterr().err == (f"{WAITING}\n" if is_stopped and not quiet else "")
