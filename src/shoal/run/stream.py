"""Anonymize a stream from Python, row by row: push rows, and take the releases that leave.

The rows go the same way as those of `shoal.anonymize` and ``shoal run``: `ChunkEncoder`, `RunCore`
with its last guard, and a publisher. There is no thread and no file here.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, get_args, overload

from shoal.algorithms.registry import check_support
from shoal.arrow.labels import Numeric
from shoal.arrow.order import Departures
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Order, Publish, Suppressed
from shoal.engine.base import Anonymizer
from shoal.errors import DataError, ParameterError, UnsupportedError, check_choice
from shoal.io.base import BadRow, Chunk
from shoal.metrics import Summary
from shoal.run.clock import steady
from shoal.run.decision_code import decision_digest
from shoal.run.encoder import EncodedChunk
from shoal.run.frame import anonymizer_of, check_parts, seed_bytes
from shoal.run.frame_kinds import DICTS, chunks_of
from shoal.run.inline import InlineRun
from shoal.run.pipeline import Pipeline
from shoal.run.snapshot import read_snapshot, snapshot_bytes
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["BadRows", "Stream", "StreamOptions"]

F = TypeVar("F")
#: What happens to rows that can't be used.
BadRows: TypeAlias = Literal["quarantine", "stop"]
#: The most bad rows that wait to be taken from `Stream.quarantined`.
MOST_QUARANTINED = 10_000
#: How a stream has ended.
FLUSHED, CLOSED, FAILED = "was flushed", "was closed", "failed"


class StreamOptions(TypedDict, total=False):
    """The options of a stream; see `Stream`."""

    seed: int | None
    numeric: Numeric
    order: Order
    suppressed: Suppressed
    time: float | None
    pseudonym: Pseudonym | None
    bad_rows: BadRows
    clock: Callable[[], float]


class Stream:
    """Anonymize rows as they come.

    ``push`` takes rows and returns the releases that leave: dictionaries if dictionaries were
    pushed, one for each public row; else a frame of the same kind with all rows that leave at once.
    Most rows leave later than they came, in a group with others.

    As a context manager, the stream is flushed when the block ends, and ``rest`` has what left
    then. When the block raises, the held rows are dropped and nothing of them is published.

    Several threads may use one stream: their calls run one after the other, and rows arrive in the
    order of the calls.

    Parameters
    ----------
    schema, policy
        The columns and their roles, and what is promised.
    algorithm
        An anonymizer for streams, or the name of one with its default knobs; by default
        ``"tide"``, or ``"z-anonymity"`` if z is promised.
    seed
        For repeatable results, in tests only; by default from the operating system.
    numeric, order, suppressed, time, pseudonym
        How a release looks; see `shoal.arrow.release.Publish`.
    bad_rows
        What happens if rows can't be used. ``"quarantine"``: they are counted, and wait in
        ``quarantined``. ``"stop"``: `push` raises `DataError`, and takes none of its rows in.
    clock
        Returns the time in seconds where the stream has none of its own.

    >>> from shoal import Delay, KAnonymity, Quasi, Range
    >>> schema = Schema(subject="name", quasi=[Quasi("age", Range(0, 120, step=1))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=3))
    >>> people = [("Ann", 31), ("Bob", 33), ("Cem", 64), ("Dan", 68)]
    >>> with Stream(schema, policy) as stream:
    ...     for name, age in people:
    ...         for release in stream.push({"name": name, "age": age}):
    ...             print(release)
    {'age': '[31, 33]'}
    {'age': '[31, 33]'}
    >>> stream.rest
    [{'age': '[64, 68]'}, {'age': '[64, 68]'}]
    """

    def __init__(
        self,
        schema: Schema,
        policy: Policy,
        algorithm: Anonymizer | str | None = None,
        *,
        seed: int | None = None,
        numeric: Numeric = "range",
        order: Order = "released",
        suppressed: Suppressed = "drop",
        time: float | None = None,
        pseudonym: Pseudonym | None = None,
        bad_rows: BadRows = "quarantine",
        clock: Callable[[], float] = steady,
    ) -> None:
        check_parts(schema, policy)
        publish = Publish(numeric, order, suppressed, time, pseudonym)
        anonymizer = anonymizer_of(algorithm, policy)
        self._start(
            Pipeline(schema, policy, anonymizer, publish, seed_bytes(seed), clock), bad_rows
        )

    @classmethod
    def of(cls, pipeline: Pipeline, *, bad_rows: BadRows = "quarantine") -> Stream:
        """Return a stream of a pipeline, such as that of a job: ``Job.load(path).pipeline``."""
        stream = cls.__new__(cls)
        stream._start(pipeline, bad_rows)
        return stream

    def _start(self, pipeline: Pipeline, bad_rows: BadRows) -> None:
        check_choice("bad_rows", bad_rows, get_args(BadRows))
        anonymizer = pipeline.anonymizer
        check_support(anonymizer, pipeline.policy)
        if anonymizer.publishes == "table":
            raise UnsupportedError(
                f"'{anonymizer.name}' publishes a whole table at once, and a stream has no end",
                fix="Use shoal.anonymize, or choose an algorithm for streams",
            )
        self._pipeline, self._stops = pipeline, bad_rows == "stop"
        self._run = InlineRun(pipeline)
        self._kind = DICTS
        self._lock = threading.RLock()
        self._end: str | None = None
        #: The rows that can't be used, with the reason; take them out of the list, it has a bound.
        #: They are personal data.
        self.quarantined: list[BadRow] = []
        #: The releases of the flush at the end of a ``with`` block.
        self.rest: list[Any] = []

    # -- figures ---------------------------------------------------------------------------------

    @property
    def summary(self) -> Summary:
        """The figures so far: rows in, published, suppressed, quarantined, held; loss and delay."""
        return self._run.core.summary

    @property
    def n_held(self) -> int:
        """The number of rows that haven't left."""
        return self._run.core.summary.n_held

    @property
    def next_deadline(self) -> float | None:
        """The time, by the stream's clock, at which `advance` has something to decide."""
        return self._run.core.next_deadline

    @property
    def has_failed(self) -> bool:
        """Whether a call has failed in such a way that nothing more can be decided."""
        return self._end == FAILED

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the next deadline by the wall clock; None if there is none."""
        deadline = self._run.core.next_deadline if self._run.by_wall else None
        return None if deadline is None else deadline - self._run.clock()

    def __repr__(self) -> str:
        counts = self.summary.lines()[0]
        return f"Stream({self._pipeline.anonymizer.name!r}: {counts})"

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()

    # -- the verbs -------------------------------------------------------------------------------

    @overload
    def push(
        self, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]: ...
    @overload
    def push(self, rows: F) -> list[F]: ...
    def push(self, rows: Any) -> list[Any]:
        """Take rows in; return the releases that leave.

        Parameters
        ----------
        rows
            A dict, a list of dicts, a DataFrame of pandas or polars, or a Table or RecordBatch of
            Arrow. What the schema doesn't name isn't read; a key that a dict lacks is a missing
            value. The first rows set the types of the columns that are published as they are.

        Raises
        ------
        DataError
            If rows can't be used, and ``bad_rows`` is ``"stop"``; or if too many of them wait in
            ``quarantined``. Then none of these rows is taken in.
        """
        schema = self._pipeline.schema
        with self._lock:
            self._check_open()
            first = self.summary.n_in
            kind, chunks = chunks_of(rows, schema.columns, schema.payload, first=first, key="rows")
            encoded = self._encode(chunks)
            self._kind = kind
            return self._attempt(lambda: self._run.take_in(encoded))

    def advance(self, until: float | datetime | None = None) -> list[Any]:
        """Let time pass without a row: return the releases whose deadline has come.

        Parameters
        ----------
        until
            The time that it is by the stream's own clock: seconds, or a datetime. Rows that come
            later count as of this time at the earliest. Leave it out where the delay is measured by
            the wall clock.
        """
        with self._lock:
            self._check_open()
            return self._tick(self._until(until))

    def fire(self, early: float) -> list[Any]:
        """Return the releases whose deadline by the wall clock comes within this many seconds."""
        with self._lock:
            self._check_open()
            return self._tick(self._run.clock() + early)

    def flush(self) -> list[Any]:
        """End the stream: decide all held rows, under the policy; return the last releases."""
        with self._lock:
            if self._end == FLUSHED:
                return []
            self._check_open()
            released = self._attempt(lambda: [self._run.core.flush(self._run.clock())])
            self._end = FLUSHED
            return released

    def close(self) -> None:
        """End the stream without publishing the held rows; do nothing if it has ended."""
        with self._lock:
            if self._end is None:
                self._run.core.held()
                self._end = CLOSED

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with self._lock:
            if kind is None and self._end is None:
                self.rest = self.flush()
            self.close()

    # -- snapshots -------------------------------------------------------------------------------

    def snapshot(self, *, seal: str | None = None) -> bytes:
        """Return all that later releases depend on.

        A snapshot holds the rows that haven't left: it is **personal data**, and so is the state
        that would tell who was grouped with whom. Publish what the stream has released before you
        store it; and store what came after it, to push it again after a `restore`. Bad rows in
        ``quarantined`` aren't in it.

        Parameters
        ----------
        seal
            Where the key is that encrypts it: ``"env:NAME"`` or ``"file:PATH"``. None: it is in
            clear.
        """
        with self._lock:
            self._check_open()
            return snapshot_bytes(self._pipeline, self._code(), self._run.snapshot(), seal)

    def restore(self, snapshot: bytes, *, seal: str | None = None) -> None:
        """Continue from a snapshot, before the first row is pushed.

        Rows pushed again in the same order lead to the same releases, bit for bit, unless deadlines
        follow the wall clock.

        Raises
        ------
        CheckpointError
            If it was taken under another schema, policy, algorithm or version of the code, or is
            damaged, or sealed with another key.
        """
        with self._lock:
            self._check_open()
            if self.summary.n_in:
                raise ParameterError(
                    "snapshot",
                    "can't be restored into a stream that already has rows: they would be lost",
                    got=f"{self.summary.n_in:,} rows",
                    fix="Restore into a new Stream",
                )
            state = read_snapshot(self._pipeline, self._code(), snapshot, seal)
            try:
                self._run.restore(state)
            except BaseException:
                # Half of it may be restored.
                self._end = FAILED
                raise

    # -- inside ----------------------------------------------------------------------------------

    def _code(self) -> str:
        return decision_digest(type(self._pipeline.anonymizer).__module__, __name__)

    def _check_open(self) -> None:
        if self._end is not None:
            raise ParameterError("stream", f"has ended: it {self._end}", fix="Start a new Stream")

    def _encode(self, chunks: list[Chunk]) -> list[EncodedChunk]:
        """Encode rows; if that fails, it is as if they had never come."""
        try:
            encoded, unread = self._run.encode(chunks)
            self._set_apart([*unread, *(row for chunk in encoded for row in chunk.bad)])
        except BaseException:
            self._run.forget()
            raise
        self.summary.n_in += len(unread)
        self.summary.n_quarantined += len(unread)
        self.summary.bad_rows.add(row.reason for row in unread)
        return encoded

    def _set_apart(self, bad: list[BadRow]) -> None:
        if not bad:
            return
        if self._stops:
            raise DataError(
                f"rows: row {bad[0].row}, counted from 0 since the stream began: {bad[0].reason}. "
                f"{len(bad):,} of the pushed rows can't be used, and none was accepted. "
                'bad_rows="quarantine" collects them and continues.'
            )
        if len(self.quarantined) + len(bad) > max(MOST_QUARANTINED, len(bad)):
            raise DataError(
                f"rows: {len(self.quarantined):,} rows that can't be used wait in "
                "Stream.quarantined, and there are more. None of the pushed rows was taken in. "
                "Take the waiting ones out of the list, and push again."
            )
        self.quarantined += bad

    def _until(self, until: float | datetime | None) -> float | None:
        """Return the time up to which deadlines fire; None if there are none in seconds."""
        delay = self._pipeline.policy.delay
        if self._run.by_wall:
            if until is not None:
                raise ParameterError(
                    "until",
                    "isn't used: this delay is measured by the wall clock",
                    fix="Leave it out",
                )
            return self._run.clock()
        if until is None:
            if delay is None or delay.seconds is None:
                return None
            raise ParameterError(
                "until",
                "is missing: this delay is measured by the times of the rows",
                fix=f"Give the current time, in the unit of column {self._pipeline.schema.time}",
            )
        seconds = _seconds(until)
        if self._pipeline.schema.time is None:
            return None
        self._run.move_to(seconds)
        return seconds

    def _tick(self, until: float | None) -> list[Any]:
        if until is None:
            return []
        return self._attempt(lambda: [self._run.core.tick(until, self._run.clock())])

    def _attempt(self, decide: Callable[[], list[Departures | None]]) -> list[Any]:
        """Return what leaves; after a failure the stream has ended, and nothing more does."""
        try:
            return self._released(decide())
        except BaseException:
            self._end = FAILED
            raise

    def _released(self, departures: list[Departures | None]) -> list[Any]:
        table = self._run.table(departures)
        if table is None:
            return []
        frame = self._kind.from_arrow(table)
        return list(frame) if self._kind is DICTS else [frame]


def _seconds(until: object) -> float:
    """Return a time in seconds since 1970, as the codec reads it: without a zone it is UTC."""
    if isinstance(until, datetime):
        return (until if until.tzinfo is not None else until.replace(tzinfo=UTC)).timestamp()
    if isinstance(until, bool) or not isinstance(until, int | float) or not math.isfinite(until):
        raise ParameterError(
            "until", "must be a finite number of seconds, or a datetime", got=type(until).__name__
        )
    return float(until)
