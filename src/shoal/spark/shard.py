"""What one shard does in one turn: rows in, public rows out, and its state from turn to turn.

A shard is a recipe and a blob. It runs wherever Spark puts it: in a Python worker of an executor,
once for each turn, and again if that fails. All that it does is a function of its rows, its former
state and what was noted before the turn, so that a repetition gives the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.deciding import Decider, State
from shoal.engine import Anonymizer
from shoal.errors import DataError, ShoalError
from shoal.hold import ARRIVED_S
from shoal.hold import ROW as HELD_ROW
from shoal.intake import Intake
from shoal.io.base import BadRow, Chunk
from shoal.io.private import QuarantineWriter, open_private
from shoal.order import Arranged
from shoal.policy import Policy
from shoal.release import Publish
from shoal.releasing import fitting, publisher_of, subject_type, subjects_in, tracer_of
from shoal.schema import Schema
from shoal.spark.columns import CORRUPT, ROW, SHARD, TICK
from shoal.spark.ledger import Plan, Turn, shard_folder
from shoal.state.seal import Seal
from shoal.state.versions import Versions

__all__ = ["Recipe", "Shard", "step"]

#: Shards whose state this process has at hand, with the turn that it is of. Spark keeps its
#: workers, so that most turns find their state here; a blob is written all the same.
_at_hand: dict[tuple[str, int], tuple[int, Shard]] = {}
#: A worker that has served more shards than this forgets the others.
MOST_AT_HAND = 16
#: Groups of several shards and plans are told apart by so many.
MOST_SHARDS = 1 << 20


@dataclass(frozen=True)
class Recipe:
    """All that a shard must know of a job; it travels to wherever the shard runs.

    Parameters
    ----------
    schema, policy, anonymizer, publish
        The columns, the promise, what keeps it, and how a release looks.
    columns
        The Arrow schema of the rows.
    folder, job, seal
        Where the state is, the digests it depends on, and where the key of its seal is.
    n_shards
        How many shards there are.
    lead
        How many seconds before a deadline what is due leaves: the next turn may come too late.
    quarantine
        The folder for rows that can't be used; None: they end the job.
    traced
        Whether lines for a trace are written.
    """

    schema: Schema
    policy: Policy
    anonymizer: Anonymizer
    publish: Publish
    columns: pa.Schema
    folder: Path
    job: Mapping[str, str] = field(repr=False)
    seal: str | None = field(repr=False)
    n_shards: int
    lead: float
    quarantine: Path | None
    traced: bool

    @property
    def by_wall(self) -> bool:
        """Whether a clock, and not the stream, tells when rows are due."""
        return self.policy.delay is not None and self.policy.delay.by_wall(self.schema)

    @cached_property
    def types(self) -> pa.Schema:
        """The types of the payload, which follow from those of the columns."""
        decider = self.decider(bytes(32))
        return decider.codec.types

    @property
    def public(self) -> pa.Schema:
        """The columns of the output."""
        return self.publisher().schema

    def decider(self, seed: bytes) -> Decider:
        """A new decider, whose types are bound."""
        decider = Decider(
            self.schema, self.policy, self.anonymizer, self.publish, seed,
            by_clock=self.by_wall, with_subject=self.traced,
        )  # fmt: skip
        # Every shard publishes in the same types, whatever its first row is like.
        empty = pa.RecordBatch.from_pylist([], schema=self.columns)
        decider.codec.encode(empty.select(self.schema.columns))
        return decider

    def publisher(self) -> Any:
        """What makes releases."""
        return publisher_of(
            self.schema, self.publish, self.types,
            with_gaps=self.policy.missing == "maybe", one_by_one=bool(self.policy.z),
        )  # fmt: skip

    def open_seal(self) -> Seal | None:
        """The seal, whose key is looked for where this runs: it doesn't travel."""
        return None if self.seal is None else Seal.from_spec(self.seal)


