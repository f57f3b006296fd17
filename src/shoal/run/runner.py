"""One run of a pipeline: its threads, its clock, and its recovery.

One thread reads and encodes, one decides, one labels and writes, with short queues between them:
they overlap on two cores, and a slow sink slows the source. `shoal.run.core` makes the decisions.
"""

from __future__ import annotations

import functools
import logging
import queue
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrow.order import Departures
from shoal.errors import CheckpointError, DataError, ParameterError, ResourceError
from shoal.events import event
from shoal.io.base import (
    BadRow,
    CommitMark,
    JournaledSource,
    Position,
    ReplayableSource,
    Source,
)
from shoal.metrics import Summary
from shoal.metrics.shortfall import Shortfall
from shoal.run.bad_row_limit import check_limit
from shoal.run.clock import Clock, lead
from shoal.run.core import CoreState, RunCore
from shoal.run.decision_code import decision_digest
from shoal.run.encoder import EncodedChunk
from shoal.run.protocols import Memory, Quarantine
from shoal.run.reader import POLL, Reader
from shoal.run.recovery import Checkpointer, Recovery, SavedCheckpoint
from shoal.run.state.journal import Entry, Flush, Read, Tick
from shoal.run.state.store import Checkpoint
from shoal.run.unique import UNIQUE_ROWS, unique_columns
from shoal.run.writer import Writer

if TYPE_CHECKING:
    from shoal.run.pipeline import Pipeline

__all__ = ["Run", "change_job"]

log = logging.getLogger("shoal.run")

#: The seconds that a stopped run waits for a sink that waits for its broker.
GRACE = 10.0


