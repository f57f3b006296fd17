"""Inputs that can be read again: a file, a file that grows, a folder in which files appear."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError, JobError, Problem
from shoal.io.base import Position, Replayable, Span
from shoal.io.files.byte_ranges import (
    Plain,
    before,
    begins_as,
    not_again,
    print_of_beginning,
    print_of_whole,
)
from shoal.io.files.folder import FolderSource
from shoal.io.files.follow import FollowedFile
from shoal.io.files.replay import Replaying, is_plain_text, open_rows
from shoal.io.files.row_blocks import FileRows, RowBlock
from shoal.io.formats.names import STDIO, Format, tell_format

__all__ = ["ReplayableFile", "open_replayable"]

#: After how many seconds to look again whether there is more.
POLL = 0.2


def open_replayable(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    follow: bool = False,
    poll: float = POLL,
) -> Replayable:
    r"""Open an input that can be read again and gone on with after a stop.

    Parameters
    ----------
    path
        A file, or a folder whose files are read in the order of their names.
    columns
        The columns to read, in this order; None for all.
    format
        One of `FORMATS`, maybe with a compression. Without it the ending of each name tells.
    follow
        Whether to wait for more at the end: for lines in a text file, which may be rotated, or
        for files in a folder. Then iteration ends with `Replayable.stop` only.
    poll
        After how many seconds to look again.

    Raises
    ------
    JobError
        If a column isn't there, the format isn't known, or the input can be read only once.
    ResourceError
        If the input can't be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age\n39\n50\n")
    ...     source = open_replayable(path)
    ...     [chunk] = source
    ...     source.close()
    >>> chunk.spans[0].begin, chunk.spans[0].end, chunk.position["rows"]
    (4, 10, 2)
    """
    if os.fspath(path) == STDIO:
        raise not_again("standard input")
    if Path(path).is_dir():
        return FolderSource(path, columns, format=format, follow=follow, poll=poll)
    kind = tell_format(path, format)
    if not follow:
        return ReplayableFile(path, columns, kind)
    if not is_plain_text(kind):
        raise JobError(
            Problem(
                "follow",
                "only CSV, TSV and JSON lines can grow, uncompressed",
                os.fspath(path),
                "Follow a folder to which whole files are added",
            )
        )
    return FollowedFile(path, columns, kind, poll=poll)


class ReplayableFile(Replaying):
    """One file of any format, read to the end that it has when it is reached.

    Positions are bytes in text, of what is inside where it is compressed, and rows in Parquet and
    Arrow. A span names the file with a checksum of its beginning; of a file that can't grow, with
    its length and checksums of both ends.
    """

    def __init__(
        self, path: str | os.PathLike[str], columns: Sequence[str] | None, kind: Format
    ) -> None:
        super().__init__(path, columns, poll=0)
        self._file = Path(path)
        self._kind = kind
        self._may_grow = is_plain_text(kind)
        # Beside what reads the rows, to look at the bytes as they lie on the disk.
        self._raw = Plain(path)
        try:
            self._note(open_rows(path, kind, columns))
        except BaseException:
            self._raw.close()
            raise

    def describe(self) -> str:
        """What is read, for a message."""
        return f"{self._name} ({self._kind.name}, {len(self.schema_names)} columns)"

    def close(self) -> None:
        """Let go of the file."""
        super().close()
        self._raw.close()

    @property
    def _current(self) -> FileRows:
        assert self._rows is not None, "it is opened at the beginning"
        return self._rows

    def _next(self) -> RowBlock | None:
        piece = self._current.read(self._n_rows, final=True)
        self._ended = piece is None
        return piece

    def _stream(self, end: int) -> str:
        known = print_of_beginning(self._raw, end) if self._may_grow else print_of_whole(self._raw)
        return f"{self._file.name}:{known}"

    def _span(self, piece: RowBlock) -> Span:
        return Span(self._stream(piece.end), piece.begin, piece.end)

    def _state(self) -> dict[str, Any]:
        at = self._current.at
        state: dict[str, Any] = {"streams": {self._stream(at): at}}
        return state | ({"before": before(self._raw, at)} if self._may_grow else {})

    def _seek(self, position: Position, stream: str | None, at: int) -> None:
        if stream is None:
            raise KeyError("streams")
        self._check(stream)
        if self._may_grow and before(self._raw, at) != position["before"]:
            raise self._changed()
        self._current.kinds = self._kinds
        self._current.go_to(at)

    def _find(self, span: Span) -> FileRows:
        self._check(span.stream)
        return self._current

    def _check(self, stream: str) -> None:
        known = stream.rpartition(":")[2]
        same = begins_as(self._raw, known) if self._may_grow else print_of_whole(self._raw) == known
        if not same:
            raise self._changed()

    def _changed(self) -> CheckpointError:
        return CheckpointError(
            f"{self._name}: isn't the file that was read before the stop, or has changed since. "
            "Bring back the file as it was, or start anew with an empty checkpoint folder and an "
            "empty output."
        )

    def _lag(self) -> int | None:
        return self._current.left()
