"""The commit log of a job on Spark has what a repetition needs, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shoal.errors import CheckpointError, ResourceError
from shoal.run.state.seal import Seal
from shoal.run.state.versions import Versions
from shoal.spark.commits import Commit, CommitLog, Epoch, Plan, shard_folder

JOB = {"schema": "aa11", "policy": "bb22"}
SEAL = Seal(bytes(range(32)))
PLAN = Plan(2, None, "c0ffee")


def new(folder: Path, seal: Seal | None = None, job: dict[str, str] = JOB) -> CommitLog:
    return CommitLog(folder, job=job, seal=seal)


def epoch_of(number: int, parent: int | None = None, plan: int = 0) -> Epoch:
    return Epoch(number, parent, plan, True, 7.25, 7.5, None, 10, 5, "5ec4e7")


def commit_of(epoch: Epoch) -> Commit:
    return Commit(epoch.at, 3.5, None, epoch.plan, 12, 6, {"n_in": 12})


def run_epoch(commits: CommitLog, epoch: Epoch, seal: Seal | None = None) -> None:
    """An epoch with all that shards write in it."""
    commits.begin(epoch)
    for shard in range(commits.plan(epoch.plan).n_shards):
        leave(commits, epoch, shard, seal)
    commits.add_commit(epoch, commit_of(epoch))


def leave(commits: CommitLog, epoch: Epoch, shard: int, seal: Seal | None = None) -> None:
    """What a shard leaves after an epoch."""
    folder = shard_folder(commits.folder, commits.plan(epoch.plan).first_shard + shard)
    for kind in ("state", "figures"):
        Versions(folder, kind, job=JOB, seal=seal).save(epoch.number, {"shard": shard})


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*-*") if path.is_file()}


# -- plans -----------------------------------------------------------------------------------------


def test_plans_are_numbered_and_come_back(tmp_path):
    commits = new(tmp_path / "state")
    assert commits.newest_plan is None
    assert commits.add_plan(PLAN) == 0
    later = Plan(3, {"cut": [1.5]}, "f00d", 2, {"n_in": 9})
    assert commits.add_plan(later) == 1
    again = new(tmp_path / "state")
    assert again.newest_plan == 1
    assert (again.plan(0), again.plan(1)) == (PLAN, later)
    found = {path.name for path in (tmp_path / "state").glob("shard-*")}
    assert found == {f"shard-00{shard}" for shard in range(5)}


def test_the_map_of_a_plan_is_written_once_it_is_known(tmp_path):
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    commits.complete_plan(0, {"cut": [2.5]})
    assert commits.plan(0) == replace(PLAN, partition_map={"cut": [2.5]})
    assert commits.newest_plan == 0


# -- epochs ----------------------------------------------------------------------------------------


def test_an_epoch_that_was_begun_is_repeated_as_it_was_recorded(tmp_path):
    commits, epoch = new(tmp_path), epoch_of(0)
    commits.add_plan(PLAN)
    assert commits.begun(0) is None
    commits.begin(epoch)
    again = new(tmp_path)
    assert again.begun(0) == epoch
    assert (again.last_commit, again.is_committed(0)) == (None, False)
    again.add_commit(epoch, commit_of(epoch))
    assert (again.last_commit, again.is_committed(0)) == (0, True)
    assert new(tmp_path).commit(0) == commit_of(epoch)
    # Spark may not know that it is done, and ask for it again.
    assert new(tmp_path).begun(0) == epoch


def test_an_end_that_was_begun_comes_before_all_else(tmp_path):
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    assert commits.pending_end is None
    run_epoch(commits, epoch_of(0))
    assert commits.pending_end is None
    end = epoch_of(1, 0)
    assert end.is_end
    commits.begin(end)
    assert new(tmp_path).pending_end == end
    commits.add_commit(end, commit_of(end))
    assert new(tmp_path).pending_end is None


def test_a_batch_that_was_begun_is_no_pending_end(tmp_path):
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    run_epoch(commits, epoch_of(0))
    commits.begin(epoch_of(2, 0))
    assert commits.pending_end is None


def test_epochs_follow_each_other(tmp_path):
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    commits.check_follows(0)
    with pytest.raises(CheckpointError, match=r"Spark is at batch 3 and .* at batch 0: files are"):
        commits.check_follows(6)
    run_epoch(commits, epoch_of(0))
    # The next batch, or an end after this one.
    commits.check_follows(2)
    commits.check_follows(1)
    for number in (0, 4, 3):
        with pytest.raises(CheckpointError, match="the state of the shards at batch 1"):
            commits.check_follows(number)
    run_epoch(commits, epoch_of(1, 0))
    commits.check_follows(2)
    for number in (0, 4):
        with pytest.raises(CheckpointError, match="the state of the shards at batch 1"):
            commits.check_follows(number)


def test_nothing_overtakes_a_batch_that_was_interrupted(tmp_path):
    # Some of its rows may be out: an end that decides the same rows anew would publish them twice.
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    commits.begin(epoch_of(0))
    with pytest.raises(CheckpointError, match="batch 0 was interrupted"):
        commits.check_follows(1)
    commits.add_commit(epoch_of(0), commit_of(epoch_of(0)))
    commits.begin(epoch_of(2, 0))
    for number in (1, 2):
        with pytest.raises(CheckpointError, match=r"batch 1 was interrupted.*Run the job once"):
            commits.check_follows(number)


# -- what is kept ----------------------------------------------------------------------------------


def test_what_a_repetition_needs_is_kept_and_nothing_else(tmp_path):
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    run_epoch(commits, epoch_of(0))
    for number in (2, 4, 6):
        run_epoch(commits, epoch_of(number, number - 2))
    shards = {
        f"shard-00{shard}/{kind}-000000000{number}"
        for shard in (0, 1)
        for kind in ("state", "figures")
        for number in (4, 6)
    }
    log = {f"{kind}-000000000{number}" for kind in ("epoch", "commit") for number in (4, 6)}
    assert files(tmp_path) == {"plan-0000000000"} | shards | log


def test_what_crashes_have_left_goes_with_the_epoch_it_is_of(tmp_path):
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    run_epoch(commits, epoch_of(0))
    left = [tmp_path / f"shard-000/{kind}-0000000000.9-ff.partial" for kind in ("state", "trace")]
    left += [tmp_path / "shard-001/trace-0000000000", tmp_path / "epoch-0000000000.9-ff.partial"]
    for path in left:
        path.write_bytes(b"half")
    run_epoch(commits, epoch_of(2, 0))
    assert all(path.exists() for path in left)
    run_epoch(commits, epoch_of(4, 2))
    assert not any(path.exists() for path in left)


def test_after_a_new_plan_nothing_of_the_old_shards_is_kept(tmp_path):
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    run_epoch(commits, epoch_of(0))
    run_epoch(commits, epoch_of(1, 0))
    commits.add_plan(Plan(1, None, "f00d", 2))
    run_epoch(commits, epoch_of(2, None, plan=1))
    assert {name for name in files(tmp_path) if name.startswith("shard")} == {
        "shard-002/state-0000000002",
        "shard-002/figures-0000000002",
    }


def test_figures_are_of_all_shards_or_refused(tmp_path):
    commits, epoch = new(tmp_path), epoch_of(0)
    commits.add_plan(PLAN)
    commits.begin(epoch)
    leave(commits, epoch, 0)
    with pytest.raises(CheckpointError, match=r"shard-001: has no state after batch-0000000000"):
        commits.figures(epoch, PLAN)
    leave(commits, epoch, 1)
    assert commits.figures(epoch, PLAN) == [{"shard": 0}, {"shard": 1}]


# -- refusals --------------------------------------------------------------------------------------


def test_another_job_is_refused(tmp_path):
    commits = new(tmp_path)
    commits.add_plan(PLAN)
    run_epoch(commits, epoch_of(0))
    changed = new(tmp_path, job=JOB | {"policy": "cc33"})
    for look in (lambda: changed.commit(0), lambda: changed.plan(0), lambda: changed.begun(0)):
        with pytest.raises(CheckpointError, match=r"\[policy\] is not as it was"):
            look()


@pytest.mark.parametrize("other", [None, Seal(bytes(32))], ids=["no key", "another key"])
def test_another_seal_is_refused(tmp_path, other):
    commits = new(tmp_path, SEAL)
    commits.add_plan(PLAN)
    run_epoch(commits, epoch_of(0), SEAL)
    assert commits.figures(epoch_of(0), PLAN) == [{"shard": 0}, {"shard": 1}]
    changed = new(tmp_path, other)
    looks = (lambda: changed.plan(0), lambda: changed.begun(0), lambda: changed.commit(0),
             lambda: changed.figures(epoch_of(0), PLAN))  # fmt: skip
    for look in looks:
        with pytest.raises(CheckpointError, match="seal"):
            look()


def test_a_seal_hides_what_pseudonyms_and_randomness_are_made_of(tmp_path):
    for name, seal, found in (("plain", None, True), ("sealed", SEAL, False)):
        commits = new(tmp_path / name, seal)
        commits.add_plan(PLAN)
        commits.begin(epoch_of(0))
        written = b"".join((tmp_path / name / file).read_bytes() for file in files(tmp_path / name))
        assert (b"c0ffee" in written) == (b"5ec4e7" in written) == found


def test_one_driver_at_a_time(tmp_path):
    with new(tmp_path).lock(), pytest.raises(ResourceError, match="two at once"):
        new(tmp_path).lock().__enter__()
    with new(tmp_path).lock():
        pass


def test_reprs_show_no_secret(tmp_path):
    assert "5ec4e7" not in repr(epoch_of(0))
    assert repr(Plan(2, {"age": 41}, "c0ffee", 0, {"n_in": 3})) == "Plan(n_shards=2)"
    assert repr(new(tmp_path, SEAL)) == f"CommitLog('{tmp_path}')"


def test_a_folder_of_an_earlier_version_is_refused(tmp_path):
    (tmp_path / "turn-0000000000").touch()
    with pytest.raises(CheckpointError, match="earlier version of Shoal"):
        new(tmp_path)
