"""The heart of a run: all that what is published depends on, free of threads, files and clocks.

A `RunCore` is driven by three verbs, each told what time it is. Given the same verbs it decides
alike, to the last bit; its snapshot, restored, goes on as if nothing had happened. So a run can
be lived through again from a checkpoint and a journal of the verbs that came after it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrow.codec import NAMED, Codec
from shoal.arrow.hold import ARRIVED_S, ROW, Hold
from shoal.arrow.order import Departures, Ordering
from shoal.arrow.pseudonyms import COLUMN, Pseudonyms
from shoal.arrow.release import Publish
from shoal.engine.base import Anonymizer, Decisions, Engine
from shoal.engine.kernels.arrays import Any1, Floats, Ints
from shoal.errors import PromiseError
from shoal.events import event
from shoal.metrics import Summary
from shoal.metrics.z.counts import CellCounts
from shoal.run.intake import EncodedChunk
from shoal.spec.ladder import n_rungs
from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Schema

__all__ = ["CoreState", "RunCore", "summary_of"]

log = logging.getLogger("shoal.run.core")

NO_GROUPS = np.empty(0, np.int64)
#: Deadlines are met to the microsecond: what is beyond that is rounding.
ROUNDING = 1e-6


class CoreState(NamedTuple):
    """A snapshot: plain values, arrays by name, and batches of payload by name."""

    facts: dict[str, Any]
    arrays: dict[str, Any1]
    batches: dict[str, pa.RecordBatch]

    def __repr__(self) -> str:
        return f"CoreState({len(self.arrays)} arrays, {len(self.batches)} batches)"


class RunCore:
    """Take rows in, fire deadlines, give what leaves, in order.

    Parameters
    ----------
    schema, policy, anonymizer, publish
        The columns, the promise, what keeps it, and how a release looks.
    seed
        Where all randomness comes from.
    by_clock
        Whether a clock, and not the stream, tells when rows arrive and leave.
    with_subject
        Whether the payload carries the subject, for a trace.
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
    ) -> None:
        self._policy = policy
        by_rows = isinstance(policy.window, Window) and policy.window.seconds is None
        self._counts_rows = by_rows
        self._pseudonyms = (
            None if publish.pseudonym is None else Pseudonyms(publish.pseudonym.rotate)
        )
        self._engine: Engine = anonymizer.start(schema, policy, seed=seed)
        key = hashlib.blake2b(seed, digest_size=8, person=b"shoal-codec").digest()
        #: Turns rows into codes, in the reading thread.
        self.codec = Codec(
            schema,
            key=key,
            with_subject=with_subject,
            with_gaps=policy.missing != "quarantine",
            complete=policy.in_place(schema),
            compared=policy.compared(schema),
            per_value=policy.per_value,
            time_step=publish.time,
            named=publish.pseudonym is not None,
        )
        self._hold = Hold()
        self._ordering: Ordering = publish.ordering(seed)
        self._by_clock = by_clock
        self._has_time = schema.time is not None
        seconds = None if policy.delay is None else policy.delay.seconds
        #: After how many seconds a row that leaves is late.
        self.patience = np.inf if seconds is None else seconds + ROUNDING
        self._n_encoded = 0
        self._types: pa.Schema | None = None
        #: The stream's own time: the latest that a row has had.
        self.latest = -np.inf
        #: The figures of the run.
        self.summary = summary_of(schema, policy)

    @property
    def next_deadline(self) -> float | None:
        """When a tick will have something to do, if the delay is in seconds."""
        return self._engine.next_deadline

    # -- the three verbs -------------------------------------------------------------------------

    def needs_secret(self, taken: EncodedChunk) -> bool:
        """Whether pseudonyms change with these rows, and so a new secret is needed."""
        if self._pseudonyms is None:
            return False
        return self._pseudonyms.begins(self._clock_of(self._times(taken)))

    def take_in(self, taken: EncodedChunk, now: float, secret: bytes = b"") -> Departures | None:
        """Rows have come, and it is ``now``; give what leaves.

        ``secret`` is what new pseudonyms are made of, where they are needed.
        """
        codes, payload = taken.encoded.codes, taken.encoded.payload
        n = len(codes.subjects)
        self.summary.n_in += n + len(taken.bad)
        self.summary.n_quarantined += len(taken.bad)
        if n and self._has_time:
            # Time doesn't run backwards: a row that is stamped earlier than one before it has
            # arrived no earlier, here as in the engine. Where a clock tells the time, stamps still
            # tell which rows come too late, so the latest is a part of every snapshot.
            times = self._times(taken)
            codes = codes._replace(times=times)
            self.latest = float(times[-1])
        if self._by_clock:
            codes = codes._replace(times=np.full(n, taken.at))
        if self._pseudonyms is not None:
            names, clock = payload.pop(NAMED), self._clock_of(codes.times)
            payload[COLUMN] = self._pseudonyms.give(names, clock, secret)
        self._hold.put(
            pa.record_batch(
                payload | {ROW: pa.array(taken.inputs), ARRIVED_S: pa.array(codes.times)}
            )
        )
        self._n_encoded, self._types = taken.n_rows, taken.types
        return self._leaving(self._engine.push(codes), now)

    def tick(self, until: float, now: float) -> Departures | None:
        """Nothing came: fire deadlines until some time; give what leaves ``now``."""
        return self._leaving(self._engine.advance(until), now)

    def flush(self, now: float) -> Departures | None:
        """Decide all that is held, under the promise; give what leaves."""
        return self._leaving(self._engine.flush(), now)

    # -- at a stop -------------------------------------------------------------------------------

    def let_go(self, now: float) -> Departures | None:
        """Give the rows that wait for earlier ones: without it, groups would be cut in two."""
        waiting = self._ordering.rest()
        if waiting is None or not len(waiting.rows):
            return None
        waiting = waiting._replace(left=np.full(len(waiting.rows), self._hold.upcoming))
        if self._by_clock:
            waiting = waiting._replace(left_s=np.full(len(waiting.rows), now))
        self._count(waiting)
        return waiting

    def held(self) -> tuple[Ints, pa.RecordBatch | None]:
        """The positions and the payload of all that isn't decided."""
        rows, payload = self._hold.rest()
        # What an engine decided but the guard has stopped is held as well.
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
        """All that later decisions depend on, as a copy."""
        rows, held = self._hold.rest()
        order, waiting = self._ordering.snapshot()
        arrays = {f"engine.{name}": array for name, array in self._engine.snapshot().items()}
        arrays |= {f"order.{name}": array.copy() for name, array in order.items()}
        arrays |= {"held.rows": rows, "codec.key": self.codec.key.copy()}
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
        }
        return CoreState(facts, arrays, {n: b for n, b in batches.items() if b is not None})

    def restore(self, state: CoreState) -> None:
        """Go back to a snapshot of the same recipe."""
        facts, arrays, batches = state
        self._engine.restore(_under("engine.", arrays))
        self._ordering.restore(_under("order.", arrays), batches.get("waiting"))
        if self._pseudonyms is not None:
            self._pseudonyms.restore(_under("names.", arrays))
        self._hold.restore(int(facts["upcoming"]), arrays["held.rows"], batches.get("held"))
        types = batches.get("types")
        self._types = None if types is None else types.schema
        self._n_encoded = int(facts["encoded"])
        self.codec.restore(self._n_encoded, arrays["codec.key"], self._types)
        self.latest = -np.inf if facts["latest"] is None else float(facts["latest"])
        self.summary.restore(facts["summary"])

    @property
    def types(self) -> pa.Schema | None:
        """The columns of the payload, once a chunk has been taken in."""
        return self._types

    # -- inside ----------------------------------------------------------------------------------

    def _times(self, taken: EncodedChunk) -> Floats:
        """When rows have come: no earlier than the latest before them."""
        times: Floats = np.maximum(taken.encoded.codes.times, self.latest)
        return np.maximum.accumulate(times)

    def _clock_of(self, times: Floats) -> Floats:
        """What periods are told by: the times, or where the window is in rows, their number."""
        first = self._hold.upcoming
        rows: Floats = np.arange(first, first + len(times), dtype=np.float64)
        return rows if self._counts_rows else times

    def _leaving(self, decisions: Decisions, now: float) -> Departures | None:
        departures = None
        if len(decisions.rows):
            self._guard(decisions)
            if self._by_clock:
                decisions = decisions._replace(published_s=np.full(len(decisions.rows), now))
            payload = self._hold.take(decisions.rows)
            departures = self._ordering.arrange(decisions, payload, self._hold.oldest)
            self._count(departures)
            new = decisions.n_rows > 0
            self.summary.groups.add(decisions.n_rows[new], decisions.n_subjects[new])
            self._count_missing(decisions)
        if self.summary.cells is not None:
            self.summary.cells.add(decisions.levels)
            self.summary.cells.look(decisions.estimates)
            _tell_changes(decisions)
        self.summary.n_held = self._engine.n_held + self._ordering.n_waiting
        return departures if departures is not None and len(departures.rows) else None

    def _count_missing(self, decisions: Decisions) -> None:
        """Count the values that published rows lack, and those that they show as if they did."""
        if self.summary.pollution is None:
            return
        is_out = decisions.boxes >= 0
        gaps = decisions.gaps[is_out]
        hidden = gaps | decisions.box_gaps[decisions.boxes[is_out]]
        shown = hidden if self._policy.missing == "extended" else gaps
        self.summary.pollution.add(gaps, shown)

    def _guard(self, decisions: Decisions) -> None:
        """The last look: no engine, whatever its faults, gets a group of too few out."""
        crowds = decisions.crowds[decisions.levels >= 0]
        if len(crowds) and crowds.min() < self._policy.z:
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

    def _count(self, departures: Departures) -> None:
        """Count rows that leave; groups are counted when they are formed."""
        waited_s = departures.left_s - np.asarray(departures.payload.column(ARRIVED_S))
        self.summary.add(
            departures.outcomes.astype(np.int8),
            departures.losses,
            departures.left - departures.rows,
            None if np.isnan(waited_s).any() else waited_s,
            NO_GROUPS,
            NO_GROUPS,
        )
        self.summary.n_late += int(np.count_nonzero(waited_s > self.patience))


def summary_of(schema: Schema, policy: Policy) -> Summary:
    """The figures of a run, before it has begun."""
    with_gaps = policy.missing != "quarantine" and not policy.per_value
    rungs = [n_rungs(quasi.domain) for quasi in schema.quasi]
    return Summary(
        len(schema.quasi) if with_gaps else None, CellCounts(rungs, policy.z) if policy.z else None
    )


def _under(prefix: str, arrays: Mapping[str, Any1]) -> dict[str, Any1]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _tell_changes(decisions: Decisions) -> None:
    """Say aloud where z has been moved."""
    for look in decisions.estimates:
        if look["z"] != look["before"]:
            event(
                log, logging.INFO, "z changed", before=int(look["before"]), z=int(look["z"]),
                row=int(look["row"]), subjects=int(look["n_subjects"]),
            )  # fmt: skip
