"""What a checkpointer counts, when a checkpoint is due, and what goes over a change of the job."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.errors import CheckpointError, ParameterError, ResourceError
from shoal.run.recovery import Checkpointer, Recovery, SavedCheckpoint
from shoal.run.state.folder import CHECKPOINT, SEGMENT, numbers_of, path_of
from shoal.run.state.journal import Change, Flush, Read, Tick, read_journal
from shoal.run.state.seal import Seal
from shoal.run.state.store import Checkpoint, Store
from shoal.testing.clocks import ManualClock

JOB = {"schema": "a1", "policy": "b2"}
OTHER = {"schema": "a1", "policy": "c3"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The clock that intervals are measured by."""
    clock = ManualClock(1000.0)
    monkeypatch.setattr("shoal.run.recovery.time.monotonic", clock)
    return clock


def recovery_in(folder: Path, job: dict[str, str] = JOB, **options: Any) -> Recovery:
    return Recovery(folder, job, **options)


def begun(folder: Path, job: dict[str, str] = JOB, code: str = "1", **options: Any) -> Checkpointer:
    """The first run of a job, which has saved checkpoint 0."""
    checkpointer = Checkpointer(recovery_in(folder, job, **options), code)
    assert checkpointer.begin() is None
    checkpointer.resume()
    checkpointer.save(0, {}, {}, {})
    return checkpointer


def resumed(
    folder: Path, job: dict[str, str] = JOB, code: str = "1", **options: Any
) -> tuple[Checkpointer, Checkpoint, list[Any]]:
    """A further run, and what it resumes from."""
    checkpointer = Checkpointer(recovery_in(folder, job, **options), code)
    found = checkpointer.begin()
    assert found is not None
    try:
        entries = list(checkpointer.entries(found))
        checkpointer.resume()
    except BaseException:
        checkpointer.close()
        raise
    return checkpointer, found, entries


@pytest.mark.parametrize("every", [0, 0.0, -1.0, float("inf"), float("nan")])
def test_checkpoints_need_a_distance(tmp_path, every) -> None:
    with pytest.raises(ParameterError, match=r"run\.checkpoint\.every"):
        recovery_in(tmp_path, every=every)
    assert recovery_in(tmp_path, every=1e-9).every == 1e-9


def test_the_digest_is_that_of_what_the_job_says(tmp_path) -> None:
    turned = dict(reversed(JOB.items()))
    assert recovery_in(tmp_path, turned).job_digest == recovery_in(tmp_path).job_digest
    assert recovery_in(tmp_path, OTHER).job_digest != recovery_in(tmp_path).job_digest


def test_it_says_how_large_a_checkpoint_is_and_how_long_it_took(
    tmp_path, clock, monkeypatch
) -> None:
    save = Store.save

    def slowly(self: Store, checkpoint: Checkpoint) -> int:
        clock.advance(2.5)
        return save(self, checkpoint)

    monkeypatch.setattr(Store, "save", slowly)
    monkeypatch.setattr("shoal.run.recovery.time.time", lambda: 77.0)
    checkpointer = begun(tmp_path)
    size = path_of(tmp_path, CHECKPOINT, 0).stat().st_size
    assert checkpointer.saved == SavedCheckpoint(0, size, 77.0, 2.5)
    checkpointer.close()
    path = path_of(tmp_path, CHECKPOINT, 0)
    os.utime(path, (55.0, 66.0))
    checkpointer, found, _ = resumed(tmp_path)
    # How long it took isn't known any more.
    assert checkpointer.saved == SavedCheckpoint(found.number, size, 66.0, None)
    checkpointer.close()


def test_it_counts_the_entries_that_no_checkpoint_covers(tmp_path, clock) -> None:
    checkpointer = begun(tmp_path)
    assert (checkpointer.n_appended, checkpointer.has_news) == (0, False)
    assert [checkpointer.append(Flush(float(i))) for i in range(3)] == [1, 2, 3]
    assert (checkpointer.n_appended, checkpointer.has_news) == (3, True)
    checkpointer.sync(3)
    checkpointer.close()
    # What is replayed counts, too.
    checkpointer, _, entries = resumed(tmp_path)
    assert entries == [Flush(0.0), Flush(1.0), Flush(2.0)]
    assert (checkpointer.n_appended, checkpointer.has_news) == (3, True)
    assert checkpointer.cut() == 1
    assert (checkpointer.n_appended, checkpointer.has_news) == (0, False)
    checkpointer.save(1, {}, {}, {})
    checkpointer.close()
    checkpointer, found, entries = resumed(tmp_path)
    assert (found.number, entries, checkpointer.n_appended) == (1, [], 0)
    checkpointer.close()


