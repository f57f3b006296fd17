"""One run of a pipeline: its threads, its clock, and what makes it recoverable.

Reading with encoding, deciding, and labelling with writing are three threads with short queues
between them: they overlap on two cores, and a slow sink slows the source. What is decided is the
business of `shoal.run.core`.
"""

from __future__ import annotations

import functools
import logging
import queue
import secrets
import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow.compute as pc

from shoal.arrow.order import Departures
from shoal.arrow.release import Publish
from shoal.engine.base import Anonymizer
from shoal.errors import CheckpointError, ParameterError, ResourceError
from shoal.events import event
from shoal.io.base import BadRow, CommitMark, Position, ReplayableSource, Source
from shoal.metrics import Summary
from shoal.run.clock import Clock
from shoal.run.core import CoreState, RunCore
from shoal.run.decision_code import decision_digest
from shoal.run.intake import EncodedChunk, Intake
from shoal.run.reader import LOOK, Reader
from shoal.run.recovery import Recorder, Recovery, Saved
from shoal.run.state.journal import Entry, Flush, Read, Tick
from shoal.run.state.store import Checkpoint
from shoal.run.writer import Writer
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["Quarantine", "Run"]

log = logging.getLogger("shoal.run")

#: Ticks come so much before a deadline in seconds that what is due leaves within the delay.
LEAD_SHARE, LEAD_MOST = 0.1, 0.2
#: How long, in seconds, a stop waits for a sink that waits for somebody else.
GRACE = 10.0
#: From so many rows on, a kept column is warned about if so large a share of them are different.
UNIQUE_ROWS, UNIQUE_SHARE = 100, 0.9


@runtime_checkable
class Quarantine(Protocol):
    """Where bad rows go in a run that can be recovered: it takes no row twice."""

    def __call__(self, bad: list[BadRow]) -> None:
        """Take bad rows, or raise to stop the run."""
        ...

    def check(self) -> None:
        """Refuse if there are rows already: a job that starts anew mustn't add to them."""
        ...

    def resume(self, mark: CommitMark) -> None:
        """Go on from a mark; before any row is taken."""
        ...

    def commit(self) -> CommitMark:
        """Make all rows so far durable; give the mark to go on from."""
        ...

    @property
    def n_ahead(self) -> int:
        """How much it has of what it hasn't been given yet."""
        ...


