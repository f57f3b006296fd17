"""A queue of rows that clients post: the journal keeps them, and then they are answered.

Threads of the server call `HttpSource.reserve`, `HttpSource.read_rows` and `HttpSource.put`; the
reading thread of the run iterates. A request is a *post* here. All posts that wait together become
one chunk, which the journal syncs at once.
"""

from __future__ import annotations

import contextlib
import secrets
import struct
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from shoal.errors import CheckpointError, ShoalError
from shoal.io.base import BATCH_ROWS, Chunk, Position, Span
from shoal.io.formats.jsonl import JsonParser
from shoal.io.http.keys import KeyMemory, Known, digest_of

__all__ = [
    "ANSWER_SECONDS",
    "MOST_BODY",
    "MOST_LINE",
    "MOST_ROWS",
    "MOST_WAITING",
    "BadBodyError",
    "FullError",
    "HttpSource",
    "KeyReusedError",
    "NotStoredError",
    "Receipt",
]

#: The most bytes of a body and of a line, and the most rows of a body.
MOST_BODY = 8 << 20
MOST_LINE = 1 << 20
MOST_ROWS = BATCH_ROWS
#: The most bytes of all bodies that aren't on the disk yet.
MOST_WAITING = 64 << 20
#: About the maximum number of bytes in a chunk.
MOST_BYTES = 16 << 20
#: How long, in seconds, a post waits for the disk before it is answered that it isn't there yet.
ANSWER_SECONDS = 20.0
#: How often, in seconds, a waiting iteration checks whether it should stop.
POLL = 0.05
#: The head of a post in the data of a chunk: the lengths of the digest of its key and of its body.
_HEAD = struct.Struct(">HI")


class BadBodyError(ShoalError):
    """A body that isn't rows; nothing of it was taken in."""


class KeyReusedError(ShoalError):
    """A key that came with another body before; nothing was taken in."""


class FullError(ShoalError):
    """Too much waits for the disk; nothing was taken in."""


class NotStoredError(ShoalError):
    """The rows aren't on the disk; the message tells whether they may get there."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a post is answered with: its number of rows, and whether they were there before."""

    n_rows: int
    is_repeated: bool


class _State(Enum):
    WAITING = "in the queue"
    TAKEN = "in a chunk"
    STORED = "on the disk"
    DROPPED = "not taken in"


@dataclass(slots=True, eq=False)
class _Post:
    """Rows that were posted together; ``key`` is a digest, empty without a key."""

    key: str
    known: Known
    body: bytes = field(repr=False)
    #: The number of the row after its last one; until it has one, beyond every position.
    end: int = sys.maxsize
    state: _State = _State.WAITING
    #: How many requests wait for it.
    n_waiters: int = 0


