"""``[private]``: a job whose trace and quarantine are rotated and sealed, and is killed."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.errors import CheckpointError, JobError
from shoal.job import Job
from shoal.job.auditing import audit
from shoal.job.ends import recovery_of
from shoal.run.state.private_files import numbered, read_private
from shoal.run.state.rekey import rekey
from shoal.run.state.seal import Seal
from tests.job import test_changing
from tests.job.test_changing import N_ROWS, Folder
from tests.world import people, shoal, with_gaps

PRIVATE = "\n[private]\nfile_megabytes = 0.002\n"
KEY = "ab" * 32


class PrivateFolder(Folder):
    """A job with a section [private], whose rows lack values now and then."""

    private = PRIVATE

    def write(self, **sections: str) -> None:
        sections.setdefault("bad_rows", "limit = 1" + self.private)
        super().write(**sections)

    def lines(self, name: str, seal: Seal | None) -> list[dict[str, object]]:
        text = b"".join(read_private(self.path / name, seal))
        return [json.loads(line) for line in text.splitlines()]


class SealedFolder(PrivateFolder):
    """The same, sealed."""

    private = PRIVATE + "seal = true\n"


@pytest.mark.parametrize("sealed", [False, True])
def test_a_job_that_is_killed_has_each_row_in_its_trace_or_quarantine_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sealed: bool
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    table = with_gaps(people(N_ROWS), {"age": 10})
    folder = (SealedFolder if sealed else PrivateFolder)(tmp_path, table)
    folder.seal = ", seal = 'env:THE_KEY'" if sealed else ""
    folder.write()
    for until in (100, 220, 221, 400):
        folder.run(until=until, kill=True)
        folder.run(until=until + 40)
    folder.run()
    seal = Seal.from_spec("env:THE_KEY") if sealed else None
    trace = folder.lines("trace", seal)
    assert Counter(line["row"] for line in trace) == Counter(range(N_ROWS))
    bad = folder.lines("job.quarantine", seal)
    assert [line["row"] for line in bad] == list(range(0, N_ROWS, 10))
    assert len(numbered(folder.path / "trace")) > 3
    for name in ("trace", "job.quarantine"):
        for file in numbered(folder.path / name).values():
            assert (b"person-" in file.read_bytes()) == (not sealed)
    original = folder.table.select(list(folder.job.schema.columns))
    lines = pa.Table.from_pylist(trace)
    found = audit(folder.job, folder.published, original=original, trace=lines)
    assert found.verdict == "kept", found


def test_the_key_of_a_job_is_changed_and_what_was_sealed_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("NEW_KEY", "cd" * 32)
    folder = SealedFolder(tmp_path, people(N_ROWS))
    folder.seal = ", seal = 'env:THE_KEY'"
    folder.write()
    folder.run(until=300, kill=True)
    state, trace = folder.path / "state", folder.path / "trace"
    words = ["checkpoint", "rekey", state, trace]
    assert shoal(monkeypatch, *words) == 2
    assert shoal(monkeypatch, *words, "--seal", "env:THE_KEY", "--new-seal", "env:NEW_KEY") == 0
    folder.seal = ", seal = 'env:NEW_KEY'"
    folder.write()
    folder.run()
    new = Seal.from_spec("env:NEW_KEY")
    assert Counter(line["row"] for line in folder.lines("trace", new)) == Counter(range(N_ROWS))
    capsysbinary.readouterr()
    assert shoal(monkeypatch, "unseal", trace, "--seal", "env:NEW_KEY") == 0
    assert capsysbinary.readouterr().out == b"".join(read_private(trace, new))
    clear = folder.path / "trace.jsonl"
    assert shoal(monkeypatch, "unseal", trace, "--seal", "env:NEW_KEY", "-o", clear) == 0
    assert clear.read_bytes() == b"".join(read_private(trace, new))
    assert clear.stat().st_mode & 0o077 == 0
    assert shoal(monkeypatch, "unseal", trace) == 5


def test_a_key_that_is_replaced_while_the_run_lives_changes_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    folder = SealedFolder(tmp_path, with_gaps(people(N_ROWS), {"age": 10}))
    folder.seal = f", seal = 'file:{key}'"
    folder.write()

    def begun(*args: Any, **options: Any) -> Any:
        """As a secret that is mounted, and renewed when the run has begun."""
        key.write_text(KEY)
        recovery = recovery_of(*args, **options)
        key.write_text("cd" * 32)
        return recovery

    monkeypatch.setattr(test_changing, "recovery_of", begun)
    folder.run(until=300)
    folder.run()
    seal = Seal(bytes.fromhex(KEY))
    assert Counter(line["row"] for line in folder.lines("trace", seal)) == Counter(range(N_ROWS))
    bad = folder.lines("job.quarantine", seal)
    assert [line["row"] for line in bad] == list(range(0, N_ROWS, 10))


def test_a_job_whose_private_files_are_in_clear_is_told_so_when_its_key_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("NEW_KEY", "cd" * 32)
    folder = PrivateFolder(tmp_path, people(N_ROWS))
    folder.seal = ", seal = 'env:THE_KEY'"
    folder.write()
    folder.run(until=300)
    keys = ["--seal", "env:THE_KEY", "--new-seal", "env:NEW_KEY"]
    state, trace = folder.path / "state", folder.path / "trace"
    words = ["checkpoint", "rekey"]
    assert shoal(monkeypatch, *words, state, trace, *keys) == 5
    assert "stay in clear" in capsys.readouterr().err
    assert shoal(monkeypatch, *words, trace, *keys) == 2
    assert shoal(monkeypatch, *words, state, *keys) == 0
    folder.seal = ", seal = 'env:NEW_KEY'"
    folder.write()
    folder.run()
    assert Counter(line["row"] for line in folder.lines("trace", None)) == Counter(range(N_ROWS))


class Cut(BaseException):
    """The end of a process, as far as a test in one process can have it."""


@pytest.mark.parametrize("n_done", [1, 3, 5])
@pytest.mark.parametrize("between", ["THE_KEY", "NEW_KEY"])
def test_a_run_before_a_change_of_key_is_finished_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_done: int, between: str
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("NEW_KEY", "cd" * 32)
    folder = SealedFolder(tmp_path, people(N_ROWS))
    folder.seal = ", seal = 'env:THE_KEY'"
    folder.write()
    for until in (100, 300):
        folder.run(until=until)
    folders = [folder.path / "state", folder.path / "trace"]
    keys = Seal.from_spec("env:THE_KEY"), Seal.from_spec("env:NEW_KEY")
    real, n_left = Path.replace, n_done

    def dying(self: Path, target: Path) -> Path:
        nonlocal n_left
        n_left -= 1
        if n_left < 0:
            raise Cut
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", dying)
        with pytest.raises(Cut):
            rekey(folders, *keys)
    folder.seal = f", seal = 'env:{between}'"
    folder.write()
    with contextlib.suppress(CheckpointError):
        folder.run(until=400)
    rekey(folders, *keys)
    folder.seal = ", seal = 'env:NEW_KEY'"
    folder.write()
    folder.run()
    trace = folder.lines("trace", keys[1])
    assert Counter(line["row"] for line in trace) == Counter(range(N_ROWS))


def test_an_audit_says_that_a_trace_is_sealed_and_how_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    folder = SealedFolder(tmp_path, people(N_ROWS))
    folder.seal = ", seal = 'env:THE_KEY'"
    folder.write()
    folder.run()
    trace = folder.path / "trace"
    (file,) = numbered(trace).values()
    renamed = folder.path / "trace 1.jsonl"
    renamed.write_bytes(file.read_bytes())
    words = ["audit", folder.path / "job.toml", folder.path / "out.jsonl", "--trace"]
    for path in (trace, file, renamed):
        assert shoal(monkeypatch, *words, path) == 2
        said = capsys.readouterr().err
        assert f"shoal unseal {shlex.quote(str(path))} --seal env:THE_KEY -o trace.jsonl" in said
    schema, policy = folder.job.schema, folder.job.policy
    with pytest.raises(JobError, match=r"is sealed.*--seal KEY"):
        audit(schema, policy, folder.published, trace=trace)
    monkeypatch.chdir(folder.path)
    assert shoal(monkeypatch, "unseal", "trace", "--seal", "env:THE_KEY", "-o", "trace.jsonl") == 0
    assert shoal(monkeypatch, *words, "trace.jsonl") in (0, 6)


def test_an_audit_says_that_there_is_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = PrivateFolder(tmp_path, people(60))
    folder.write()
    folder.run()
    (tmp_path / "empty").mkdir()
    words = ["audit", folder.path / "job.toml", folder.path / "out.jsonl", "--trace"]
    for name in ("none", "none/", "none.parquet", "job.toml/none"):
        assert shoal(monkeypatch, *words, tmp_path / name) == 4
        assert ": can't be read as a trace: it doesn't exist" in capsys.readouterr().err
    for name in ("state", "empty"):
        assert shoal(monkeypatch, *words, tmp_path / name) == 2
        said = capsys.readouterr().err
        assert "has no file of a trace" in said
        assert "rows-0000000001.jsonl" in said
    assert shoal(monkeypatch, *words, tmp_path / "trace") in (0, 6)


def read(folder: Folder, **sections: str) -> Job:
    """The job with these sections."""
    folder.write(**sections)
    return folder.job


def test_what_doesnt_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = PrivateFolder(tmp_path, people(40))
    with pytest.raises(JobError, match=r"private\.seal: needs a key"):
        read(folder, bad_rows="[private]\nseal = true")
    with pytest.raises(JobError, match=r"private\.keep_days: must be a number above 0"):
        read(folder, bad_rows="[private]\nkeep_days = 0")
    with pytest.raises(JobError, match=r"private\.keep_days: removes closed.*file_hours = 24"):
        read(folder, bad_rows="[private]\nkeep_days = 30")
    with pytest.raises(JobError, match="private: is for long-running jobs"):
        read(folder, run="seed = 7")
    folder.write()
    assert isinstance(folder.job, Job)
    words = ["run", folder.path / "job.toml", "-i", folder.path / "incoming"]
    words += ["-o", folder.path / "out.jsonl", "--trace", folder.path / "trace.jsonl"]
    assert shoal(monkeypatch, *words) == 2
