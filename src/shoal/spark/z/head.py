"""Where a stream stands whose values are counted in several shards: what the driver knows of it.

What shards can't know by themselves follows from all rows: their numbers, the latest time, the z in
force where it follows the stream, the key of pseudonyms. It is small, and it is the same however a
batch is cut.
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
from shoal.spark.z.join import JoinedTurn
from shoal.spark.z.split import Stretch
from shoal.spark.z.tasks import Batch, CellTasks, Moment
from shoal.spec.policy import Window

__all__ = ["CellHead", "Estimate"]

#: The fields of `shoal.engine.decisions.ESTIMATE`.
Estimate: TypeAlias = tuple[int, float, int, int, int, float, float]
#: Sums of what subjects show are taken modulo one more than this; see `set_fingerprints`.
MASK = np.uint64(2**61 - 1)


class CellHead:
    """Where a stream stands, batch after batch.

    Parameters
    ----------
    tasks
        What the tasks of the job do.
    """

    def __init__(self, tasks: CellTasks) -> None:
        self._tasks = tasks
        pseudonym = tasks.publishing.pseudonym
        self._pseudonyms = None if pseudonym is None else Pseudonyms(pseudonym.rotate)
        #: All rows so far.
        self.before = Stretch()
        #: The z in force.
        self.z = tasks.policy.z
        self._slot = -1

    def __repr__(self) -> str:
        return f"CellHead({self.before.n_valid} rows)"

    @property
    def looks(self) -> bool:
        """Whether z follows the stream, and so the window is looked at."""
        return self._tasks.anonymizer.probability > 0

    def batch(self, at: float, types: pa.Schema, secret: bytes = b"") -> Batch:
        """What the tasks of the next batch know, before the window is looked at in it."""
        names = {} if self._pseudonyms is None else self._pseudonyms.snapshot()
        turns = (JoinedTurn(self.before.n_valid, self.z),)
        return Batch(at, types, names, secret, turns)

    def begins(self, stretches: Sequence[Stretch]) -> list[Stretch]:
        """All that comes before each of the stretches of a batch."""
        return list(accumulate(stretches[:-1], Stretch.then, initial=self.before))

    # -- looks at the window -----------------------------------------------------------------------

    def origin(self, stretches: Iterable[Stretch]) -> float:
        """What the clock told when the first row of all came, which may be in this batch."""
        window = self._tasks.policy.window
        assert isinstance(window, Window)
        if window.seconds is None:
            return 0.0
        return list(accumulate(stretches, Stretch.then, initial=self.before))[-1].first

    def due(self, moments: Iterable[Moment]) -> list[Moment]:
        """Before which rows of a batch the window is to be looked at, given where it may be."""
        found = []
        slot = self._slot
        for moment in moments:
            if moment.slot > slot:
                found.append(moment)
                slot = moment.slot
        return found

    def look(self, moment: Moment, ask: Callable[[int], Iterable[tuple[Ints, Ints]]]) -> Estimate:
        """Look at the window before a row, and let z follow it.

        ``ask`` tells of some z what each shard shows: see `shoal.spark.z.decide.CellShard`. The
        shards have forgotten what was in the window no more, and follow the new z afterwards.
        """
        least, knobs = self._tasks.policy.z, self._tasks.anonymizer
        known: dict[int, Ints] = {}

        def sets(z: int) -> Ints:
            if z not in known:
                known[z] = _together(ask(z))
            return known[z]

        n_subjects, before = len(sets(least)), self.z
        self.z = least_z(least, n_subjects, knobs.probability, lambda z: alike(sets(z), knobs.k)[0])
        self._slot = moment.slot
        share, entropy = alike(sets(self.z), knobs.k)
        time = moment.time if np.isfinite(moment.time) else np.nan
        return moment.row, time, before, self.z, n_subjects, share, entropy

    # -- going on ----------------------------------------------------------------------------------

    def resume(self, stretches: Iterable[Stretch], secret: bytes = b"") -> None:
        """A batch is done: these were its stretches, and the secret of its pseudonyms."""
        n_before = self.before.n_valid
        for stretch in stretches:
            self.before = self.before.then(stretch)
        if self._pseudonyms is not None and self.before.n_valid > n_before:
            window = self._tasks.policy.window
            by_rows = isinstance(window, Window) and window.seconds is None
            last = self.before.n_valid - 1.0 if by_rows else self.before.latest
            # Only the key matters: it is that of the period of the last row.
            self._pseudonyms.give(pa.array([""]), np.array([last]), secret)

    def go_beyond(self, n_inputs: int, latest: float | None) -> None:
        """Go on after rows that were counted elsewhere, by a single shard before a migration.

        So places in the input go on, time doesn't run back, and no key of a pseudonym is used that
        should be forgotten. How many of the rows were valid doesn't matter, but numbers must grow.
        """
        time = -np.inf if latest is None else latest
        self.before = Stretch(n_inputs, n_inputs, time, time if np.isfinite(time) else np.nan)
        self._slot = -1
        pseudonym = self._tasks.publishing.pseudonym
        self._pseudonyms = None if pseudonym is None else Pseudonyms(pseudonym.rotate)

    def snapshot(self) -> CoreState:
        """All that later batches depend on."""
        facts: dict[str, Any] = {"z": self.z, "slot": self._slot}
        counts = np.array(self.before[:2], np.int64)
        arrays = {"counts": counts, "times": np.array(self.before[2:], np.float64)}
        if self._pseudonyms is not None:
            arrays |= {f"names.{name}": a for name, a in self._pseudonyms.snapshot().items()}
        return CoreState(facts, arrays, {})

    def restore(self, state: CoreState) -> None:
        """Go back to a snapshot of the same job."""
        facts, arrays, _ = state
        self.z, self._slot = int(facts["z"]), int(facts["slot"])
        self.before = Stretch(*arrays["counts"].tolist(), *arrays["times"].tolist())
        if self._pseudonyms is not None:
            self._pseudonyms.restore(
                {n.removeprefix("names."): a for n, a in arrays.items() if n.startswith("names.")}
            )


def _together(pieces: Iterable[tuple[Ints, Ints]]) -> Ints:
    """The number of what each subject shows in all shards."""
    found = list(pieces)
    people = np.concatenate([people for people, _ in found])
    shown = np.concatenate([sets for _, sets in found]).astype(np.uint64)
    _, places = np.unique(people, return_inverse=True)
    sets = np.zeros(int(places.max(initial=-1)) + 1, np.uint64)
    # What overflows is beyond the modulus anyway.
    np.add.at(sets, places, shown)
    return (sets & MASK).astype(np.int64)
