"""``[private]``: a job whose trace and quarantine are rotated and sealed, and is killed."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.audit import Report
from shoal.errors import CheckpointError, JobError
from shoal.job import Job
from shoal.job.attacking import attack
from shoal.job.auditing import audit
from shoal.job.changing import newest_checkpoint
from shoal.job.ends import recovery_of
from shoal.job.reporting import report
from shoal.report.build import ReleaseReport
from shoal.run.state.folder import CHECKPOINT, path_of
from shoal.run.state.private_files import numbered, read_private
from shoal.run.state.rekey import rekey
from shoal.run.state.seal import Seal
from shoal.run.state.store import Store
from tests.crashes.world import read_all
from tests.job import test_changing
from tests.job.test_changing import K3, N_ROWS, Folder
from tests.world import people, shoal, with_gaps, write

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


@pytest.mark.parametrize("forgotten", ["trace", "job.quarantine", "state"])
@pytest.mark.parametrize("megabytes", ["1", "0.002"])
def test_a_folder_that_was_forgotten_when_the_key_was_changed_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    forgotten: str,
    megabytes: str,
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("NEW_KEY", "cd" * 32)
    folder = SealedFolder(tmp_path, with_gaps(people(N_ROWS), {"age": 10}))
    folder.seal = ", seal = 'env:THE_KEY'"
    # With small files the checkpoint begins a new one, and needs none that is there.
    folder.private = folder.private.replace("0.002", megabytes)
    folder.write()
    for until in (100, 300):
        folder.run(until=until)
    names = ["state", "trace", "job.quarantine"]
    changed = [tmp_path / name for name in names if name != forgotten]
    other = tmp_path / "other"
    if forgotten == "state":  # a state must be named, be it another one
        with Store(other, job={}, seal=None).lock():
            pass
        changed.append(other)
    rekey(changed, Seal(bytes.fromhex(KEY)), Seal(bytes.fromhex("cd" * 32)))
    if forgotten != "state":
        folder.seal = ", seal = 'env:NEW_KEY'"
        folder.write()
    has, needs = ("NEW", "THE") if forgotten == "state" else ("THE", "NEW")
    monkeypatch.setenv("OLD_KEY", os.environ[f"{has}_KEY"])
    before = folder.files
    with pytest.raises(CheckpointError) as refused:
        folder.run()
    assert folder.files == before
    found = str(refused.value)
    # The quarantine is opened first, and the command repairs all folders at once.
    at = tmp_path / ("job.quarantine" if forgotten == "state" else forgotten)
    assert found.startswith(f"{at}: is sealed with another key than the checkpoints: ")
    command = found[found.index("shoal checkpoint rekey ") :].partition(". ")[0]
    folders, _, keys = command.removeprefix("shoal checkpoint rekey ").partition(" --")
    assert folders.split()[0] == str(tmp_path / "state")
    assert set(folders.split()) == {str(tmp_path / name) for name in names}
    assert keys == f"seal env:OLD_KEY --new-seal env:{needs}_KEY"
    assert shoal(monkeypatch, *command.split()[1:]) == 0
    folder.run()
    seal = Seal.from_spec(f"env:{needs}_KEY")
    assert Counter(line["row"] for line in folder.lines("trace", seal)) == Counter(range(N_ROWS))
    capsys.readouterr()
    assert shoal(monkeypatch, "unseal", at, "--seal", f"env:{has}_KEY") == 5
    said = capsys.readouterr().err
    assert "sealed with another key" in said
    assert "shoal checkpoint rekey" in said


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
    ("then", "now", "said", "fix"),
    [
        (PRIVATE, "", "(rotated), and is now ../job.quarantine.jsonl (plain)", "Restore [private]"),
        (
            SEALED,
            "",
            "(rotated and sealed), and is now ../job.quarantine.jsonl (plain)",
            "Restore [private] with private.seal = true",
        ),
        (
            ROTATED,
            "",
            "(rotated and sealed), and is now ../job.quarantine.jsonl (plain)",
            "Restore [private] with private.seal = true",
        ),
        ("", PRIVATE, ".jsonl (plain), and is now ../job.quarantine (rotated)", "Remove [private]"),
        (
            "",
            SEALED,
            ".jsonl (plain), and is now ../job.quarantine (rotated and sealed)",
            "Remove [private]",
        ),
        (
            PRIVATE,
            SEALED,
            "(rotated), and is now ../job.quarantine (rotated and sealed)",
            "Restore private.seal",
        ),
        (
            SEALED,
            PRIVATE,
            "(rotated and sealed), and is now ../job.quarantine (rotated)",
            "Restore private.seal",
        ),
    ],
)
def test_a_living_job_keeps_the_kind_of_its_private_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    then: str,
    now: str,
    said: str,
    fix: str,
    gaps: int,
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
        with pytest.raises(CheckpointError, match=r"with links followed, bad_rows") as caught:
            folder.run()
        assert f". {fix}, or drain with the former job" in str(caught.value)
        assert "The default of bad_rows.file" not in str(caught.value)
        assert "bad_rows.file was ../job.quarantine" in str(caught.value)
        assert said in str(caught.value)
        assert "--trace was ../trace (" in str(caught.value)
        assert caught.value.exit_code == 5
    assert (folder.files, tree(folder)) == before
    folder.private = then
    folder.write()
    folder.run()
    assert folder.n_traced() == Counter(range(N_ROWS))


@pytest.mark.parametrize("private", ["", PRIVATE])
@pytest.mark.parametrize("has_bad_rows", [False, True])
def test_a_job_that_stops_at_a_bad_row_has_no_quarantine_to_compare(
    tmp_path: Path, private: str, has_bad_rows: bool
) -> None:
    table = people(N_ROWS)
    if has_bad_rows:
        ages = [None, *table["age"].to_pylist()[1:]]
        table = table.set_column(1, "age", pa.array(ages))
    folder = PrivateFolder(tmp_path, table)
    folder.private = private
    folder.write()
    folder.run(until=200)
    other = "limit = 1\nfile = 'other.jsonl'" + private
    folder.write(bad_rows="action = 'stop'\n" + other)
    for until in (300, 400):
        folder.run(until=until)
    # Nor does it matter under a changed promise.
    policy = "k = 4\nl = 2\ndelay = { rows = 40 }"
    folder.write(bad_rows="action = 'stop'\n" + other, policy=policy)
    folder.run(until=420)
    assert not (folder.path / "other.jsonl").exists()
    folder.write(bad_rows=other, policy=policy)
    with pytest.raises(CheckpointError, match=r"bad_rows\.file was \.\./job") as caught:
        folder.run()
    assert ". Restore bad_rows.file, or drain" in str(caught.value)
    assert "The default of" not in str(caught.value)
    folder.write(policy=policy)
    folder.run()
    assert set(folder.n_traced()) == set(range(N_ROWS))
    assert (folder.path / ("job.quarantine" if private else "job.quarantine.jsonl")).exists() == (
        has_bad_rows
    )


def test_a_folder_of_bad_rows_needs_the_section_private(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path, people(60))
    for name in ("bad/", "bad", "bad.rows/"):
        with pytest.raises(JobError, match=r"bad_rows\.file: .*\[private\], which is missing"):
            folder.private = ""
            folder.write(bad_rows=f"file = '{name}'")
            _ = folder.job
        folder.write(bad_rows=f"file = '{name}'" + PRIVATE)
        assert folder.job.bad_rows.file == tmp_path / name


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
    for path, out in ((trace, "opened/"), (file, "opened.jsonl"), (renamed, "opened.jsonl")):
        assert shoal(monkeypatch, *words, path) == 2
        said = capsys.readouterr().err
        assert f"shoal unseal {shlex.quote(str(path))} --seal env:THE_KEY -o {out}" in said
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


# -- a trace whose oldest files were removed -------------------------------------------------------


def in_files(path: Path, **sections: str) -> PrivateFolder:
    """A job that has run, with a trace of at least eight files."""
    folder = PrivateFolder(path, with_gaps(people(N_ROWS), {"age": 40}), **sections)
    for until in range(60, N_ROWS, 60):
        folder.run(until=until)
    folder.run()
    assert list(numbered(folder.path / "trace"))[:8] == [1, 2, 3, 4, 5, 6, 7, 8]
    write(folder.table.select(list(folder.job.schema.columns)), path / "original.csv")
    return folder


def audited(folder: PrivateFolder) -> Report:
    """The audit with the trace as it is in its folder."""
    original, trace = folder.path / "original.csv", folder.path / "trace"
    return audit(folder.job, folder.path / "out.jsonl", original=original, trace=trace)


def remove(folder: PrivateFolder, *numbers: int) -> None:
    for number in numbers:
        numbered(folder.path / "trace")[number].unlink()


NAMES = ["castle", "fads", "min-delay", "tide"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_whose_trace_was_removed_are_unverifiable(tmp_path: Path, name: str) -> None:
    folder = in_files(tmp_path, name=name)
    assert audited(folder).verdict == "kept", audited(folder)
    last = max(numbered(tmp_path / "trace"))
    for number in range(1, last):
        remove(folder, number)
        found = audited(folder)
        assert found.verdict == "unverifiable", found
        files = "file 1 of the trace was" if number == 1 else f"files 1–{number} of the trace were"
        assert found["trace"].detail.startswith(f"{files} removed, and with ")
        assert {found[each].verdict for each in ("shape", "secrecy")} == {"kept"}
        assert {found[each].verdict for each in ("k-anonymity", "cover")} == {"unverifiable"}
    assert found["trace"].figures["n_removed_files"] == last - 1


def test_rows_of_a_changed_job_whose_trace_was_removed_are_unverifiable(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path, people(N_ROWS))
    for until in range(60, N_ROWS, 60):
        folder.write(policy=f"k = {3 if until < 300 else 6}\ndelay = {{ rows = 40 }}")
        folder.run(until=until)
    folder.run()
    write(folder.table.select(list(folder.job.schema.columns)), tmp_path / "original.csv")
    assert audited(folder).verdict == "kept", audited(folder)
    last = max(numbered(tmp_path / "trace"))
    for number in range(1, last):
        remove(folder, number)
        found = audited(folder)
        assert found.verdict == "unverifiable", found
        assert found["trace"].figures["n_removed_files"] == number
    assert "by the lines that are left" in found["k-anonymity, part 2 of 2"].detail


def test_values_whose_trace_was_removed_are_unverifiable(tmp_path: Path) -> None:
    schema = 'subject = "person"\ntime = "at"\n[schema.quasi]\ntown = {}'
    policy = "z = 3\nwindow = { rows = 200 }"
    folder = in_files(tmp_path, schema=schema, name="z-anonymity", policy=policy)
    assert audited(folder).verdict == "kept", audited(folder)
    remove(folder, 1, 2)
    found = audited(folder)
    assert found.verdict == found["trace"].verdict == "unverifiable", found
    remove(folder, 4)
    assert audited(folder)["trace"].verdict == "broken"


def test_rows_that_a_stopped_job_holds_arent_lost(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path, people(N_ROWS))
    for until in range(60, 420, 60):
        folder.run(until=until)
    write(folder.table.select(list(folder.job.schema.columns)), tmp_path / "original.csv")
    remove(folder, 1, 2)
    assert audited(folder).verdict == "unverifiable", audited(folder)


def test_a_report_says_that_rows_whose_trace_was_removed_are_unverifiable(tmp_path: Path) -> None:
    folder = in_files(tmp_path)
    trace, given = folder.path / "trace", folder.table.select(list(folder.job.schema.columns))

    def made() -> ReleaseReport:
        return report(
            folder.job, folder.path / "out.jsonl", original=given, trace=trace, attacks=[]
        )

    assert made().as_dict()["utility"]["rows"]["in"] == N_ROWS
    remove(folder, 1)
    assert made().verdict == "unverifiable"
    # What is left isn't all: figures about it would be wrong.
    assert made().as_dict()["utility"]["rows"] is None
    assert "Only a trace with lines of all published rows" in made().html()


def test_an_attack_with_an_incomplete_trace_isnt_judged(tmp_path: Path) -> None:
    folder = in_files(tmp_path)
    trace, given = folder.path / "trace", folder.table.select(list(folder.job.schema.columns))

    def verdict() -> str:
        found = attack(
            folder.job, folder.path / "out.jsonl", original=given, trace=trace, attacks=["linking"]
        )
        return found.of("linking")[0].verdict

    assert verdict() == "within"
    remove(folder, 1)
    assert verdict() == "unverifiable"


def test_files_that_are_lost_between_others_arent_removed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = in_files(tmp_path)
    remove(folder, 4, 5)
    found = audited(folder)
    assert found["trace"].verdict == found.verdict == "broken"
    assert "lacks files 4–5, though it has files before and after them" in found["trace"].detail
    remove(folder, 1)
    found = audited(folder)
    assert found["trace"].verdict == "broken"
    assert "file 1 of the trace was removed" in found["trace"].detail
    assert "lacks files 4–5" in found["trace"].detail
    remove(folder, 2, 3)
    words = ["audit", tmp_path / "job.toml", tmp_path / "out.jsonl", "--trace", tmp_path / "trace"]
    assert shoal(monkeypatch, *words) == 6
    assert "files 1–5 of the trace were removed" in capsys.readouterr().out


def test_a_sealed_trace_keeps_the_numbers_of_its_files_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    folder = SealedFolder(tmp_path, people(N_ROWS))
    folder.seal = ", seal = 'env:THE_KEY'"
    folder.write()
    for until in range(60, N_ROWS, 60):
        folder.run(until=until)
    folder.run()
    last = max(numbered(tmp_path / "trace"))
    remove(folder, 1, 2, 3)
    monkeypatch.chdir(tmp_path)
    words = ["audit", "job.toml", "out.jsonl", "--trace"]
    assert shoal(monkeypatch, *words, "trace") == 2
    command = "shoal unseal trace --seal env:THE_KEY -o opened/"
    assert command in capsys.readouterr().err
    assert shoal(monkeypatch, *command.split()[1:]) == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: trace: files 1–3 are missing: the job may have removed them")
    assert "-o" not in said
    assert list(numbered(tmp_path / "opened")) == list(range(4, last + 1))
    assert b"".join(read_private(tmp_path / "opened", None)) == b"".join(
        read_private(tmp_path / "trace", Seal(bytes.fromhex(KEY)))
    )
    assert (tmp_path / "opened").stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "opened").iterdir())
    assert shoal(monkeypatch, *words, "opened") == 6
    assert "files 1–3 of the trace were removed" in capsys.readouterr().out
    assert shoal(monkeypatch, *command.split()[1:]) == 2
    assert "has rows already" in capsys.readouterr().err
    remove(folder, 5, 6, 8)
    assert shoal(monkeypatch, *command.split()[1:-1], "one.jsonl") == 0
    said = capsys.readouterr().err
    assert "files 5–6, 8 are missing between others: they are lost" in said
    assert "-o NAME/" in said
    damaged = numbered(tmp_path / "trace")[last]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    assert shoal(monkeypatch, *command.split()[1:-1], "other/") == 5
    assert not (tmp_path / "other").exists()


def test_lines_that_are_lost_in_files_that_are_left_arent_removed_ones(tmp_path: Path) -> None:
    folder = in_files(tmp_path)
    remove(folder, 1, 2)
    path = numbered(tmp_path / "trace")[5]
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if json.loads(line)["seq"] is not None)
    path.write_text("".join(lines[:at] + lines[at + 1 :]))
    found = audited(folder)
    assert found["trace"].verdict == "broken"
    assert "1 published rows after them have no line" in found["trace"].detail
    path.write_text("".join([*lines, lines[at]]))
    detail = audited(folder)["trace"].detail
    assert "1 lines are of a published row that another line is of" in detail
    path.write_text("".join(lines))
    assert audited(folder).verdict == "unverifiable"
    # Without its end it may be older than the output.
    remove(folder, max(numbered(tmp_path / "trace")))
    found = audited(folder)["trace"]
    assert found.verdict == "unverifiable"
    assert "rows of the output have no line in the trace: it is older than the" in found.detail


def test_a_promise_that_the_rest_of_a_trace_refutes_is_broken(tmp_path: Path) -> None:
    folder = in_files(tmp_path)
    remove(folder, 1, 2, 3)
    path = numbered(tmp_path / "trace")[6]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    group = next(line["group"] for line in lines if line["outcome"] == "group")
    for line in lines:
        if line["group"] == group:
            line["subject"] = "person-1"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = audited(folder)
    assert {found[each].verdict for each in ("k-anonymity", "cover")} == {"broken"}
    assert found["k-anonymity"].detail.startswith("by the lines that are left, of ")


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