class Run:
    """One run of a pipeline. ``summary`` has its figures at any time."""

    def __init__(
        self,
        pipeline: Pipeline,
        source: Source,
        writer: Writer,
        on_bad: Callable[[list[BadRow]], None] | Quarantine,
        *,
        watch: Callable[[Summary], None] | None,
        memory: Memory | None,
        warn: Callable[[str], None] | None,
        with_subject: bool,
        recovery: Recovery | None,
        drain: bool,
        finish: bool,
        bad_limit: float,
    ) -> None:
        schema, policy = pipeline.schema, pipeline.policy
        delay = policy.delay
        seconds = None if delay is None else delay.seconds
        self._ticks = delay is not None and delay.by_wall(schema)
        self._lead = lead(seconds)
        self._schema = schema
        self._core = _new_core(pipeline, with_subject=with_subject)
        self._clock = Clock(pipeline.clock)
        self._reader = Reader(source, self._core.encoder(), self._clock)
        self._writer = writer
        writer.while_blocked(self._show)
        if self._ticks:
            writer.count_late(self._clock, self._core.patience)
        self._on_bad, self._watch, self._warn = on_bad, watch, warn
        self._drain, self._finish, self._bad_limit = drain, finish, bad_limit
        # A run without a memory passes on what it was given.
        self._memory = memory
        self._remembered: dict[str, Any] | None = None
        self._shortfall = Shortfall(schema, policy)
        self._stop = threading.Event()
        self._position: Position | None = None
        self._checkpointer = None
        if recovery is not None:
            _check_resumable(source, on_bad)
            code = _code_of(pipeline, source)
            self._checkpointer = Checkpointer(recovery, code)
        self._is_behind = False
        self._patience: threading.Timer | None = None
        self._n_before = self._n_late = 0
        self.interrupted = False

    @property
    def summary(self) -> Summary:
        """The figures so far; those of a resumed job include the runs before."""
        return self._core.summary

    @property
    def shortfall(self) -> list[str]:
        """Sentences about why nothing was published, as far as that is known."""
        return self._shortfall.sentences()

    @property
    def saved(self) -> SavedCheckpoint | None:
        """The latest checkpoint, if the run takes any."""
        return None if self._checkpointer is None else self._checkpointer.saved

    @property
    def checkpoint_age(self) -> float | None:
        """The seconds since a checkpoint was taken or found unnecessary; None without recovery."""
        return None if self._checkpointer is None else self._checkpointer.age

    @property
    def journal_entries(self) -> int | None:
        """The number of journal entries that no checkpoint covers; None without recovery."""
        return None if self._checkpointer is None else self._checkpointer.n_appended

    @property
    def ending(self) -> str | None:
        """What it does after a stop, ``draining`` or ``stopping``; None as long as it runs."""
        if not self._stop.is_set():
            return None
        return "draining" if self._drain else "stopping"

    @property
    def batch_at(self) -> None:
        """None: rows are decided as they come, not in batches."""

    @property
    def shards(self) -> tuple[Summary, ...]:
        """None: there is one engine."""
        return ()

    @property
    def is_behind(self) -> bool:
        """Whether it replays the journal, or ended while it did."""
        return self._is_behind

    @property
    def n_read(self) -> int:
        """The number of rows that this run has read, without the runs before."""
        return self.summary.n_in - self._n_before

    @property
    def n_waiting(self) -> int:
        """The number of batches that are decided and not yet written."""
        return self._writer.n_waiting

    @property
    def blocked_seconds(self) -> float:
        """The seconds for which this run has waited because its sink was too slow."""
        return self._writer.blocked_seconds

    @property
    def lag(self) -> int | None:
        """How much is known to wait unread in the source; None if that is unknown."""
        source = self._reader.source
        return source.lag() if isinstance(source, ReplayableSource) else None

    @property
    def n_written(self) -> int:
        """The number of rows written, with those of the runs before; after a failure fewer than
        were decided, and during a replay fewer than the output has.
        """
        return self._writer.n_written

    def stop(self) -> None:
        """Stop the run soon, without publishing held rows. Safe in a signal handler."""
        if not self._stop.is_set():
            self._stop.set()
            # A broker that a sink waits for may never come back.
            self._patience = threading.Timer(GRACE, self._writer.give_up)
            self._patience.daemon = True
            self._patience.start()
        self._reader.stop()

    @property
    def is_connected(self) -> bool:
        """Whether source and sink are connected, by their latest report."""
        return not (getattr(self._reader.source, "is_away", False) or self._writer.is_away)

    def execute(self) -> Summary:
        """Run until the source ends or `stop` is called; return the figures."""
        try:
            if self._checkpointer is not None:
                self._recover(self._checkpointer)
            if self._is_behind:
                # Stopped during the replay: the last checkpoint remains valid.
                self.interrupted = True
            else:
                if self._finish:
                    # It is open if anything was read.
                    if self._writer.is_open:
                        self._flush()
                else:
                    self._reader.start()
                    self._decide()
                if self._checkpointer is not None:
                    self._checkpoint(self._checkpointer, is_last=True)
        except BaseException:
            self.stop()
            self._close(failed=True)
            raise
        self._close(failed=False)
        self._show()
        return self.summary

    def _close(self, *, failed: bool) -> None:
        """Let the writer finish what was decided, and trace the held rows."""
        try:
            if self._checkpointer is None:
                if (waiting := self._core.release_waiting(self._clock())) is not None:
                    self._writer.write(waiting)
                rows, payload = self._core.held()
                if payload is not None:
                    self._writer.held(rows, payload)
            self._writer.close(self._reader.types, failed=failed)
        except BaseException:
            # The first failure is the one to report.
            if not failed:
                raise
        finally:
            if self._patience is not None:
                self._patience.cancel()
            if self._checkpointer is not None:
                self._checkpointer.close()

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
            self._check_bad(item)
            now = self._clock()
            # Not from the job's seed: anyone who knows that could undo the pseudonyms.
            secret = secrets.token_bytes(32) if self._core.needs_secret(item) else b""
            before = self._note(Read(item.spans, item.at, now, secret, item.data))
            self._take_in(item, now, before, secret)
            if before is not None:
                self._let_go(item, before)
            self._show()
        self.interrupted = self._stop.is_set()
        if not self.interrupted or self._drain:
            self._flush()

    def _let_go(self, item: EncodedChunk, before: Callable[[], None]) -> None:
        """Tell a source that has its rows only once that the journal has them on the disk."""
        source = self._reader.source
        if isinstance(source, JournaledSource):
            assert item.position is not None
            before()
            source.acknowledge(item.position)

    def _flush(self) -> None:
        """Decide all held rows."""
        now = self._clock()
        before = self._note(Flush(now))
        self._leave(self._core.flush(now), before)

    def _check_bad(self, item: EncodedChunk) -> None:
        """Raise if too many rows are bad; a run with checkpoints resumes before this chunk."""
        try:
            check_limit(self.summary, item, self._bad_limit, self._reader.source.describe())
        except DataError:
            if self._checkpointer is None:
                # They can be looked at. With checkpoints they are neither in the journal nor in the
                # quarantine: the next run reads the chunk again.
                self._on_bad(item.bad)
            raise

    def _next(self) -> EncodedChunk | BaseException | None:
        """Wait for the next chunk while the clock ticks; None at the end or after a stop."""
        while not self._stop.is_set():
            if self._checkpointer is not None and self._checkpointer.is_due():
                self._checkpoint(self._checkpointer, is_last=False)
            wait = POLL
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
        """Decide about a chunk; ``before`` is called before anything that depends on it."""
        if before is not None and (item.bad or not self._writer.is_open):
            before()
        if item.bad:
            self._on_bad(item.bad)
        self._writer.open(item.types)
        if item.bad:
            self._writer.quarantined([row.row for row in item.bad], item.bad_subjects, before)
        if self._warn is not None and len(item.inputs) >= UNIQUE_ROWS:
            for text in unique_columns(self._schema, item.encoded.payload):
                self._warn(text)
            self._warn = None
        self._position = item.position
        if not self.summary.n_published:
            codes = item.encoded.codes
            times = np.full(len(codes.subjects), item.at) if self._ticks else None
            self._shortfall.add(codes, times)
        self._leave(self._core.take_in(item, now, secret), before, is_replay=is_replay)

    def _leave(
        self,
        departures: Departures | None,
        before: Callable[[], None] | None,
        *,
        is_replay: bool = False,
    ) -> None:
        if departures is not None:
            self._writer.write(departures, before, is_replay=is_replay)

    # -- recovery --------------------------------------------------------------------------------

    def _note(self, entry: Entry) -> Callable[[], None] | None:
        """Append a journal entry; return a callable that makes it durable."""
        if self._checkpointer is None:
            return None
        return functools.partial(self._checkpointer.sync, self._checkpointer.append(entry))

    def _checkpoint(self, checkpointer: Checkpointer, *, is_last: bool) -> None:
        """Take a snapshot now; the writer saves it after all earlier departures."""
        if not self._writer.is_open or (is_last and not checkpointer.has_news):
            return
        number = checkpointer.cut()
        facts, arrays, batches = self._core.snapshot()
        facts |= {"position": self._position, "clock": self._clock()}
        remembered = None if self._memory is None else self._memory.state()
        if (kept := remembered or self._remembered) is not None:
            facts["memory"] = kept
        bad = self._on_bad.commit() if isinstance(self._on_bad, Quarantine) else {}

        def save(seq: int, marks: dict[str, CommitMark]) -> None:
            ends = {"seq": seq, "marks": marks | {"quarantine": bad}}
            try:
                checkpointer.save(number, facts | ends, arrays, batches)
            except ResourceError as error:
                if is_last:
                    raise
                # The last checkpoint and the journal after it remain valid.
                event(log, logging.WARNING, "checkpoint failed", error=error)

        self._writer.barrier(save)
        if is_last:
            self._writer.drain()

    def _recover(self, checkpointer: Checkpointer) -> None:
        """Resume the job from its checkpoint, or start it."""
        assert isinstance(self._on_bad, Quarantine)
        found = checkpointer.begin()
        if found is None:
            self._writer.check_new()
            self._on_bad.check()
            checkpointer.resume()
            facts, arrays, batches = self._core.snapshot()
            assert isinstance(self._reader.source, ReplayableSource)
            begin = self._reader.source.begins_at()
            facts |= {"position": begin, "clock": None, "seq": 0, "marks": {}}
            checkpointer.save(0, facts, arrays, batches)
            self._writer.resume(0, {})
            self._on_bad.resume({})
            return
        entries = checkpointer.entries(found)
        checkpointer.resume()
        self._restore(found, self._on_bad)
        self._replay(entries)
        if not self._is_behind:
            self._check_accounts(self._on_bad)
        event(log, logging.INFO, "resumed from a checkpoint", number=found.number)

    def _restore(self, found: Checkpoint, quarantine: Quarantine) -> None:
        facts = found.facts
        self._remembered = facts.get("memory")
        if self._memory is not None and self._remembered is not None:
            self._memory.restore(self._remembered)
        self._core.restore(CoreState(facts, found.arrays, found.batches))
        self._reader.resume(self._core.encoder())
        self._n_before = self.summary.n_in
        if self._n_before:
            self._shortfall.miss()
        marks = facts["marks"]
        n_untraced = facts.get("untraced", 0)
        changes = facts["changes"][-n_untraced:] if n_untraced else ()
        self._writer.resume(facts["seq"], marks, changes)
        quarantine.resume(marks.get("quarantine", {}))
        self._position = facts["position"]
        if self._position is not None:
            assert isinstance(self._reader.source, ReplayableSource)
            self._reader.source.seek(self._position)
        if facts["clock"] is not None:
            self._clock.resume(facts["clock"])
        # Ticks may release rows before the first chunk comes. This is the last step: opening a
        # topic fences off any other process that runs the job.
        if self._core.types is not None:
            self._writer.open(self._core.types)

    def _replay(self, entries: Iterable[Entry]) -> None:
        """Repeat the entries of the journal; a stop leaves the checkpoint as it was."""
        source = self._reader.source
        assert isinstance(source, ReplayableSource)
        latest = -np.inf
        self._is_behind = True
        for entry in entries:
            if self._stop.is_set():
                return
            self._writer.check()
            match entry:
                case Read(spans, at, now, secret, data):
                    try:
                        chunk = self._reader.replay(source, spans, at, data)
                    except ResourceError:
                        # When stopped, a source that waits for a broker gives up.
                        if not self._stop.is_set():
                            raise
                        return
                    self._take_in(chunk, now, None, secret, is_replay=True)
                case Tick(until, now):
                    self._leave(self._core.tick(until, now), None, is_replay=True)
                case Flush(now):
                    self._leave(self._core.flush(now), None, is_replay=True)
            latest = max(latest, entry.now)
            self._show()
        if np.isfinite(latest):
            self._clock.resume(latest)
        self._is_behind = False

    def _check_accounts(self, quarantine: Quarantine) -> None:
        """Raise if the sinks have more than the checkpoint and the journal account for."""
        if self._core.types is None:
            self._writer.check_new()
            quarantine.check()
            return
        self._writer.open(self._core.types)
        ahead = self._writer.ahead()
        if quarantine.n_ahead:
            ahead.append(getattr(quarantine, "name", "the quarantine"))
        if ahead:
            verb = "has" if len(ahead) == 1 else "have"
            raise CheckpointError(
                f"{', '.join(ahead)}: {verb} rows that neither the checkpoint nor the journal "
                "accounts for: an edit has added them, or files of the checkpoint folder are "
                "missing or out of date. Undo the edit or put the files back, or start again with "
                "another folder and another output: docs/checkpoints.md says from where."
            )


