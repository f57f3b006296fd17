"""One shard in one epoch: rows in, public rows out, and its state from epoch to epoch.

A shard runs where Spark puts it: in a Python worker of an executor, once for each epoch, and again
if that fails. All that it does is a function of its rows, its former state and the record of the
epoch, so that a repetition returns the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator

import pyarrow as pa

from shoal.run.core import CoreState, RunCore
from shoal.run.state.versions import Versions
from shoal.spark.columns import SHARD
from shoal.spark.commits import Epoch, Plan, shard_folder
from shoal.spark.failures import without_values
from shoal.spark.shard_io import ShardIO
from shoal.spark.shard_job import ShardJob

__all__ = ["Shard", "run_shard", "shard_seed"]

#: Cores of shards in this process, each with the stamp of the file that its state was written to.
#: Spark reuses its workers, so that most epochs find their state here.
_cached: dict[tuple[str, int], tuple[tuple[int, ...], RunCore]] = {}
#: How many shards a worker caches.
MOST_CACHED = 16


class Shard:
    """One shard: its core, and where its state is kept.

    Parameters
    ----------
    job
        The parts of the job that it needs.
    number
        Its number among all shards that the job has ever had.
    """

    def __init__(self, job: ShardJob, number: int) -> None:
        self._job, self.number = job, number
        self.folder = shard_folder(job.folder, number)
        seal = job.open_seal()
        self._states, self._figures = (
            Versions(self.folder, kind, job=job.digests, seal=seal) for kind in ("state", "figures")
        )
        self._plans = Versions(job.folder, "plan", job=job.digests, seal=seal)
        self._core: RunCore | None = None

    def load(self, epoch: Epoch) -> None:
        """Load the state that the epoch starts from: from memory, from the disk, or empty.

        A cached core is taken out of the cache until `keep_in_memory`.
        """
        stamp, core = _cached.pop((str(self._job.folder), self.number), ((), None))
        # Of the same file: another job may have used this folder before.
        if stamp and epoch.parent is not None and stamp == self._states.stamp(epoch.parent):
            self._core = core
            return
        plan = Plan(**self._plans.load(epoch.plan).facts)
        self._core = self._job.core(shard_seed(plan, self.number))
        if epoch.parent is not None:
            kept = self._states.load(epoch.parent)
            self._core.restore(CoreState(kept.facts, kept.arrays, kept.batches))

    def keep_in_memory(self, epoch: Epoch) -> None:
        """Cache the state after an epoch in this process, for the next one."""
        assert self._core is not None
        stamp = self._states.stamp(epoch.number)
        _cached[str(self._job.folder), self.number] = stamp, self._core
        while len(_cached) > MOST_CACHED:
            _cached.pop(next(iter(_cached)))

    def run(self, epoch: Epoch, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process an epoch: return what is published, then save the state."""
        job, core = self._job, self._core
        assert core is not None
        with ShardIO(job, self.number, self.folder, epoch) as shard_io:
            yield from self._decided(core, shard_io, epoch, batches)
            shard_io.close()
        facts, arrays, held = core.snapshot()
        n_bytes = self._states.save(epoch.number, facts, arrays, held)
        # Last: its presence means that all else is written.
        self._figures.save(
            epoch.number,
            {
                "summary": facts["summary"],
                "latest": facts["latest"],
                "deadline": core.next_deadline,
                "n_out": shard_io.n_out,
                "n_bytes": n_bytes,
            },
        )

    def _decided(
        self, core: RunCore, shard_io: ShardIO, epoch: Epoch, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Process ticks, rows, deadlines and the end, in this order; return what is published."""
        job = self._job
        if epoch.latest is not None and epoch.latest > core.latest:
            # Time passes in a shard without rows, too.
            core.latest = epoch.latest
            if not job.by_wall:
                yield from shard_io.release(core.tick(epoch.latest, epoch.at))
        encoder = core.encoder()
        for batch in batches:
            chunk = encoder.encode(shard_io.chunk(batch), epoch.at)
            if chunk.bad:
                shard_io.quarantine(chunk.bad, chunk.bad_subjects)
            # One for the whole epoch, however Spark batches its rows: each period derives its key.
            secret = bytes.fromhex(epoch.secret) if core.needs_secret(chunk) else b""
            yield from shard_io.release(core.take_in(chunk, epoch.at, secret))
        if job.by_wall:
            deadline = core.next_deadline
            if deadline is not None and epoch.until >= deadline:
                yield from shard_io.release(core.tick(epoch.until, epoch.at))
        if epoch.is_end:
            yield from shard_io.release(core.flush(epoch.at))


def run_shard(
    job: ShardJob, epoch: Epoch, first_shard: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Process the rows of one shard in one epoch: the task that Spark runs.

    A tick that names the shard comes first, then its rows in their order.
    """
    return without_values(_run(job, epoch, first_shard, batches), epoch.name)


def _run(
    job: ShardJob, epoch: Epoch, first_shard: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    job.check_code()
    first = next(batches)
    shard = Shard(job, first_shard + int(first.column(SHARD)[0].as_py()))
    shard.load(epoch)
    yield from shard.run(epoch, itertools.chain([first], batches))
    shard.keep_in_memory(epoch)


def shard_seed(plan: Plan, number: int) -> bytes:
    """Derive the seed of a shard; a single shard has the job's own."""
    seed = bytes.fromhex(plan.seed)
    if plan.n_shards == 1:
        return seed
    digest = hashlib.blake2b(b"%d" % number, digest_size=32, key=seed[:64], person=b"shoal-shard")
    return digest.digest()
