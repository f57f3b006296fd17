"""The wiring: source → codec → engine → hold → release → sink.

Reading with encoding, deciding, and labelling with writing are three threads with short queues
between them: they overlap on two cores, and a slow sink slows the source.
"""

from __future__ import annotations

import hashlib
import json
import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.codec import Codec, Encoded, words
from shoal.engine import Anonymizer, Decisions, Engine
from shoal.errors import PromiseError, ShoalError
from shoal.hold import Hold
from shoal.io.base import BadRow, Sink, Source
from shoal.kernels.arrays import Ints
from shoal.metrics import Summary
from shoal.order import Arranged, Ordering
from shoal.policy import Policy
from shoal.release import Publish, Release
from shoal.schema import Schema
from shoal.writer import ARRIVED_S, ROW, Writer

__all__ = ["Pipeline", "Run"]

#: How many batches may wait between two threads.
QUEUE = 4
#: How often, in seconds, a waiting thread looks whether it should stop.
LOOK = 0.1
#: Ticks come so much before a deadline in seconds that what is due leaves within the delay.
LEAD_SHARE, LEAD_MOST = 0.1, 0.2
#: From so many rows on, a kept column is warned about if so large a share of them are different.
UNIQUE_ROWS, UNIQUE_SHARE = 100, 0.9
NO_GROUPS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Pipeline:
    """A recipe for runs: what is read, promised, decided and published.

    Parameters
    ----------
    schema, policy, anonymizer
        The columns, the promise, and what keeps it.
    publish
        How the release looks.
    seed
        For repeatable runs, in tests only; without it randomness is the operating system's.
    clock
        What tells the time where the stream has no time column.
    """

    schema: Schema
    policy: Policy
    anonymizer: Anonymizer
    publish: Publish = field(default_factory=Publish)
    seed: bytes | None = None
    clock: Callable[[], float] = time.time

    def run(
        self,
        source: Source,
        open_sink: Callable[[pa.Schema], Sink],
        *,
        on_bad: Callable[[list[BadRow]], None],
        open_trace: Callable[[pa.Schema], Sink] | None = None,
        watch: Callable[[Summary], None] | None = None,
        on_release: Callable[[Release], None] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> Run:
        """Prepare a run; it begins with `Run.go`.

        Parameters
        ----------
        source
            Where rows come from.
        open_sink
            Called once with the columns of the output, when they are known.
        on_bad
            Takes rows that can't be used; it may raise to stop the run.
        open_trace
            Called once with the columns of the trace, if one is wanted.
        watch
            Called with the figures so far: after each batch, and at the end.
        on_release
            Called with each release when it has been written, from another thread.
        warn
            Takes sentences about data that looks dangerous to publish.
        """
        writer = Writer(self.schema, self.publish, open_sink, open_trace, on_release)
        return Run(
            self, source, writer, on_bad, watch=watch, warn=warn,
            with_subject=open_trace is not None,
        )  # fmt: skip


class _Read(NamedTuple):
    """What the reading thread hands over: a batch encoded, with the positions in the input."""

    encoded: Encoded
    inputs: Ints
    bad: list[BadRow]
    bad_subjects: list[Any]
    types: pa.Schema
    read_at: float


class Run:
    """One run of a pipeline. ``summary`` tells how it stands, at any time."""

    def __init__(
        self,
        pipeline: Pipeline,
        source: Source,
        writer: Writer,
        on_bad: Callable[[list[BadRow]], None],
        *,
        watch: Callable[[Summary], None] | None,
        warn: Callable[[str], None] | None,
        with_subject: bool,
    ) -> None:
        seed = secrets.token_bytes(32) if pipeline.seed is None else pipeline.seed
        self._pipeline = pipeline
        self._source = source
        self._on_bad = on_bad
        self._watch = watch
        self._warn = warn
        self._engine: Engine = pipeline.anonymizer.start(
            pipeline.schema, pipeline.policy, seed=seed
        )
        key = hashlib.blake2b(seed, digest_size=8, person=b"shoal-codec").digest()
        self._codec = Codec(pipeline.schema, key=key, with_subject=with_subject)
        self._hold = Hold()
        self._ordering: Ordering = pipeline.publish.ordering(seed)
        self._writer = writer
        delay = pipeline.policy.delay
        seconds = None if delay is None else delay.seconds
        self._ticks = seconds is not None and pipeline.schema.time is None
        self._lead = min(LEAD_MOST, LEAD_SHARE * (seconds or 0.0))
        self._stop = threading.Event()
        self._incoming: queue.Queue[_Read | BaseException | None] = queue.Queue(QUEUE)
        self.summary = Summary()
        self.interrupted = False
        self._now = -np.inf

    def stop(self) -> None:
        """Ask the run to end soon, with what is held still held. May be called by a signal."""
        self._stop.set()

    @property
    def n_written(self) -> int:
        """How many rows are in the output, which after a failure are fewer than were decided."""
        return self._writer.n_written

    def go(self) -> Summary:
        """Read everything, publish everything; give the figures."""
        reader = threading.Thread(target=self._read, name="shoal-reader", daemon=True)
        reader.start()
        try:
            self._decide()
        except BaseException:
            self._stop.set()
            self._close(failed=True)
            raise
        self._close(failed=False)
        if self._watch is not None:
            self._watch(self.summary)
        return self.summary

    def _close(self, *, failed: bool) -> None:
        """Let the writer finish what was decided; say what is held."""
        try:
            self._let_go()
            rows, payload = self._hold.rest()
            # What an engine decided but the guard has stopped is held as well.
            self.summary.n_held = len(rows)
            if payload is not None:
                self._writer.held(rows, payload)
            self._writer.close(self._codec.types)
        except BaseException:
            # The first failure is the one to tell.
            if not failed:
                raise

    def _let_go(self) -> None:
        """Publish what waits for earlier rows: without it, its groups would be cut in two."""
        waiting = self._ordering.rest()
        if waiting is None or not len(waiting.rows):
            return
        n_valid = self.summary.n_in - self.summary.n_quarantined
        waiting = waiting._replace(left=np.full(len(waiting.rows), n_valid))
        if (now := self._clock()) is not None:
            waiting = waiting._replace(left_s=np.full(len(waiting.rows), now))
        self._count(waiting)
        self._writer.leaving(waiting)

    # -- reading ---------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            for chunk in self._source:
                encoded = self._codec.encode(chunk.batch)
                bad = list(chunk.bad)
                subjects: list[Any] = [None] * len(bad)
                if encoded.reasons:
                    wrong = list(encoded.reasons)
                    bad += _bad_rows(chunk.batch, chunk.rows, encoded.reasons)
                    subjects += self._subjects_of(chunk.batch, wrong)
                order = sorted(range(len(bad)), key=lambda i: bad[i].row)
                read = _Read(
                    encoded,
                    chunk.rows[encoded.good],
                    [bad[i] for i in order],
                    [subjects[i] for i in order],
                    self._codec.types,
                    self._pipeline.clock(),
                )
                if not self._offer(read):
                    return
            self._offer(None)
        except pa.ArrowException as error:
            # Arrow's messages quote values.
            kind = type(error).__name__
            self._offer(ShoalError(f"{self._source.describe()}: a batch can't be used ({kind})"))
        except BaseException as error:
            self._offer(error)

    def _subjects_of(self, batch: pa.RecordBatch, rows: list[int]) -> list[Any]:
        name = self._pipeline.schema.subject
        if name is None:
            return [None] * len(rows)
        subjects: list[Any] = words(batch.column(name).take(pa.array(rows))).to_pylist()
        return subjects

    def _offer(self, item: _Read | BaseException | None) -> bool:
        """Put something in the queue unless the run is being stopped."""
        while not self._stop.is_set():
            try:
                self._incoming.put(item, timeout=LOOK)
                return True
            except queue.Full:
                continue
        return False

    # -- deciding --------------------------------------------------------------------------------

    def _decide(self) -> None:
        while True:
            item = self._next()
            self._writer.check()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                break
            self._take_in(item)
            if self._watch is not None:
                self._watch(self.summary)
        if self._stop.is_set():
            self.interrupted = True
            return
        self._publish(self._engine.flush(), self._clock())

    def _next(self) -> _Read | BaseException | None:
        """The next batch; None at the end, or if the run is to stop. Meanwhile the clock ticks."""
        while not self._stop.is_set():
            wait = LOOK
            deadline = self._engine.next_deadline if self._ticks else None
            if deadline is not None:
                now = self._pipeline.clock()
                if now + self._lead >= deadline:
                    self._publish(self._engine.advance(now + self._lead), now)
                    continue
                wait = min(wait, deadline - self._lead - now)
            try:
                return self._incoming.get(timeout=wait)
            except queue.Empty:
                self._writer.check()
        return None

    def _take_in(self, item: _Read) -> None:
        if item.bad:
            self.summary.n_in += len(item.bad)
            self.summary.n_quarantined += len(item.bad)
            self._on_bad(item.bad)
        self._writer.open(item.types)
        if item.bad:
            self._writer.quarantined([row.row for row in item.bad], item.bad_subjects)
        codes, payload = item.encoded.codes, item.encoded.payload
        n = len(codes.subjects)
        if self._warn is not None and n >= UNIQUE_ROWS:
            self._warn_of_unique(payload, self._warn)
            self._warn = None
        if self._ticks:
            codes = codes._replace(times=np.full(n, item.read_at))
        elif n and self._pipeline.schema.time is not None:
            # Time doesn't run backwards: a row that is stamped earlier than one before it has
            # arrived no earlier, here as in the engine.
            codes = codes._replace(times=np.maximum.accumulate(np.maximum(codes.times, self._now)))
            self._now = float(codes.times[-1])
        self._hold.put(
            pa.record_batch(
                payload | {ROW: pa.array(item.inputs), ARRIVED_S: pa.array(codes.times)}
            )
        )
        self.summary.n_in += n
        self._publish(self._engine.push(codes), self._clock())

    def _warn_of_unique(self, payload: dict[str, Any], warn: Callable[[str], None]) -> None:
        """A kept column with a value of its own in nearly every row tells people apart."""
        for name in self._pipeline.schema.keep:
            different, n = pc.count_distinct(payload[name]).as_py(), len(payload[name])
            if different > UNIQUE_SHARE * n:
                warn(
                    f"schema.keep: column {name} has {different:,} different values in "
                    f"{n:,} rows and is published as it is: it may tell people apart"
                )

    def _clock(self) -> float | None:
        return self._pipeline.clock() if self._ticks else None

    def _publish(self, decisions: Decisions, now: float | None) -> None:
        """Hand over what was decided; ``now`` if the clock, not the stream, tells the time."""
        if len(decisions.rows) == 0:
            self.summary.n_held = self._engine.n_held + self._ordering.n_waiting
            return
        self._guard(decisions)
        if now is not None:
            decisions = decisions._replace(published_s=np.full(len(decisions.rows), now))
        payload = self._hold.take(decisions.rows)
        arranged = self._ordering.arrange(decisions, payload, self._hold.oldest)
        new = decisions.n_rows > 0
        self._count(arranged)
        self.summary.groups.add(decisions.n_rows[new], decisions.n_subjects[new])
        self.summary.n_held = self._engine.n_held + self._ordering.n_waiting
        if len(arranged.rows):
            self._writer.leaving(arranged)

    def _guard(self, decisions: Decisions) -> None:
        """The last look: no engine, whatever its faults, gets a group of too few out."""
        new = decisions.n_rows > 0
        if new.any() and decisions.n_subjects[new].min() < self._pipeline.policy.k:
            raise PromiseError(
                f"a group of fewer than {self._pipeline.policy.k} subjects was about to be "
                "released; nothing of it was published. This is a bug: please report it."
            )

    def _count(self, arranged: Arranged) -> None:
        """Count rows that leave; groups are counted when they are formed."""
        boxes = np.where(arranged.boxes < 0, 0, arranged.boxes)
        loss = arranged.loss[boxes] if len(arranged.loss) else np.ones(len(boxes))
        arrived_s = np.asarray(arranged.payload.column(ARRIVED_S))
        waited_s = arranged.left_s - arrived_s
        self.summary.add(
            arranged.outcomes.astype(np.int8),
            loss,
            arranged.left - arranged.rows,
            None if np.isnan(waited_s).any() else waited_s,
            NO_GROUPS,
            NO_GROUPS,
        )


def _bad_rows(batch: pa.RecordBatch, rows: Ints, reasons: dict[int, str]) -> list[BadRow]:
    """Rows that the codec refused, with their values as JSON for the quarantine file."""
    values = batch.take(pa.array(list(reasons))).to_pylist()
    return [
        BadRow(int(rows[i]), reason, json.dumps(value, default=str, ensure_ascii=False).encode())
        for (i, reason), value in zip(reasons.items(), values, strict=True)
    ]
