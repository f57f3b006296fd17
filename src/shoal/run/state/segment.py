"""One segment of the journal: its entries, their layout in the file, and reading them.

A segment is a heading and then records. A record is what one sync wrote: a mark, its length, its
number in the segment, a checksum, and entries as JSON, sealed or not. A record is written only when
the one before is on disk. So there are two kinds of broken records: one with a whole record behind
it was on disk, and is damaged; one at the end of the file is a torn write of a crash, and nothing
depends on it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from shoal.errors import CheckpointError
from shoal.io.base import Span
from shoal.io.streams import read_errors
from shoal.run.state.heading import (
    DamagedError,
    Heading,
    check_seal,
    make_heading,
    read_heading,
    with_key,
)
from shoal.run.state.seal import Seal

__all__ = [
    "AnyEntry",
    "Change",
    "Entry",
    "Flush",
    "Read",
    "Segment",
    "Tick",
    "closing_record",
    "encode",
    "new_heading",
    "record",
    "resealed",
]

#: Format 2 added changes of the job, and what was received from sources that can't be read again.
MAGIC, FORMAT = b"\x89SHOALJ\n", 2
#: Neither byte occurs in the JSON, which is ASCII, so entries can't look like a record.
_MARK = b"\xf5\xfa"
_MARKS = re.compile(re.escape(_MARK))
_FIXED = struct.Struct(">2sIQ16s")
_CLOSING = b'"closed"'


@dataclass(frozen=True, slots=True)
class Read:
    """A chunk was taken in.

    Parameters
    ----------
    spans
        The spans of its rows in the source.
    at
        Its arrival time.
    now
        When it was decided.
    secret
        The material of new pseudonyms, if they changed with it.
    data
        What was received, if the source can't be read again.
    """

    spans: tuple[Span, ...]
    at: float
    now: float
    secret: bytes = field(default=b"", repr=False)
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock fired the deadlines up to ``until``, at ``now``."""

    until: float
    now: float


@dataclass(frozen=True, slots=True)
class Flush:
    """All held rows were decided."""

    now: float


@dataclass(frozen=True, slots=True)
class Change:
    """What follows was decided under the job with this digest."""

    job: str


#: What is repeated when a run resumes; and what the journal can have in it.
Entry: TypeAlias = Read | Tick | Flush
AnyEntry: TypeAlias = Entry | Change


def encode(entry: AnyEntry) -> str:
    """Return an entry as JSON.

    >>> encode(Read((Span("people.csv", 0, 512),), 7.5, 7.75))
    '["read",[["people.csv",0,512]],7.5,7.75]'
    """
    match entry:
        case Read():
            spans = [[span.stream, int(span.begin), int(span.end)] for span in entry.spans]
            fields: list[Any] = ["read", spans, float(entry.at), float(entry.now)]
            if entry.secret or entry.data:
                fields.append(entry.secret.hex())
            if entry.data:
                fields.append(base64.b64encode(entry.data).decode())
        case Tick():
            fields = ["tick", float(entry.until), float(entry.now)]
        case Flush():
            fields = ["flush", float(entry.now)]
        case Change():
            fields = ["change", entry.job]
    return json.dumps(fields, separators=(",", ":"))


def _decode(fields: Any) -> AnyEntry:
    match fields:
        case ["read", [*spans], float(at), float(now)]:
            return Read(tuple(_span(span) for span in spans), at, now)
        case ["read", [*spans], float(at), float(now), str(secret)]:
            return Read(tuple(_span(span) for span in spans), at, now, bytes.fromhex(secret))
        case ["read", [*spans], float(at), float(now), str(secret), str(data)]:
            plain = base64.b64decode(data, validate=True)
            return Read(tuple(_span(span) for span in spans), at, now, bytes.fromhex(secret), plain)
        case ["tick", float(until), float(now)]:
            return Tick(until, now)
        case ["flush", float(now)]:
            return Flush(now)
        case ["change", str(job)]:
            return Change(job)
    raise ValueError("no entry")


def _span(fields: Any) -> Span:
    match fields:
        case [str(stream), int(begin), int(end)]:
            return Span(stream, begin, end)
    raise ValueError("no span")


def new_heading(number: int, time: float, seal: Seal | None, name: str, after: str) -> Heading:
    """Return the heading of a new segment: its random name, and that of the one before."""
    return make_heading(MAGIC, FORMAT, number, time, seal, {"name": name, "after": after})


def record(heading: Heading, index: int, entries: Sequence[str], seal: Seal | None) -> bytes:
    """Return the bytes of a record."""
    return _record(heading, index, b"[" + ",".join(entries).encode() + b"]", seal)


def closing_record(heading: Heading, index: int, seal: Seal | None) -> bytes:
    """Return the bytes of the record that ends a segment before another one."""
    return _record(heading, index, _CLOSING, seal)


def resealed(path: Path, number: int, old: Seal | None, new: Seal) -> bytes:
    """Return the bytes of a segment under another key, without the torn record of a crash.

    ``old`` is None if it isn't sealed.
    """
    segment = Segment(path, number)
    # This checks all of it.
    for _ in segment.entries(old):
        pass
    fresh = with_key(segment.heading, new)
    parts = [fresh.raw]
    for index, (payload, _) in enumerate(segment.records()):
        plain = payload if old is None else segment.opened(payload, index, old)
        parts.append(_record(fresh, index, plain, new))
    return b"".join(parts)


