"""Store the last two checkpoints of a job; writes are atomic."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from shoal.errors import CheckpointError, ResourceError
from shoal.io.files.atomic import atomic_write
from shoal.io.streams import os_reason
from shoal.run.state.checkpoint import (
    Checkpoint,
    checkpoint_bytes,
    job_of,
    read_body,
    read_checkpoint_heading,
)
from shoal.run.state.folder import (
    CHECKPOINT,
    SEGMENT,
    drop,
    drop_leftovers,
    locked,
    make_folder,
    numbers_of,
    path_of,
    writing,
)
from shoal.run.state.heading import DamagedError, Heading
from shoal.run.state.seal import Seal
from shoal.run.state.segment import Segment

__all__ = [
    "CHANGEABLE",
    "Checkpoint",
    "Store",
    "read_checkpoint",
    "read_file",
    "when",
]

#: The sections of a job that may change at a restart.
CHANGEABLE = frozenset({"policy", "algorithm"})
#: What messages call parts of a job that aren't a section of its file.
_NAMES = {"audit": "audit.sample", "run.name": "run.name", "trace": "--trace"}
_COMPARED = (
    " Files and folders are compared by format and by their place as seen from the folder of the "
    "checkpoints, topics by name: job, files and state can move together."
)
#: What is said about some parts of a job that isn't as it was.
_HINTS = {
    "audit": " audit.sample is above 0 in all runs of a job, or in none: held rows carry their "
    "subject for it.",
    "input": _COMPARED,
    "output": _COMPARED,
    "trace": " All runs of a job have a trace, or none: give --trace as before, or leave it out as "
    "before.",
}
_FIX = (
    "Restore that job, or drain with it first, or start again with another folder: "
    "docs/checkpoints.md says from where."
)
_RESTART = "Start again with another folder: docs/checkpoints.md says from where."
#: What to do if a changed job could go over from the checkpoint before a damaged one.
_FALL_BACK = (
    "`shoal run … --fall-back` resumes from it. If rows were read after the job was changed, it "
    "refuses: start again with another folder then; docs/checkpoints.md says from where."
)


class Store:
    """The checkpoints of one job, in one folder.

    Parameters
    ----------
    folder
        Where they are; created with mode 0700 if it doesn't exist.
    job
        A digest of each section of the job that a checkpoint depends on.
    seal
        Seals them; None: they are in clear.
    clock
        Returns the time of a checkpoint.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     store = Store(Path(name) / "state", job={"policy": "ab12"}, seal=None)
    ...     with store.lock():
    ...         n_bytes = store.save(Checkpoint(0, {"seq": 12}))
    ...         store.latest().facts
    {'seq': 12}
    """

    def __init__(
        self,
        folder: Path,
        *,
        job: Mapping[str, str],
        seal: Seal | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._job, self._seal, self._clock = folder, dict(job), seal, clock
        # The newest checkpoint known to be undamaged, because this store read or wrote it.
        self._whole: int | None = None
        make_folder(folder)

    def __repr__(self) -> str:
        return f"Store({str(self._folder)!r}, numbers={self.numbers()})"

    def lock(self) -> AbstractContextManager[None]:
        """Lock the folder, so that no other process runs this job during the context.

        Raises
        ------
        ResourceError
            If another process runs it.
        """
        return locked(self._folder)

    def numbers(self) -> list[int]:
        """Return the numbers of the existing checkpoints, the oldest first."""
        return numbers_of(self._folder, CHECKPOINT)

    def save(self, checkpoint: Checkpoint) -> int:
        """Write a checkpoint; return its size in bytes.

        When it is on disk, all checkpoints but it and the one before it are dropped, and so are the
        segments of the journal that only those need.

        Raises
        ------
        ResourceError
            If it can't be written. The older ones are unchanged.
        """
        there = self.numbers()
        if there and checkpoint.number <= there[-1]:
            raise ValueError(f"checkpoint {checkpoint.number} is there, or a newer one")
        path = path_of(self._folder, CHECKPOINT, checkpoint.number)
        with writing(path), atomic_write(path, private=True) as output:
            n_bytes = sum(
                output.write(block)
                for block in checkpoint_bytes(checkpoint, self._job, self._clock(), self._seal)
            )
        self._drop_before(checkpoint.number, there)
        self._whole = checkpoint.number
        return n_bytes

    def load(self, number: int) -> Checkpoint:
        """Read one checkpoint.

        Raises
        ------
        CheckpointError
            If it must not be used: damaged, of a newer format, of another job, sealed otherwise.
        """
        return self._load(number)[1]

    def latest(self, *, fall_back: bool = False) -> Checkpoint | None:
        """Read the newest checkpoint; None if there is none.

        Parameters
        ----------
        fall_back
            Read the one before if the newest is damaged. The journal covers the time between, so
            nothing is lost or duplicated.

        Raises
        ------
        CheckpointError
            If it must not be used; the message says what to do.
        """
        numbers = self.numbers()
        if not numbers:
            self._check_no_journal()
            return None
        try:
            checkpoint = self.load(numbers[-1])
        except DamagedError as damage:
            heading, checkpoint = self._before(numbers[:-1], damage)
            if not fall_back:
                raise CheckpointError(
                    f"{damage} Checkpoint {heading.number}, of {when(heading.time)}, is undamaged: "
                    "`shoal run … --fall-back` resumes from it, with nothing lost and nothing "
                    "duplicated."
                ) from None
        self._whole = checkpoint.number
        return checkpoint

    def _load(self, number: int) -> tuple[Heading, Checkpoint]:
        path = path_of(self._folder, CHECKPOINT, number)
        return read_checkpoint(path, number, self._job, self._seal)

    def _before(self, numbers: list[int], damage: DamagedError) -> tuple[Heading, Checkpoint]:
        """Return the newest undamaged one from which the journal continues."""
        segments = numbers_of(self._folder, SEGMENT)
        for number in reversed(numbers):
            if number not in segments:
                break
            path = path_of(self._folder, CHECKPOINT, number)
            try:
                heading, checkpoint = _read(path, number, self._seal)
            except DamagedError:
                continue
            except CheckpointError as error:
                raise CheckpointError(f"{damage} The one before can't be used: {error}") from None
            changed = _changed(heading, self._job)
            if not changed:
                return heading, checkpoint
            can_go_over = checkpoint.facts.get("sections") and CHANGEABLE.issuperset(changed)
            raise CheckpointError(
                f"{damage} {path}: is undamaged, but was taken under another job: "
                f"{_not_as_it_was(changed)} {_FALL_BACK if can_go_over else _FIX}"
            ) from None
        raise CheckpointError(f"{damage} None before it can be used. {_RESTART}")

    def _check_no_journal(self) -> None:
        """Raise if there is a journal with records: its checkpoints were removed."""
        for number in numbers_of(self._folder, SEGMENT):
            if not Segment(path_of(self._folder, SEGMENT, number), number).is_empty:
                raise CheckpointError(
                    f"{self._folder}: has a journal, but no checkpoint to resume from; a new "
                    f"start could publish rows twice. {_RESTART}"
                )

    def _drop_before(self, number: int, there: list[int]) -> None:
        """Keep a checkpoint and the last one before it that is known to be undamaged, if any."""
        before = self._whole if self._whole in there else max(there, default=None)
        keep = {number} if before is None else {before, number}
        drop(self._folder, CHECKPOINT, [other for other in there if other not in keep])
        segments = numbers_of(self._folder, SEGMENT)
        drop(self._folder, SEGMENT, [other for other in segments if other < min(keep)])
        drop_leftovers(self._folder, before=number)


def read_checkpoint(
    path: Path, number: int, job: Mapping[str, str], seal: Seal | None, *, fix: str = _FIX
) -> tuple[Heading, Checkpoint]:
    """Read a checkpoint that must be of this job; ``fix`` says what to do if it isn't.

    Raises
    ------
    CheckpointError
        If it must not be used: damaged, of a newer format, of another job, sealed otherwise.
    """
    heading, checkpoint = _read(path, number, seal)
    changed = _changed(heading, job)
    if changed:
        raise CheckpointError(
            f"{path}: was taken under another job: {_not_as_it_was(changed)} {fix}"
        )
    return heading, checkpoint


def _read(path: Path, number: int, seal: Seal | None) -> tuple[Heading, Checkpoint]:
    """Read a checkpoint of whatever job."""
    data = read_file(path)
    heading = read_checkpoint_heading(path, data, number)
    return heading, read_body(path, data, heading, seal)


def _changed(heading: Heading, job: Mapping[str, str]) -> list[str]:
    """Return the names of what a job has otherwise than when the checkpoint was taken."""
    then = job_of(heading)
    return [name for name in sorted(then.keys() | job.keys()) if then.get(name) != job.get(name)]


def _not_as_it_was(changed: list[str]) -> str:
    """Say what has changed, and how it is compared."""
    hints = dict.fromkeys(_HINTS[name] for name in changed if name in _HINTS)
    names = [_NAMES.get(name, f"[{name}]") for name in changed]
    what = f"{', '.join(names[:-1])} and {names[-1]} are" if names[1:] else f"{names[0]} is"
    return f"{what} not as it was then.{''.join(hints)}"


def read_file(path: Path) -> bytes:
    """Return all bytes of a file.

    Raises
    ------
    DamagedError
        If the disk has an I/O error.
    ResourceError
        If it can't be read for another reason.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        if error.errno == errno.EIO:
            raise DamagedError(path, "the disk can't read it any more") from None
        raise ResourceError(f"{path}: can't be read: {os_reason(error)}.") from None


def when(seconds: float) -> str:
    """Return an instant as text.

    >>> when(0)
    '1970-01-01 00:00:00 UTC'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