class Recipe(Protocol):
    """What a run is made of: a `shoal.run.pipeline.Pipeline`."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        ...

    @property
    def policy(self) -> Policy:
        """What is promised."""
        ...

    @property
    def anonymizer(self) -> Anonymizer:
        """What keeps it."""
        ...

    @property
    def publish(self) -> Publish:
        """How the release looks."""
        ...

    @property
    def seed(self) -> bytes | None:
        """Where randomness comes from; None for the operating system."""
        ...

    @property
    def clock(self) -> Callable[[], float]:
        """What tells the time."""
        ...


class Run:
    """One run of a pipeline. ``summary`` tells how it stands, at any time."""

    def __init__(
        self,
        pipeline: Recipe,
        source: Source,
        writer: Writer,
        on_bad: Callable[[list[BadRow]], None] | Quarantine,
        *,
        watch: Callable[[Summary], None] | None,
        warn: Callable[[str], None] | None,
        with_subject: bool,
        recovery: Recovery | None,
        drain: bool,
    ) -> None:
        schema, policy = pipeline.schema, pipeline.policy
        delay = policy.delay
        seconds = None if delay is None else delay.seconds
        self._ticks = delay is not None and delay.by_wall(schema)
        self._lead = min(LEAD_MOST, LEAD_SHARE * (seconds or 0.0))
        self._schema = schema
        self._core = RunCore(
            schema,
            policy,
            pipeline.anonymizer,
            pipeline.publish,
            secrets.token_bytes(32) if pipeline.seed is None else pipeline.seed,
            by_clock=self._ticks,
            with_subject=with_subject,
        )
        self._clock = Clock(pipeline.clock)
        intake = Intake(self._core.codec, schema, policy.lateness, policy.ahead)
        self._reader = Reader(source, intake, self._clock)
        self._writer = writer
        if self._ticks:
            writer.keep_time(self._clock, self._core.patience)
        self._on_bad, self._watch, self._warn = on_bad, watch, warn
        self._drain = drain
        self._stop = threading.Event()
        self._position: Position | None = None
        self._recorder = None
        if recovery is not None:
            _refuse_forgetful(source, on_bad)
            code = decision_digest(type(pipeline.anonymizer).__module__, type(source).__module__)
            self._recorder = Recorder(recovery, code)
        self._is_behind = False
        self._patience: threading.Timer | None = None
        self._n_before = self._n_late = 0
        self.interrupted = False

    @property
    def summary(self) -> Summary:
        """The figures so far; of a job that was recovered, since it began."""
        return self._core.summary

    @property
    def saved(self) -> Saved | None:
        """The latest checkpoint, if the run takes any."""
        return None if self._recorder is None else self._recorder.saved

    @property
    def checkpoint_age(self) -> float | None:
        """For how many seconds there has been no checkpoint, though it was time; None without."""
        return None if self._recorder is None else self._recorder.age

    @property
    def is_behind(self) -> bool:
        """Whether it was stopped while it lived through the journal."""
        return self._is_behind

    @property
    def n_read(self) -> int:
        """How many rows this run has taken in, and not those before it."""
        return self.summary.n_in - self._n_before

    @property
    def n_waiting(self) -> int:
        """How many batches wait to be written."""
        return self._writer.n_waiting

    @property
    def lag(self) -> int | None:
        """How much the source knows to wait unread."""
        source = self._reader.source
        return source.lag() if isinstance(source, ReplayableSource) else None

    @property
    def n_written(self) -> int:
        """How many rows are in the output, which after a failure are fewer than were decided."""
        return self._writer.n_written

    def stop(self) -> None:
        """Ask the run to end soon, with what is held still held. May be called by a signal."""
        if not self._stop.is_set():
            self._stop.set()
            # A sink that waits for its broker, which may never come back, is given up then.
            self._patience = threading.Timer(GRACE, self._writer.give_up)
            self._patience.daemon = True
            self._patience.start()
        self._reader.stop()

    @property
    def is_connected(self) -> bool:
        """Whether source and sink are reached, as far as they know."""
        return not (getattr(self._reader.source, "is_away", False) or self._writer.is_away)

    def go(self) -> Summary:
        """Read everything, publish everything; give the figures."""
        try:
            if self._recorder is not None:
                self._recover(self._recorder)
            if self._is_behind:
                # Stopped while it lived through the journal: the checkpoint before still stands.
                self.interrupted = True
            else:
                self._reader.start()
                self._decide()
                if self._recorder is not None:
                    self._checkpoint(self._recorder, is_last=True)
        except BaseException:
            self.stop()
            self._close(failed=True)
            raise
        self._close(failed=False)
        self._show()
        return self.summary

    def _close(self, *, failed: bool) -> None:
        """Let the writer finish what was decided; say what is held."""
        try:
            if self._recorder is None:
                if (waiting := self._core.let_go(self._clock())) is not None:
                    self._writer.leaving(waiting)
                rows, payload = self._core.held()
                if payload is not None:
                    self._writer.held(rows, payload)
            self._writer.close(self._core.codec.types, failed=failed)
        except BaseException:
            # The first failure is the one to tell.
            if not failed:
                raise
        finally:
            if self._patience is not None:
                self._patience.cancel()
            if self._recorder is not None:
                self._recorder.close()

    def _show(self) -> None:
        # What is decided in time may still wait for a slow sink.
        n_late = self._writer.n_late
        self.summary.n_late += n_late - self._n_late
        self._n_late = n_late
        if self._watch is not None:
            self._watch(self.summary)

    # -- deciding --------------------------------------------------------------------------------

    def _decide(self) -> None:
        while True:
            item = self._next()
            self._writer.check()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                break
            now = self._clock()
            # Never of the job's seed: who knows that could undo the pseudonyms.
            secret = secrets.token_bytes(32) if self._core.needs_secret(item) else b""
            self._take_in(item, now, self._note(Read(item.spans, item.at, now, secret)), secret)
            self._show()
        self.interrupted = self._stop.is_set()
        if not self.interrupted or self._drain:
            now = self._clock()
            before = self._note(Flush(now))
            self._leave(self._core.flush(now), before)

    def _next(self) -> EncodedChunk | BaseException | None:
        """The next batch; None at the end, or if the run is to stop. Meanwhile the clock ticks."""
        while not self._stop.is_set():
            if self._recorder is not None and self._recorder.is_due():
                self._checkpoint(self._recorder, is_last=False)
            wait = LOOK
            deadline = self._core.next_deadline if self._ticks else None
            if deadline is not None:
                now = self._clock()
                until = now + self._lead
                if until >= deadline:
                    before = self._note(Tick(until, now))
                    self._leave(self._core.tick(until, now), before)
                    continue
                wait = min(wait, deadline - until)
            try:
                return self._reader.get(wait)
            except queue.Empty:
                self._writer.check()
                self._show()
        return None

    def _take_in(
        self,
        item: EncodedChunk,
        now: float,
        before: Callable[[], None] | None,
        secret: bytes,
        *,
        is_replay: bool = False,
    ) -> None:
        """Decide about a chunk; what depends on it waits until ``before`` has been called."""
        if before is not None and (item.bad or not self._writer.is_open):
            before()
        if item.bad:
            self._on_bad(item.bad)
        self._writer.open(item.types)
        if item.bad:
            self._writer.quarantined([row.row for row in item.bad], item.bad_subjects, before)
        if self._warn is not None and len(item.inputs) >= UNIQUE_ROWS:
            self._warn_of_unique(item.encoded.payload, self._warn)
            self._warn = None
        self._position = item.position
        self._leave(self._core.take_in(item, now, secret), before, is_replay=is_replay)

    def _leave(
        self,
        departures: Departures | None,
        before: Callable[[], None] | None,
        *,
        is_replay: bool = False,
    ) -> None:
        if departures is not None:
            self._writer.leaving(departures, before, is_replay=is_replay)

    def _warn_of_unique(self, payload: dict[str, Any], warn: Callable[[str], None]) -> None:
        """A kept column with a value of its own in nearly every row tells people apart."""
        for name in self._schema.keep:
            different, n = pc.count_distinct(payload[name]).as_py(), len(payload[name])
            if different > UNIQUE_SHARE * n:
                warn(
                    f"schema.keep: column {name} has {different:,} different values in "
                    f"{n:,} rows and is published as it is: it may tell people apart"
                )

    # -- recovery --------------------------------------------------------------------------------

    def _note(self, entry: Entry) -> Callable[[], None] | None:
        """Note what is about to be decided; give what makes the note durable."""
        if self._recorder is None:
            return None
        return functools.partial(self._recorder.sync, self._recorder.note(entry))

    def _checkpoint(self, recorder: Recorder, *, is_last: bool) -> None:
        """Take a snapshot here and now; the writer saves it when it has come so far."""
        if not self._writer.is_open or (is_last and not recorder.has_news):
            return
        number = recorder.cut()
        facts, arrays, batches = self._core.snapshot()
        facts |= {"position": self._position, "clock": self._clock()}
        bad = self._on_bad.commit() if isinstance(self._on_bad, Quarantine) else {}

        def save(seq: int, marks: dict[str, CommitMark]) -> None:
            told = {"seq": seq, "marks": marks | {"quarantine": bad}}
            try:
                recorder.save(number, facts | told, arrays, batches)
            except ResourceError as error:
                if is_last:
                    raise
                # The one before still stands, and the journal after it.
                event(log, logging.WARNING, "checkpoint failed", error=error)

        self._writer.barrier(save)
        if is_last:
            self._writer.drain()

    def _recover(self, recorder: Recorder) -> None:
        """Go on where the job stood, or start it anew."""
        assert isinstance(self._on_bad, Quarantine)
        found = recorder.begin()
        if found is None:
            self._writer.check_new()
            self._on_bad.check()
            recorder.resume()
            facts, arrays, batches = self._core.snapshot()
            assert isinstance(self._reader.source, ReplayableSource)
            begin = self._reader.source.begins_at()
            facts |= {"position": begin, "clock": None, "seq": 0, "marks": {}}
            recorder.save(0, facts, arrays, batches)
            self._writer.resume(0, {})
            self._on_bad.resume({})
            return
        entries = recorder.entries(found)
        recorder.resume()
        self._restore(found, self._on_bad)
        self._live_again(entries)
        if not self._is_behind:
            self._check_accounts(self._on_bad)
        event(log, logging.INFO, "went on from a checkpoint", number=found.number)

    def _restore(self, found: Checkpoint, quarantine: Quarantine) -> None:
        facts = found.facts
        self._core.restore(CoreState(facts, found.arrays, found.batches))
        self._reader.resume(self._core.latest)
        self._n_before = self.summary.n_in
        marks = facts["marks"]
        self._writer.resume(facts["seq"], marks)
        quarantine.resume(marks.get("quarantine", {}))
        self._position = facts["position"]
        if self._position is not None:
            assert isinstance(self._reader.source, ReplayableSource)
            self._reader.source.seek(self._position)
        if facts["clock"] is not None:
            self._clock.resume(facts["clock"])
        # Ticks may come before any chunk does, and what they release is to be written. Last of
        # all: opening a topic fences off whoever else runs the job.
        if self._core.types is not None:
            self._writer.open(self._core.types)

    def _live_again(self, entries: Iterable[Entry]) -> None:
        """Do once more what the journal tells; a stop meanwhile leaves all as it was."""
        source = self._reader.source
        assert isinstance(source, ReplayableSource)
        latest = -np.inf
        for entry in entries:
            if self._stop.is_set():
                self._is_behind = True
                return
            self._writer.check()
            match entry:
                case Read(spans, at, now, secret):
                    try:
                        taken = self._reader.again(source, spans, at)
                    except ResourceError:
                        # Told to stop, a source that waits for a broker gives up.
                        if not self._stop.is_set():
                            raise
                        self._is_behind = True
                        return
                    self._take_in(taken, now, None, secret, is_replay=True)
                case Tick(until, now):
                    self._leave(self._core.tick(until, now), None, is_replay=True)
                case Flush(now):
                    self._leave(self._core.flush(now), None, is_replay=True)
            latest = max(latest, entry.now)
            self._show()
        if np.isfinite(latest):
            self._clock.resume(latest)

    def _check_accounts(self, quarantine: Quarantine) -> None:
        """Refuse if the sinks have more than the checkpoint and the journal account for."""
        if self._core.types is None:
            self._writer.check_new()
            quarantine.check()
            return
        self._writer.open(self._core.types)
        if self._writer.n_ahead or quarantine.n_ahead:
            raise CheckpointError(
                "the output has rows that neither the checkpoint nor the journal accounts for: "
                "files of the checkpoint folder are missing or of another time. Put them back, or "
                "start anew with another folder and another output."
            )


def _refuse_forgetful(source: Source, on_bad: object) -> None:
    if not isinstance(source, ReplayableSource):
        raise ParameterError("source", "can't be read again, which recovery needs")
    if not isinstance(on_bad, Quarantine):
        raise ParameterError("on_bad", "can't be gone on with, which recovery needs")