def _record(heading: Heading, index: int, payload: bytes, seal: Seal | None) -> bytes:
    if seal is not None:
        payload = seal.close(payload, _context(heading, index))
    checksum = _checksum(heading, index, len(payload), payload)
    return _FIXED.pack(_MARK, len(payload), index, checksum) + payload


def _context(heading: Heading, index: int) -> bytes:
    """Return what a sealed record is bound to: its segment, and its place in it."""
    return b"journal\0" + heading.raw + struct.pack(">Q", index)


def _checksum(heading: Heading, index: int, n_bytes: int, payload: bytes) -> bytes:
    # With the segment's heading: a record of another segment doesn't match.
    digest = hashlib.blake2b(heading.raw, digest_size=16)
    digest.update(struct.pack(">QQ", index, n_bytes))
    digest.update(payload)
    return digest.digest()


class Segment:
    """Read a segment. Its attributes are complete when all entries were read.

    Parameters
    ----------
    path, number
        The file, and its number.

    Attributes
    ----------
    n_records
        The number of whole records, without the closing one.
    closed
        Whether it has a closing record, which means that another segment follows.
    n_torn
        The number of bytes of a torn record at the end.
    end
        Where the last record ends; the closing one doesn't count.
    """

    def __init__(self, path: Path, number: int) -> None:
        self._path, self.number = path, number
        with read_errors(str(path), "the file is damaged"):
            self._data = path.read_bytes()
        self.heading = read_heading(path, self._data, MAGIC, FORMAT, number)
        self.n_bytes = len(self._data)
        self.end = len(self.heading.raw)
        self.n_records = self.n_torn = 0
        self.closed = False

    @property
    def name(self) -> str:
        """The random name of the segment, which the next segment refers to."""
        return str(self.heading.more.get("name"))

    @property
    def after(self) -> str:
        """The name of the segment before it; empty if there was none."""
        return str(self.heading.more.get("after"))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written to it yet."""
        return self.n_bytes == len(self.heading.raw)

    def check_follows(self, before: Segment) -> None:
        """Raise if this segment doesn't follow another one, which was read to its end."""
        if self.number != before.number + 1:
            raise self._damaged(f"segment {self.number - 1}, which should come before, is missing")
        if not before.closed:
            raise before._damaged(f"it is cut off, and segment {self.number} follows")
        if self.after != before.name:
            raise self._damaged(f"it doesn't follow segment {before.number}, but another one")

    def entries(self, seal: Seal | None) -> Iterator[AnyEntry]:
        """Yield all entries.

        Raises
        ------
        CheckpointError
            At a damaged record, or one that can't be unsealed.
        """
        check_seal(self._path, self.heading, seal)
        for index, (payload, end) in enumerate(self.records()):
            if self.closed:
                raise self._damaged("something follows its closing record")
            plain = payload if seal is None else self.opened(payload, index, seal)
            if plain == _CLOSING:
                self.closed = True
                continue
            try:
                entries = [_decode(fields) for fields in json.loads(plain)]
            except (ValueError, TypeError, RecursionError):
                raise self._damaged(f"record {index} has no entries in it") from None
            self.n_records, self.end = index + 1, end
            yield from entries
        if self.closed and self.n_torn:
            raise self._damaged("something follows its closing record")

    def records(self) -> Iterator[tuple[bytes, int]]:
        """Yield the payload of each whole record, sealed or not, and where the record ends."""
        at, index = len(self.heading.raw), 0
        while (found := self._whole_at(at)) is not None:
            if found[0] != index:
                raise self._damaged(f"record {found[0]} is in the place of record {index}")
            at += _FIXED.size + len(found[1])
            yield found[1], at
            index += 1
        if self._any_whole_from(at):
            raise self._damaged(f"record {index} is broken, and others follow it")
        self.n_torn = len(self._data) - at

    def _whole_at(self, at: int) -> tuple[int, bytes] | None:
        """Return the number and the payload of the record that begins here, if one does."""
        fixed = self._data[at : at + _FIXED.size]
        if len(fixed) < _FIXED.size:
            return None
        mark, n_bytes, index, checksum = _FIXED.unpack(fixed)
        payload = self._data[at + _FIXED.size : at + _FIXED.size + n_bytes]
        whole = mark == _MARK and checksum == _checksum(self.heading, index, n_bytes, payload)
        return (index, payload) if whole else None

    def _any_whole_from(self, at: int) -> bool:
        places = (mark.start() for mark in _MARKS.finditer(self._data, at))
        return any(self._whole_at(place) is not None for place in places)

    def opened(self, payload: bytes, index: int, seal: Seal) -> bytes:
        """Return what a sealed record holds."""
        try:
            return seal.open(payload, _context(self.heading, index))
        except CheckpointError:
            raise self._damaged(f"the seal of record {index} is broken") from None

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(self._path, what)
