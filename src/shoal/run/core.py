"""The core of a run: all that the output depends on, without threads, files and clocks.

A `RunCore` has three verbs, and each is passed the time. The same calls lead to the same decisions,
to the last bit, also after its state was saved and restored. So a run can be replayed from a
checkpoint and a journal of the calls after it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrow.codec import NAMED
from shoal.arrow.columns import Complain
from shoal.arrow.hold import ARRIVED_S, ROW, Hold
from shoal.arrow.order import Departures, Ordering
from shoal.arrow.pseudonyms import COLUMN, Pseudonyms
from shoal.arrow.release import Publish
from shoal.engine.base import Anonymizer, Decisions, Engine, Outcome
from shoal.engine.kernels.arrays import Any1, Floats, Ints
from shoal.errors import PromiseError
from shoal.events import event
from shoal.metrics import Summary
from shoal.metrics.shortfall import suppression_reason
from shoal.metrics.z.counts import ZCounts
from shoal.run.encoder import ChunkEncoder, EncodedChunk, codec_for, codec_key
from shoal.spec.ladder import n_levels
from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Schema

__all__ = ["CoreState", "RunCore", "summary_of"]

log = logging.getLogger("shoal.run.core")

NO_GROUPS = np.empty(0, np.int64)
#: Deadlines are met to the microsecond; smaller differences are rounding.
ROUNDING = 1e-6


class CoreState(NamedTuple):
    """A snapshot: plain values, arrays by name, and batches of payload by name."""

    facts: dict[str, Any]
    arrays: dict[str, Any1]
    batches: dict[str, pa.RecordBatch]

    def __repr__(self) -> str:
        return f"CoreState({len(self.arrays)} arrays, {len(self.batches)} batches)"


class RunCore:
    """Take rows in, fire deadlines, and return departures in their order.

    Parameters
    ----------
    schema, policy, anonymizer, publish
        The columns, the promise, what keeps it, and how a release looks.
    seed
        The source of all randomness.
    by_clock
        Whether arrival and departure times come from a clock and not from the stream.
    with_subject
        Whether the payload carries the subject, for a trace.
    types
        The types of the payload, if they are known in advance; else those of the first rows.
    """

    def __init__(
        self,
        schema: Schema,
        policy: Policy,
        anonymizer: Anonymizer,
        publish: Publish,
        seed: bytes,
        *,
        by_clock: bool,
        with_subject: bool,
        types: pa.Schema | None = None,
    ) -> None:
        self._schema, self._policy, self._publish = schema, policy, publish
        self._with_subject = with_subject
        by_rows = isinstance(policy.window, Window) and policy.window.seconds is None
        self._counts_rows = by_rows
        self._pseudonyms = (
            None if publish.pseudonym is None else Pseudonyms(publish.pseudonym.rotate)
        )
        self._engine: Engine = anonymizer.start(schema, policy, seed=seed)
        # The key, the number of rows and the types are all that a new encoder must know.
        self._key = codec_key(seed)
        self._n_encoded = 0
        self._types = types
        self._hold = Hold()
        self._ordering: Ordering = publish.ordering(seed)
        # The numbers of the engine's first row and group in the stream, and of the next group: an
        # engine that began when the job changed counts from 0 again.
        self._first_row = self._first_group = self._next_group = 0
        self._by_clock = by_clock
        self._has_time = schema.time is not None
        seconds = None if policy.delay is None else policy.delay.seconds
        #: The seconds after which a departing row is late.
        self.patience = np.inf if seconds is None else seconds + ROUNDING
        #: The latest time of a row so far.
        self.latest = -np.inf
        #: The figures of the run.
        self.summary = summary_of(schema, policy)

    @property
    def next_deadline(self) -> float | None:
        """The next time at which a tick has something to decide; None without one."""
        return self._engine.next_deadline

    def encoder(self, observe: Complain | None = None) -> ChunkEncoder:
        """Return a new encoder, which continues after the rows taken in so far.

        ``observe`` is that of `Codec`.
        """
        codec = codec_for(
            self._schema, self._policy, self._publish, key=self._key,
            with_subject=self._with_subject, n_rows=self._n_encoded, types=self._types,
            observe=observe,
        )  # fmt: skip
        policy = self._policy
        return ChunkEncoder(codec, self._schema, policy.lateness, policy.ahead, self.latest)

    # -- the three verbs -------------------------------------------------------------------------

    def needs_secret(self, chunk: EncodedChunk) -> bool:
        """Whether pseudonyms change with these rows, so that a new secret is needed."""
        if self._pseudonyms is None:
            return False
        return self._pseudonyms.begins(self._clock_of(self._times(chunk)))

    def take_in(self, chunk: EncodedChunk, now: float, secret: bytes = b"") -> Departures | None:
        """Take in rows at time ``now``; return what leaves.

        ``secret`` is the material of new pseudonyms, where `needs_secret` says so.
        """
        codes, payload = chunk.encoded.codes, chunk.encoded.payload
        n = len(codes.subjects)
        self.summary.n_in += n + len(chunk.bad)
        self.summary.n_quarantined += len(chunk.bad)
        self.summary.bad_rows.add(row.reason for row in chunk.bad)
        self.summary.skipped.update(chunk.skipped)
        if n and self._has_time:
            # Time doesn't run backwards: a row with an earlier timestamp than one before it has
            # arrived no earlier, here as in the engine. Where a clock gives the time, timestamps
            # still decide which rows are too late, so the latest is a part of every snapshot.
            times = self._times(chunk)
            codes = codes._replace(times=times)
            self.latest = float(times[-1])
        if self._by_clock:
            codes = codes._replace(times=np.full(n, chunk.at))
        if self._pseudonyms is not None:
            names, clock = payload.pop(NAMED), self._clock_of(codes.times)
            payload[COLUMN] = self._pseudonyms.give(names, clock, secret)
        self._hold.put(
            pa.record_batch(
                payload | {ROW: pa.array(chunk.inputs), ARRIVED_S: pa.array(codes.times)}
            )
        )
        self._n_encoded, self._types = chunk.n_rows, chunk.types
        return self._departures(self._engine.push(codes), now)

    def tick(self, until: float, now: float) -> Departures | None:
        """Fire the deadlines up to ``until`` while no row comes; return what leaves ``now``."""
        return self._departures(self._engine.advance(until), now)

    def flush(self, now: float) -> Departures | None:
        """Decide all held rows, under the policy; return what leaves."""
        return self._departures(self._engine.flush(), now, is_end=True)

    # -- at a stop -------------------------------------------------------------------------------

    def release_waiting(self, now: float) -> Departures | None:
        """Return the decided rows that wait for earlier ones, so that no group is cut in two."""
        waiting = self._ordering.rest()
        if waiting is None or not len(waiting.rows):
            return None
        waiting = waiting._replace(left=np.full(len(waiting.rows), self._hold.upcoming))
        if self._by_clock:
            waiting = waiting._replace(left_s=np.full(len(waiting.rows), now))
        self._count(waiting)
        return waiting

    def held(self) -> tuple[Ints, pa.RecordBatch | None]:
        """Return the positions and the payload of all undecided rows."""
        rows, payload = self._hold.rest()
        # Rows that the engine decided but the guard stopped count as held, too.
        self.summary.n_held = len(rows)
        return rows, payload

    # -- snapshots -------------------------------------------------------------------------------

    def start_at(self, row: int, latest: float, pseudonyms: Mapping[str, Any1]) -> None:
        """Start at a valid row of a stream whose earlier rows are taken in by other cores.

        ``latest`` is the latest time before it, ``pseudonyms`` what `Pseudonyms.snapshot` returned.
        """
        self._hold.restore(row, NO_GROUPS, None)
        self.latest = latest
        if self._pseudonyms is not None:
            self._pseudonyms.restore(pseudonyms)

    def snapshot(self) -> CoreState:
        """Return a copy of all that later decisions depend on."""
        rows, held = self._hold.rest()
        order, waiting = self._ordering.snapshot()
        arrays = {f"engine.{name}": array for name, array in self._engine.snapshot().items()}
        arrays |= {f"order.{name}": array.copy() for name, array in order.items()}
        arrays |= {"held.rows": rows, "codec.key": np.frombuffer(self._key, "<u4").astype(np.int64)}
        if self._pseudonyms is not None:
            arrays |= {f"names.{name}": a for name, a in self._pseudonyms.snapshot().items()}
        batches = {"held": held, "waiting": waiting}
        if self._types is not None:
            batches["types"] = pa.RecordBatch.from_pylist([], schema=self._types)
        facts = {
            "rows": self.summary.as_dict()["rows"],
            "summary": self.summary.state(),
            "upcoming": self._hold.upcoming,
            "encoded": self._n_encoded,
            "latest": self.latest if np.isfinite(self.latest) else None,
            "first": [self._first_row, self._first_group, self._next_group],
        }
        return CoreState(facts, arrays, {n: b for n, b in batches.items() if b is not None})

    def restore(self, state: CoreState) -> None:
        """Restore a snapshot of the same job."""
        facts, arrays, batches = state
        self._engine.restore(_under("engine.", arrays))
        self._ordering.restore(_under("order.", arrays), batches.get("waiting"))
        if self._pseudonyms is not None:
            self._pseudonyms.restore(_under("names.", arrays))
        self._hold.restore(int(facts["upcoming"]), arrays["held.rows"], batches.get("held"))
        self._restore_intake(state)
        first = facts.get("first", (0, 0, 0))
        self._first_row, self._first_group, self._next_group = (int(number) for number in first)

    def take_over(self, state: CoreState) -> None:
        """Continue a stream of which a core of the former job has decided every row.

        Only what was taken in is carried over: no rule of the former job, and no group that was
        kept for reuse. Rows and groups are numbered on.
        """
        facts, arrays, batches = state
        waiting = batches.get("waiting")
        if len(arrays["held.rows"]) or (waiting is not None and waiting.num_rows):
            raise ValueError("the former job holds rows")
        self._first_row = int(facts["upcoming"])
        self._first_group = self._next_group = int(facts["first"][2])
        self._hold.restore(self._first_row, NO_GROUPS, None)
        if self._pseudonyms is not None:
            self._pseudonyms.restore(_under("names.", arrays))
        self._restore_intake(state)

    def _restore_intake(self, state: CoreState) -> None:
        """Restore what the next rows are encoded with, and the figures."""
        facts, arrays, batches = state
        if (types := batches.get("types")) is not None:
            self._types = types.schema
        self._n_encoded = int(facts["encoded"])
        self._key = arrays["codec.key"].astype("<u4").tobytes()
        self.latest = -np.inf if facts["latest"] is None else float(facts["latest"])
        self.summary.restore(facts["summary"])

    @property
    def types(self) -> pa.Schema | None:
        """The columns of the payload; None before the first chunk, if they aren't given."""
        return self._types

    # -- inside ----------------------------------------------------------------------------------

    def _times(self, chunk: EncodedChunk) -> Floats:
        """Return the times of rows, none earlier than the latest before it."""
        times: Floats = np.maximum(chunk.encoded.codes.times, self.latest)
        return np.maximum.accumulate(times)

    def _clock_of(self, times: Floats) -> Floats:
        """Return what periods are counted in: times, or positions if the window is in rows."""
        first = self._hold.upcoming
        rows: Floats = np.arange(first, first + len(times), dtype=np.float64)
        return rows if self._counts_rows else times

    def _departures(
        self, decisions: Decisions, now: float, *, is_end: bool = False
    ) -> Departures | None:
        departures = None
        if len(decisions.rows):
            self._guard(decisions)
            decisions = self._numbered(decisions)
            self._count_suppressed(decisions, is_end=is_end)
            if self._by_clock:
                decisions = decisions._replace(published_s=np.full(len(decisions.rows), now))
            payload = self._hold.take(decisions.rows)
            departures = self._ordering.arrange(decisions, payload, self._hold.oldest)
            self._count(departures, n_alone(decisions, self._policy.k))
            new = decisions.n_rows > 0
            self.summary.add_groups(decisions.n_rows[new], decisions.n_subjects[new])
            self._count_missing(decisions)
        if self.summary.cells is not None:
            self.summary.cells.add(decisions.levels)
            self.summary.cells.look(decisions.estimates)
            _log_changes(decisions)
        self.summary.n_held = self._engine.n_held + self._ordering.n_waiting
        return departures if departures is not None and len(departures.rows) else None

    def _numbered(self, decisions: Decisions) -> Decisions:
        """Number rows and groups in the stream, and not from the start of the engine."""
        if self._first_row or self._first_group:
            windows = decisions.windows
            decisions = decisions._replace(
                rows=decisions.rows + self._first_row,
                published=decisions.published + self._first_row,
                groups=decisions.groups + self._first_group,
                windows=np.where(windows < 0, windows, windows + self._first_row),
            )
        if len(decisions.groups):
            self._next_group = max(self._next_group, int(decisions.groups.max()) + 1)
        return decisions

    def _count_suppressed(self, decisions: Decisions, *, is_end: bool) -> None:
        """Count suppressed rows by what they waited for in vain."""
        n = int(np.count_nonzero(decisions.outcomes == Outcome.suppressed))
        if n:
            self.summary.suppression.reasons[suppression_reason(self._policy, is_end=is_end)] += n

    def _count_missing(self, decisions: Decisions) -> None:
        """Count the missing values of published rows, and those that are shown as missing."""
        if self.summary.pollution is None:
            return
        is_out = decisions.boxes >= 0
        gaps = decisions.gaps[is_out]
        hidden = gaps | decisions.box_gaps[decisions.boxes[is_out]]
        shown = hidden if self._policy.missing == "extended" else gaps
        self.summary.pollution.add(gaps, shown)

    def _guard(self, decisions: Decisions) -> None:
        """Raise if a group of too few subjects would leave, whatever fault an engine has."""
        n_behind = decisions.n_behind[decisions.levels >= 0]
        if len(n_behind) and n_behind.min() < self._policy.z:
            raise PromiseError(
                f"a value with fewer than {self._policy.z} subjects behind it was about to be "
                "released; nothing of it was published. This is a bug: please report it."
            )
        new = decisions.n_rows > 0
        if new.any() and decisions.n_subjects[new].min() < self._policy.k:
            raise PromiseError(
                f"a group of fewer than {self._policy.k} subjects was about to be "
                "released; nothing of it was published. This is a bug: please report it."
            )

    def _count(self, departures: Departures, n_alone: int = 0) -> None:
        """Count departing rows; groups are counted when they are formed."""
        waited_s = departures.left_s - np.asarray(departures.payload.column(ARRIVED_S))
        self.summary.add(
            departures.outcomes.astype(np.int8),
            departures.losses,
            departures.left - departures.rows,
            None if np.isnan(waited_s).any() else waited_s,
            NO_GROUPS,
            NO_GROUPS,
            n_alone=n_alone,
        )
        self.summary.n_late += int(np.count_nonzero(waited_s > self.patience))


def n_alone(decisions: Decisions, k: int) -> int:
    """Return how many rows join a kept group at an instant at which fewer than k rows leave."""
    out = decisions.boxes >= 0
    joins = decisions.outcomes[out] == Outcome.reuse
    if not joins.any():
        return 0
    _, at, n = np.unique(decisions.instants[out], return_inverse=True, return_counts=True)
    return int(np.count_nonzero(joins & (n[at] < k)))


def summary_of(schema: Schema, policy: Policy) -> Summary:
    """Return the figures of a run before its first row."""
    with_gaps = policy.missing != "quarantine" and not policy.per_value
    levels = [n_levels(quasi.domain) for quasi in schema.quasi]
    return Summary(
        len(schema.quasi) if with_gaps else None, ZCounts(levels, policy.z) if policy.z else None
    )


def _under(prefix: str, arrays: Mapping[str, Any1]) -> dict[str, Any1]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _log_changes(decisions: Decisions) -> None:
    """Log changes of z."""
    for look in decisions.estimates:
        if look["z"] != look["before"]:
            event(
                log, logging.INFO, "z changed", before=int(look["before"]), z=int(look["z"]),
                row=int(look["row"]), subjects=int(look["n_subjects"]),
            )  # fmt: skip
