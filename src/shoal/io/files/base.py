"""What all replayable inputs made of files share."""

from __future__ import annotations

import functools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from shoal.errors import PUBLISHES_AGAIN, CheckpointError, ShoalError
from shoal.io.base import Chunk, Position, Span
from shoal.io.files.random_access import DecodedFile, PlainFile, RandomAccess
from shoal.io.files.row_blocks import FileRows, RowBlock, chunk_of, join_blocks
from shoal.io.files.text_rows import TextRows
from shoal.io.files.typed_rows import TypedRows
from shoal.io.formats import FileType

__all__ = ["POLL_SECONDS", "FileSource", "open_rows"]

#: How long, in seconds, to wait before looking for more rows or files.
POLL_SECONDS = 0.2


class FileSource(ABC):
    """Base of the replayable sources made of files: numbers rows and keeps the position.

    A subclass knows which file comes next, and how each is named in spans.

    Parameters
    ----------
    path
        The file or folder.
    columns
        The columns to read; None for all.
    poll
        How long, in seconds, to wait before looking for more.
    """

    #: What opens all of them: with and without `follow` a run resumes with the same code.
    opened_in: ClassVar[str] = "shoal.io.files.replayable"

    def __init__(
        self, path: str | os.PathLike[str], columns: Sequence[str] | None, poll: float
    ) -> None:
        self._name = os.fspath(path)
        self._asked = None if columns is None else tuple(columns)
        self._poll = poll
        self._stopped = threading.Event()
        self._rows: FileRows | None = None
        self._n_rows = 0
        self._kinds: Mapping[str, Sequence[str]] | None = None
        self._ended = False
        #: The columns that the input has; empty as long as there is no file.
        self.schema_names: tuple[str, ...] = ()
        # The columns that are read, once a file has named them.
        self._columns: tuple[str, ...] | None = None

    def __iter__(self) -> Iterator[Chunk]:
        while not self._stopped.is_set():
            block = self._next()
            if block is not None:
                yield self._chunk([block], (self._span(block),))
            elif self._ended:
                return
            else:
                self._stopped.wait(self._poll)

    def begins_at(self) -> Position | None:
        """None: files are read from their beginning."""
        return None

    def seek(self, position: Position) -> None:
        """Continue from a position that one of this source's chunks had."""
        try:
            streams: dict[str, int] = position["streams"]
            self._n_rows = position["rows"]
            self._kinds = position.get("kinds")
            self._seek(position, *next(iter(streams.items()), (None, 0)))
        except (KeyError, ValueError):
            raise CheckpointError(
                f"{self._name}: isn't the input that the checkpoint belongs to. Give the same "
                "input, or start over with an empty checkpoint folder and an empty output. "
                f"{PUBLISHES_AGAIN}."
            ) from None

    def replay(self, spans: Sequence[Span]) -> Chunk:
        """Read the rows of these spans again, which come next."""
        blocks: list[RowBlock] = []
        n_rows = self._n_rows
        for span in spans:
            rows = self._find(span)
            blocks.append(rows.read_span(span.begin, span.end, n_rows))
            n_rows += blocks[-1].n_rows
        return self._chunk(blocks, tuple(spans))

    def stop(self) -> None:
        """End the iteration soon, even while it waits for rows. Any thread may call this."""
        self._stopped.set()

    def lag(self) -> int | None:
        """Return how much is unread, in bytes or rows; None if unknown."""
        try:
            return self._lag()
        except (OSError, ValueError, ShoalError):
            # A file that is removed or closed while another thread looks at it.
            return None

    def close(self) -> None:
        """Close the file."""
        if self._rows is not None:
            self._rows.close()

    def _chunk(self, blocks: list[RowBlock], spans: tuple[Span, ...]) -> Chunk:
        bad = [row for block in blocks for row in block.bad]
        chunk = chunk_of(join_blocks(blocks), bad, self._n_rows)
        self._n_rows += sum(block.n_rows for block in blocks)
        if self._rows is not None:
            self._kinds = self._rows.kinds
        chunk.spans = spans
        chunk.position = {"rows": self._n_rows, **self._state()}
        if self._kinds is not None:
            chunk.position["kinds"] = self._kinds
        return chunk

    def _note(self, rows: FileRows) -> None:
        """Remember the columns of the first file."""
        self._rows = rows
        if self._columns is None:
            self.schema_names, self._columns = rows.names, rows.columns

    @abstractmethod
    def describe(self) -> str:
        """Return the name and the format, for messages."""

    @abstractmethod
    def _next(self) -> RowBlock | None:
        """Return the next rows; None if there are none now or, if ``_ended``, ever."""

    @abstractmethod
    def _span(self, block: RowBlock) -> Span:
        """Return the span of the rows that were just read."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Return the position, without the number of rows and what was learned."""

    @abstractmethod
    def _seek(self, position: Position, stream: str | None, at: int) -> None:
        """Go to a place in a stream; the stream is None if no file had been begun."""

    @abstractmethod
    def _find(self, span: Span) -> FileRows:
        """Return the rows of the file that contains a span, or raise `CheckpointError`."""

    @abstractmethod
    def _lag(self) -> int | None:
        """Compute `lag`; may raise."""


def open_rows(
    path: str | os.PathLike[str],
    kind: FileType,
    asked: Sequence[str] | None,
    *,
    known: tuple[str, ...] | None = None,
    kinds: Mapping[str, Sequence[str]] | None = None,
) -> FileRows:
    """Open a complete file; ``known`` and ``kinds`` are those of the files before it."""
    form = kind.format.text
    if form is None:
        return TypedRows(path, kind, known if asked is None else asked)
    file: RandomAccess = (
        PlainFile(path)
        if kind.is_plain_text
        else DecodedFile(path, functools.partial(kind.open, path))
    )
    rows = TextRows(file, form, asked, known=known, kinds=kinds)
    try:
        rows.begin(final=True)
    except BaseException:
        rows.close()
        raise
    return rows