def test_one_is_due_when_the_time_has_come_and_none_is_being_saved(tmp_path, clock) -> None:
    checkpointer = begun(tmp_path, every=10.0)
    checkpointer.append(Flush(0.0))
    clock.advance(9.75)
    assert not checkpointer.is_due()
    clock.advance(0.25)
    assert checkpointer.is_due()
    number = checkpointer.cut()
    checkpointer.append(Flush(1.0))
    clock.advance(20.0)
    assert not checkpointer.is_due()
    assert checkpointer.age == 30.0
    checkpointer.save(number, {}, {}, {})
    # Its age counts from where it was cut.
    assert checkpointer.age == 20.0
    assert checkpointer.is_due()
    checkpointer.close()


def test_a_run_that_has_yet_to_begin_has_an_age(tmp_path, clock) -> None:
    """It may be asked for while the state is still being read."""
    checkpointer = Checkpointer(recovery_in(tmp_path), "1")
    clock.advance(3.0)
    assert checkpointer.age == 3.0


def test_a_resumed_run_counts_from_its_beginning(tmp_path, clock) -> None:
    checkpointer = begun(tmp_path, every=10.0)
    checkpointer.append(Flush(0.0))
    checkpointer.close()
    later = Checkpointer(recovery_in(tmp_path, every=10.0), "1")
    found = later.begin()
    assert found is not None
    assert list(later.entries(found)) == [Flush(0.0)]
    clock.advance(50.0)
    later.resume()
    assert later.age == 0.0
    assert not later.is_due()
    clock.advance(10.0)
    assert later.is_due()
    later.close()


def test_a_checkpoint_names_code_and_sections_and_keeps_what_was_changed(tmp_path) -> None:
    sections = {"policy": {"k": 3}}
    checkpointer = begun(tmp_path, code="7", sections=sections)
    checkpointer.close()
    checkpointer = Checkpointer(recovery_in(tmp_path, code="8", sections=sections), "7")
    found = checkpointer.begin()
    assert found is not None
    assert found.facts == {"code": "7", "sections": sections, "changes": [], "private": {}}
    checkpointer.resume()
    checkpointer.save(checkpointer.cut(), {"seq": 3}, {"a": np.ones(2)}, {})
    checkpointer.close()
    checkpointer = Checkpointer(recovery_in(tmp_path), "9")
    found = checkpointer.begin()
    assert found is not None
    assert (found.facts["code"], found.facts["seq"]) == ("8", 3)
    assert found.arrays["a"].tolist() == [1.0, 1.0]
    checkpointer.close()


def test_other_code_resumes_only_where_nothing_is_to_be_replayed(tmp_path) -> None:
    checkpointer = begun(tmp_path)
    checkpointer.close()
    checkpointer, _, entries = resumed(tmp_path, code="2")
    assert entries == []
    checkpointer.append(Flush(0.0))
    checkpointer.close()
    with pytest.raises(CheckpointError, match="another version of Shoal"):
        resumed(tmp_path, code="2")
    checkpointer, _, entries = resumed(tmp_path, code="1")
    assert entries == [Flush(0.0)]
    checkpointer.close()


def test_a_segment_that_is_missing_is_noticed(tmp_path) -> None:
    begun(tmp_path).close()
    path_of(tmp_path, SEGMENT, 0).unlink()
    with pytest.raises(CheckpointError, match="journal that followed checkpoint 0 is missing"):
        resumed(tmp_path)


# -- a change of the job ---------------------------------------------------------------------------


def change(
    folder: Path, job: dict[str, str], former: dict[str, str], note: str, **facts: Any
) -> Checkpointer:
    checkpointer = Checkpointer(recovery_in(folder, job), "1")
    checkpointer.change(former, lambda found: (dict(facts), {}, {}), {"note": note})
    return checkpointer


def test_changes_are_noted_one_after_the_other_and_counted_until_traced(tmp_path) -> None:
    begun(tmp_path).close()
    change(tmp_path, OTHER, JOB, "first")
    change(tmp_path, JOB, OTHER, "second")
    checkpointer, found, entries = resumed(tmp_path)
    assert entries == []
    assert found.facts["changes"] == [{"note": "first"}, {"note": "second"}]
    assert found.facts["untraced"] == 2
    # What was changed goes over to all later checkpoints.
    checkpointer.save(checkpointer.cut(), {}, {}, {})
    checkpointer.close()
    checkpointer, found, _ = resumed(tmp_path)
    assert found.facts["changes"] == [{"note": "first"}, {"note": "second"}]
    assert "untraced" not in found.facts
    checkpointer.close()