class Shard:
    """One shard: its decider, and where its state is kept.

    Parameters
    ----------
    recipe
        What it must know of the job.
    number
        Which shard it is, of all that the job has ever had.
    """

    def __init__(self, recipe: Recipe, number: int) -> None:
        self._recipe, self.number = recipe, number
        self.folder = shard_folder(recipe.folder, number)
        seal = recipe.open_seal()
        self._states, self._figures = (
            Versions(self.folder, kind, job=recipe.job, seal=seal) for kind in ("state", "figures")
        )
        plans = Versions(recipe.folder, "plan", job=recipe.job, seal=seal)
        self._plans = plans
        self._decider: Decider | None = None

    def load(self, turn: Turn) -> None:
        """Stand where the turn before left off, or begin."""
        plan = Plan(**self._plans.load(turn.plan).facts)
        self._decider = self._recipe.decider(shard_seed(plan, self.number))
        if turn.parent is not None:
            facts, arrays, batches = _parts(self._states.load(turn.parent))
            self._decider.restore(State(facts, arrays, batches))

    def live(self, turn: Turn, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Live through a turn: give what is published, then keep the state."""
        recipe, decider = self._recipe, self._decider
        assert decider is not None
        policy = recipe.policy
        intake = Intake(decider.codec, recipe.schema, policy.lateness, policy.ahead)
        intake.latest = decider.latest
        desk = _Desk(recipe, self.number, self.folder, turn)
        if turn.latest is not None and turn.latest > decider.latest:
            # Time goes on in places where nobody is seen, too.
            decider.latest = turn.latest
            yield from desk.leaving(decider.tick(turn.latest, turn.at))
        for batch in batches:
            taken = intake.take(desk.chunk(batch), turn.at)
            if taken.bad:
                desk.quarantine(taken.bad, taken.bad_subjects)
            # Pseudonyms need a secret of the driver's, which several shards don't have.
            yield from desk.leaving(decider.take_in(taken, turn.at))
        if recipe.by_wall:
            deadline, until = decider.next_deadline, turn.at + recipe.lead
            if deadline is not None and until >= deadline:
                yield from desk.leaving(decider.tick(until, turn.at))
        if turn.is_end:
            yield from desk.leaving(decider.flush(turn.at))
        desk.close()
        facts, arrays, held = decider.snapshot()
        n_bytes = self._states.save(turn.number, facts, arrays, held)
        # Last of all: that it is there says that all else is.
        self._figures.save(
            turn.number,
            {
                "summary": facts["summary"],
                "latest": facts["latest"],
                "n_out": desk.n_out,
                "n_bytes": n_bytes,
            },
        )


class _Desk:
    """Where rows come in and go out: the shape that Spark gives them, and the one it takes."""

    def __init__(self, recipe: Recipe, number: int, folder: Path, turn: Turn) -> None:
        self._recipe, self._number, self._folder, self._turn = recipe, number, folder, turn
        self._publisher = recipe.publisher()
        self._n_in = 0
        self._bad: QuarantineWriter | None = None
        self._lines: list[pa.RecordBatch] = []
        self._tracer = None
        if recipe.traced:
            self._tracer = tracer_of(
                recipe.schema,
                self,
                subject_type(recipe.schema, recipe.types),
                one_by_one=bool(recipe.policy.z),
                shard=None if recipe.n_shards == 1 else (number, MOST_SHARDS),
            )

    @property
    def n_out(self) -> int:
        """How many rows were published."""
        return int(self._publisher.upcoming)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take lines of the trace."""
        self._lines.append(batch)

    def chunk(self, batch: pa.RecordBatch) -> Chunk:
        """The rows of a batch of Spark's, without those that carry nothing but time."""
        rows = batch.filter(batch.column(TICK).is_null())
        n = rows.num_rows
        if self._recipe.traced:
            places = np.asarray(rows.column(ROW)).astype(np.int64)
        else:
            places = np.arange(self._n_in, self._n_in + n)
        self._n_in += n
        names = set(rows.schema.names) - {TICK, SHARD, CORRUPT, ROW}
        kept = rows.select([name for name in rows.schema.names if name in names])
        corrupt = rows.column(CORRUPT) if CORRUPT in rows.schema.names else None
        if corrupt is None or corrupt.null_count == n:
            return Chunk(kept, places, [])
        torn = np.asarray(corrupt.is_valid())
        bad = [
            BadRow(int(places[i]), "it can't be read as a row", str(corrupt[i].as_py()).encode())
            for i in np.flatnonzero(torn).tolist()
        ]
        return Chunk(kept.filter(pa.array(~torn)), places[~torn], bad)

    def leaving(self, arranged: Arranged | None) -> Iterator[pa.RecordBatch]:
        """Give what is public of rows that leave, as Spark takes it."""
        if arranged is None:
            return
        release, seq = self._publisher.release(arranged)
        if self._tracer is not None:
            payload = arranged.payload
            inputs, arrived_s = (
                np.asarray(payload.column(name)) for name in (HELD_ROW, ARRIVED_S)
            )
            subjects = subjects_in(self._recipe.schema, payload)
            self._tracer.decided(arranged, inputs, arrived_s, subjects, seq)
        if release.n_rows:
            yield _plain(release.batch, self._publisher.schema)

    def quarantine(self, bad: list[BadRow], subjects: list[Any]) -> None:
        """Set rows apart that can't be used, or end the job."""
        folder = self._recipe.quarantine
        if folder is None:
            raise DataError(
                f"{self._turn.name}: {bad[0].reason}. The job says to stop at a bad row; "
                'bad_rows.action = "quarantine" sets them apart and goes on.'
            )
        if self._bad is None:
            folder.mkdir(0o700, parents=True, exist_ok=True)
            name = f"{self._turn.name}-{self._folder.name}-{os.getpid()}.jsonl.partial"
            self._bad_path = folder / name
            self._bad = QuarantineWriter(self._bad_path)
        self._bad.write(bad)
        if self._tracer is not None:
            lines = pa.array([fitting(s, self._tracer.subject) for s in subjects],
                             self._tracer.subject)  # fmt: skip
            self._tracer.quarantined(np.array([row.row for row in bad]), lines)

    def close(self) -> None:
        """Have on the disk what goes beside the output."""
        if self._bad is not None:
            self._bad.close()
            self._bad_path.replace(
                self._bad_path.with_name(f"{self._turn.name}-{self._folder.name}.jsonl")
            )
        if self._recipe.traced and self._lines:
            write_lines(self._folder / f"trace-{self._turn.number:010}", self._lines)


def step(
    recipe: Recipe, turn: Turn, first_shard: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Live through a turn with the rows of one shard: what Spark runs.

    Rows come in their order, and before them one that names the shard.
    """
    try:
        first = next(batches)
        number = first_shard + int(first.column(SHARD)[0].as_py())
        shard = _open(recipe, turn, number)
        yield from shard.live(turn, _with(first, batches))
        _at_hand[str(recipe.folder), number] = turn.number, shard
        while len(_at_hand) > MOST_AT_HAND:
            _at_hand.pop(next(iter(_at_hand)))
    except (ShoalError, GeneratorExit):
        raise
    except Exception as error:
        if os.environ.get("SHOAL_DEBUG"):
            raise
        # What others say of a failure may quote a value, and Spark writes it down in its logs.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise ShoalError(f"{type(error).__name__} in {where}, in a shard of {turn.name}") from None


def shard_seed(plan: Plan, number: int) -> bytes:
    """Where the randomness of a shard comes from; a single one has the job's own."""
    seed = bytes.fromhex(plan.seed)
    if plan.n_shards == 1:
        return seed
    told = hashlib.blake2b(b"%d" % number, digest_size=32, key=seed[:64], person=b"shoal-shard")
    return told.digest()


def write_lines(path: Path, lines: list[pa.RecordBatch]) -> None:
    """Write lines of a trace to a private file, whole or not at all."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with open_private(aside) as output, pa.ipc.new_stream(output, lines[0].schema) as writer:
        for batch in lines:
            writer.write_batch(batch)
    aside.replace(path)


def _open(recipe: Recipe, turn: Turn, number: int) -> Shard:
    """The shard as the turn before left it. It is at hand again only once this turn is through."""
    there, shard = _at_hand.pop((str(recipe.folder), number), (None, None))
    if shard is None or there is None or there != turn.parent:
        shard = Shard(recipe, number)
        shard.load(turn)
    return shard


def _with(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _parts(checkpoint: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, pa.RecordBatch]]:
    return checkpoint.facts, checkpoint.arrays, checkpoint.batches


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A release without dictionaries, which Spark doesn't take."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.record_batch(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
