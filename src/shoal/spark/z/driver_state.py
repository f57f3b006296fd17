"""The state of the driver of z-anonymity on several shards.

It has what depends on all rows, so that no shard can know it: the number of rows, the latest time,
the z in force where it adapts to the stream, the key of pseudonyms. It is small, and doesn't depend
on how a batch is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from shoal.arrow.pseudonyms import Pseudonyms
from shoal.engine.kernels.arrays import Ints
from shoal.engine.z.base import alike, least_z
from shoal.run.core import CoreState
from shoal.spark.z.join import ZChange
from shoal.spark.z.split import Slice
from shoal.spark.z.tasks import BatchContext, EstimatePoint, ZTasks
from shoal.spec.policy import Window

__all__ = ["DriverState", "Estimate"]

#: The fields of `shoal.engine.decisions.ESTIMATE`.
Estimate: TypeAlias = tuple[int, float, int, int, int, float, float]
#: Sums of what subjects show are taken modulo one more than this; see `set_fingerprints`.
MASK = np.uint64(2**61 - 1)


class DriverState:
    """What the driver knows of a stream between two batches.

    Parameters
    ----------
    tasks
        The tasks of the job.
    """

    def __init__(self, tasks: ZTasks) -> None:
        self._tasks = tasks
        self._pseudonyms = self._new_pseudonyms()
        #: All rows so far.
        self.so_far = Slice()
        #: The z in force.
        self.z = tasks.policy.z
        self._slot = -1

    def __repr__(self) -> str:
        return f"DriverState({self.so_far.n_valid} rows)"

    @property
    def adapts_z(self) -> bool:
        """Whether z adapts to the stream, so that the window is estimated."""
        return self._tasks.anonymizer.probability > 0

    def context(self, at: float, types: pa.Schema, secret: bytes = b"") -> BatchContext:
        """Return what the tasks of the next batch know, before any estimate in it."""
        names = {} if self._pseudonyms is None else self._pseudonyms.snapshot()
        changes = (ZChange(self.so_far.n_valid, self.z),)
        return BatchContext(at, types, names, secret, changes)

    def begins(self, slices: Sequence[Slice]) -> list[Slice]:
        """Return all that comes before each slice of a batch."""
        return list(accumulate(slices[:-1], Slice.then, initial=self.so_far))

    # -- estimates ---------------------------------------------------------------------------------

    def origin(self, slices: Iterable[Slice]) -> float:
        """Return the clock at the first row of the stream, which may be in this batch."""
        window = self._tasks.policy.window
        assert isinstance(window, Window)
        if window.seconds is None:
            return 0.0
        return list(accumulate(slices, Slice.then, initial=self.so_far))[-1].first

    def due(self, points: Iterable[EstimatePoint]) -> list[EstimatePoint]:
        """Return those of the possible points at which the window is to be estimated."""
        found = []
        slot = self._slot
        for point in points:
            if point.slot > slot:
                found.append(point)
                slot = point.slot
        return found

    def estimate(
        self, point: EstimatePoint, shown: Callable[[int], Iterable[tuple[Ints, Ints]]]
    ) -> Estimate:
        """Estimate the window before a row, and adapt z to it.

        ``shown`` returns what each shard shows under a z: see `shoal.spark.z.decide.ZShard`. Before
        it shards must drop what has left the window, and after it use the new z.
        """
        least, knobs = self._tasks.policy.z, self._tasks.anonymizer
        known: dict[int, Ints] = {}

        def sets(z: int) -> Ints:
            if z not in known:
                known[z] = _summed(shown(z))
            return known[z]

        n_subjects, before = len(sets(least)), self.z
        self.z = least_z(least, n_subjects, knobs.probability, lambda z: alike(sets(z), knobs.k)[0])
        self._slot = point.slot
        share, entropy = alike(sets(self.z), knobs.k)
        time = point.time if np.isfinite(point.time) else np.nan
        return point.row, time, before, self.z, n_subjects, share, entropy

    # -- from batch to batch -----------------------------------------------------------------------

    def advance(self, slices: Iterable[Slice], secret: bytes = b"") -> None:
        """Advance past a batch, given its slices and the secret of its pseudonyms."""
        n_before = self.so_far.n_valid
        for part in slices:
            self.so_far = self.so_far.then(part)
        if self._pseudonyms is not None and self.so_far.n_valid > n_before:
            window = self._tasks.policy.window
            by_rows = isinstance(window, Window) and window.seconds is None
            last = self.so_far.n_valid - 1.0 if by_rows else self.so_far.latest
            # Only the key matters: that of the period of the last row.
            self._pseudonyms.give(pa.array([""]), np.array([last]), secret)

    def skip_to(self, n_inputs: int, latest: float | None) -> None:
        """Skip rows that a single shard counted before a migration.

        So positions in the input continue, time doesn't run back, and no expired key of pseudonyms
        is used. How many of the rows were valid doesn't matter, but positions must grow.
        """
        time = -np.inf if latest is None else latest
        self.so_far = Slice(n_inputs, n_inputs, time, time if np.isfinite(time) else np.nan)
        self._slot = -1
        self._pseudonyms = self._new_pseudonyms()

    def snapshot(self) -> CoreState:
        """Return all that later batches depend on."""
        facts: dict[str, Any] = {"z": self.z, "slot": self._slot}
        counts = np.array(self.so_far[:2], np.int64)
        arrays = {"counts": counts, "times": np.array(self.so_far[2:], np.float64)}
        if self._pseudonyms is not None:
            arrays |= {f"names.{name}": a for name, a in self._pseudonyms.snapshot().items()}
        return CoreState(facts, arrays, {})

    def restore(self, state: CoreState) -> None:
        """Restore a snapshot of the same job."""
        facts, arrays, _ = state
        self.z, self._slot = int(facts["z"]), int(facts["slot"])
        self.so_far = Slice(*arrays["counts"].tolist(), *arrays["times"].tolist())
        if self._pseudonyms is not None:
            self._pseudonyms.restore(
                {n.removeprefix("names."): a for n, a in arrays.items() if n.startswith("names.")}
            )

    def _new_pseudonyms(self) -> Pseudonyms | None:
        pseudonym = self._tasks.publish.pseudonym
        return None if pseudonym is None else Pseudonyms(pseudonym.rotate)


def _summed(pieces: Iterable[tuple[Ints, Ints]]) -> Ints:
    """Add up the numbers of what each subject shows in all shards."""
    found = list(pieces)
    people = np.concatenate([people for people, _ in found])
    shown = np.concatenate([sets for _, sets in found]).astype(np.uint64)
    _, person_of = np.unique(people, return_inverse=True)
    sets = np.zeros(int(person_of.max(initial=-1)) + 1, np.uint64)
    # Overflow is harmless: 2**64 is a multiple of the modulus.
    np.add.at(sets, person_of, shown)
    return (sets & MASK).astype(np.int64)
