"""Follow a text file that grows and is rotated from time to time."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.errors import PUBLISHES_AGAIN, CheckpointError, ResourceError
from shoal.events import sentence
from shoal.io.base import Position, Span
from shoal.io.files.base import FileSource
from shoal.io.files.random_access import (
    FileTruncated,
    GrowingFile,
    checksum_before,
    has_fingerprint,
    head_fingerprint,
)
from shoal.io.files.rotation import generations, successors
from shoal.io.files.row_blocks import FileRows, RowBlock
from shoal.io.files.text_rows import TextRows
from shoal.io.formats import FileType

__all__ = ["FollowedFile"]

logger = logging.getLogger("shoal.io")


class FollowedFile(FileSource):
    """The lines of a file as they are written, until `stop`.

    A line is read when its newline has been written. A file that doesn't exist yet is waited for.
    When it is renamed and another one takes its name, the old one is read to its end, and then the
    new one: as soon as it has a byte, because until then the writer may still write to the old one.
    When it is emptied in place, reading continues at its beginning, with a warning.

    A span names the file by its inode and a checksum of its beginning, so that it is found again
    under another name, and never mistaken for another.

    Parameters
    ----------
    path
        The file.
    columns
        The columns to read; None for all.
    kind
        Its format: text, uncompressed.
    poll
        How long, in seconds, to wait before looking for more.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None,
        kind: FileType,
        *,
        poll: float,
    ) -> None:
        super().__init__(path, columns, poll)
        self._path = Path(path)
        assert kind.format.text is not None, "only text can be followed"
        self._kind, self._form = kind, kind.format.text
        self._file: GrowingFile | None = None
        self._text: TextRows | None = None
        # The file that comes next: the current one was rotated and is being read to its end.
        self._successor: GrowingFile | None = None
        self._is_announced = False
        if self._appeared():
            try:
                self._is_begun()
            except BaseException:
                self.close()
                raise

    def describe(self) -> str:
        """Return the name and the format, for messages."""
        return f"{self._name} ({self._kind.name}, followed)"

    def close(self) -> None:
        """Close the file."""
        for file in (self._file, self._successor):
            if file is not None:
                file.close()

    # -- reading ---------------------------------------------------------------------------------

    def _next(self) -> RowBlock | None:
        while True:
            if self._file is None and not self._appeared():
                return None
            try:
                block = self._read()
            except FileTruncated:
                self._begin_again()
                continue
            if block is not None:
                return block
            if self._successor is not None:
                self._take(self._successor)
                self._successor = None
                continue
            self._successor = self._find_successor()
            if self._successor is None:
                return None

    def _appeared(self) -> bool:
        file = self._open(self._path.name)
        if file is not None:
            self._take(file)
            return True
        if not self._is_announced:
            text = f"{self._name}: doesn't exist yet; waiting for it"
            sentence(logger, logging.INFO, "file awaited", text)
            self._is_announced = True
        return False

    def _read(self) -> RowBlock | None:
        text, file, is_old = self._text, self._file, self._successor is not None
        assert text is not None
        assert file is not None
        if is_old and not file.n_bytes():
            return None
        return text.read(self._n_rows, final=is_old) if self._is_begun() else None

    def _is_begun(self) -> bool:
        text = self._text
        assert text is not None
        if text.begun:
            return True
        if not text.begin(final=self._successor is not None):
            return False
        self._note(text)
        return True

    def _take(self, file: GrowingFile) -> None:
        """Continue with another file, from its beginning."""
        if self._file is not None and self._file is not file:
            self._file.close()
        if self._text is not None and self._text.begun:
            self._kinds = self._text.kinds
        self._file = file
        self._text = TextRows(file, self._form, self._asked, known=self._columns, kinds=self._kinds)

    def _begin_again(self) -> None:
        assert self._file is not None
        sentence(
            logger,
            logging.WARNING,
            "file emptied",
            f"{self._name}: was emptied while it was read; reading continues at its beginning. "
            "Rows that had been written but not read are lost. Rotate it by renaming, not by "
            "copytruncate",
        )
        self._file.forget()
        self._take(self._file)

    def _find_successor(self) -> GrowingFile | None:
        """Open the file that comes after the current one, if it has been rotated."""
        assert self._file is not None
        found = generations(self._path)
        younger = successors(self._path, found, self._file.inode)
        file = self._open(younger[0]) if younger else None
        if file is None:
            return None
        # Renamed again in between: the next look finds it.
        is_it = file.inode == found[younger[0]]
        if is_it and (file.n_bytes() or younger[0] != self._path.name):
            return file
        file.close()
        return None

    def _open(self, name: str) -> GrowingFile | None:
        """Open a file of the same folder; return None if it is gone."""
        try:
            return GrowingFile(self._path.with_name(name))
        except ResourceError as error:
            if isinstance(error.__context__, FileNotFoundError):
                return None
            raise

    # -- resuming and replaying ------------------------------------------------------------------

    def begins_at(self) -> Position | None:
        """Return the beginning of the file, which may be rotated before a row is read."""
        if self._text is None or not self._text.begun:
            return None
        return {"rows": 0, **self._state()}

    def _stream(self, end: int) -> str:
        assert self._file is not None
        known = head_fingerprint(self._file, end)
        return f"{self._path.name}:{self._file.inode:x}:{known}"

    def _span(self, block: RowBlock) -> Span:
        return Span(self._stream(block.end), block.begin, block.end)

    def _state(self) -> dict[str, Any]:
        assert self._file is not None
        assert self._text is not None
        at = self._text.at
        return {"streams": {self._stream(at): at}, "before": checksum_before(self._file, at)}

    def _seek(self, position: Position, stream: str | None, at: int) -> None:
        if stream is None:
            raise KeyError("streams")
        known = position["before"]
        self._go_to_generation(stream, at)
        assert self._file is not None
        if checksum_before(self._file, at) != known:
            raise self._gone()
        assert self._text is not None
        self._kinds = position.get("kinds")
        self._text.kinds = self._kinds
        self._text.go_to(at)

    def _find(self, span: Span) -> FileRows:
        self._go_to_generation(span.stream, span.end)
        assert self._text is not None
        return self._text

    def _go_to_generation(self, stream: str, end: int) -> None:
        """Make the file that a stream names the current one, whatever it is called now."""
        _, inode_text, known = stream.rsplit(":", 2)
        inode = int(inode_text, 16)
        if self._file is not None and self._fits(self._file, known, end, inode):
            return
        fitting: list[GrowingFile] = []
        for file in self._open_generations():
            if self._fits(file, known, end):
                fitting.append(file)
            else:
                file.close()
        # A file that was copied back, or by copytruncate, has another inode.
        chosen = [file for file in fitting if file.inode == inode] or fitting
        for file in fitting:
            if file is not chosen[0] or len(chosen) > 1:
                file.close()
        if len(chosen) != 1:
            raise self._gone()
        self._take(chosen[0])
        if not self._is_begun():
            raise self._gone()

    def _open_generations(self) -> list[GrowingFile]:
        """Open the file and its rotated versions, each once, even while they are renamed."""
        while True:
            found = generations(self._path)
            opened = {name: self._open(name) for name in found}
            there = [file for file in opened.values() if file is not None]
            if [file.inode for file in there] == list(found.values()):
                return there
            for file in there:
                file.close()

    @staticmethod
    def _fits(file: GrowingFile, known: str, end: int, inode: int | None = None) -> bool:
        if inode is not None and file.inode != inode:
            return False
        return file.n_bytes() >= end and has_fingerprint(file, known)

    def _gone(self) -> CheckpointError:
        return CheckpointError(
            f"{self._name}: the file that was read before the stop is gone, shorter, or begins "
            "differently, and no rotated file fits. Restore it under its name or as "
            f"{self._path.name}.1, uncompressed, or start over with an empty checkpoint folder and "
            f"an empty output. {PUBLISHES_AGAIN}."
        )

    def _lag(self) -> int | None:
        file, text = self._file, self._text
        if file is None or text is None:
            return 0
        left = text.n_left() or 0
        if not self._path.exists():
            return left
        now = self._path.stat()
        return left if now.st_ino == file.inode else left + now.st_size
