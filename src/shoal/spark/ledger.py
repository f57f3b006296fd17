"""What survives a crash of a job on Spark: plans, turns and the state of every shard.

A *turn* is one step of the whole job: a micro-batch of Spark's, or the end of the stream after
one. Its number is twice that of the batch, and one more for an end. A turn begins from the states
that the turn before it has left, and leaves new ones. Before anything is computed the driver writes
down what a repetition couldn't know again (`Turn`); when all that the turn publishes is written,
it writes down what came of it (`Done`). Whatever is killed meanwhile, the turn is repeated from the
same states, with the same rows and the same note, and gives the same rows again.

Under the folder of a job:

====================================  ============================================================
``plan-0000000000``                   how many shards there are, and which row belongs where
``turn-0000000014``                   what was noted before a turn
``done-0000000014``                   what came of it
``idle-0000000018``                   the last batch that had no rows and published none
``shard-003/state-0000000014``        the state of a shard after it
``shard-003/figures-0000000014``      the figures of a shard after it
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

__all__ = ["Done", "Ledger", "Plan", "Turn", "shard_folder"]


@dataclass(frozen=True)
class Turn:
    """What is noted before a turn: all that a repetition of it couldn't know by itself.

    Parameters
    ----------
    number
        Twice that of the batch, and one more for an end.
    parent
        The turn whose states it begins from; None: shards begin anew.
    plan
        The number of the plan by which rows are dealt out.
    is_placed
        Whether rows are dealt out by the plan's map of places, and don't all go to one shard.
    at
        When its rows have arrived, in seconds.
    until
        What is due until then by the clock leaves with it: the next turn may be too late.
    latest
        The latest time of the stream that any shard knew before, if there is one.
    n_in, n_out
        How many rows have come and have left before, since the job began.
    secret
        What new pseudonyms are made of, in hexadecimal digits; empty where there are none.
    code
        A digest of the code that decides: other code might decide otherwise.
    offsets
        A digest of what Spark has noted of the batch: which rows are in it.
    """

    number: int
    parent: int | None
    plan: int
    is_placed: bool
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
        """Whether it isn't a batch but the end of the stream."""
        return self.number % 2 == 1

    @property
    def name(self) -> str:
        """What the output of the turn is called: the same whenever it is repeated.

        >>> Turn(14, 12, 0, True, 0, 0, None).name, Turn(15, 14, 0, True, 0, 0, None).name
        ('batch-0000000007', 'batch-0000000007-end')
        """
        return f"batch-{self.number // 2:010}{'-end' if self.is_end else ''}"


