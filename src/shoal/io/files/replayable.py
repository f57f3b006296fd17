"""Open inputs that can be read again: a file, a file that grows, a folder that gets files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.errors import PUBLISHES_AGAIN, CheckpointError, JobError, Problem
from shoal.io.base import Position, ReplayableSource, Span
from shoal.io.files.base import POLL_SECONDS, FileSource, open_rows
from shoal.io.files.folder import FolderSource
from shoal.io.files.follow import FollowedFile
from shoal.io.files.random_access import (
    PlainFile,
    checksum_before,
    file_fingerprint,
    has_fingerprint,
    head_fingerprint,
    not_replayable,
)
from shoal.io.files.row_blocks import FileRows, RowBlock
from shoal.io.formats import FileType, file_type
from shoal.io.streams import STDIO, is_directory
from shoal.io.text.dialect import Dialect

__all__ = ["ReplayableFile", "open_replayable"]


def open_replayable(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    dialect: Dialect | None = None,
    follow: bool = False,
    poll: float = POLL_SECONDS,
) -> ReplayableSource:
    r"""Open an input that can be read again, and resumed after a stop.

    Parameters
    ----------
    path
        A file, or a folder whose files are read in the order of their names.
    columns
        The columns to read, in this order; None for all.
    format
        The name of a format, maybe with a compression. Without it the ending of each name decides.
    dialect
        How a CSV file is written; None for commas, quotes and UTF-8.
    follow
        Whether to wait for more at the end: for lines in a text file, which may be rotated, or
        for files in a folder. Then only `ReplayableSource.stop` ends the iteration.
    poll
        How long, in seconds, to wait before looking for more.

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
        raise not_replayable("standard input")
    if is_directory(path):
        return FolderSource(path, columns, format=format, dialect=dialect, follow=follow, poll=poll)
    kind = file_type(path, format, dialect)
    if not follow:
        return ReplayableFile(path, columns, kind)
    if not kind.is_plain_text:
        raise JobError(
            Problem(
                "follow",
                "only uncompressed text files in UTF-8 can be followed, such as CSV or JSON lines",
                os.fspath(path),
                "Follow a folder to which whole files are added",
            )
        )
    return FollowedFile(path, columns, kind, poll=poll)


class ReplayableFile(FileSource):
    """One file of any format, read up to its end at that time.

    Positions are bytes in text formats (of the content as UTF-8, where the file is compressed or in
    another encoding), and rows in typed formats. A span names the file with a checksum of its
    beginning; a file that can't grow with its length and a checksum of both ends.
    """

    def __init__(
        self, path: str | os.PathLike[str], columns: Sequence[str] | None, kind: FileType
    ) -> None:
        super().__init__(path, columns, poll=0)
        self._file = Path(path)
        self._kind = kind
        self._may_grow = kind.is_plain_text
        # Beside the reader of rows, for checksums of the bytes on the disk.
        self._raw = PlainFile(path)
        try:
            self._note(open_rows(path, kind, columns))
        except BaseException:
            self._raw.close()
            raise

    def describe(self) -> str:
        """Return the name and the format, for messages."""
        return f"{self._name} ({self._kind.name}, {len(self.schema_names)} columns)"

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._raw.close()

    @property
    def _current(self) -> FileRows:
        assert self._rows is not None, "it is opened in __init__"
        return self._rows

    def _next(self) -> RowBlock | None:
        block = self._current.read(self._n_rows, final=True)
        self._ended = block is None
        return block

    def _stream(self, end: int) -> str:
        if self._may_grow:
            return f"{self._file.name}:{head_fingerprint(self._raw, end)}"
        return f"{self._file.name}:{file_fingerprint(self._raw)}"

    def _span(self, block: RowBlock) -> Span:
        return Span(self._stream(block.end), block.begin, block.end)

    def _state(self) -> dict[str, Any]:
        at = self._current.at
        state: dict[str, Any] = {"streams": {self._stream(at): at}}
        return state | ({"before": checksum_before(self._raw, at)} if self._may_grow else {})

    def _seek(self, position: Position, stream: str | None, at: int) -> None:
        if stream is None:
            raise KeyError("streams")
        self._check(stream)
        if self._may_grow and checksum_before(self._raw, at) != position["before"]:
            raise self._changed()
        self._current.kinds = self._kinds
        self._current.go_to(at)

    def _find(self, span: Span) -> FileRows:
        self._check(span.stream)
        return self._current

    def _check(self, stream: str) -> None:
        known = stream.rpartition(":")[2]
        if self._may_grow:
            is_same = has_fingerprint(self._raw, known)
        else:
            is_same = file_fingerprint(self._raw) == known
        if not is_same:
            raise self._changed()

    def _changed(self) -> CheckpointError:
        return CheckpointError(
            f"{self._name}: isn't the file that was read before the stop, or has changed since. "
            "Bring back the file as it was, or start over with an empty checkpoint folder and an "
            f"empty output. {PUBLISHES_AGAIN}."
        )

    def _lag(self) -> int | None:
        return self._current.n_left()
