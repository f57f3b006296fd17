"""Recovery of a run after its process ended: the journal, the checkpoints, and the replay.

Checkpoint n holds all that later decisions depend on; segment n of the journal holds what followed
it and can't be read again from the source. A resumed run restores the newest checkpoint and replays
the journal; its sinks drop the rows that they already have.

1. An entry of the journal is appended before the engine sees its content, and synced before
   anything that depends on it is handed to a sink.
2. At a checkpoint the deciding thread starts a new segment of the journal and takes the snapshot
   at the same moment. The writing thread then writes all earlier decisions, commits the sinks, and
   saves the snapshot with the marks of the sinks.
3. So the sinks have at least what a checkpoint says that they have, and at most what the journal
   after it accounts for. Both are checked when a run resumes.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError, ParameterError
from shoal.events import event
from shoal.run.state.folder import CHECKPOINT, SEGMENT, numbers_of, path_of
from shoal.run.state.journal import AnyEntry, Change, Entry, Journal, Read, read_journal
from shoal.run.state.seal import Seal
from shoal.run.state.store import Checkpoint, Store

__all__ = ["Checkpointer", "Recovery", "SavedCheckpoint"]

log = logging.getLogger("shoal.run.recovery")


@dataclass(frozen=True)
class Recovery:
    """Where checkpoints are kept, how often they are taken, and what they depend on.

    Parameters
    ----------
    folder
        The folder of checkpoints and journal.
    job
        A digest for each part of the job that the state depends on.
    private
        By its key in the job, or its option, how each private output is kept, and where as seen
        from the folder. It is compared before anything is opened: each resumes at its mark. What is
        left out isn't written, and is compared again once it is back.
    unnamed
        The keys of ``private`` that the job leaves out: they have the name of the job.
    sections
        The sections of the job that may change at a restart, as plain values: so that what is held
        then can be decided under the promise that it was taken in under.
    code
        A digest of the code that decides: a replay by other code might decide differently. None:
        that of the run's algorithm and source.
    every
        The seconds between two checkpoints.
    seal
        Encrypts them; None: they are in clear.
    fall_back
        Whether to resume from the checkpoint before the newest if that one is damaged.
    followed_by
        The digest of the changed job that this one is only finished for; None: it goes on itself.
    """

    folder: Path
    job: Mapping[str, str] = field(repr=False)
    private: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    unnamed: Collection[str] = field(default=(), repr=False)
    sections: Mapping[str, Any] = field(default_factory=dict, repr=False)
    code: str | None = None
    every: float = 10.0
    seal: Seal | None = field(default=None, repr=False)
    fall_back: bool = False
    followed_by: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.every < float("inf"):
            raise ParameterError(
                "run.checkpoint.every", "must be a number of seconds above 0", got=self.every
            )

    @property
    def job_digest(self) -> str:
        """A digest of the whole job, by which the journal says whose entries follow."""
        return hashlib.blake2b(repr(sorted(self.job.items())).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """The latest checkpoint: its number, its size, when it was saved and how long that took.

    The duration is None if a run before this one has saved it.
    """

    number: int
    n_bytes: int
    at: float
    seconds: float | None


class Checkpointer:
    """Write the journal and the checkpoints of one run.

    The deciding thread appends entries and cuts segments; the writing thread syncs and saves.
    """

    def __init__(self, recovery: Recovery, code: str) -> None:
        self._recovery = recovery
        self._code = code if recovery.code is None else recovery.code
        self._store = Store(recovery.folder, job=recovery.job, seal=recovery.seal)
        self._journal: Journal | None = None
        self._stack = contextlib.ExitStack()
        # When the latest checkpoint was begun, and when the latest one on disk was begun.
        self._cut_at = self._saved_at = time.monotonic()
        self._n_appended = 0
        self._is_saving = self._has_failed = False
        self._changes: list[dict[str, Any]] = []
        self._private: dict[str, Any] = dict(recovery.private)
        # The job that the journal ends under, if that isn't the one of the checkpoint.
        self._ends_under: str | None = None
        #: The latest checkpoint that this run has saved or restored.
        self.saved: SavedCheckpoint | None = None

    def begin(self) -> Checkpoint | None:
        """Lock the folder, and return the newest checkpoint, if there is one."""
        self._stack.enter_context(self._store.lock())
        found = self._store.latest(fall_back=self._recovery.fall_back)
        if found is not None:
            self._check_private(found)
            self._private = {**found.facts.get("private", {}), **self._private}
            file = path_of(self._recovery.folder, CHECKPOINT, found.number).stat()
            self.saved = SavedCheckpoint(found.number, file.st_size, file.st_mtime, None)
            self._changes = found.facts.get("changes", [])
        return found

    def _check_private(self, found: Checkpoint) -> None:
        """Raise if a private output isn't what it was; older checkpoints don't say what it was."""
        then, now = found.facts.get("private", {}), self._recovery.private
        changed = {
            key: (then[key], now[key])
            for key in now
            if key in then and tuple(then[key]) != now[key]
        }
        if not changed:
            return
        what = "; ".join(
            f"{key} was {before[1]} ({before[0]}), and is now {after[1]} ({after[0]})"
            for key, (before, after) in changed.items()
        )
        moved = [key for key, pair in changed.items() if self._has_moved(key, *pair)]
        fixes = list(dict.fromkeys(_kind_fix(*pair) for pair in changed.values()))
        fixes = [fix for fix in fixes if fix] + (
            [f"restore {' and '.join(moved)}"] if moved else []
        )
        default = (
            "The default of bad_rows.file is the name of the job: run.name, or the name of the "
            "job's file. "
            if "bad_rows.file" in moved and "bad_rows.file" in self._recovery.unnamed
            else ""
        )
        fix = " and ".join(fixes)
        raise CheckpointError(
            f"{self._recovery.folder}: private files are not as they were when checkpoint "
            f"{found.number} was taken. As seen from this folder, with links followed, {what}. "
            f"{default}{fix[0].upper()}{fix[1:]}, or drain with the former job first and start "
            "again with another folder: docs/checkpoints.md says from where."
        )

    def _has_moved(self, key: str, before: Sequence[str], after: Sequence[str]) -> bool:
        """Return whether a path has changed by itself, and not because of [private]."""
        if key in self._recovery.unnamed:
            # The default has an ending if it is a file, and none if it is a folder.
            return before[1].removesuffix(".jsonl") != after[1].removesuffix(".jsonl")
        return before[1] != after[1]

    def change(
        self,
        former: Mapping[str, str],
        carry: Callable[[Checkpoint], tuple[dict[str, Any], dict[str, Any], dict[str, Any]]],
        change: dict[str, Any],
    ) -> None:
        """Go over from the former job to this one: write a checkpoint from which this one resumes.

        Until that is on disk, either job can resume.

        Parameters
        ----------
        former
            The digests of the former job, whose last run has ended with nothing held.
        carry
            Returns facts, arrays and batches of this job, given the last checkpoint of the former.
        change
            What is noted about the change.
        """
        recovery = self._recovery
        store = Store(recovery.folder, job=former, seal=recovery.seal)
        with store.lock():
            found = store.latest(fall_back=recovery.fall_back)
            if found is None or any(
                isinstance(entry, Read)
                for entry in read_journal(recovery.folder, found.number, recovery.seal)
            ):
                raise CheckpointError(
                    f"{recovery.folder}: another run of the former job has used this folder since "
                    "it was drained. Start again."
                )
            self._changes = [*found.facts.get("changes", []), change]
            self._private = {**found.facts.get("private", {}), **self._private}
            self.resume()
            try:
                number = self.cut()
                self.sync(self.append(Change(recovery.job_digest)))
                facts, arrays, batches = carry(found)
                # The first run of this job writes it to the trace; none may have since the last.
                facts["untraced"] = found.facts.get("untraced", 0) + 1
                self.save(number, facts, arrays, batches)
            finally:
                self.close()

    def entries(self, checkpoint: Checkpoint) -> Iterator[Entry]:
        """Return the journal entries after a checkpoint, to be replayed."""
        folder = self._recovery.folder
        if checkpoint.number not in numbers_of(folder, SEGMENT):
            raise CheckpointError(
                f"{folder}: the journal that followed checkpoint {checkpoint.number} is missing: "
                "without it rows could be published twice. Put it back, or start again with "
                "another folder and another output: docs/checkpoints.md says from where."
            )
        entries = list(self._of_journal(checkpoint))
        code = checkpoint.facts.get("code")
        if entries and code != self._code:
            raise CheckpointError(
                f"{folder}: the last run was killed, and this is another version of Shoal. It "
                "might decide differently about rows that are already published. Resume with the "
                "former version and stop it with SIGTERM; then change the version."
            )
        # Replayed entries count as new: the next checkpoint spares the next run their replay.
        self._n_appended = len(entries)
        return iter(entries)

    def _of_journal(self, checkpoint: Checkpoint) -> Iterator[Entry]:
        """Yield what was decided after a checkpoint, all under its job."""
        folder, own = self._recovery.folder, self._recovery.job_digest
        self._ends_under = None
        for entry in read_journal(folder, checkpoint.number, self._recovery.seal):
            if isinstance(entry, Change):
                self._ends_under = None if entry.job == own else entry.job
            elif self._ends_under is not None:
                raise CheckpointError(
                    f"{folder}: the job was changed after checkpoint {checkpoint.number}, and rows "
                    "were decided under the new one: they can't be decided again from here. Start "
                    "again with another folder: docs/checkpoints.md says from where."
                )
            else:
                yield entry
        if self._ends_under in (None, self._recovery.followed_by):
            return
        if numbers_of(folder, CHECKPOINT)[-1] > checkpoint.number:
            # The damaged checkpoint was written by the changed job: the change was finished.
            raise CheckpointError(
                f"{folder}: the job was changed after checkpoint {checkpoint.number}, and only the "
                "changed job can fall back to it. Restore that job. Whatever it is to become next "
                "can be changed once it has run."
            )

    def resume(self) -> None:
        """Open the journal for appending."""
        numbers = numbers_of(self._recovery.folder, SEGMENT)
        self._journal = Journal(
            self._recovery.folder, numbers[-1] if numbers else 0, self._recovery.seal
        )
        self._cut_at = self._saved_at = time.monotonic()
        if self._ends_under is not None:
            # A change was begun and never finished.
            self._journal.append(Change(self._recovery.job_digest))

    def close(self) -> None:
        """Close the journal and unlock the folder."""
        if self._journal is not None:
            self._journal.close()
        self._stack.close()

    # -- the deciding thread ---------------------------------------------------------------------

    def append(self, entry: AnyEntry) -> int:
        """Append an entry about what is to be decided; return the ticket to sync up to."""
        assert self._journal is not None
        self._n_appended += 1
        return self._journal.append(entry)

    @property
    def n_appended(self) -> int:
        """The number of entries that no checkpoint covers."""
        return self._n_appended

    @property
    def has_news(self) -> bool:
        """Whether the journal has entries that no checkpoint covers."""
        return self._n_appended > 0 or self._has_failed

    def is_due(self) -> bool:
        """Whether a checkpoint is due. One without news counts as taken.

        So the age of the last checkpoint doesn't show when rows come.
        """
        now = time.monotonic()
        if self._is_saving or now - self._cut_at < self._recovery.every:
            return False
        if not self.has_news:
            self._cut_at = self._saved_at = now
        return self.has_news

    @property
    def age(self) -> float:
        """The seconds since the last checkpoint was taken or found unnecessary."""
        return time.monotonic() - self._saved_at

    def cut(self) -> int:
        """Start a new segment of the journal; return its number, which is the checkpoint's."""
        assert self._journal is not None
        number = self._journal.number + 1
        self._journal.roll(number)
        self._cut_at, self._n_appended = time.monotonic(), 0
        self._is_saving, self._has_failed = True, False
        return number

    # -- the writing thread ----------------------------------------------------------------------

    def sync(self, ticket: int) -> None:
        """Sync the journal to disk, up to a ticket."""
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
        facts = facts | {
            "code": self._code,
            "sections": dict(self._recovery.sections),
            "private": self._private,
            "changes": self._changes,
        }
        cut_at = self._cut_at
        try:
            n_bytes = self._store.save(Checkpoint(number, facts, arrays, batches))
            self._saved_at = cut_at
        except BaseException:
            self._has_failed = True
            raise
        finally:
            self._is_saving = False
        self.saved = SavedCheckpoint(number, n_bytes, time.time(), time.monotonic() - begin)
        event(log, logging.INFO, "checkpoint saved", number=number, bytes=n_bytes)


def _kind_fix(before: Sequence[str], after: Sequence[str]) -> str:
    """Return what makes a private output of the kind that it was; empty if it is of that kind."""
    then, now = before[0], after[0]
    if then == now:
        return ""
    if then == "plain":
        return "remove [private]"
    if now == "plain":
        return "restore [private]" + (" with private.seal = true" if "sealed" in then else "")
    return "restore private.seal"