def change_job(
    pipeline: Pipeline,
    source: Source,
    former: Mapping[str, str],
    recovery: Recovery,
    change: dict[str, Any],
    *,
    with_subject: bool,
) -> None:
    """Write a checkpoint from which a pipeline continues what one of a former job has finished.

    Parameters
    ----------
    pipeline, recovery
        Those of the changed job.
    source
        What it reads.
    former
        The digests of the former job, whose last run has decided all that it held.
    change
        What is noted about the change; the rows that were read, taken in and published are added.
    with_subject
        Whether the payload carries the subject, for a trace or a live audit.
    """
    code = _code_of(pipeline, source)
    noted = dict(change)

    def carry(found: Checkpoint) -> CoreState:
        core, facts = _new_core(pipeline, with_subject=with_subject), found.facts
        core.take_over(CoreState(facts, found.arrays, found.batches))
        # Before the checkpoint is written, which has it in it.
        noted.update(
            rows_in=core.summary.n_in,
            taken_in=facts["upcoming"],
            published=facts["seq"],
            latest=facts["latest"],
        )
        now = core.snapshot()
        return now._replace(facts=facts | now.facts)

    Checkpointer(recovery, code).change(former, carry, noted)


def _new_core(pipeline: Pipeline, *, with_subject: bool) -> RunCore:
    delay = pipeline.policy.delay
    return RunCore(
        pipeline.schema,
        pipeline.policy,
        pipeline.anonymizer,
        pipeline.publish,
        secrets.token_bytes(32) if pipeline.seed is None else pipeline.seed,
        by_clock=delay is not None and delay.by_wall(pipeline.schema),
        with_subject=with_subject,
    )


def _check_resumable(source: Source, on_bad: object) -> None:
    if not isinstance(source, ReplayableSource):
        raise ParameterError("source", "can't be read again, which recovery needs")
    if not isinstance(on_bad, Quarantine):
        raise ParameterError("on_bad", "can't be resumed, which recovery needs")


def _code_of(pipeline: Pipeline, source: Source) -> str:
    """Return the digest of the code that decides about these rows."""
    reader = getattr(source, "opened_in", type(source).__module__)
    return decision_digest(type(pipeline.anonymizer).__module__, reader)
