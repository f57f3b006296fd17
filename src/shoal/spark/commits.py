"""The commit log of a job on Spark: plans, epochs and commits, in the folder of its state.

An *epoch* is one step of the whole job: a micro-batch of Spark, or the end of the stream after one.
Its number is twice that of the batch, plus one for an end. An epoch starts from the states that
the epoch before it left, and leaves new ones. Before anything is computed, the driver writes what a
repetition couldn't know again (`Epoch`); when all that the epoch publishes is written, it writes
the result (`Commit`). If anything is killed in between, the epoch is repeated from the same states,
with the same rows and the same record, and returns the same rows.

Under the folder of a job:

====================================  ============================================================
``plan-0000000000``                   how many shards there are, and which row belongs to which
``epoch-0000000014``                  what was recorded before an epoch
``commit-0000000014``                 its result
``idle-0000000018``                   the last batch that had no rows and published none
``driver-0000000014``                 z on several shards: the state of the driver after an epoch
``shard-003/state-0000000014``        the state of a shard after an epoch
``shard-003/figures-0000000014``      the figures of a shard after an epoch
``history-0000000003``                what the page has shown, if there is one: see `HistoryFile`
``spark/``                            Spark's own checkpoint: which rows belong to which batch
====================================  ============================================================
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError
from shoal.io.files.atomic import sync_folder
from shoal.run.state.folder import locked, make_folder
from shoal.run.state.seal import Seal
from shoal.run.state.versions import Versions

__all__ = ["Commit", "CommitLog", "Epoch", "Plan", "shard_folder"]


@dataclass(frozen=True)
class Epoch:
    """What is recorded before an epoch: all that a repetition of it couldn't find out again.

    Parameters
    ----------
    number
        Twice the number of the batch, plus one for an end.
    parent
        The epoch whose states it starts from; None: shards start empty.
    plan
        The number of the plan that routes rows to shards.
    is_partitioned
        Whether rows are routed by the plan's partition map; otherwise all go to the first shard.
    at
        When its rows arrived, in seconds.
    until
        Rows due by this time on the clock leave in it: the next epoch may be too late.
    latest
        The latest time in the stream that any shard knew before, if there is one.
    n_in, n_out
        How many rows arrived and left before it, since the job began.
    secret
        What new pseudonyms are derived from, in hexadecimal digits; empty where there are none.
    code
        A digest of the code that decides: other code might decide differently.
    offsets
        A digest of Spark's record of which rows are in the batch.
    """

    number: int
    parent: int | None
    plan: int
    is_partitioned: bool
    at: float
    until: float
    latest: float | None
    n_in: int = 0
    n_out: int = 0
    secret: str = field(default="", repr=False)
    code: str = ""
    offsets: str = ""

    @property
    def is_end(self) -> bool:
        """Whether it is the end of the stream and not a batch."""
        return self.number % 2 == 1

    @property
    def name(self) -> str:
        """The name of the epoch's output, the same in every repetition.

        >>> Epoch(14, 12, 0, True, 0, 0, None).name, Epoch(15, 14, 0, True, 0, 0, None).name
        ('batch-0000000007', 'batch-0000000007-end')
        """
        return f"batch-{self.number // 2:010}{'-end' if self.is_end else ''}"


@dataclass(frozen=True)
class Commit:
    """The result of an epoch, over all shards.

    Parameters
    ----------
    at, latest, plan
        Those of the epoch; ``latest`` includes its rows.
    deadline
        When the first row that is held is due, if any is.
    n_in, n_out
        How many rows arrived and left, since the job began.
    summary
        The state of the figures of the whole job.
    """

    at: float
    latest: float | None
    deadline: float | None
    plan: int
    n_in: int
    n_out: int
    summary: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """How rows are routed to shards.

    Parameters
    ----------
    n_shards
        How many shards there are.
    partition_map
        The state of the map from rows to shards; None where there is none, or not yet.
    seed
        What all randomness of the shards is derived from, in hexadecimal digits.
    first_shard
        How many shards all earlier plans had.
    summary
        The state of the job's figures when the plan came into force; None: there were none.
    """

    n_shards: int
    partition_map: dict[str, Any] | None
    seed: str
    first_shard: int = 0
    summary: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Plan(n_shards={self.n_shards})"


class CommitLog:
    """The plans, epochs and commits of one job, for its driver.

    Parameters
    ----------
    folder
        Where they are: a folder that every machine of the cluster can reach.
    job
        A digest of each section of the job that they depend on.
    seal
        What they are sealed with, if anything.
    """

    def __init__(self, folder: Path, *, job: Mapping[str, str], seal: Seal | None) -> None:
        self.folder = folder
        make_folder(folder)
        if any(next(folder.glob(f"{old}-*"), None) for old in ("turn", "done", "head")):
            raise CheckpointError(
                f"{folder}: was written by an earlier version of Shoal. Let that version finish "
                "the job, or start over with another folder and another output: "
                "docs/checkpoints.md says from where."
            )
        self._plans, self._epochs, self._commits, self._idle = (
            Versions(folder, kind, job=job, seal=seal)
            for kind in ("plan", "epoch", "commit", "idle")
        )
        self._job, self._seal = dict(job), seal

    def __repr__(self) -> str:
        return f"CommitLog({str(self.folder)!r})"

    def lock(self) -> AbstractContextManager[None]:
        """Be the only driver of this job while the context lasts."""
        return locked(self.folder)

    # -- plans -----------------------------------------------------------------------------------

    @property
    def newest_plan(self) -> int | None:
        """The number of the newest plan; None before there is one."""
        return _last(self._plans)

    def plan(self, number: int) -> Plan:
        """Read a plan."""
        return Plan(**self._plans.load(number).facts)

    def add_plan(self, plan: Plan) -> int:
        """Write the next plan, create the folders of its shards, and return its number."""
        before = self.newest_plan
        number = 0 if before is None else before + 1
        for shard in range(plan.n_shards):
            make_folder(shard_folder(self.folder, plan.first_shard + shard))
        self._plans.save(number, asdict(plan))
        return number

    def complete_plan(self, number: int, partition_map: dict[str, Any]) -> None:
        """Write the partition map of a plan, once it is known."""
        self._plans.save(number, asdict(replace(self.plan(number), partition_map=partition_map)))

    # -- epochs ----------------------------------------------------------------------------------

    @property
    def last_commit(self) -> int | None:
        """The number of the last epoch that is committed."""
        return _last(self._commits)

    def commit(self, number: int) -> Commit:
        """Read the result of an epoch."""
        return Commit(**self._commits.load(number).facts)

    def epoch(self, number: int) -> Epoch:
        """Read what was recorded before an epoch."""
        return Epoch(**self._epochs.load(number).facts)

    @property
    def pending_end(self) -> Epoch | None:
        """An end of the stream that was begun and not committed; it precedes any other epoch."""
        number = _last(self._epochs)
        if number is not None and number % 2 and not self._commits.has(number):
            return self.epoch(number)
        return None

    def is_committed(self, number: int) -> bool:
        """Whether all that an epoch publishes is written."""
        return self._commits.has(number)

    def begun(self, number: int) -> Epoch | None:
        """Return the epoch of this number if it was begun before, to be repeated as it was.

        Raises
        ------
        CheckpointError
            If Spark has since lost its record of the rows of the batch, and made another one.
        """
        epoch = self.epoch(number) if self._epochs.has(number) else None
        if epoch is not None and epoch.offsets and epoch.offsets != self._offsets(number):
            raise CheckpointError(
                f"{self.folder}: Spark's own checkpoint isn't the one with which batch "
                f"{number // 2} was begun: other rows may be in it now, and be lost or published "
                "twice. Restore it, or start again with another folder and another output: "
                "docs/checkpoints.md says from where."
            )
        return epoch

    def check_finished(self) -> None:
        """Refuse to change the plan while an epoch is begun and not committed.

        Raises
        ------
        CheckpointError
            If there is one: some of its rows may be published already.
        """
        last, begun = self.last_commit, _last(self._epochs)
        if begun is not None and begun > (-1 if last is None else last):
            raise CheckpointError(
                f"{self.folder}: batch {begun // 2} was interrupted, and some of its rows may "
                "be out already. Run the job once more as it was, so that the batch is finished."
            )

    def check_follows(self, number: int) -> None:
        """Refuse a new epoch that doesn't directly follow the last commit.

        Raises
        ------
        CheckpointError
            If Spark's checkpoint and this log aren't of the same job and time, or an epoch is
            begun and not committed.
        """
        self.check_finished()
        last = self.last_commit
        newest = max((*self._commits.numbers(), *self._idle.numbers()), default=-2)
        expected = newest // 2 + 1
        allowed = {2 * expected} if last is None else {2 * expected, last + 1}
        if newest != last:
            # It was skipped, and Spark may not know: it still has no rows.
            allowed.add(newest)
        if number not in allowed:
            raise CheckpointError(
                f"{self.folder}: Spark is at batch {number // 2} and the state of the shards at "
                f"batch {expected}: files are missing, or of another time. Restore them, or start "
                "again with another folder and another output: docs/checkpoints.md says from where."
            )

    def skip(self, number: int) -> None:
        """Record that a batch had no rows and nothing was due, so that it has no epoch."""
        self.check_follows(number)
        self._idle.save(number, {})
        self._idle.drop_before(number)

    def begin(self, epoch: Epoch) -> None:
        """Record an epoch, before anything is computed."""
        self._epochs.save(epoch.number, asdict(replace(epoch, offsets=self._offsets(epoch.number))))

    def add_commit(self, epoch: Epoch, commit: Commit) -> None:
        """Record that all an epoch publishes is written, and drop what no repetition needs."""
        self._commits.save(epoch.number, asdict(commit))
        keep = epoch.number if epoch.parent is None else epoch.parent
        self._epochs.drop_before(keep)
        self._commits.drop_before(keep)
        for folder in sorted(self.folder.glob("shard-*")):
            for kind in ("state", "figures", "trace"):
                Versions(folder, kind, job=self._job, seal=self._seal).drop_before(keep)

    def figures(self, epoch: Epoch, plan: Plan) -> list[dict[str, Any]]:
        """Read the figures of every shard after an epoch.

        Raises
        ------
        CheckpointError
            If a shard has left none: the writer hasn't read its rows.
        """
        found = []
        for shard in range(plan.n_shards):
            folder = shard_folder(self.folder, plan.first_shard + shard)
            figures = Versions(folder, "figures", job=self._job, seal=self._seal)
            if not figures.has(epoch.number):
                raise CheckpointError(
                    f"{folder}: has no state after {epoch.name}: its rows weren't written. "
                    "Whatever writes a batch must write all of it."
                )
            found.append(figures.load(epoch.number).facts)
        return found

    def _offsets(self, number: int) -> str:
        """A digest of Spark's record of which rows a batch has; empty if there is none here.

        Spark doesn't sync it to the disk, and a commit must not outlive it.
        """
        path = self.folder / "spark" / "offsets" / str(number // 2)
        if number % 2 or not path.is_file():
            return ""
        with path.open("rb") as file:
            os.fsync(file.fileno())
            data = file.read()
        sync_folder(path.parent)
        return hashlib.blake2b(data, digest_size=16).hexdigest()


def shard_folder(folder: Path, shard: int) -> Path:
    """The folder where a shard keeps its state.

    >>> shard_folder(Path("state"), 3).as_posix()
    'state/shard-003'
    """
    return folder / f"shard-{shard:03}"


def _last(versions: Versions) -> int | None:
    numbers = versions.numbers()
    return numbers[-1] if numbers else None
