"""What one shard does in one turn: rows in, public rows out, and its state from turn to turn.

A shard is a recipe and a blob. It runs wherever Spark puts it: in a Python worker of an executor,
once for each turn, and again if that fails. All that it does is a function of its rows, its former
state and what was noted before the turn, so that a repetition gives the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator

import pyarrow as pa

from shoal.run.core import CoreState, RunCore
from shoal.run.state.versions import Versions
from shoal.spark.columns import SHARD
from shoal.spark.failures import quietly
from shoal.spark.ledger import Plan, Turn, shard_folder
from shoal.spark.shard_io import ShardIO
from shoal.spark.shard_job import ShardJob

__all__ = ["Shard", "shard_seed", "step"]

#: States of shards that this process has at hand, with what tells the file that each was written
#: to. Spark keeps its workers, so that most turns find their state here.
_at_hand: dict[tuple[str, int], tuple[tuple[int, ...], RunCore]] = {}
#: A worker that has served more shards than this forgets the others.
MOST_AT_HAND = 16


class Shard:
    """One shard: its core, and where its state is kept.

    Parameters
    ----------
    recipe
        What it must know of the job.
    number
        Which shard it is, of all that the job has ever had.
    """

    def __init__(self, recipe: ShardJob, number: int) -> None:
        self._recipe, self.number = recipe, number
        self.folder = shard_folder(recipe.folder, number)
        seal = recipe.open_seal()
        self._states, self._figures = (
            Versions(self.folder, kind, job=recipe.job, seal=seal) for kind in ("state", "figures")
        )
        self._plans = Versions(recipe.folder, "plan", job=recipe.job, seal=seal)
        self._core: RunCore | None = None

    def load(self, turn: Turn) -> None:
        """Stand where the turn before left off, or begin.

        What is at hand is so again only once this turn is through.
        """
        stamp, core = _at_hand.pop((str(self._recipe.folder), self.number), ((), None))
        # Of this very file: there may have been another job in this folder before.
        if stamp and turn.parent is not None and stamp == self._states.stamp(turn.parent):
            self._core = core
            return
        plan = Plan(**self._plans.load(turn.plan).facts)
        self._core = self._recipe.core(shard_seed(plan, self.number))
        if turn.parent is not None:
            kept = self._states.load(turn.parent)
            self._core.restore(CoreState(kept.facts, kept.arrays, kept.batches))

    def stay_at_hand(self, turn: Turn) -> None:
        """Have this process keep the state for the turn that comes after one."""
        assert self._core is not None
        stamp = self._states.stamp(turn.number)
        _at_hand[str(self._recipe.folder), self.number] = stamp, self._core
        while len(_at_hand) > MOST_AT_HAND:
            _at_hand.pop(next(iter(_at_hand)))

    def live(self, turn: Turn, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Live through a turn: give what is published, then keep the state."""
        recipe, core = self._recipe, self._core
        assert core is not None
        with ShardIO(recipe, self.number, self.folder, turn) as shard_io:
            yield from self._decided(core, shard_io, turn, batches)
            shard_io.close()
        facts, arrays, held = core.snapshot()
        n_bytes = self._states.save(turn.number, facts, arrays, held)
        # Last of all: that it is there says that all else is.
        self._figures.save(
            turn.number,
            {
                "summary": facts["summary"],
                "latest": facts["latest"],
                "deadline": core.next_deadline,
                "n_out": shard_io.n_out,
                "n_bytes": n_bytes,
            },
        )

    def _decided(
        self, core: RunCore, shard_io: ShardIO, turn: Turn, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """All that happens in a turn, one thing after the other: give what is published."""
        recipe = self._recipe
        if turn.latest is not None and turn.latest > core.latest:
            # Time goes on in places where nobody is seen, too.
            core.latest = turn.latest
            if not recipe.by_wall:
                yield from shard_io.leaving(core.tick(turn.latest, turn.at))
        encoder = core.encoder()
        for batch in batches:
            chunk = encoder.encode(shard_io.chunk(batch), turn.at)
            if chunk.bad:
                shard_io.quarantine(chunk.bad, chunk.bad_subjects)
            # One for the whole turn, however Spark cuts its rows: a period makes its own key of it.
            secret = bytes.fromhex(turn.secret) if core.needs_secret(chunk) else b""
            yield from shard_io.leaving(core.take_in(chunk, turn.at, secret))
        if recipe.by_wall:
            deadline = core.next_deadline
            if deadline is not None and turn.until >= deadline:
                yield from shard_io.leaving(core.tick(turn.until, turn.at))
        if turn.is_end:
            yield from shard_io.leaving(core.flush(turn.at))


def step(
    recipe: ShardJob, turn: Turn, first_shard: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Live through a turn with the rows of one shard: what Spark runs.

    Rows come in their order, and before them one that names the shard.
    """
    return quietly(_lived(recipe, turn, first_shard, batches), turn.name)


def _lived(
    recipe: ShardJob, turn: Turn, first_shard: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    recipe.check_code()
    first = next(batches)
    shard = Shard(recipe, first_shard + int(first.column(SHARD)[0].as_py()))
    shard.load(turn)
    yield from shard.live(turn, itertools.chain([first], batches))
    shard.stay_at_hand(turn)


def shard_seed(plan: Plan, number: int) -> bytes:
    """Where the randomness of a shard comes from; a single one has the job's own."""
    seed = bytes.fromhex(plan.seed)
    if plan.n_shards == 1:
        return seed
    told = hashlib.blake2b(b"%d" % number, digest_size=32, key=seed[:64], person=b"shoal-shard")
    return told.digest()
