"""Jobs that are changed between two runs: each row belongs to one promise, and keeps it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.algorithms import ZAnonymizer
from shoal.audit import Report, changes_in, without_changes
from shoal.errors import CheckpointError, ParameterError, ResourceError
from shoal.io.registry import resolve_input, resolve_output
from shoal.job import Job
from shoal.job.attacking import attack
from shoal.job.auditing import audit
from shoal.job.changes import RULES
from shoal.job.changing import follow_changes, newest_checkpoint
from shoal.job.ends import recovery_of
from shoal.job.form import AuditForm, BadRowsForm, CheckpointForm, PolicyForm, PrivateForm, RunForm
from shoal.job.outputs import output_of, trace_of
from shoal.job.private_outputs import QuarantineSink
from shoal.job.reporting import report
from shoal.metrics import summarize
from shoal.run.pipeline import Run
from shoal.run.recovery import Checkpointer
from shoal.run.state.folder import CHECKPOINT, numbers_of, path_of
from shoal.run.state.store import Store
from tests.crashes.world import read_all
from tests.world import SCHEMA, people, shoal, write, write_job

N_ROWS = 600
K3 = "k = 3\nl = 2\ndelay = { rows = 40 }"


class Killed(BaseException):
    """The end of a process, as far as a test in one process can have it."""


class Folder:
    """A job in a folder: rows in small files, an output, a trace and a state that live on."""

    def __init__(self, path: Path, table: pa.Table | None = None, **sections: str) -> None:
        self.path, self.table = path, people(N_ROWS) if table is None else table
        incoming = path / "incoming"
        incoming.mkdir()
        for i in range(0, len(self.table), 20):
            write(self.table.slice(i, 20), incoming / f"part-{i:06d}.csv")
        self.seal = ""
        self.write(**sections)

    def write(self, **sections: str) -> None:
        """Write the job file, with these sections."""
        state = f"checkpoint = {{ folder = 'state', every = 1000{self.seal} }}"
        name = sections.pop("name", "castle")
        sections = {"policy": K3, "run": f"seed = 7\n{state}"} | sections
        job = write_job(self.path, **sections)
        job.write_text(job.read_text().replace("name = 'castle'", f"name = '{name}'"))

    @property
    def job(self) -> Job:
        return Job.load(self.path / "job.toml")

    @property
    def facts(self) -> dict[str, Any]:
        """What the newest checkpoint says."""
        found = newest_checkpoint(self.path / "state", None)
        assert found is not None
        return found.checkpoint.facts

    def run(
        self, until: int | None = None, *, kill: bool = False, accept_weaker: bool = False,
        fall_back: bool = False, undo_pseudonyms: bool = False,
    ) -> Run:  # fmt: skip
        """Run it to its end, or stop or kill it once so many rows were read."""
        job = self.job
        source = resolve_input(job.input, str(self.path / "incoming"), None, follow=False)
        sink = resolve_output(job.output, str(self.path / "out.jsonl"), None)
        trace = f"{self.path}/trace/"
        recovery = recovery_of(job, source, sink, trace, fall_back=fall_back)
        recovery = follow_changes(job, recovery, source, sink, trace, accept_weaker=accept_weaker)
        with contextlib.ExitStack() as stack:
            rows = source.open(job.schema.columns, replay=True)
            stack.callback(rows.close)
            bad_rows = QuarantineSink(job, rows, recovery)
            stack.callback(bad_rows.close)

            def watch(summary: Any) -> None:
                if until is not None and summary.n_in >= until:
                    if kill:
                        raise Killed
                    running.stop()

            running = job.pipeline.run(
                rows, output_of(job, sink, force=False), on_bad=bad_rows,
                open_trace=trace_of(job, trace, recovery, force=False), recovery=recovery,
                watch=watch, undo_pseudonyms=undo_pseudonyms,
            )  # fmt: skip
            with contextlib.suppress(Killed):
                running.execute()
        return running

    @property
    def published(self) -> pa.Table:
        return read_all(self.path / "out.jsonl")

    @property
    def lines(self) -> pa.Table:
        """All lines of the trace."""
        return read_all(self.path / "trace")

    @property
    def trace(self) -> pa.Table:
        """Its lines about rows."""
        return without_changes(self.lines)

    def audit(self, *, traced: bool = True) -> Report:
        """The audit of all of it, by the job as it is now."""
        names = self.job.schema.columns
        original = self.table.select(list(names))
        trace = self.lines if traced else self.trace
        return audit(self.job, self.published, original=original, trace=trace)

    def people_in_groups(self, first: int, last: int) -> list[int]:
        """How many people each group has that was formed from these input rows."""
        members: dict[int, set[str]] = {}
        for line in self.trace.to_pylist():
            if line["outcome"] == "group" and first <= line["row"] < last:
                members.setdefault(line["group"], set()).add(line["subject"])
        return [len(found) for found in members.values()]

    @property
    def files(self) -> dict[str, bytes]:
        """All that is there, but for the lock."""
        return {
            str(file.relative_to(self.path)): file.read_bytes()
            for file in sorted(self.path.rglob("*"))
            if file.is_file() and file.name not in ("lock", "job.toml")
        }


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def is_whole(folder: Folder) -> None:
    """Every row of the input was decided once, and every promise was kept in its part."""
    found = folder.audit()
    assert found.verdict == "kept", found
    rows = Counter(line["row"] for line in folder.trace.to_pylist())
    assert rows == Counter(range(len(folder.table)))
    has_been_traced(folder)


def has_been_traced(folder: Folder) -> None:
    """The trace tells of each change once, as the checkpoints do, before the first row after it."""
    names = ("what", "weaker", "sections", "rows_in", "taken_in", "published", "latest")
    kept = [{name: change[name] for name in names} for change in folder.facts["changes"]]
    assert changes_in(folder.lines) == kept
    lines = folder.lines.to_pylist()
    for change in kept:
        at = next(
            i
            for i, line in enumerate(lines)
            if line["outcome"].startswith("changed") and line["row"] == change["rows_in"]
        )
        rows_in = change["rows_in"]
        assert all(line["row"] < rows_in for line in lines[:at] if line["seq"] is not None)
        assert all(line["row"] >= rows_in for line in lines[at:])


@pytest.mark.parametrize("kill", [False, True])
def test_a_stricter_promise_holds_for_all_rows_after_the_restart(
    folder: Folder, kill: bool
) -> None:
    folder.run(until=300, kill=kill)
    assert folder.run(until=300).summary.n_held > 0
    folder.write(policy="k = 8\nl = 2\ndelay = { rows = 40 }")
    folder.run()
    is_whole(folder)
    (change,) = folder.facts["changes"]
    assert change["what"] == ["policy.k 3 → 8"]
    assert not change["weaker"]
    at = change["rows_in"]
    assert at >= 300
    assert min(folder.people_in_groups(0, at)) < 8 <= min(folder.people_in_groups(at, N_ROWS))
    names = [verdict.name for verdict in folder.audit().verdicts]
    assert "k-anonymity, part 1 of 2" in names
    assert "k-anonymity, part 2 of 2" in names
    assert "change of the job, part 2 of 2" in names


@pytest.mark.parametrize("changed", [False, True])
def test_the_rows_that_a_stopped_job_holds_arent_called_lost(folder: Folder, changed: bool) -> None:
    if changed:
        folder.run(until=200)
        folder.write(policy="k = 5\nl = 2\ndelay = { rows = 40 }")
    assert folder.run(until=400).summary.n_held > 0
    found = folder.audit()
    open_ = [each for each in found.verdicts if each.verdict != "kept"]
    assert [each.name.partition(",")[0] for each in open_] == ["conservation"], found
    assert found.exit_code == 6
    assert open_[0].detail.endswith("; if it has ended, they are lost")
    folder.run()
    is_whole(folder)


def test_groups_keep_their_numbers_apart_over_a_change(folder: Folder) -> None:
    folder.run(until=300)
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    folder.run()
    at = folder.facts["changes"][0]["rows_in"]
    lines = [line for line in folder.trace.to_pylist() if line["group"] is not None]
    before = {line["group"] for line in lines if line["row"] < at}
    after = {line["group"] for line in lines if line["row"] >= at}
    assert before
    assert after
    assert max(before) < min(after)
    arrived = sorted(line["arrived"] for line in folder.trace.to_pylist())
    assert arrived == list(range(N_ROWS))
    assert sorted(line["seq"] for line in lines) == list(range(len(folder.published)))


def test_a_weaker_promise_is_refused_and_nothing_is_touched(folder: Folder) -> None:
    folder.run(until=300)
    before = folder.files
    folder.write(policy="k = 2\nl = 2\ndelay = { rows = 40 }")
    with pytest.raises(CheckpointError, match=r"promises less .*policy\.k 3 → 2.*--accept-weaker"):
        folder.run()
    assert folder.files == before


def test_a_weaker_promise_that_is_accepted_holds_for_new_rows_only(folder: Folder) -> None:
    folder.write(policy="k = 8\nl = 2\ndelay = { rows = 40 }")
    folder.run(until=300)
    folder.write(policy="k = 2\ndelay = { rows = 40 }")
    folder.run(accept_weaker=True)
    is_whole(folder)
    (change,) = folder.facts["changes"]
    assert change["what"] == ["policy.k 8 → 2", "policy.l 2 → not set"]
    assert change["weaker"]
    at = change["rows_in"]
    assert min(folder.people_in_groups(0, at)) >= 8
    assert min(folder.people_in_groups(at, N_ROWS)) < 8
    note = folder.audit()["change of the job, part 2 of 2"]
    assert "weaker, which was accepted" in note.detail


def test_the_audit_finds_a_part_that_breaks_its_own_promise(folder: Folder) -> None:
    folder.write(policy="k = 8\nl = 2\ndelay = { rows = 40 }")
    folder.run(until=300)
    folder.write(policy="k = 2\nl = 2\ndelay = { rows = 40 }")
    folder.run(accept_weaker=True)
    # By the promise of the first part, the second is broken; by that of the second, nothing is.
    folder.write(policy="k = 8\nl = 2\ndelay = { rows = 40 }")
    found = folder.audit()
    assert found["k-anonymity, part 1 of 2"].verdict == "kept"
    assert found["k-anonymity, part 2 of 2"].verdict == "broken"


def test_algorithm_and_knobs_change_at_a_restart(folder: Folder) -> None:
    folder.run(until=200)
    folder.write(algorithm="clusters = 7\nkept = 0")
    folder.run(until=400)
    folder.write(name="tide")
    folder.run()
    is_whole(folder)
    first, second = folder.facts["changes"]
    assert first["what"] == ["algorithm.clusters not set → 7", "algorithm.kept not set → 0"]
    assert 'algorithm.name "castle" → "tide"' in second["what"]
    assert first["rows_in"] < second["rows_in"]
    assert len(folder.audit()["change of the job, part 3 of 3"].detail) > 0


def test_the_same_job_in_other_words_goes_on_with_what_it_holds(folder: Folder) -> None:
    folder.run(until=300)
    held = folder.facts["rows"]["held"]
    assert held
    folder.write(policy=K3 + "\nmissing = 'quarantine'", algorithm="loss = 'glm'")
    assert folder.run(until=300).summary.n_held == held
    folder.run()
    is_whole(folder)
    assert folder.facts["changes"] == []


@pytest.mark.parametrize(
    ("sections", "what"),
    [
        ({"publish": "numeric = 'bounds'"}, r"\[publish\] is not as it was"),
        ({"schema": SCHEMA.replace("120", "130")}, r"\[schema\] is not as it was"),
        ({"policy": K3 + "\nmissing = 'extended'"}, r"policy\.missing .* can't change"),
        (
            {"policy": "k = 3\nl = 2\nwindow = 'all'", "name": "mondrian"},
            r"policy\.window .* can't change",
        ),
    ],
)
def test_what_cant_change_is_named(folder: Folder, sections: dict[str, str], what: str) -> None:
    folder.run(until=300)
    before = folder.files
    folder.write(**sections)
    with pytest.raises(CheckpointError, match=what):
        folder.run(accept_weaker=True)
    assert folder.files == before


@pytest.mark.parametrize("back", [False, True])
def test_pseudonyms_go_over_to_no_other_clock(tmp_path: Path, back: bool) -> None:
    schema = 'subject = "person"\ntime = "at"\n[schema.quasi]\ntown = {}'
    options = {"schema": schema, "name": "z-anonymity", "publish": "pseudonym = { rotate = 100 }"}
    seconds, rows = "z = 3\nwindow = { seconds = 200 }", "z = 3\nwindow = { rows = 200 }"
    before, after = (rows, seconds) if back else (seconds, rows)
    folder = Folder(tmp_path, **options, policy=before)
    folder.run(until=300, undo_pseudonyms=True)
    folder.write(**options, policy=after)
    with pytest.raises(CheckpointError, match="its pseudonyms change after a number of rows"):
        folder.run(accept_weaker=True, undo_pseudonyms=True)


@pytest.mark.parametrize("goes_back", [False, True])
@pytest.mark.parametrize("fails_at", ["save", "sync", "cut"])
def test_a_change_that_is_cut_off_can_be_made_again_or_taken_back(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, fails_at: str, goes_back: bool
) -> None:
    folder.run(until=300)
    new = "k = 8\nl = 2\ndelay = { rows = 40 }"
    folder.write(policy=new)
    real = getattr(Checkpointer, fails_at)

    def failing(self: Checkpointer, *words: Any) -> Any:
        if self._changes:
            if fails_at == "sync":
                real(self, *words)
            raise Killed
        return real(self, *words)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpointer, fails_at, failing)
        with pytest.raises(Killed):
            folder.run()
    if goes_back:
        folder.write()
        folder.run(until=400, kill=True)
        folder.run(until=450, kill=True)
    folder.write(policy=new)
    folder.run()
    is_whole(folder)
    assert len(folder.facts["changes"]) == 1


def refused(folder: Folder, **options: Any) -> str:
    """What the refusal says; it must change nothing."""
    before = folder.files
    with pytest.raises(CheckpointError) as caught:
        folder.run(**options)
    assert folder.files == before
    return str(caught.value)


def test_a_damaged_checkpoint_is_named_before_the_change_of_the_job(folder: Folder) -> None:
    folder.run(until=200)
    folder.run(until=300)
    state = folder.path / "state"
    before, newest = numbers_of(state, CHECKPOINT)
    damaged = path_of(state, CHECKPOINT, newest)
    damaged.write_bytes(damaged.read_bytes()[:-1])
    damage = (
        f"{damaged}: is damaged: its checksum doesn't match. {path_of(state, CHECKPOINT, before)}"
    )
    folder.write(schema=SCHEMA.replace("120", "130"))
    for fall_back in (False, True):
        text = refused(folder, fall_back=fall_back)
        assert text.startswith(f"{damage}: is undamaged, but was taken under another job: [schema]")
        assert "Restore that job" in text
    folder.write(name="tide")
    text = refused(folder)
    assert text.startswith(f"{damage}: is undamaged, but was taken under another job: [algorithm]")
    assert "`shoal run … --fall-back` resumes from it. If rows were read after" in text
    folder.run(fall_back=True)
    is_whole(folder)
    assert len(folder.facts["changes"]) == 1


def test_nobody_falls_back_over_a_change(folder: Folder) -> None:
    folder.run(until=300)
    folder.write(policy="k = 8\nl = 2\ndelay = { rows = 40 }")
    folder.run(until=400, kill=True)
    state = folder.path / "state"
    newest = path_of(state, CHECKPOINT, numbers_of(state, CHECKPOINT)[-1])
    newest.write_bytes(newest.read_bytes()[:-1])
    before = folder.files
    assert refused(folder).startswith(f"{newest}: is damaged")
    for policy in (K3, "k = 8\nl = 2\ndelay = { rows = 40 }"):
        folder.write(policy=policy)
        with pytest.raises(CheckpointError, match="the job was changed after checkpoint"):
            folder.run(fall_back=True)
    assert {name for name, data in folder.files.items() if before.get(name) != data} == set()


def test_only_the_changed_job_falls_back_over_a_change_after_which_nothing_was_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.run(until=300)
    new = "k = 8\nl = 2\ndelay = { rows = 40 }"
    folder.write(policy=new)
    save = Checkpointer.save

    def saving(self: Checkpointer, *words: Any) -> None:
        save(self, *words)
        if self._changes:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Checkpointer, "save", saving)
        with pytest.raises(Killed):
            folder.run()
    assert len(folder.facts["changes"]) == 1
    state = folder.path / "state"
    newest = path_of(state, CHECKPOINT, numbers_of(state, CHECKPOINT)[-1])
    newest.write_bytes(newest.read_bytes()[:-1])
    before = folder.files
    for policy in (K3, K3.replace("3", "4")):
        folder.write(policy=policy)
        with pytest.raises(CheckpointError, match="only the changed job can fall back"):
            folder.run(fall_back=True, accept_weaker=True)
        assert folder.files == before
    folder.write(policy=new)
    folder.run(fall_back=True)
    is_whole(folder)
    assert folder.facts["changes"][0]["what"] == ["policy.k 3 → 8"]
    assert min(folder.people_in_groups(300, N_ROWS)) >= 8


def test_of_a_damaged_checkpoint_audit_and_report_say_that_they_cant_tell(folder: Folder) -> None:
    folder.write(policy="k = 8\nl = 2\ndelay = { rows = 40 }")
    folder.run(until=300)
    folder.write(policy="k = 2\nl = 2\ndelay = { rows = 40 }")
    folder.run(accept_weaker=True)
    state = folder.path / "state"
    for number in numbers_of(state, CHECKPOINT):
        path = path_of(state, CHECKPOINT, number)
        path.write_bytes(path.read_bytes()[:-1])
    # By the lines of the trace it can; an older trace has none.
    found = folder.audit()
    assert found.verdict == "kept", found
    assert found["k-anonymity, part 1 of 2"].verdict == "kept"
    assert folder.audit(traced=False)["change of the job"].verdict == "unverifiable"
    made = report(folder.job, folder.published, trace=folder.trace, attacks=[])
    assert "change of the job" in made.html()


def test_times_count_over_a_change(tmp_path: Path) -> None:
    table = people(N_ROWS)
    # Each tenth row is of 30 seconds before: it arrives at the time of the row before it.
    at = [float(i - 30) if i % 10 == 0 and i >= 30 else float(i) for i in range(N_ROWS)]
    table = table.set_column(table.schema.names.index("at"), "at", pa.array(at))
    timed = 'time = "at"\n' + SCHEMA
    policy = "k = 3\ndelay = { seconds = 60 }\nlateness = 40"
    folder = Folder(tmp_path, table, schema=timed, policy=policy)
    folder.run(until=300)
    folder.write(schema=timed, policy="k = 5\ndelay = { seconds = 50 }\nlateness = 35")
    folder.run()
    is_whole(folder)
    assert folder.facts["changes"][0]["latest"] == 299.0
    assert folder.audit()["arrival, part 2 of 2"].verdict == "kept"


def test_z_changes_too(tmp_path: Path) -> None:
    schema = 'subject = "person"\n[schema.quasi]\ntown = {}\n[schema.keep]\ncolumns = ["ward"]'
    policy = "z = {}\nwindow = {{ rows = {} }}"
    folder = Folder(tmp_path, schema=schema, policy=policy.format(3, 200), name="z-anonymity")
    folder.run(until=300)
    folder.write(schema=schema, policy=policy.format(5, 100), name="z-anonymity")
    folder.run()
    found = folder.audit()
    assert found.verdict == "kept", found
    has_been_traced(folder)
    assert folder.facts["changes"][0]["what"] == [
        "policy.z 3 → 5",
        "policy.window { rows = 200 } → { rows = 100 }",
    ]
    assert found["z-anonymity, part 2 of 2"].verdict == "kept"
    folder.write(schema=SCHEMA, policy=K3)
    with pytest.raises(CheckpointError, match=r"\[schema\]"):
        folder.run()


@pytest.mark.parametrize(
    ("before", "after", "weaker"),
    [
        ("count = 'residual'", "count = 'plain'", 'algorithm.count "residual" → "plain"'),
        ("estimates = 1", "count = 'plain'", 'algorithm.count not set → "plain"'),
        ("count = 'plain'", "count = 'residual'", None),
        ("probability = 0.9", "probability = 0.8", "algorithm.probability 0.9 → 0.8"),
        ("probability = 0.8", "probability = 0.9", None),
        ("probability = 0.9\nk = 3", "probability = 0.9\nk = 2", "algorithm.k 3 → 2"),
        ("probability = 0.9\nk = 2", "probability = 0.9\nk = 3", None),
        ("k = 3", "k = 2", None),
    ],
)
def test_a_knob_that_promises_less_must_be_accepted(
    tmp_path: Path, before: str, after: str, weaker: str | None
) -> None:
    schema = 'subject = "person"\n[schema.quasi]\ntown = {}\n[schema.keep]\ncolumns = ["ward"]'
    policy = "z = 3\nwindow = { rows = 200 }"

    def write(knobs: str) -> None:
        folder.write(schema=schema, policy=policy, name=f"z-anonymity'\n{knobs}\n#")

    folder = Folder(tmp_path, schema=schema, policy=policy, name=f"z-anonymity'\n{before}\n#")
    folder.run(until=100)
    write(after)
    there = folder.files
    if weaker is not None:
        with pytest.raises(CheckpointError, match=re.escape(weaker)):
            folder.run()
        assert folder.files == there
    folder.run(accept_weaker=weaker is not None)
    assert folder.facts["changes"][0]["weaker"] is (weaker is not None)
    assert folder.audit().verdict == "kept"


def test_without_the_key_the_audit_says_that_it_cant_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setenv("THE_KEY", "ab" * 32)
    folder = Folder(tmp_path)
    folder.seal = ", seal = 'env:THE_KEY'"
    folder.write()
    folder.run(until=300)
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    folder.run()
    assert folder.audit().verdict == "kept"
    monkeypatch.delenv("THE_KEY")
    assert folder.audit()["change of the job, part 2 of 2"].verdict == "kept"
    verdict = folder.audit(traced=False)["change of the job"]
    assert verdict.verdict == "unverifiable"
    assert "changed 1 times" in verdict.detail


def test_the_trace_alone_tells_what_was_promised(folder: Folder) -> None:
    folder.write(policy="k = 8\nl = 2\ndelay = { rows = 40 }")
    folder.run(until=300)
    folder.write(policy="k = 2\nl = 2\ndelay = { rows = 40 }")
    folder.run(accept_weaker=True)
    with_state = folder.audit()
    shutil.rmtree(folder.path / "state")
    assert folder.audit() == with_state
    assert "k-anonymity" in [each.name for each in folder.audit(traced=False).verdicts]
    # The first part is judged by what the line says: by k = 9 it is broken, by k = 2 of today not.
    lines = folder.lines
    (change,) = changes_in(lines)
    change["sections"]["policy"]["k"] = 9
    said = f"changed {json.dumps(change)}"
    others = [said if text.startswith("changed") else text for text in lines["outcome"].to_pylist()]
    stricter = lines.set_column(lines.schema.names.index("outcome"), "outcome", pa.array(others))
    found = audit(folder.job, folder.published, trace=stricter)
    assert found["k-anonymity, part 1 of 2"].verdict == "broken"
    assert found["k-anonymity, part 2 of 2"].verdict == "kept"


def test_a_trace_of_another_change_is_noticed(folder: Folder) -> None:
    folder.run(until=300)
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    folder.run()
    lines = folder.lines
    others = [text.replace('"k": 3', '"k": 1') for text in lines["outcome"].to_pylist()]
    forged = lines.set_column(lines.schema.names.index("outcome"), "outcome", pa.array(others))
    found = audit(folder.job, folder.published, trace=forged)
    assert found["change of the job"].verdict == "broken"
    assert found["k-anonymity, part 1 of 2"].verdict == "kept"
    broken = [text.replace("sections", "s") for text in lines["outcome"].to_pylist()]
    lines = lines.set_column(lines.schema.names.index("outcome"), "outcome", pa.array(broken))
    with pytest.raises(ParameterError, match="a line about a change of the job that can't be read"):
        audit(folder.job, folder.published, trace=lines)


def told(lines: pa.Table, **others: Any) -> pa.Table:
    """The lines of a trace, with one before them about a change that never was."""
    last, policy = lines.num_rows, {"k": 1, "delay": {"rows": 40}}
    said = {
        "time": 1.0, "what": ["policy.k 3 → 3"], "weaker": False,
        "sections": {"policy": policy, "algorithm": {"name": "castle"}},
    } | others  # fmt: skip
    line = {
        "row": last, "arrived": last, "seq": lines["seq"].drop_null().length(),
        "outcome": f"changed {json.dumps(said)}",
    }  # fmt: skip
    made = pa.table({f.name: pa.array([line.get(f.name)], f.type) for f in lines.schema})
    return pa.concat_tables([made, lines])


def test_a_change_that_sealed_checkpoints_dont_count_is_noticed_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography")
    monkeypatch.setenv("THE_KEY", "ab" * 32)
    folder = Folder(tmp_path)
    folder.seal = ", seal = 'env:THE_KEY'"
    folder.write()
    folder.run()
    monkeypatch.delenv("THE_KEY")
    # As if more had been promised than was kept.
    folder.write(policy="k = 9\nl = 2\ndelay = { rows = 40 }")
    assert folder.audit()["k-anonymity"].verdict == "broken"
    found = audit(folder.job, folder.published, trace=told(folder.lines))
    assert found["change of the job"].verdict == "broken"
    assert found["k-anonymity"].verdict == "broken"


def test_what_a_trace_alone_says_about_a_change_is_shown_by_its_promises(folder: Folder) -> None:
    folder.run()
    shutil.rmtree(folder.path / "state")
    found = audit(folder.job, folder.published, trace=told(folder.lines))
    assert "policy.k 1 → 3" in found["change of the job, part 2 of 2"].detail
    # By that every group could be called good.
    assert found["change of the job"].verdict == "unverifiable"
    assert found.verdict == "unverifiable"
    as_strict = told(folder.lines, sections={"policy": {"k": 3, "l": 2, "delay": {"rows": 40}},
                                             "algorithm": {"name": "fads"}})  # fmt: skip
    found = audit(folder.job, folder.published, trace=as_strict)
    assert "change of the job" not in [each.name for each in found.verdicts]
    strange = told(folder.lines, sections={"policy": {"k": "x"}, "algorithm": {"name": "castle"}})
    with pytest.raises(ParameterError, match="whose former promise can't be read"):
        audit(folder.job, folder.published, trace=strange)


def test_if_the_newest_checkpoint_cant_be_read_the_trace_tells_of_the_last_change(
    folder: Folder,
) -> None:
    folder.run(until=200)
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    folder.run(until=300)
    state = folder.path / "state"
    before = path_of(state, CHECKPOINT, numbers_of(state, CHECKPOINT)[-1])
    data = before.read_bytes()
    folder.write(policy="k = 2\nl = 2\ndelay = { rows = 40 }")
    folder.run(accept_weaker=True)
    *others, newest = (path_of(state, CHECKPOINT, n) for n in numbers_of(state, CHECKPOINT))
    for other in others:
        other.unlink()
    newest.write_bytes(newest.read_bytes()[9:])
    # It knows of the first change only.
    before.write_bytes(data)
    assert len(changes_in(folder.lines)) == 2
    found = folder.audit()
    assert found.verdict == "kept", found
    assert "policy.k 4 → 2 (weaker" in found["change of the job, part 3 of 3"].detail
    found = folder.audit(traced=False)
    assert found["change of the job"].verdict == "unverifiable"


def test_without_a_job_the_audit_says_that_the_promise_changed(folder: Folder) -> None:
    folder.run(until=300)
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    folder.run()
    job = folder.job
    found = audit(job.schema, job.policy, folder.published, trace=folder.lines)
    assert found["change of the job"].verdict == "unverifiable"
    assert found["k-anonymity"].verdict == "broken"


@pytest.mark.parametrize("kill", [False, True])
def test_changes_in_a_row_are_all_traced(folder: Folder, kill: bool) -> None:
    """A run of the changed job may end, in any way, before it takes in a row."""
    folder.run(until=300)
    for k in (4, 5, 6):
        folder.write(policy=f"k = {k}\nl = 2\ndelay = {{ rows = 40 }}")
        folder.run(until=0, kill=kill)
        folder.run(until=0, kill=kill)
    folder.run(until=400, kill=kill)
    folder.run()
    is_whole(folder)
    assert [change["what"] for change in changes_in(folder.lines)] == [
        ["policy.k 3 → 4"],
        ["policy.k 4 → 5"],
        ["policy.k 5 → 6"],
    ]


def test_a_trace_as_text_tells_of_a_change(folder: Folder, tmp_path: Path) -> None:
    folder.run(until=300)
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    folder.run()
    for name in ("trace.csv", "trace.jsonl", "trace.parquet"):
        write(folder.lines, tmp_path / name)
        found = audit(folder.job, folder.published, trace=tmp_path / name)
        assert found["k-anonymity, part 1 of 2"].verdict == "kept"
        assert "change of the job, part 2 of 2" in [each.name for each in found.verdicts]
    assert summarize(folder.lines).n_in == N_ROWS


@pytest.mark.parametrize("weaker", [False, True])
def test_no_attack_is_judged_by_the_present_promise_alone(folder: Folder, weaker: bool) -> None:
    """A link that k = 9 forbids is allowed under k = 3, whichever of them came first."""
    if weaker:
        folder.write(policy=K3.replace("k = 3", "k = 9"))
    folder.run(until=300)
    folder.write(policy=K3 if weaker else K3.replace("k = 3", "k = 9"))
    folder.run(accept_weaker=weaker)
    original = folder.table.select(list(folder.job.schema.columns))
    given = {"original": original, "trace": folder.lines, "attacks": ["linking"]}
    made = attack(folder.job, folder.published, **given)
    assert made.exit_code == 6
    for result in made.of("linking"):
        assert result.verdict == "unverifiable"
        assert "the promise of the job has changed" in str(result.unverifiable)
        assert result.success is not None
    shown = report(folder.job, folder.published, **given).as_dict()["attacks"]
    assert shown["verdict"] == "unverifiable"


def test_attacks_are_judged_where_only_the_algorithm_has_changed(folder: Folder) -> None:
    folder.run(until=300)
    folder.write(name="fads")
    folder.run()
    original = folder.table.select(list(folder.job.schema.columns))
    made = attack(
        folder.job, folder.published, original=original, trace=folder.lines, attacks=["linking"]
    )
    assert made.verdict == "within"


def test_a_report_shows_the_change(folder: Folder) -> None:
    folder.run(until=300)
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    folder.run()
    original = folder.table.select(list(folder.job.schema.columns))
    made = report(folder.job, folder.published, original=original, trace=folder.trace, attacks=[])
    page = made.html()
    assert "policy.k 3 → 4" in page


def test_under_z_anonymity_the_command_line_speaks_of_no_held_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = 'subject = "person"\n[schema.quasi]\ntown = {}\n[schema.keep]\ncolumns = ["ward"]'
    policy = "z = {}\nwindow = {{ rows = 200 }}"
    folder = Folder(tmp_path, schema=schema, policy=policy.format(3), name="z-anonymity")
    folder.run(until=300)
    folder.write(schema=schema, policy=policy.format(5), name="z-anonymity")
    words = ["run", folder.path / "job.toml", "-i", folder.path / "incoming"]
    words += ["-o", folder.path / "out.jsonl", "--trace", f"{folder.path}/trace/"]
    assert shoal(monkeypatch, *words) == 0
    (said,) = capsys.readouterr().err.split("warning: the job was changed: ")[1:]
    assert said.startswith("policy.z 3 → 5. No row was held: all that came had left under the")


def test_the_command_line_says_what_changed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", folder.path / "job.toml", "-i", folder.path / "incoming"]
    words += ["-o", folder.path / "out.jsonl", "--trace", f"{folder.path}/trace/"]
    folder.run(until=300)
    folder.write(policy="k = 2\nl = 2\ndelay = { rows = 40 }")
    assert shoal(monkeypatch, *words) == 5
    assert "policy.k 3 → 2" in capsys.readouterr().err
    assert shoal(monkeypatch, *words, "--accept-weaker") == 0
    (said,) = capsys.readouterr().err.split("warning: the job was changed: ")[1:]
    assert said.startswith("policy.k 3 → 2. Its held rows have left under the former promise")
    assert shoal(monkeypatch, "checkpoint", "show", folder.path / "state") == 0
    assert "policy.k 3 → 2, weaker, from published row" in capsys.readouterr().out
    is_whole(folder)


def test_a_change_before_the_first_row_is_none_to_speak_of(tmp_path: Path) -> None:
    folder = Folder(tmp_path, people(0))
    with pytest.raises(ResourceError, match="has no files to read"):
        folder.run()
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    with pytest.raises(ResourceError, match="has no files to read"):
        folder.run()
    assert folder.facts["changes"][0]["rows_in"] == 0
    table = people(100)
    write(table, folder.path / "incoming" / "part-1.csv")
    folder.table = table
    folder.run()
    is_whole(folder)


def test_an_older_checkpoint_without_sections_is_refused_as_before(folder: Folder) -> None:
    folder.run(until=300)
    state = folder.path / "state"
    newest = numbers_of(state, CHECKPOINT)[-1]
    found = newest_checkpoint(state, None)
    assert found is not None
    facts = {name: fact for name, fact in found.checkpoint.facts.items() if name != "sections"}
    job = found.heading.more["job"]
    path_of(state, CHECKPOINT, newest).unlink()
    checkpoint = found.checkpoint
    Store(state, job=job, seal=None).save(
        type(checkpoint)(newest, facts, checkpoint.arrays, checkpoint.batches)
    )
    folder.write(policy="k = 4\nl = 2\ndelay = { rows = 40 }")
    with pytest.raises(CheckpointError, match=r"\[policy\] is not as it was"):
        folder.run()


def test_every_key_of_a_job_has_a_rule() -> None:
    keys = {"schema", "publish", "input", "output", "algorithm"}
    for section, form in (
        ("policy", PolicyForm),
        ("run", RunForm),
        ("run.checkpoint", CheckpointForm),
        ("bad_rows", BadRowsForm),
        ("private", PrivateForm),
        ("audit", AuditForm),
    ):
        keys |= {f"{section}.{key}" for key in form.model_fields}
    knobs = {f"algorithm.{knob}" for knob in ZAnonymizer().promised_by_knobs()}
    assert set(RULES) == (keys | knobs) - {"run.checkpoint"}
