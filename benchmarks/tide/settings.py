"""How much of TIDE is measured, and where results are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.tide.data import names
from benchmarks.tide.store import Store
from benchmarks.workloads import DATA

__all__ = ["Bench", "Sizes"]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 60_000
    #: The number of orders of the rows.
    repeats: int = 3
    ks: tuple[int, ...] = (10, 20, 50, 100)
    #: Those that targets are about.
    target_ks: tuple[int, ...] = (10, 50, 100)
    delays: tuple[int, ...] = (2_000, 10_000)
    #: Where the delay is varied, and where more is promised.
    k: int = 50
    delay: int = 2_000
    more_delays: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000)
    promise_rows: int = 30_000
    promise_repeats: int = 2
    l: int = 3  # noqa: E741
    t: float = 0.2
    gaps: int = 3
    efforts: tuple[int, ...] = (0, 5, 10, 20, 40)
    effort_repeats: int = 1
    effort_ks: tuple[int, ...] = (10, 50)
    utility_rows: int = 10_000
    table_rows: int = 15_000
    table_repeats: int = 1
    table_ks: tuple[int, ...] = (10, 50, 100)
    #: From file to file; by two threads; and a tenth of the longest stream.
    file_rows: int = 300_000
    thread_rows: int = 200_000
    thread_delays: tuple[int, ...] = (2_000, 10_000, 50_000)
    thread_repeats: int = 5
    #: Enough rows to fill all queues between reading and writing.
    short_rows: int = 300_000
    file_k: int = 100
    file_delay: int = 10_000

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=120, repeats=1, ks=(3, 5), target_ks=(3, 5), delays=(40,), k=4, delay=40,
            more_delays=(30, 40), promise_rows=120, utility_rows=120, promise_repeats=1, l=2,
            t=0.6, gaps=1, efforts=(0, 3), effort_ks=(3, 5), table_rows=60, table_ks=(3,),
            file_rows=100,
            thread_rows=100, thread_delays=(60,), thread_repeats=1, short_rows=30, file_k=4,
            file_delay=20,
        )  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """Sizes, data sets, and the folder of files and results; without one nothing is kept."""

    sizes: Sizes = field(default_factory=Sizes)
    folder: Path | None = DATA
    data: tuple[str, ...] = field(default_factory=lambda: tuple(names()))
    #: Methods whose names begin with one of these are measured again.
    again: tuple[str, ...] = ()
    #: Whether what isn't kept is measured now; else it is missing.
    measures: bool = True

    @cached_property
    def store(self) -> Store:
        """What was measured before."""
        path = None if self.folder is None else self.folder / "tide.json"
        return Store(path, self.again, measures=self.measures)
