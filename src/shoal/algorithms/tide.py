"""TIDE: all held rows leave at once, in groups that are formed together and repaired.

When the time of the oldest row is up, the rows that are held become groups: each grows from the
oldest row that is left, by the rows that it costs least. Then neighbouring groups are formed again,
and what loses less is kept. Nothing is reused: no row ever leaves alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Self

from shoal.engine.base import Engine
from shoal.engine.deadlines import HoldingAnonymizer, check_bound
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.held import RowArrays
from shoal.engine.kernels.parts import Parts
from shoal.engine.kernels.predicate import Limits, needed
from shoal.engine.space import Space
from shoal.engine.tide.by_batch import WORTH_A_THREAD, BatchEngine
from shoal.engine.tide.forming import Forming
from shoal.engine.tide.rolling import RollingEngine
from shoal.engine.tide.threads import Threads, cores
from shoal.engine.whole_table import WholeTable
from shoal.spec.policy import Criterion, KAnonymity, LDiversity, Measured, Missing, Policy

__all__ = ["Tide", "TideTable"]

#: Where groups need at most this many people, `Tide` rolls if it may choose.
FEW = 15


@dataclass(frozen=True, kw_only=True)
class Tide(HoldingAnonymizer):
    """TIDE for streams, for all promises.

    Parameters
    ----------
    release
        ``"batch"``: when the oldest row is due, all held rows leave at once. ``"rolling"``: only a
        group around that row leaves. ``"auto"``: rolling if groups need at most 15 people, where it
        loses no more and is faster; else batches.
    effort
        How often each row is put into another group to see whether that loses less, in the mean.
        More loses less and takes longer. Only batches need it.
    workers
        The number of threads that form the groups of batches; 0: one for each core that this
        process may use, at most 8. The result is the same for any.
    capacity
        The maximum number of held rows; 0: the policy's delay is the only bound. When one more
        arrives, the oldest row is due.
    loss
        How loss is measured, ``"glm"``, ``"lm"`` or ``"uncertainty"``; see `Space`.

    >>> import pyarrow as pa
    >>> from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(rows=10))
    >>> anonymize(people, schema, policy, Tide())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']
    """

    name: ClassVar[str] = "tide"
    reference: ClassVar[str] = "Shoal's own (docs/algorithms/tide.md)"
    needs_delay: ClassVar[bool] = False
    decides_nothing: ClassVar[tuple[str, ...]] = ("workers",)

    release: Literal["batch", "rolling", "auto"] = "batch"
    effort: int = 20
    workers: int = 0
    capacity: int = 0

    def __post_init__(self) -> None:
        self._one_of("release", ("batch", "rolling", "auto"))
        self._at_least(0, "effort", "workers", "capacity")
        self._at_most(1000, "effort")
        self._at_most(64, "workers")

    def check(self, policy: Policy) -> None:
        """Refuse a policy that this anonymizer can't keep, or under which rows have no bound."""
        super().check(policy)
        check_bound(
            self.name,
            policy,
            self.capacity,
            "holds rows, and neither the policy nor a capacity bounds that",
        )

    def notes(self, policy: Policy) -> tuple[str, ...]:
        """Return which release was chosen, and why, if that is left to this class."""
        if self.release != "auto":
            return ()
        release, why = self.released(_fewest(policy))
        return (f'algorithm.release = "auto" chooses "{release}": {why}',)

    def beside_others(self) -> Self:
        """Return the same anonymizer with one thread, unless it was given a number."""
        return replace(self, workers=self.workers or 1)

    def released(self, n_needed: int) -> tuple[Literal["batch", "rolling"], str]:
        """Return how rows are released if groups need this many people, and why.

        >>> Tide(release="auto").released(10)
        ('rolling', 'groups of at most 15 people lose no more one by one, and take less time')
        >>> Tide(release="auto").released(50)
        ('batch', 'groups of more than 15 people lose less if they are formed together')
        """
        if self.release != "auto":
            return self.release, "algorithm.release says so"
        if n_needed <= FEW:
            return "rolling", (
                f"groups of at most {FEW} people lose no more one by one, and take less time"
            )
        return "batch", f"groups of more than {FEW} people lose less if they are formed together"

    def _start(self, space: Space, seed: bytes) -> Engine:
        release, _ = self.released(int(needed(space.limits)))
        if release == "rolling":
            return RollingEngine(space, seed, self.capacity)
        forming = Forming(space, self.effort, Threads(self.workers or cores()))
        return BatchEngine(space, seed, forming, self.capacity)


def _fewest(policy: Policy) -> int:
    """Return the fewest people that a group needs."""
    return max(policy.k, *(criterion.needed for criterion in policy.diversity), 1)


@dataclass(frozen=True, kw_only=True)
class TideTable(WholeTable):
    """TIDE for whole tables: all rows are one batch.

    Parameters
    ----------
    effort, workers, loss
        As for `Tide`.

    >>> import pyarrow as pa
    >>> from shoal import KAnonymity, Policy, Quasi, Range, Schema, anonymize
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [20, 70, 22, 71]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 100))])
    >>> policy = Policy(KAnonymity(2), window="all")
    >>> anonymize(people, schema, policy, TideTable())["age"].to_pylist()
    ['[20, 22]', '[20, 22]', '[70, 71]', '[70, 71]']
    """

    name: ClassVar[str] = "tide-table"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, Measured)
    reference: ClassVar[str] = "Shoal's own (docs/algorithms/tide.md)"
    missing: ClassVar[tuple[Missing, ...]] = ("quarantine", "extended", "maybe")
    decides_nothing: ClassVar[tuple[str, ...]] = ("workers",)

    effort: int = 20
    workers: int = 0

    def __post_init__(self) -> None:
        self._at_least(0, "effort", "workers")
        self._at_most(1000, "effort")
        self._at_most(64, "workers")

    def beside_others(self) -> Self:
        """Return the same anonymizer with one thread, unless it was given a number."""
        return replace(self, workers=self.workers or 1)

    def parts(self, space: Space, limits: Limits, rows: RowArrays, random: Ints) -> Parts:
        """Form groups of all rows."""
        threads = Threads(self.workers or cores())
        form = partial(Forming(space, self.effort, threads).parts, limits, rows, random)
        return threads.begin(form)() if len(rows.subjects) >= WORTH_A_THREAD else form()
