"""Read a folder of complete files, to which more may be added."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shoal.errors import PUBLISHES_AGAIN, CheckpointError, ParameterError, ResourceError
from shoal.events import sentence
from shoal.io.base import Position, Span
from shoal.io.files.atomic import PARTIAL
from shoal.io.files.base import POLL_SECONDS, FileSource, open_rows
from shoal.io.files.random_access import PlainFile, file_fingerprint
from shoal.io.files.row_blocks import FileRows, RowBlock
from shoal.io.formats import FileType, file_type
from shoal.io.streams import read_errors
from shoal.io.text.dialect import Dialect

__all__ = ["FolderSource", "files_in", "has_only_folders"]

logger = logging.getLogger("shoal.io")

#: The endings of files that aren't complete.
UNFINISHED = (PARTIAL, ".tmp", ".part")
#: The file that marks a folder as complete.
COMPLETE = "_SUCCESS"


def files_in(folder: Path, *, nested: bool = False) -> dict[str, os.stat_result]:
    """Return the complete files of a folder, by name, with their file status.

    Folders are skipped, and names that begin with a dot or have the ending of an unfinished file.

    Parameters
    ----------
    folder
        The folder.
    nested
        Whether to include the files of subfolders, by their relative names, as ``day/part.csv``.
        Then files and folders whose names begin with ``_`` are skipped as well: systems that write
        such folders name so what isn't data.
    """
    found = dict(_files_in(folder, "", nested))
    # Folder by folder: as plain text "a-b/c" would come before "a/c".
    return dict(sorted(found.items(), key=lambda item: item[0].split("/")))


def _files_in(folder: Path, above: str, nested: bool) -> Iterator[tuple[str, os.stat_result]]:
    with read_errors(str(folder), "the folder is damaged"), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith((".", "_") if nested else ".") or name.endswith(UNFINISHED):
                continue
            try:
                if entry.is_file():
                    yield above + name, entry.stat()
            except FileNotFoundError:
                continue
            # A link to a folder may lead back to its parent.
            if nested and entry.is_dir(follow_symlinks=False):
                yield from _files_in(folder / name, f"{above}{name}/", nested)


def has_only_folders(folder: Path) -> bool:
    """Return whether a folder has subfolders but no files, such as one folder for each batch."""
    if any(name != COMPLETE for name in files_in(folder)):
        return False
    with read_errors(str(folder), "the folder is damaged"):
        there = [entry.name for entry in folder.iterdir() if entry.is_dir()]
    return any(not name.startswith((".", "_")) for name in there)


class FolderSource(FileSource):
    """The rows of all files of a folder, file after file in the order of their names.

    Files must be complete when they appear. Those that appear later are read later, in the order
    of their names. A file that has been read may be removed, and must not change. All files have
    one format, and the columns that are read.

    Parameters
    ----------
    path
        The folder.
    columns
        The columns to read; None for those of the first file.
    format
        The format of all files; None if the ending of each name decides.
    dialect
        How CSV files are written; None for commas, quotes and UTF-8.
    nested
        Whether to read the files of subfolders, too (see `files_in`). There need be none where a
        folder has a file ``_SUCCESS``, which marks it as complete.
    follow
        Whether to wait for more files when all have been read.
    poll
        How long, in seconds, to wait before looking for more.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        *,
        format: str | None = None,  # noqa: A002 - the word users know
        dialect: Dialect | None = None,
        nested: bool = False,
        follow: bool = False,
        poll: float = POLL_SECONDS,
    ) -> None:
        super().__init__(path, columns, poll)
        self._folder = Path(path)
        self._format, self._dialect = format, dialect
        self._nested = nested
        self._follow = follow
        self._first: FileType | None = None
        # The current file, its name in spans, and where its rows begin.
        self._file = self._stream = ""
        self._start = 0
        # Replaced, never changed: positions share it.
        self._done: dict[str, str] = {}
        self._looked: dict[str, tuple[int, int, int]] = {}
        self._waiting: deque[str] = deque()
        self._empty = True
        self._open_next()

    def describe(self) -> str:
        """Return the name and the number of columns, for messages."""
        return f"{self._name} (a folder, {len(self.schema_names)} columns)"

    # -- reading ---------------------------------------------------------------------------------

    def _next(self) -> RowBlock | None:
        while True:
            if self._rows is None and not self._open_next():
                if self._empty and not (self._follow or self._done or self._is_complete()):
                    raise ResourceError(
                        f"{self._name}: has no files to read. Put files in it, or wait for them "
                        "with --follow."
                    )
                self._ended = not self._follow
                return None
            assert self._rows is not None
            block = self._rows.read(self._n_rows, final=True)
            last = block is None or self._rows.n_left() == 0
            if last:
                self._finish()
            if block is not None:
                return block

    def _is_complete(self) -> bool:
        """Return whether the folder is marked as complete, though it has no rows."""
        return self._nested and any(self._folder.rglob(COMPLETE))

    def _open_next(self) -> bool:
        """Open the next file that is neither done nor unfinished, if there is one."""
        if not self._waiting:
            self._look()
        while (name := self._next_name()) is not None:
            if self._may_be_empty(name) and not (self._folder / name).stat().st_size:
                self._done = {**self._done, name: self._fingerprint(name)}
                self._empty = False
            else:
                self._open(name)
                return True
        return False

    def _next_name(self) -> str | None:
        """Take the next waiting file that is still there, and warn of those that aren't."""
        n_removed, found = 0, None
        while self._waiting and found is None:
            name = self._waiting.popleft()
            if (self._folder / name).exists():
                found = name
            else:
                n_removed += 1
        if n_removed:
            # Without names: who sends the files chooses them, and they may be those of people.
            what = "1 file" if n_removed == 1 else f"{n_removed:,} files"
            text = f"{self._name}: {what} disappeared before being read, so rows are missing"
            sentence(logger, logging.WARNING, "file removed", text)
        return found

    def _may_be_empty(self, name: str) -> bool:
        """Return whether a file without rows has no bytes: its format has no header."""
        form = self._kind(name).format.text
        return form is not None and not form.has_header

    def _look(self) -> None:
        """Find the files to read, and check that those already read haven't changed."""
        found = files_in(self._folder, nested=self._nested)
        gone = [name for name in self._done if name not in found]
        if gone:
            self._done = {name: known for name, known in self._done.items() if name in found}
            for name in gone:
                self._looked.pop(name, None)
        for name in self._done:
            self._check_done(name, found[name])
        self._waiting = deque(name for name in found if name not in self._done)

    def _check_done(self, name: str, now: os.stat_result) -> None:
        look = (now.st_size, now.st_mtime_ns, now.st_ino)
        if self._looked.get(name) == look:
            return
        if self._fingerprint(name) != self._done[name]:
            raise self._changed(name)
        self._looked[name] = look

    def _open(self, name: str) -> None:
        path = self._folder / name
        kind = self._kind(name)
        stream = f"{name}:{self._fingerprint(name)}"
        self._note(open_rows(path, kind, self._asked, known=self._columns, kinds=self._kinds))
        assert self._rows is not None
        self._first = self._first or kind
        self._file, self._stream, self._start = name, stream, self._rows.at
        self._empty = False

    def _kind(self, name: str) -> FileType:
        """Return the type of a file, whose format must be that of the files before it."""
        path = self._folder / name
        try:
            kind = file_type(name, self._format, self._dialect)
        except ParameterError:
            if self._format is not None:
                raise
            raise ResourceError(
                f"{path}: can't be read: its ending stands for no known format. Remove it, or "
                "give the format of all files."
            ) from None
        if self._first is not None and kind.name != self._first.name:
            raise ResourceError(
                f"{path}: can't be read: it is {kind.name}, and the files before it were "
                f"{self._first.name}. Put files of different formats into different folders."
            )
        return kind

    def _finish(self) -> None:
        """Mark the current file as read."""
        assert self._rows is not None
        self._kinds = self._rows.kinds
        self._leave()
        known = self._stream.rpartition(":")[2]
        if self._fingerprint(self._file) != known:
            raise self._changed(self._file)
        self._done = {**self._done, self._file: known}

    def _leave(self) -> None:
        if self._rows is not None:
            self._rows.close()
        self._rows = None

    def _fingerprint(self, name: str) -> str:
        file = PlainFile(self._folder / name)
        try:
            return file_fingerprint(file)
        finally:
            file.close()

    def _changed(self, name: str) -> ResourceError:
        return ResourceError(
            f"{self._folder / name}: has changed since it was read. A file must be complete when "
            "it appears: write it under another name, and rename it; put new rows into a new file."
        )

    # -- resuming and replaying ------------------------------------------------------------------

    def _span(self, block: RowBlock) -> Span:
        return Span(self._stream, block.begin, block.end)

    def _state(self) -> dict[str, Any]:
        streams = {} if self._rows is None else {self._stream: self._rows.at}
        return {"streams": streams, "done": self._done}

    def _seek(self, position: Position, stream: str | None, at: int) -> None:
        self._leave()
        self._waiting.clear()
        self._done, self._empty = dict(position["done"]), False
        self._look()
        self._waiting.clear()
        if stream is not None:
            self._open_again(stream)
            assert self._rows is not None
            self._rows.go_to(at)

    def _find(self, span: Span) -> FileRows:
        if self._rows is not None and self._stream != span.stream:
            if self._rows.at == self._start:
                self._leave()
            else:
                self._finish_again()
        if self._rows is None:
            self._open_again(span.stream)
        self._waiting.clear()
        assert self._rows is not None
        return self._rows

    def _finish_again(self) -> None:
        """Mark a file as read that was read before the stop: nothing may have been added to it."""
        assert self._rows is not None
        if self._rows.read(self._n_rows, final=True) is not None:
            raise self._gone(self._file)
        self._finish()

    def _open_again(self, stream: str) -> None:
        name, _, known = stream.rpartition(":")
        path = self._folder / name
        if not path.is_file() or self._fingerprint(name) != known:
            raise self._gone(name)
        self._open(name)

    def _gone(self, name: str) -> CheckpointError:
        return CheckpointError(
            f"{self._folder / name}: was read before the stop, and is gone or has changed since. "
            "Bring back the file as it was, or start over with an empty checkpoint folder and an "
            f"empty output. {PUBLISHES_AGAIN}."
        )

    def _lag(self) -> int | None:
        rows, file, done = self._rows, self._file, self._done
        left = 0 if rows is None else rows.n_left()
        for name, now in files_in(self._folder, nested=self._nested).items():
            if name in done or (rows is not None and name == file):
                continue
            if left is None or not file_type(name, self._format, self._dialect).is_plain_text:
                return None
            left += now.st_size
        return left
