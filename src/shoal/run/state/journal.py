"""The journal: what a replay can't read again from the source.

It records which rows came in which order and when, and what the clock triggered. With it, a
restored run makes the same decisions; without it, it would regroup rows and publish them in two
boxes. So an entry is on disk before anything that depends on it leaves.

It is kept in segments. Segment n begins at checkpoint n, and is dropped with it.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from shoal.errors import CheckpointError, ResourceError
from shoal.io.files.atomic import atomic_write, sync_folder
from shoal.io.streams import os_reason
from shoal.run.state.folder import SEGMENT, drop, numbers_of, path_of, writing
from shoal.run.state.heading import DamagedError, Heading
from shoal.run.state.seal import Seal
from shoal.run.state.segment import (
    AnyEntry,
    Change,
    Entry,
    Flush,
    Read,
    Segment,
    Tick,
    closing_record,
    encode,
    new_heading,
    record,
)

__all__ = [
    "AnyEntry",
    "Change",
    "Entry",
    "Flush",
    "Journal",
    "Read",
    "Tick",
    "drop_segments",
    "read_journal",
]


def _sync(number: int) -> None:
    # macOS has no fdatasync.
    getattr(os, "fdatasync", os.fsync)(number)


class Journal:
    """Write the journal. One thread appends and rolls, another may sync.

    Parameters
    ----------
    folder
        The folder of the segments.
    number
        The segment to write: the last one that exists, which is continued after the torn record of
        a crash is cut off; any number if there is none.
    seal
        Seals each record; None: they are in clear.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     journal = Journal(Path(name), 0, None)
    ...     ticket = journal.append(Tick(until=20.0, now=19.5))
    ...     journal.sync(ticket)  # now the rows that the tick released may be published
    ...     journal.close()
    ...     list(read_journal(Path(name), 0, None))
    [Tick(until=20.0, now=19.5)]
    """

    def __init__(self, folder: Path, number: int, seal: Seal | None) -> None:
        self._folder, self._seal = folder, seal
        self._pending: list[str] = []
        self._n_appended = self._n_synced = 0
        self._failure: ResourceError | None = None
        # The segment that is written, and its state; set by `_open`.
        self.number: int
        self._file: int
        self._heading: Heading
        self._index: int
        self._n_bytes: int
        self._appending = threading.Lock()
        self._writing = threading.Lock()
        there = numbers_of(folder, SEGMENT)
        if not there:
            self._begin(number, after="")
        elif there[-1] == number:
            self._resume(number)
        else:
            raise CheckpointError(
                f"{path_of(folder, SEGMENT, number)}: can't be written to: the journal ends with "
                f"segment {there[-1]}. Continue that one."
            )

    def __repr__(self) -> str:
        return f"Journal(number={self.number}, n_appended={self._n_appended})"

    def append(self, entry: AnyEntry) -> int:
        """Append an entry; return the ticket to sync up to."""
        text = encode(entry)
        with self._appending:
            self._check()
            self._pending.append(text)
            self._n_appended += 1
            return self._n_appended

    def sync(self, ticket: int | None = None) -> None:
        """Sync all entries up to the ticket to disk; without a ticket, all.

        Raises
        ------
        ResourceError
            If that fails. From then on every entry is refused, since one may be lost.
        """
        wanted = self._n_appended if ticket is None else ticket
        if wanted <= self._n_synced and (ticket is not None or self._failure is None):
            return
        with self._writing:
            if wanted > self._n_synced or self._failure is not None:
                self._write_pending()

    def roll(self, number: int) -> None:
        """Sync pending entries, close this segment and begin the next one."""
        if number != self.number + 1:
            raise ValueError(f"segment {number} can't follow segment {self.number}")
        with self._writing:
            self._write_pending()
            # Written separately, after the sync: see `segment` about broken records.
            self._write(closing_record(self._heading, self._index, self._seal))
            # Nothing may follow that, whatever becomes of the next segment.
            before, self._file = self._file, -1
            try:
                self._begin(number, str(self._heading.more["name"]))
            except ResourceError as error:
                self._failure = error
                raise
            finally:
                os.close(before)

    def close(self) -> None:
        """Sync pending entries and close the file; the segment can be continued later."""
        with self._writing:
            if self._file < 0:
                return
            try:
                if self._failure is None:
                    self._write_pending()
            finally:
                os.close(self._file)
                self._file = -1

    def _begin(self, number: int, after: str) -> None:
        heading = new_heading(number, time.time(), self._seal, secrets.token_hex(16), after)
        path = path_of(self._folder, SEGMENT, number)
        with writing(path):
            with atomic_write(path, private=True) as output:
                output.write(heading.raw)
            self._open(path, number, heading, 0, len(heading.raw))

    def _resume(self, number: int) -> None:
        path = path_of(self._folder, SEGMENT, number)
        segment = Segment(path, number)
        for _ in segment.entries(self._seal):
            pass
        with writing(path):
            self._open(path, number, segment.heading, segment.n_records, segment.end)
            try:
                os.ftruncate(self._file, segment.end)
                # Entries that were read may not be on disk yet, and decisions depend on them.
                os.fsync(self._file)
                sync_folder(self._folder)
            except OSError:
                os.close(self._file)
                raise

    def _open(self, path: Path, number: int, heading: Heading, index: int, n_bytes: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self.number, self._heading = number, heading
        self._index, self._n_bytes = index, n_bytes

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._file < 0:
            raise ValueError("the journal is closed")

    def _write_pending(self) -> None:
        self._check()
        with self._appending:
            entries, self._pending = self._pending, []
            upto = self._n_appended
        if entries:
            self._write(record(self._heading, self._index, entries, self._seal))
            self._index += 1
        self._n_synced = upto

    def _write(self, data: bytes) -> None:
        """Write and sync; after a failure the journal can't be used any more."""
        try:
            view = memoryview(data)
            while view.nbytes:
                view = view[os.write(self._file, view) :]
            _sync(self._file)
        except OSError as error:
            # A record that may be lost must not be found by a reader of the page cache.
            with suppress(OSError):
                os.ftruncate(self._file, self._n_bytes)
            path = path_of(self._folder, SEGMENT, self.number)
            self._failure = ResourceError(f"{path}: can't be written: {os_reason(error)}.")
            raise self._failure from None
        self._n_bytes += len(data)


def read_journal(folder: Path, first: int, seal: Seal | None) -> Iterator[AnyEntry]:
    """Yield all entries from a segment on, in order.

    The torn record of a crash at the very end is skipped: nothing depends on it.

    Raises
    ------
    CheckpointError
        If anything else is broken or missing: later decisions couldn't be repeated.
    """
    before: Segment | None = None
    for number in numbers_of(folder, SEGMENT):
        if number < first:
            continue
        segment = Segment(path_of(folder, SEGMENT, number), number)
        if before is not None:
            segment.check_follows(before)
        elif number != first:
            raise DamagedError(path_of(folder, SEGMENT, first), "it is missing, and others follow")
        yield from segment.entries(seal)
        before = segment


def drop_segments(folder: Path, before: int) -> None:
    """Remove the segments before a number."""
    drop(folder, SEGMENT, [number for number in numbers_of(folder, SEGMENT) if number < before])