class HttpSource:
    r"""Rows that are posted as JSON lines, in the order in which they came.

    Guarantee: a row whose post was answered is on the disk and is taken in exactly once. A post
    that wasn't answered was taken in as a whole or not at all; sent again with the same key, it
    isn't taken in twice, as long as the key is among the latest `MOST_KEYS`.

    Parameters
    ----------
    columns
        The columns to read.

    >>> source = HttpSource(["age"])
    >>> source.read_rows(b'{"age": 39}\n\n{"age": 50}\n')
    [b'{"age": 39}', b'{"age": 50}']
    >>> source.read_rows(b'{"age": 39}\n39\n')
    Traceback (most recent call last):
    ...
    shoal.io.http.source.BadBodyError: line 2: not a JSON object
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.schema_names = tuple(columns)
        self._parser = JsonParser(self.schema_names)
        # Without it, who has a digest could try out keys and bodies. `shoal checkpoint show`
        # prints positions, but no text of this length.
        self._salt = secrets.token_hex(48)
        self._row = 0
        self._lock = threading.Condition()
        self._has_begun = self._is_closed = False
        self._stopped = threading.Event()
        #: The keys of posts that are in chunks.
        self._keys = KeyMemory()
        self._n_waiting = 0
        self._arrived: deque[_Post] = deque()
        self._unstored: deque[_Post] = deque()
        #: The posts with a key that aren't on the disk yet.
        self._pending: dict[str, _Post] = {}

    # -- for the threads of the server -------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        """Whether the run is at work: a resumed one has replayed its journal."""
        return self._has_begun

    @contextlib.contextmanager
    def reserve(self, n_bytes: int) -> Iterator[None]:
        """Make room for a body before it is read, until the block ends.

        Raises
        ------
        FullError
            If there is none: clients send more than can be written.
        NotStoredError
            If the run is starting or stopping.
        """
        with self._lock:
            self._check_ready()
            if self._n_waiting + n_bytes > MOST_WAITING:
                raise FullError("too many rows wait to be written; send them again later")
            self._n_waiting += n_bytes
        try:
            yield
        finally:
            with self._lock:
                self._n_waiting -= n_bytes

    def read_rows(self, body: bytes) -> list[bytes]:
        """Return the lines of a body, each an object.

        Raises
        ------
        BadBodyError
            If one isn't, or if there are too many. It names the line and no value.
        """
        lines, numbers = [], []
        if (n_lines := body.count(b"\n")) > MOST_ROWS:
            # Splitting such a body would take many times its bytes.
            raise BadBodyError(f"{n_lines:,} rows, more than the maximum of {MOST_ROWS:,}")
        for number, line in enumerate(body.split(b"\n"), 1):
            if not (stripped := line.strip(b" \t\r")):
                continue
            if len(stripped) > MOST_LINE:
                raise BadBodyError(f"line {number}: more than {MOST_LINE:,} bytes")
            if b"\r" in stripped:
                # Readers of JSON lines don't agree whether it ends a line.
                raise BadBodyError(f"line {number}: a carriage return in the middle")
            lines.append(stripped)
            numbers.append(number)
        if not lines:
            raise BadBodyError("no rows: the body has one JSON object a line")
        if len(lines) > MOST_ROWS:
            raise BadBodyError(f"{len(lines):,} rows, more than the maximum of {MOST_ROWS:,}")
        # A parser of its own: what it learns about types isn't part of the position.
        parser = JsonParser(self.schema_names)
        parser.kinds = self._parser.kinds
        _, bad = parser.parse(b"\n".join(lines), 0)
        if bad:
            raise BadBodyError(f"line {numbers[bad[0].row]}: {bad[0].reason}")
        return lines

    def put(self, lines: Sequence[bytes], key: str | None) -> Receipt:
        """Take in rows, and wait until they are on the disk.

        Raises
        ------
        KeyReusedError
            If the key came with other rows before.
        NotStoredError
            If they aren't there in time, or the run stops.
        """
        body = b"\n".join(lines)
        known = Known(digest_of(self._salt, body), len(lines))
        digest = "" if key is None else digest_of(self._salt, key.encode())
        with self._lock:
            self._check_ready()
            before = self._keys.find(digest) if digest else None
            post = self._pending.get(digest)
            if post is not None:
                before = post.known
            if before is not None and before != known:
                raise KeyReusedError(
                    "the Idempotency-Key was already used with other rows: give each request its "
                    "own key"
                )
            if post is None and before is None:
                post = _Post(digest, known, body)
                self._arrived.append(post)
                if digest:
                    self._pending[digest] = post
                self._lock.notify_all()
            if post is not None:
                self._wait(post)
        return Receipt(known.n_rows, before is not None)

    def _wait(self, post: _Post) -> None:
        """Wait until a post is on the disk; the lock is held."""
        over = (_State.STORED, _State.DROPPED)
        post.n_waiters += 1
        self._lock.wait_for(lambda: post.state in over or self._is_closed, ANSWER_SECONDS)
        post.n_waiters -= 1
        if post.state is _State.STORED:
            return
        if post.state is _State.WAITING and not post.n_waiters:
            # Nobody waits for it any more, and its bytes aren't reserved any more.
            self._arrived.remove(post)
            self._pending.pop(post.key, None)
            post.state = _State.DROPPED
        if post.state is _State.DROPPED:
            raise NotStoredError("the rows were not accepted; send them again")
        raise NotStoredError(
            "the rows aren't on the disk yet, and may be accepted; send them again, with the same "
            "Idempotency-Key"
        )

    def _check_ready(self) -> None:
        if not self._has_begun or self._stopped.is_set():
            doing = "stopping" if self._stopped.is_set() else "starting"
            raise NotStoredError(f"the run is {doing}; send the rows again later")

    # -- for the run -------------------------------------------------------------------------------

    def begins_at(self) -> Position:
        """Return the position before the first chunk."""
        return self.position

    @property
    def position(self) -> Position:
        """The position after the last chunk."""
        return {
            "rows": self._row,
            "kinds": self._parser.kinds,
            "salt": self._salt,
            "keys": self._keys.plain(),
        }

    def describe(self) -> str:
        """Return what it is, for messages."""
        return "rows by HTTP"

    def seek(self, position: Position) -> None:
        """Continue after a chunk of this source."""
        self._row = int(position["rows"])
        self._parser.kinds = position["kinds"]
        self._salt = str(position["salt"])
        self._keys = KeyMemory.of(position["keys"])

    def replay(self, spans: Sequence[Span]) -> Chunk:
        """Raise `CheckpointError`: what was posted can't be read again."""
        raise CheckpointError("rows that were posted can't be read again.")

    def replay_data(self, data: bytes) -> Chunk:
        """Return the chunk that had this data."""
        posts, at = [], 0
        while at < len(data):
            n_key, n_body = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            key, at = data[at : at + n_key].decode(), at + n_key
            body, at = data[at : at + n_body], at + n_body
            known = Known(digest_of(self._salt, body), body.count(b"\n") + 1)
            posts.append(_Post(key, known, body, state=_State.STORED))
        return self._chunk(posts)

    def __iter__(self) -> Iterator[Chunk]:
        self._has_begun = True
        while not self._stopped.is_set():
            with self._lock:
                if not self._arrived:
                    self._lock.wait(POLL)
                posts = self._take()
            if posts:
                yield self._chunk(posts)

    def _take(self) -> list[_Post]:
        posts: list[_Post] = []
        n_bytes = n_rows = 0
        while self._arrived and n_bytes < MOST_BYTES and n_rows < BATCH_ROWS:
            post = self._arrived.popleft()
            post.state = _State.TAKEN
            n_bytes, n_rows = n_bytes + len(post.body), n_rows + post.known.n_rows
            posts.append(post)
            self._unstored.append(post)
        return posts

    def _chunk(self, posts: list[_Post]) -> Chunk:
        first, n_rows = self._row, sum(post.known.n_rows for post in posts)
        batch, bad = self._parser.parse(b"\n".join(post.body for post in posts), first)
        # Each line was found to be one object.
        assert batch.num_rows + len(bad) == n_rows
        rows = np.arange(first, first + n_rows, dtype=np.int64)
        if bad:
            rows = np.delete(rows, [row.row - first for row in bad])
        data = []
        with self._lock:
            for post in posts:
                self._row += post.known.n_rows
                post.end = self._row
                if post.key:
                    self._keys.add(post.key, post.known)
                data += [_HEAD.pack(len(post.key), len(post.body)), post.key.encode(), post.body]
        span = Span("rows", first, self._row)
        return Chunk(batch, rows, bad, (span,), self.position, b"".join(data))

    def acknowledge(self, position: Position) -> None:
        """Answer all posts up to a position: they are on the disk."""
        with self._lock:
            while self._unstored and self._unstored[0].end <= int(position["rows"]):
                post = self._unstored.popleft()
                post.state = _State.STORED
                self._pending.pop(post.key, None)
            self._lock.notify_all()

    def stop(self) -> None:
        """Take nothing more. Any thread may call this; safe in a signal handler."""
        self._stopped.set()

    def lag(self) -> int:
        """Return how many rows wait in the queue."""
        with self._lock:
            return sum(post.known.n_rows for post in self._arrived)

    def close(self) -> None:
        """Answer all posts that wait. Closing twice does no harm."""
        self._stopped.set()
        with self._lock:
            self._is_closed = True
            for post in self._arrived:
                post.state = _State.DROPPED
            self._arrived.clear()
            self._lock.notify_all()
