"""The R-tree family from file to file, its engines alone, and longer streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks import growth, runs
from benchmarks.figures.trees.data import QUASI, schema_of, table
from benchmarks.figures.trees.trial import ALGORITHMS, SAMPLING
from benchmarks.growth import LINEAR
from benchmarks.measure import interleaved
from benchmarks.workers import encoded
from benchmarks.workloads import ROW_GROUP_ROWS, Workload
from shoal.algorithms import find
from shoal.engine.base import Anonymizer
from shoal.engine.space import Codes
from shoal.spec.policy import KAnonymity, Policy

__all__ = ["Sizes", "employees_file", "engines", "files", "lengths", "memory"]

#: At most this many times the time of the pass-through, and of the density-aware method.
MOST_TIMES, MOST_OF_FULL = 5.0, 7.0
#: For whom there is a target, and whose streams are made longer.
TARGETED = "tree-density"
#: This many times the rows.
LENGTHS = (1, 2, 4)
SEED = 2009


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 300_000
    repeats: int = 3
    k: int = 10
    #: How many rows are held at most.
    capacity: int = 5_000
    #: How many samples are drawn, of how many of the latest rows: as many as by default.
    samples: int = 3_000
    sampled: int = 10_000
    warm_rows: int = 2_000
    twin_rows: int = 1_500
    twin_capacity: int = 300
    twin_repeats: int = 1
    #: Memory is bounded by a delay, and looked at in processes of their own.
    grown_rows: int = 100_000
    delay: int = 10_000
    grown_repeats: int = 1

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=100, repeats=2, k=3, capacity=40, samples=20, sampled=50, warm_rows=40,
            twin_rows=80, twin_capacity=30, grown_rows=20, delay=30,
        )  # fmt: skip

    @property
    def policy(self) -> Policy:
        """k-anonymity alone: the capacity is the bound."""
        return Policy(KAnonymity(self.k))

    def anonymizer(self, name: str) -> Anonymizer:
        """An algorithm with the bound, and with the samples if it has some."""
        knobs: dict[str, Any] = {"capacity": self.capacity}
        if name in SAMPLING:
            knobs |= {"samples": self.samples, "sampled": self.sampled}
        return find(name)(**knobs)


def employees_file(rows: int, folder: Path) -> Workload:
    """Government employees with seven quasi attributes, drawn again and again.

    Each row is a subject of its own. A longer file begins as a shorter one does.
    """
    name = "employees"
    path = folder / f"{name}-{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        whole = table()
        chosen = np.random.default_rng(SEED).integers(whole.num_rows, size=rows)
        unfinished = path.with_suffix(".unfinished")
        drawn = whole.take(chosen).combine_chunks()
        pq.write_table(drawn, unfinished, row_group_size=ROW_GROUP_ROWS)
        unfinished.replace(path)
    return Workload(name, path, schema_of(subject=None), rows)


def files(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """All four and the pass-through from file to file, in turn."""
    small, whole = (employees_file(rows, folder) for rows in (sizes.warm_rows, sizes.rows))
    output = folder / "published-employees.parquet"
    summaries: dict[str, Any] = {}

    def publish(workload: Workload, name: str) -> None:
        made = runs.run(workload, sizes.anonymizer(name), sizes.policy, output)
        summaries[name] = made.as_dict()

    runs.pass_through(small, output)
    for name in ALGORITHMS:
        publish(small, name)
    passing, *deciding = interleaved(
        sizes.repeats,
        partial(runs.pass_through, whole, output),
        *(partial(publish, whole, name) for name in ALGORITHMS),
        warm=True,
    )
    output.unlink()
    lines = []
    for name, seconds in zip(ALGORITHMS, deciding, strict=True):
        ratio = seconds.per(passing)
        target = MOST_TIMES if name == TARGETED else None
        lines.append(
            {
                "algorithm": name,
                "seconds": seconds.as_dict(),
                "rows_per_second": seconds.rate(sizes.rows).as_dict(),
                "ratio": ratio.as_dict(),
                "target": target,
                "met": None if target is None else ratio.median <= target,
                "loss": summaries[name]["loss"],
                "delay": summaries[name]["delay"],
            }
        )
    return {
        "n_rows": sizes.rows,
        "n_quasi": len(QUASI),
        "k": sizes.k,
        "capacity": sizes.capacity,
        "target": MOST_TIMES,
        "seconds": passing.as_dict(),
        "rows_per_second": passing.rate(sizes.rows).as_dict(),
        "algorithms": lines,
    }


def engines(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """The engines alone, on encoded rows, in turn."""
    small, batches = (
        encoded(employees_file(rows, folder)) for rows in (sizes.warm_rows, sizes.rows)
    )
    deciding = [_deciding(name, sizes) for name in ALGORITHMS]
    for decide in deciding:
        decide(small)
    samples = interleaved(
        sizes.repeats, *(partial(decide, batches) for decide in deciding), warm=True
    )
    took = dict(zip(ALGORITHMS, samples, strict=True))
    ratio = took["tree-full"].per(took[TARGETED])
    return {
        "n_rows": sizes.rows,
        "capacity": sizes.capacity,
        "seconds": {name: sample.as_dict() for name, sample in took.items()},
        "rows_per_second": {
            name: sample.rate(sizes.rows).as_dict() for name, sample in took.items()
        },
        "ratio": ratio.as_dict(),
        "target": MOST_OF_FULL,
        "met": ratio.median <= MOST_OF_FULL,
    }


def _deciding(name: str, sizes: Sizes) -> Callable[[Sequence[Codes]], None]:
    """A run of an engine alone, from codes to decisions."""

    def decide(batches: Sequence[Codes]) -> None:
        made = sizes.anonymizer(name)
        engine = made.start(schema_of(subject=None), sizes.policy, seed=b"benchmark")
        for batch in batches:
            engine.push(batch)
        engine.flush()

    return decide


def lengths(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """The density-aware method from file to file, on longer and longer streams."""
    workloads = [employees_file(times * sizes.rows, folder) for times in LENGTHS]
    output = folder / "published-employees.parquet"

    def publish(workload: Workload) -> None:
        runs.run(workload, sizes.anonymizer(TARGETED), sizes.policy, output)

    publish(employees_file(sizes.warm_rows, folder))
    samples = interleaved(
        sizes.repeats, *(partial(publish, workload) for workload in workloads), warm=True
    )
    output.unlink()
    ratio = samples[-1].per(samples[0])
    times = LENGTHS[-1] / LENGTHS[0]
    return {
        "algorithm": TARGETED,
        "runs": [
            {"n_rows": workload.n_rows, "seconds": sample.as_dict()}
            for workload, sample in zip(workloads, samples, strict=True)
        ],
        "times": times,
        "ratio": ratio.as_dict(),
        "linear": ratio.median <= times * LINEAR,
    }


def memory(sizes: Sizes, folder: Path) -> list[dict[str, Any]]:
    """A stream of Adult and one of ten times its length, with a delay in place of a capacity."""
    return [
        growth.tenfold(
            name, "adult", sizes.grown_rows, folder, k=sizes.k, delay=sizes.delay,
            repeats=sizes.grown_repeats, warm=sizes.warm_rows,
        )
        for name in (TARGETED, "tree-full")
    ]  # fmt: skip