def test_rows_since_the_former_job_was_drained_forbid_a_change(tmp_path) -> None:
    checkpointer = begun(tmp_path)
    checkpointer.append(Tick(1.0, 1.0))
    checkpointer.append(Flush(2.0))
    checkpointer.close()
    # Neither a tick nor the end has brought rows.
    change(tmp_path, OTHER, JOB, "allowed")
    checkpointer, _, _ = resumed(tmp_path, OTHER)
    checkpointer.append(Read((), 1.0, 1.0))
    checkpointer.close()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(CheckpointError, match="has used this folder"):
        change(tmp_path, JOB, OTHER, "refused")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_after_a_change_the_journal_is_closed(tmp_path) -> None:
    begun(tmp_path).close()
    changer = change(tmp_path, OTHER, JOB, "made")
    with pytest.raises(ValueError, match="the journal is closed"):
        changer.append(Flush(1.0))


def interrupted(folder: Path, job: dict[str, str], former: dict[str, str]) -> None:
    """A change that ends after its entry was synced, and before its checkpoint is on disk."""

    def fail(found: Checkpoint) -> Any:
        raise KeyboardInterrupt

    checkpointer = Checkpointer(recovery_in(folder, job), "1")
    with pytest.raises(KeyboardInterrupt):
        checkpointer.change(former, fail, {"note": "interrupted"})


def test_a_change_that_was_interrupted_leaves_the_former_job_as_it_was(tmp_path) -> None:
    checkpointer = begun(tmp_path)
    checkpointer.close()
    interrupted(tmp_path, OTHER, JOB)
    assert Change(recovery_in(tmp_path, OTHER).job_digest) in list(read_journal(tmp_path, 0, None))
    checkpointer, found, entries = resumed(tmp_path)
    assert (found.number, entries) == (0, [])
    # It says in the journal whose entries follow, so that the next run can replay them.
    checkpointer.append(Flush(3.0))
    checkpointer.close()
    checkpointer, _, entries = resumed(tmp_path)
    assert entries == [Flush(3.0)]
    checkpointer.append(Flush(4.0))
    checkpointer.close()
    n_changes = [type(entry) for entry in read_journal(tmp_path, 0, None)].count(Change)
    assert n_changes == 2
    checkpointer, _, entries = resumed(tmp_path)
    assert entries == [Flush(3.0), Flush(4.0)]
    checkpointer.close()


def test_what_was_decided_under_another_job_isnt_decided_again(tmp_path) -> None:
    begun(tmp_path).close()
    interrupted(tmp_path, OTHER, JOB)
    # As if a run of the other job had gone on, and its checkpoint were lost.
    numbers = numbers_of(tmp_path, SEGMENT)
    journal = Checkpointer(recovery_in(tmp_path, OTHER), "1")
    journal.resume()
    journal.append(Flush(1.0))
    journal.close()
    assert numbers_of(tmp_path, SEGMENT) == numbers
    with pytest.raises(CheckpointError, match="the job was changed after checkpoint 0"):
        resumed(tmp_path)


def test_the_folder_is_free_after_each_end(tmp_path) -> None:
    ends: list[Callable[[], Any]] = [
        lambda: begun(tmp_path).close(),
        lambda: interrupted(tmp_path, OTHER, JOB),
        lambda: change(tmp_path, OTHER, JOB, "made"),
        lambda: resumed(tmp_path, OTHER)[0].close(),
    ]
    for end in ends:
        end()
        with Store(tmp_path, job=JOB, seal=None).lock():
            pass


def test_no_other_run_gets_a_folder_that_is_in_use(tmp_path) -> None:
    checkpointer = begun(tmp_path)
    with pytest.raises(ResourceError, match="runs this job"):
        Checkpointer(recovery_in(tmp_path), "1").begin()
    checkpointer.close()
    resumed(tmp_path)[0].close()


def test_what_is_read_twice_is_the_same(tmp_path) -> None:
    checkpointer = begun(tmp_path)
    checkpointer.append(Flush(1.0))
    checkpointer.close()
    interrupted(tmp_path, OTHER, JOB)
    checkpointer = Checkpointer(recovery_in(tmp_path), "1")
    found = checkpointer.begin()
    assert found is not None
    assert list(checkpointer.entries(found)) == list(checkpointer.entries(found)) == [Flush(1.0)]
    checkpointer.close()


def test_what_it_depends_on_is_not_shown_and_nothing_is_fallen_back_to_unasked(tmp_path) -> None:
    recovery = recovery_in(
        tmp_path, {"policy": "CANARY"}, sections={"CANARY": 1}, seal=Seal(bytes(32))
    )
    assert repr(recovery) == (
        f"Recovery(folder={tmp_path!r}, code=None, every=10.0, fall_back=False)"
    )