@dataclass(frozen=True)
class Done:
    """What came of a turn, over all shards.

    Parameters
    ----------
    at, latest, plan
        As of the turn, and with the time of its rows.
    deadline
        When the first of the rows that are held is due, if any is.
    n_in, n_out
        How many rows have come and have left, since the job began.
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
    """How rows are dealt out.

    Parameters
    ----------
    n_shards
        How many shards there are.
    places
        The state of the map from rows to shards; None where it takes none.
    seed
        Where the randomness of all shards comes from, in hexadecimal digits.
    first_shard
        How many shards all plans before it had.
    summary
        The state of the figures of the job when the plan came into force; None: there were none.
    """

    n_shards: int
    places: dict[str, Any] | None
    seed: str
    first_shard: int = 0
    summary: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Plan(n_shards={self.n_shards})"


class Ledger:
    """The plans, turns and results of one job, for its driver.

    Parameters
    ----------
    folder
        Where they are: a folder that every machine of the cluster reaches.
    job
        A digest of each section of the job that they depend on.
    seal
        What they are sealed with, if anything.
    """

    def __init__(self, folder: Path, *, job: Mapping[str, str], seal: Seal | None) -> None:
        self.folder = folder
        make_folder(folder)
        self._plans = Versions(folder, "plan", job=job, seal=seal)
        self._turns = Versions(folder, "turn", job=job, seal=seal)
        self._done = Versions(folder, "done", job=job, seal=seal)
        self._idle = Versions(folder, "idle", job=job, seal=seal)
        self._job, self._seal = dict(job), seal

    def __repr__(self) -> str:
        return f"Ledger({str(self.folder)!r})"

    def lock(self) -> AbstractContextManager[None]:
        """Be the only driver of this job, for as long as the context lasts."""
        return locked(self.folder)

    # -- plans -----------------------------------------------------------------------------------

    @property
    def newest_plan(self) -> int | None:
        """The number of the newest plan; None before there is one."""
        numbers = self._plans.numbers()
        return numbers[-1] if numbers else None

    def plan(self, number: int) -> Plan:
        """Read a plan."""
        return Plan(**self._plans.load(number).facts)

    def add_plan(self, plan: Plan) -> int:
        """Write the next plan down; give its number. Folders for its shards are made."""
        before = self.newest_plan
        number = 0 if before is None else before + 1
        for shard in range(plan.n_shards):
            make_folder(shard_folder(self.folder, plan.first_shard + shard))
        self._plans.save(number, asdict(plan))
        return number

    def complete_plan(self, number: int, places: dict[str, Any]) -> None:
        """Write down which row belongs where, once that is known."""
        self._plans.save(number, asdict(replace(self.plan(number), places=places)))

    # -- turns -----------------------------------------------------------------------------------

    @property
    def last_done(self) -> int | None:
        """The number of the last turn that is done."""
        numbers = self._done.numbers()
        return numbers[-1] if numbers else None

    def done(self, number: int) -> Done:
        """What came of a turn."""
        return Done(**self._done.load(number).facts)

    @property
    def pending_end(self) -> Turn | None:
        """The end of a stream that was begun and isn't done; it comes before any other turn."""
        numbers = self._turns.numbers()
        if numbers and numbers[-1] % 2 and not self._done.has(numbers[-1]):
            return self._turn(numbers[-1])
        return None

    def is_done(self, number: int) -> bool:
        """Whether all that a turn publishes is written."""
        return self._done.has(number)

    def noted(self, number: int) -> Turn | None:
        """The turn of this number if it was begun before, to be repeated as it was.

        Raises
        ------
        CheckpointError
            If Spark has since forgotten which rows the batch had, and has made up another one.
        """
        turn = self._turn(number) if self._turns.has(number) else None
        if turn is not None and turn.offsets and turn.offsets != self._offsets(number):
            raise CheckpointError(
                f"{self.folder}: Spark's own checkpoint isn't the one with which batch "
                f"{number // 2} was begun: other rows may be in it now, and be lost or published "
                "twice. Put it back, or start anew with another folder and another output."
            )
        return turn

    def check_finished(self) -> None:
        """Refuse to go another way while a turn that was begun isn't done.

        Raises
        ------
        CheckpointError
            If there is one: some of its rows may be out.
        """
        last, begun = self.last_done, self._turns.numbers()
        if begun and begun[-1] > (-1 if last is None else last):
            raise CheckpointError(
                f"{self.folder}: batch {begun[-1] // 2} was interrupted, and some of its rows may "
                "be out already. Run the job once more as it was, so that the batch is finished."
            )

    def check_follows(self, number: int) -> None:
        """Refuse a new turn that doesn't come right after the last one that is done.

        Raises
        ------
        CheckpointError
            If Spark's checkpoint and this ledger aren't of the same job and moment, or a turn was
            begun that isn't done.
        """
        self.check_finished()
        last = self.last_done
        seen = (*self._done.numbers(), *self._idle.numbers())
        newest = max(seen, default=-2)
        expected = newest // 2 + 1
        allowed = {2 * expected} if last is None else {2 * expected, last + 1}
        if newest != last:
            # It was skipped, and Spark may not know: it still has no rows.
            allowed.add(newest)
        if number not in allowed:
            raise CheckpointError(
                f"{self.folder}: Spark is at batch {number // 2} and the state of the shards at "
                f"batch {expected}: files are missing, or of another time. Put them back, or start "
                "anew with another folder and another output."
            )

    def skip(self, number: int) -> None:
        """Note that a batch had no rows and nothing was due, so that there is no turn of it."""
        self.check_follows(number)
        self._idle.save(number, {})
        self._idle.drop_before(number)

    def begin(self, turn: Turn) -> None:
        """Note a turn, before anything is computed."""
        self._turns.save(turn.number, asdict(replace(turn, offsets=self._offsets(turn.number))))

    def finish(self, turn: Turn, done: Done) -> None:
        """Note that all a turn publishes is written, and forget what no repetition needs."""
        self._done.save(turn.number, asdict(done))
        keep = turn.number if turn.parent is None else turn.parent
        self._turns.drop_before(keep)
        self._done.drop_before(keep)
        for folder in sorted(self.folder.glob("shard-*")):
            for kind in ("state", "figures", "trace"):
                Versions(folder, kind, job=self._job, seal=self._seal).drop_before(keep)

    def figures(self, turn: Turn, plan: Plan) -> list[dict[str, Any]]:
        """The figures of every shard after a turn.

        Raises
        ------
        CheckpointError
            If a shard has left none: whoever should have written its rows hasn't asked for them.
        """
        found = []
        for shard in range(plan.n_shards):
            folder = shard_folder(self.folder, plan.first_shard + shard)
            figures = Versions(folder, "figures", job=self._job, seal=self._seal)
            if not figures.has(turn.number):
                raise CheckpointError(
                    f"{folder}: has no state after {turn.name}: its rows weren't written. "
                    "Whatever writes a batch must write all of it."
                )
            found.append(figures.load(turn.number).facts)
        return found

    def _offsets(self, number: int) -> str:
        """A digest of Spark's note of which rows a batch has; empty if there is none here.

        Spark doesn't have the disk keep it, and what is done must not outlive it.
        """
        path = self.folder / "spark" / "offsets" / str(number // 2)
        if number % 2 or not path.is_file():
            return ""
        with path.open("rb") as file:
            os.fsync(file.fileno())
            data = file.read()
        sync_folder(path.parent)
        return hashlib.blake2b(data, digest_size=16).hexdigest()

    def _turn(self, number: int) -> Turn:
        return Turn(**self._turns.load(number).facts)


def shard_folder(folder: Path, shard: int) -> Path:
    """Where a shard keeps its state.

    >>> shard_folder(Path("state"), 3).as_posix()
    'state/shard-003'
    """
    return folder / f"shard-{shard:03}"
