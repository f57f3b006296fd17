"""What all inputs made of files share that can be read again and gone on with."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.errors import CheckpointError, ShoalError
from shoal.io.base import Chunk, Position, Span
from shoal.io.files.byte_ranges import ByteRanges, Inflated, Plain
from shoal.io.files.row_blocks import FileRows, RowBlock, chunk_of, join
from shoal.io.files.text_rows import TextRows
from shoal.io.files.typed_rows import TypedRows
from shoal.io.formats.names import Format

__all__ = ["Replaying", "is_plain_text", "is_text", "open_rows"]


class Replaying(ABC):
    """Base of the sources made of files: numbers rows, and tells where it stands.

    A subclass knows which file comes next, and how each is called in spans.

    Parameters
    ----------
    path
        What is read.
    columns
        The columns to read; None for all.
    poll
        After how many seconds to look again whether there is more.
    """

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
        #: The columns that the input has; none as long as there is no file.
        self.schema_names: tuple[str, ...] = ()
        # Those that are read, once a file has told them.
        self._columns: tuple[str, ...] | None = None

    def __iter__(self) -> Iterator[Chunk]:
        while not self._stopped.is_set():
            piece = self._next()
            if piece is not None:
                yield self._chunk([piece], (self._span(piece),))
            elif self._ended:
                return
            else:
                self._stopped.wait(self._poll)

    def begins_at(self) -> Position | None:
        """None: files are read from their beginning."""
        return None

    def seek(self, position: Position) -> None:
        """Go on from a position that one of this source's chunks had."""
        try:
            streams: dict[str, int] = position["streams"]
            self._n_rows = position["rows"]
            self._kinds = position.get("kinds")
            self._seek(position, *next(iter(streams.items()), (None, 0)))
        except (KeyError, ValueError):
            raise CheckpointError(
                f"{self._name}: isn't the input that the checkpoint is of. Give the same input, "
                "or start anew with an empty checkpoint folder and an empty output."
            ) from None

    def replay(self, spans: Sequence[Span]) -> Chunk:
        """Give once more the rows of these spans, which come next."""
        pieces: list[RowBlock] = []
        n_rows = self._n_rows
        for span in spans:
            rows = self._find(span)
            pieces.append(rows.read_span(span.begin, span.end, n_rows))
            n_rows += pieces[-1].n_rows
        return self._chunk(pieces, tuple(spans))

    def stop(self) -> None:
        """End the iteration soon, also one that waits for rows. May be called by any thread."""
        self._stopped.set()

    def lag(self) -> int | None:
        """How much is known to wait unread, in bytes or rows; None if unknown."""
        try:
            return self._lag()
        except (OSError, ValueError, ShoalError):
            # A file that goes away, or is closed, while it is looked at from another thread.
            return None

    def close(self) -> None:
        """Let go of the file."""
        if self._rows is not None:
            self._rows.close()

    def _chunk(self, pieces: list[RowBlock], spans: tuple[Span, ...]) -> Chunk:
        bad = [row for piece in pieces for row in piece.bad]
        chunk = chunk_of(join(pieces), bad, self._n_rows)
        self._n_rows += sum(piece.n_rows for piece in pieces)
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
        """What is read, for a message: the name and the format."""

    @abstractmethod
    def _next(self) -> RowBlock | None:
        """Give the next rows; None if there are none, for now or, if ``_ended``, for good."""

    @abstractmethod
    def _span(self, piece: RowBlock) -> Span:
        """Say where the rows lie that were just read."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Say where the source stands."""

    @abstractmethod
    def _seek(self, position: Position, stream: str | None, at: int) -> None:
        """Go to a place in a stream; None if no file had been begun."""

    @abstractmethod
    def _find(self, span: Span) -> FileRows:
        """Open the file in which a span lies, or raise `CheckpointError`."""

    @abstractmethod
    def _lag(self) -> int | None:
        """Do `lag`."""


def is_text(kind: Format) -> bool:
    """Whether a format has lines of text."""
    return kind.name in ("csv", "tsv", "jsonl")


def is_plain_text(kind: Format) -> bool:
    """Whether a format has lines of text that aren't compressed."""
    return is_text(kind) and kind.compression is None


def open_rows(
    path: str | os.PathLike[str],
    kind: Format,
    asked: Sequence[str] | None,
    *,
    known: tuple[str, ...] | None = None,
    kinds: Mapping[str, Sequence[str]] | None = None,
) -> FileRows:
    """Open a complete file; ``known`` and ``kinds`` are those of the files before it."""
    if not is_text(kind):
        return TypedRows(path, kind, known if asked is None else asked)
    byte_ranges: ByteRanges = (
        Plain(path) if kind.compression is None else Inflated(path, kind.compression)
    )
    rows = TextRows(byte_ranges, kind.name, asked, known=known, kinds=kinds)
    try:
        rows.begin(final=True)
    except BaseException:
        rows.close()
        raise
    return rows
