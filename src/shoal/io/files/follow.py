"""A text file that grows, and that is rotated from time to time."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError, ResourceError
from shoal.events import sentence
from shoal.io.base import Position, Span
from shoal.io.files.byte_ranges import Growing, Truncated, before, begins_as, print_of_beginning
from shoal.io.files.replay import Replaying
from shoal.io.files.rotation import generations, heirs
from shoal.io.files.row_blocks import FileRows, RowBlock
from shoal.io.files.text_rows import TextRows
from shoal.io.formats.names import Format

__all__ = ["FollowedFile"]

logger = logging.getLogger("shoal.io")


class FollowedFile(Replaying):
    """The lines of a file as they are written, until `stop`.

    A line is read when its newline is there. A file that doesn't exist yet is waited for. When it
    is renamed and another one takes its name, the old one is read to its end, and then the new
    one: as soon as it has a byte, because until then the writer may still write to the old one.
    When it is emptied in place, reading goes on at its beginning, with a warning.

    A span names the file with its inode and a checksum of its beginning, so that it is found again
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
        After how many seconds to look again.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None,
        kind: Format,
        *,
        poll: float,
    ) -> None:
        super().__init__(path, columns, poll)
        self._path = Path(path)
        self._kind = kind
        self._bytes: Growing | None = None
        self._text: TextRows | None = None
        # What comes after the file that is being read to its end, if it has been rotated.
        self._heir: Growing | None = None
        self._told = False
        if self._appeared():
            try:
                self._is_begun()
            except BaseException:
                self.close()
                raise

    def describe(self) -> str:
        """What is read, for a message."""
        return f"{self._name} ({self._kind.name}, followed)"

    def close(self) -> None:
        """Let go of the file."""
        for byte_ranges in (self._bytes, self._heir):
            if byte_ranges is not None:
                byte_ranges.close()

    # -- reading ---------------------------------------------------------------------------------

    def _next(self) -> RowBlock | None:
        while True:
            if self._bytes is None and not self._appeared():
                return None
            try:
                piece = self._read()
            except Truncated:
                self._begin_again()
                continue
            if piece is not None:
                return piece
            if self._heir is not None:
                self._take(self._heir)
                self._heir = None
                continue
            self._heir = self._find_heir()
            if self._heir is None:
                return None

    def _appeared(self) -> bool:
        byte_ranges = self._open(self._path.name)
        if byte_ranges is not None:
            self._take(byte_ranges)
            return True
        if not self._told:
            text = f"{self._name}: doesn't exist yet; waiting for it"
            sentence(logger, logging.INFO, "file awaited", text)
            self._told = True
        return False

    def _read(self) -> RowBlock | None:
        text, byte_ranges, is_old = self._text, self._bytes, self._heir is not None
        assert text is not None
        assert byte_ranges is not None
        if is_old and not byte_ranges.n_bytes():
            return None
        return text.read(self._n_rows, final=is_old) if self._is_begun() else None

    def _is_begun(self) -> bool:
        text = self._text
        assert text is not None
        if text.begun:
            return True
        if not text.begin(final=self._heir is not None):
            return False
        self._note(text)
        return True

    def _take(self, byte_ranges: Growing) -> None:
        """Go on with another file, from its beginning."""
        if self._bytes is not None and self._bytes is not byte_ranges:
            self._bytes.close()
        if self._text is not None and self._text.begun:
            self._kinds = self._text.kinds
        self._bytes = byte_ranges
        self._text = TextRows(
            byte_ranges, self._kind.name, self._asked, known=self._columns, kinds=self._kinds
        )

    def _begin_again(self) -> None:
        assert self._bytes is not None
        sentence(
            logger,
            logging.WARNING,
            "file emptied",
            f"{self._name}: was emptied while it was read; reading goes on at its beginning. Rows "
            "that had been written but not read are lost. Rotate it by renaming, not by "
            "copytruncate",
        )
        self._bytes.forget()
        self._take(self._bytes)

    def _find_heir(self) -> Growing | None:
        """Open what comes after the file that is being read, if it has been rotated."""
        assert self._bytes is not None
        found = generations(self._path)
        younger = heirs(self._path, found, self._bytes.inode)
        byte_ranges = self._open(younger[0]) if younger else None
        if byte_ranges is None:
            return None
        # Renamed again in between: it is looked for once more later.
        is_it = byte_ranges.inode == found[younger[0]]
        if is_it and (byte_ranges.n_bytes() or younger[0] != self._path.name):
            return byte_ranges
        byte_ranges.close()
        return None

    def _open(self, name: str) -> Growing | None:
        """Open a file of the same folder, if it is still there."""
        try:
            return Growing(self._path.with_name(name))
        except ResourceError as error:
            if isinstance(error.__context__, FileNotFoundError):
                return None
            raise

    # -- going on and reading again --------------------------------------------------------------

    def begins_at(self) -> Position | None:
        """The beginning of the file, which may be rotated before a row was read; None without."""
        if self._text is None or not self._text.begun:
            return None
        return {"rows": 0, **self._state()}

    def _stream(self, end: int) -> str:
        assert self._bytes is not None
        known = print_of_beginning(self._bytes, end)
        return f"{self._path.name}:{self._bytes.inode:x}:{known}"

    def _span(self, piece: RowBlock) -> Span:
        return Span(self._stream(piece.end), piece.begin, piece.end)

    def _state(self) -> dict[str, Any]:
        assert self._bytes is not None
        assert self._text is not None
        at = self._text.at
        return {"streams": {self._stream(at): at}, "before": before(self._bytes, at)}

    def _seek(self, position: Position, stream: str | None, at: int) -> None:
        if stream is None:
            raise KeyError("streams")
        known = position["before"]
        self._go_to_generation(stream, at)
        assert self._bytes is not None
        if before(self._bytes, at) != known:
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
        """Make the file current that a stream names, whatever it is called now."""
        _, inode_text, known = stream.rsplit(":", 2)
        inode = int(inode_text, 16)
        if self._bytes is not None and self._fits(self._bytes, known, end, inode):
            return
        fitting: list[Growing] = []
        for byte_ranges in self._open_generations():
            if self._fits(byte_ranges, known, end):
                fitting.append(byte_ranges)
            else:
                byte_ranges.close()
        # A file that was copied back, or by copytruncate, has another inode.
        chosen = [byte_ranges for byte_ranges in fitting if byte_ranges.inode == inode] or fitting
        for byte_ranges in fitting:
            if byte_ranges is not chosen[0] or len(chosen) > 1:
                byte_ranges.close()
        if len(chosen) != 1:
            raise self._gone()
        self._take(chosen[0])
        if not self._is_begun():
            raise self._gone()

    def _open_generations(self) -> list[Growing]:
        """Open the file and its former selves, each once, though they may be renamed just now."""
        while True:
            found = generations(self._path)
            opened = {name: self._open(name) for name in found}
            there = [byte_ranges for byte_ranges in opened.values() if byte_ranges is not None]
            if [byte_ranges.inode for byte_ranges in there] == list(found.values()):
                return there
            for byte_ranges in there:
                byte_ranges.close()

    @staticmethod
    def _fits(byte_ranges: Growing, known: str, end: int, inode: int | None = None) -> bool:
        if inode is not None and byte_ranges.inode != inode:
            return False
        return byte_ranges.n_bytes() >= end and begins_as(byte_ranges, known)

    def _gone(self) -> CheckpointError:
        return CheckpointError(
            f"{self._name}: the file that was read before the stop is gone, shorter, or begins "
            "otherwise, and none that was rotated fits. Bring it back under its name or as "
            f"{self._path.name}.1, uncompressed, or start anew with an empty checkpoint folder and "
            "an empty output."
        )

    def _lag(self) -> int | None:
        byte_ranges, text = self._bytes, self._text
        if byte_ranges is None or text is None:
            return 0
        left = text.left() or 0
        if not self._path.exists():
            return left
        now = self._path.stat()
        return left if now.st_ino == byte_ranges.inode else left + now.st_size
