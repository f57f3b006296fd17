"""What makes a run survive its process: the journal, the checkpoints, and the way back.

Checkpoint n holds all that later decisions depend on; segment n of the journal holds what came
after it and can't be seen again. A run that goes on restores the newest checkpoint and lives
through the journal again; its sinks drop what they have already.

1. An entry of the journal is appended before the engine sees what it tells, and synced before
   anything that depends on it is handed to a sink.
2. At a checkpoint the journal is rolled first, in the deciding thread, at the same moment as the
   snapshot is taken. The writing thread then writes all that was decided before, commits the
   sinks, and saves the snapshot with the sinks' marks.
3. So the sinks have at least what a checkpoint says that they have, and at most what the journal
   after it accounts for. Either is checked when a run goes on.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError, ParameterError
from shoal.events import event
from shoal.run.state.folder import SEGMENT, numbers_of
from shoal.run.state.journal import Entry, Journal, read_journal
from shoal.run.state.seal import Seal
from shoal.run.state.store import Checkpoint, Store

__all__ = ["Recorder", "Recovery", "Saved"]

log = logging.getLogger("shoal.run.recovery")


@dataclass(frozen=True)
class Recovery:
    """A recipe: where checkpoints go, how often, and what they are of.

    Parameters
    ----------
    folder
        Where checkpoints and journal are.
    job
        A digest for each part of the job that what is held depends on.
    code
        A digest of the code that decides: a replay by other code might decide otherwise. None:
        that of the run's algorithm and source.
    every
        How many seconds lie between two checkpoints.
    seal
        What they are sealed with; None for not at all.
    fall_back
        Whether to go on from the checkpoint before the newest if that one is damaged.
    """

    folder: Path
    job: Mapping[str, str] = field(repr=False)
    code: str | None = None
    every: float = 10.0
    seal: Seal | None = field(default=None, repr=False)
    fall_back: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.every < float("inf"):
            raise ParameterError(
                "run.checkpoint.every", "must be a number of seconds above 0", got=self.every
            )


@dataclass(frozen=True, slots=True)
class Saved:
    """What is known of the latest checkpoint: its number, its bytes, when and how long it took."""

    number: int
    n_bytes: int
    at: float
    seconds: float


class Recorder:
    """The journal and the checkpoints of one run.

    The deciding thread notes entries and cuts; the writing thread syncs and saves.
    """

    def __init__(self, recovery: Recovery, code: str) -> None:
        self._recovery = recovery
        self._code = code if recovery.code is None else recovery.code
        self._store = Store(recovery.folder, job=recovery.job, seal=recovery.seal)
        self._journal: Journal | None = None
        self._stack = contextlib.ExitStack()
        # When the latest checkpoint was begun, and when the latest was that is on the disk.
        self._cut_at = self._kept_at = time.monotonic()
        self._n_noted = 0
        self._is_saving = self._has_failed = False
        #: The latest checkpoint that this run has saved or restored.
        self.saved: Saved | None = None

    def begin(self) -> Checkpoint | None:
        """Make sure that nobody else runs this job, and find where it stood."""
        self._stack.enter_context(self._store.lock())
        found = self._store.latest(fall_back=self._recovery.fall_back)
        if found is not None:
            self.saved = Saved(found.number, 0, time.time(), 0.0)
        return found

    def entries(self, checkpoint: Checkpoint) -> Iterator[Entry]:
        """What came after a checkpoint, to be lived through again."""
        folder = self._recovery.folder
        if checkpoint.number not in numbers_of(folder, SEGMENT):
            raise CheckpointError(
                f"{folder}: the journal that followed checkpoint {checkpoint.number} is missing: "
                "without it rows could be published twice. Put it back, or start anew with "
                "another folder and another output."
            )
        entries = list(read_journal(folder, checkpoint.number, self._recovery.seal))
        code = checkpoint.facts.get("code")
        if entries and code != self._code:
            raise CheckpointError(
                f"{folder}: the run before was killed, and another version of "
                "Shoal is to go on. It might decide otherwise about rows that are out already. "
                "Let the former version go on and stop it with SIGTERM; then change the version."
            )
        # What has to be lived through again is news: the next checkpoint spares it the run after.
        self._n_noted = len(entries)
        return iter(entries)

    def resume(self) -> None:
        """Begin to note what happens, after all that the journal has."""
        numbers = numbers_of(self._recovery.folder, SEGMENT)
        self._journal = Journal(
            self._recovery.folder, numbers[-1] if numbers else 0, self._recovery.seal
        )
        self._cut_at = self._kept_at = time.monotonic()

    def close(self) -> None:
        """Let go of the journal and of the job."""
        if self._journal is not None:
            self._journal.close()
        self._stack.close()

    # -- the deciding thread ---------------------------------------------------------------------

    def note(self, entry: Entry) -> int:
        """Note what is about to be decided; give the ticket to sync up to."""
        assert self._journal is not None
        self._n_noted += 1
        return self._journal.append(entry)

    @property
    def has_news(self) -> bool:
        """Whether the journal has anything that no checkpoint knows of."""
        return self._n_noted > 0 or self._has_failed

    def is_due(self) -> bool:
        """Whether it is time for a checkpoint. One that would keep nothing new is as good as taken.

        So its age tells nothing about rows: one that waited for them would tell when they come.
        """
        now = time.monotonic()
        if self._is_saving or now - self._cut_at < self._recovery.every:
            return False
        if not self.has_news:
            self._cut_at = self._kept_at = now
        return self.has_news

    @property
    def age(self) -> float:
        """For how many seconds no checkpoint has been taken, though it was time."""
        return time.monotonic() - self._kept_at

    def cut(self) -> int:
        """Begin a new segment of the journal; give its number, for the checkpoint before it."""
        assert self._journal is not None
        number = self._journal.number + 1
        self._journal.roll(number)
        self._cut_at, self._n_noted = time.monotonic(), 0
        self._is_saving, self._has_failed = True, False
        return number

    # -- the writing thread ----------------------------------------------------------------------

    def sync(self, ticket: int) -> None:
        """Have the disk keep what was noted, up to a ticket."""
        assert self._journal is not None
        self._journal.sync(ticket)

    def save(
        self,
        number: int,
        facts: dict[str, Any],
        arrays: dict[str, Any],
        batches: dict[str, Any],
    ) -> None:
        """Save a checkpoint."""
        begin = time.monotonic()
        facts = facts | {"code": self._code}
        cut_at = self._cut_at
        try:
            n_bytes = self._store.save(Checkpoint(number, facts, arrays, batches))
            self._kept_at = cut_at
        except BaseException:
            self._has_failed = True
            raise
        finally:
            self._is_saving = False
        self.saved = Saved(number, n_bytes, time.time(), time.monotonic() - begin)
        event(log, logging.INFO, "checkpoint saved", number=number, bytes=n_bytes)
