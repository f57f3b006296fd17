"""``[private]``: a job whose trace and quarantine are rotated and sealed, and is killed."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.errors import CheckpointError, JobError
from shoal.job import Job
from shoal.job.auditing import audit
from shoal.job.changing import newest_checkpoint
from shoal.job.ends import recovery_of
from shoal.run.state.folder import CHECKPOINT, path_of
from shoal.run.state.private_files import numbered, read_private
from shoal.run.state.rekey import rekey
from shoal.run.state.seal import Seal
from shoal.run.state.store import Store
from tests.crashes.world import read_all
from tests.job import test_changing
from tests.job.test_changing import K3, N_ROWS, Folder
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

    def n_traced(self) -> Counter[object]:
        """How often each row is in the trace."""
        if not self.private:
            return Counter(read_all(self.path / "trace")["row"].to_pylist())
        seal = Seal.from_spec("env:THE_KEY") if "seal = true" in self.private else None
        return Counter(line["row"] for line in self.lines("trace", seal))


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


SEALED = PRIVATE + "seal = true\n"
#: Each commit begins a new file, so that the mark of a checkpoint has no bytes.
ROTATED = "\n[private]\nfile_megabytes = 0.000001\nseal = true\n"


def tree(folder: Folder) -> list[str]:
    """All files and folders that are there."""
    return sorted(str(path) for path in folder.path.rglob("*"))


@pytest.mark.parametrize("gaps", [0, 10])
@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (PRIVATE, "", "(rotated), and is now ../job.quarantine.jsonl (plain)"),
        (SEALED, "", "(rotated and sealed), and is now ../job.quarantine.jsonl (plain)"),
        (ROTATED, "", "(rotated and sealed), and is now ../job.quarantine.jsonl (plain)"),
        ("", PRIVATE, ".jsonl (plain), and is now ../job.quarantine (rotated)"),
        ("", SEALED, ".jsonl (plain), and is now ../job.quarantine (rotated and sealed)"),
        (PRIVATE, SEALED, "(rotated), and is now ../job.quarantine (rotated and sealed)"),
        (SEALED, PRIVATE, "(rotated and sealed), and is now ../job.quarantine (rotated)"),
    ],
)
def test_a_living_job_keeps_the_kind_of_its_private_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, now: str, said: str, gaps: int
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    folder = PrivateFolder(tmp_path, with_gaps(people(N_ROWS), {"age": gaps} if gaps else {}))
    folder.seal, folder.private = ", seal = 'env:THE_KEY'", then
    folder.write()
    folder.run(until=200)
    before = folder.files, tree(folder)
    folder.private = now
    folder.write()
    # A change of the promise is followed first, and changes nothing of it.
    for policy in (K3, "k = 8\nl = 2\ndelay = { rows = 40 }"):
        folder.write(policy=policy)
        with pytest.raises(
            CheckpointError, match=r"Restore \[private\] with private.seal"
        ) as caught:
            folder.run()
        assert "bad_rows.file was ../job.quarantine" in str(caught.value)
        assert said in str(caught.value)
        assert "--trace was ../trace (" in str(caught.value)
        assert caught.value.exit_code == 5
    assert (folder.files, tree(folder)) == before
    folder.private = then
    folder.write()
    folder.run()
    assert folder.n_traced() == Counter(range(N_ROWS))


@pytest.mark.parametrize("private", ["", PRIVATE, ROTATED])
def test_private_files_move_with_their_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: str
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    (tmp_path / "here").mkdir()
    folder = PrivateFolder(tmp_path / "here", with_gaps(people(N_ROWS), {"age": 10}))
    folder.seal, folder.private = ", seal = 'env:THE_KEY'", private
    folder.write()
    folder.run(until=200, kill=True)
    folder.path = folder.path.rename(tmp_path / "there")
    folder.run(until=400)
    folder.path = folder.path.rename(tmp_path / "beyond")
    folder.run()
    assert folder.n_traced() == Counter(range(N_ROWS))


@pytest.mark.parametrize("gaps", [0, 10])
@pytest.mark.parametrize("private", ["", PRIVATE])
def test_a_job_file_under_another_name_doesnt_split_the_quarantine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    private: str,
    gaps: int,
) -> None:
    folder = PrivateFolder(tmp_path, with_gaps(people(N_ROWS), {"age": gaps} if gaps else {}))
    folder.private = private
    folder.write()
    folder.run(until=200)
    job, words = folder.path / "job.toml", ["-i", folder.path / "incoming"]
    words += ["-o", folder.path / "out.jsonl", "--trace", f"{folder.path}/trace/", "-q"]
    job = job.rename(folder.path / "ward.toml")
    before = folder.files, tree(folder)
    assert shoal(monkeypatch, "run", job, *words) == 5
    err = capsys.readouterr().err
    assert "bad_rows.file was ../job.quarantine" in err
    assert "and is now ../ward.quarantine" in err
    assert "The default of bad_rows.file is the name of the job" in err
    assert "Restore bad_rows.file, or drain" in err
    assert (folder.files, tree(folder)) == before
    ending = "" if private else ".jsonl"
    text = job.read_text()
    job.write_text(text.replace("limit = 1", f"limit = 1\nfile = 'job.quarantine{ending}'"))
    assert shoal(monkeypatch, "run", job, *words) == 0
    assert folder.n_traced() == Counter(range(N_ROWS))


def without_the_fact(folder: Folder, seal: Seal) -> None:
    """Write the newest checkpoint again, as a version before wrote it."""
    state = folder.path / "state"
    found = newest_checkpoint(state, seal)
    assert found is not None
    checkpoint = found.checkpoint
    del checkpoint.facts["private"]
    path_of(state, CHECKPOINT, checkpoint.number).unlink()
    Store(state, job=found.heading.more["job"], seal=seal).save(checkpoint)


@pytest.mark.parametrize("then", [ROTATED, SEALED])
def test_an_older_checkpoint_is_resumed_or_refused_by_what_its_marks_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    folder = PrivateFolder(tmp_path, with_gaps(people(N_ROWS), {"age": 10}))
    folder.seal, folder.private = ", seal = 'env:THE_KEY'", then
    folder.write()
    folder.run(until=200)
    without_the_fact(folder, Seal.from_spec("env:THE_KEY"))
    before = folder.files, tree(folder)
    for now in ("", PRIVATE):
        folder.private = now
        folder.write()
        with pytest.raises(CheckpointError, match="isn't the kind of output"):
            folder.run()
        assert (folder.files, tree(folder)) == before
    folder.private = then
    folder.write()
    folder.run()
    assert folder.n_traced() == Counter(range(N_ROWS))


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
