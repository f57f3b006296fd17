"""Loss over the number of shards: rows that are routed by place, along a curve, and by hash."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow.parquet as pq

from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, Verdict, below
from benchmarks.figures.streams import Stream, encoded
from benchmarks.figures.sweep import KEPT, Cell, Lost
from benchmarks.workloads import SHARED, acs_income
from shoal.algorithms.castle import Castle
from shoal.datasets import Dataset
from shoal.engine.base import Outcome
from shoal.engine.decisions import Decisions
from shoal.engine.kernels.arrays import Ints
from shoal.engine.kernels.hilbert import centres, hilbert
from shoal.engine.space import Codes, Space
from shoal.spark.partition_map import PartitionMap
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Schema

__all__ = ["HEAD", "NEEDS", "SECTIONS", "ShardSizes", "Task", "figure", "run"]

_NAME = "acs_income_2018"
#: What has to be there.
NEEDS = (SHARED / f"{_NAME}.parquet", SHARED / "hierarchies" / _NAME)
#: How much more may be lost by this many shards.
AT, MOST = 8, 1.05

Route: TypeAlias = Literal["place", "curve", "hash", "one"]
Unit: TypeAlias = Literal["rows", "seconds"]
LABELS: dict[Route, str] = {
    "place": "by place",
    "curve": "by Hilbert curve",
    "hash": "by hash",
    "one": "one engine, as large",
}
#: Those that route; the last one is what they are compared with.
ROUTES: tuple[Route, ...] = ("place", "curve", "hash")


@dataclass(frozen=True)
class ShardSizes:
    """How much is measured; k, delay and clusters are those of the figures of CASTLE."""

    rows: int = 800_000
    sampled: int = 10_000
    k: int = 100
    delay: int = 10_000
    clusters: int = 50
    shards: tuple[int, ...] = (1, 2, 4, 8, 16)
    seeds: int = 3
    jobs: int = 2

    @classmethod
    def quick(cls) -> ShardSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=300, sampled=200, k=3, delay=40, clusters=8, shards=(1, 8), seeds=1, jobs=1)


@dataclass(frozen=True)
class Task:
    """One run: this many engines, and how rows come to them."""

    rows: int
    sampled: int
    k: int
    delay: int
    unit: Unit
    clusters: int
    route: Route
    n_shards: int
    seed: int = 0


class Ran(NamedTuple):
    """What was lost, and how many rows the fullest shard got, over the mean."""

    lost: Lost
    fullest: float


class Found(NamedTuple):
    """The same with several seeds, which are other rows, in another order, and other coins."""

    losses: Cell
    fullest: Reading


# -- runs ------------------------------------------------------------------------------------------


def run(task: Task) -> Ran:
    """Send rows to engines and average over all rows; a broken promise ends everything."""
    schema, codes = _drawn(task.rows, task.seed)
    shards = _shards(task, schema, codes)
    lost = published = decided = 0.0
    for shard in np.unique(shards):
        mine = np.flatnonzero(shards == shard)
        for decisions in _decided(task, schema, codes, mine, int(shard)):
            seen = decisions.outcomes != Outcome.suppressed
            lost += float(decisions.losses[seen].sum())
            published += int(seen.sum())
            decided += len(seen)
    if decided != task.rows:
        raise AssertionError(f"{decided:.0f} of {task.rows} rows were decided")
    n_suppressed = decided - published
    counts = np.bincount(shards, minlength=task.n_shards)
    return Ran(
        Lost(lost / published, (lost + n_suppressed) / decided, n_suppressed / decided),
        float(counts.max() / counts.mean()),
    )


def _decided(
    task: Task, schema: Schema, codes: Codes, mine: Ints, shard: int
) -> Iterator[Decisions]:
    """What the engine of one shard decides about its rows."""
    n_times = task.n_shards if task.route == "one" else 1
    # A row a second comes, over all shards.
    in_rows = Delay(rows=task.delay * n_times)
    delay = in_rows if task.unit == "rows" else Delay(seconds=task.delay)
    anonymizer = Castle(clusters=task.clusters * n_times, kept=KEPT, joins="alone")
    policy = Policy(KAnonymity(task.k), delay=delay)
    engine = anonymizer.start(schema, policy, seed=f"figure {task.seed} {shard}".encode())
    part = Codes(*(array[mine] for array in codes[:4]))
    for decisions in (engine.push(part), engine.flush()):
        # Each row is a subject; those that are reused come on top.
        groups = decisions.boxes[decisions.outcomes == Outcome.group]
        if np.unique(groups, return_counts=True)[1].min(initial=task.k) < task.k:
            raise AssertionError(f"a group has fewer than {task.k} people")
        yield decisions


def _shards(task: Task, schema: Schema, codes: Codes) -> Ints:
    """Which engine each row goes to."""
    n, n_rows = task.n_shards, len(codes.subjects)
    if n == 1 or task.route == "one":
        return np.zeros(n_rows, np.int64)
    if task.route == "hash":
        return np.random.default_rng(task.seed).integers(0, n, n_rows)
    space = Space(schema, Policy(KAnonymity(task.k), delay=Delay(rows=task.delay)))
    if task.route == "place":
        return PartitionMap.learn(space, codes.values[: task.sampled], n).shards(codes.values)
    lo, hi = (np.ascontiguousarray(side.T) for side in space.points(codes.values))
    keys = hilbert(space.sides, centres(space.sides, lo, hi))
    cuts = np.quantile(keys[: task.sampled], np.arange(1, n) / n)
    return np.searchsorted(cuts, keys)


def _drawn(rows: int, seed: int) -> tuple[Schema, Codes]:
    """This many rows in a random order, one a second."""
    whole = _whole()
    chosen = np.random.default_rng(seed).permutation(len(whole.codes.subjects))[:rows]
    seconds = np.arange(rows, dtype=np.float64)
    nothing = np.empty((rows, 0), np.int64)
    return whole.schema, Codes(whole.codes.values[chosen], np.arange(rows), nothing, seconds)


@lru_cache(maxsize=1)
def _whole() -> Stream:
    workload = acs_income()
    assert workload is not None
    schema = Schema(None, workload.schema.quasi)
    table = pq.read_table(workload.path, columns=[quasi.name for quasi in schema.quasi])
    return encoded(Dataset.from_table(table, schema, name=workload.name))


def _sweep(tasks: Sequence[Task], sizes: ShardSizes) -> dict[tuple[Unit, Route, int], Found]:
    """Run every task with every seed."""
    wanted = [replace(task, seed=seed) for task in tasks for seed in range(sizes.seeds)]
    if sizes.jobs == 1:
        ran = [run(task) for task in wanted]
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(sizes.jobs, mp_context=context) as pool:
            ran = list(pool.map(run, wanted))
    found = {}
    for i, task in enumerate(tasks):
        some = ran[i * sizes.seeds : (i + 1) * sizes.seeds]
        found[task.unit, task.route, task.n_shards] = Found(
            Cell(tuple(one.lost for one in some)),
            Reading(tuple(one.fullest for one in some), digits=2),
        )
    return found


# -- the figure ------------------------------------------------------------------------------------


def figure(sizes: ShardSizes) -> Figure:
    """Vary the number of shards and the way that rows take to them."""
    units: tuple[Unit, ...] = ("rows", "seconds")
    settings = product(units, (*ROUTES, "one"), sizes.shards)
    tasks = [
        Task(sizes.rows, sizes.sampled, sizes.k, sizes.delay, unit, sizes.clusters, route, n_shards)
        for unit, route, n_shards in settings
        # One shard is one engine, whatever the way to it.
        if n_shards > 1 or route == "one"
    ]
    found = _sweep(tasks, sizes)
    for unit, route in product(units, ROUTES):
        found[unit, route, 1] = found[unit, "one", 1]

    def losses(unit: Unit, route: Route) -> list[Cell]:
        return [found[unit, route, n].losses for n in sizes.shards]

    panels = [
        Panel(
            title,
            "shards",
            sizes.shards,
            tuple(Curve(LABELS[route], losses(unit, route)) for route in LABELS),
            log=True,
        )
        for unit, title in (
            ("rows", f"δ = {sizes.delay:,} rows of a shard"),
            ("seconds", f"δ = {sizes.delay:,} seconds, one row a second"),
        )
    ]
    fullest = Panel(
        "balance",
        "shards",
        sizes.shards,
        tuple(
            Curve(LABELS[route], [found["rows", route, n].fullest for n in sizes.shards])
            for route in ROUTES
        ),
        what="Rows of the fullest shard, over the mean",
        axis="fullest shard, over the mean",
        log=True,
    )
    claims = [claim for unit in units for claim in _claims(unit, losses, sizes.shards)]
    return Figure(
        "loss",
        "loss over the number of shards",
        f"{sizes.rows:,} rows of `{_NAME}` in a random order, ten quasi attributes, each row a "
        f"subject; k = {sizes.k}, δ = {sizes.delay:,}, {sizes.clusters} open clusters in each "
        f"shard; the map is learned from the first {sizes.sampled:,} rows. {sizes.seeds} seeds.",
        (*panels, fullest),
        tuple(claims),
        page="shards",
        source="what is wanted",
        one_axis=False,
        heading="Shards",
    )


def _claims(
    unit: Unit, losses: Callable[[Unit, Route], list[Cell]], shards: tuple[int, ...]
) -> list[Claim]:
    """What is wanted of shards if the delay is in this unit."""
    words, several = f"(delay in {unit})", [i for i, n in enumerate(shards) if n > 1]

    def cells(route: Route) -> list[Cell]:
        return [losses(unit, route)[i] for i in several]

    where = [f"{shards[i]} shards" for i in several]
    one, some = losses(unit, "one")[0], losses(unit, "place")[shards.index(AT)]
    return [
        Claim(
            f"By place, {AT} shards lose at most {100 * (MOST - 1):.0f} % more than one {words}.",
            *_at_most(some, one, MOST),
        ),
        Claim(
            f"By place less is lost than by hash {words}.",
            *below(cells("place"), cells("hash"), where),
        ),
        Claim(
            f"By place less is lost than along a Hilbert curve {words}.",
            *below(cells("place"), cells("curve"), where),
        ),
        Claim(
            f"By place less is lost than by one engine that is as large {words}.",
            *below(cells("place"), cells("one"), where),
        ),
    ]


def _at_most(ours: Cell, other: Cell, times: float) -> tuple[Verdict, str]:
    """Whether ours is at most this many times the other, by more than the spreads of both."""
    room, noise = times * other.mean - ours.mean, ours.spread + times * other.spread
    verdict: Verdict = "inconclusive"
    if abs(room) > noise:
        verdict = "holds" if room > 0 else "doesn't hold"
    more, with_suppressed = (
        f"{100 * (a / b - 1):+.1f} %"
        for a, b in ((ours.mean, other.mean), (ours.with_suppressed, other.with_suppressed))
    )
    return verdict, f"{ours} against {other}: {more} ({with_suppressed} with suppressed rows as 1)"


HEAD = """\
# Shards: what they lose

Generated by `python -m benchmarks.figures shards`; don't edit. On a cluster a stream is anonymized
by several engines, the *shards*, each with the rows that are sent to it. k holds in every shard by
itself; the loss grows if similar rows are in other shards. Here the engines of CASTLE run in
one process, one after another, with the rows that each would get:

- **by place**: the map of `shoal.spark.partition_map`, the top of a kd-tree, cut there where two
  rows of a shard lose least together, as far as shards stay about equally full;
- **by Hilbert curve**: ranges of the curve through quasi space with equally many rows of the
  sample;
- **by hash** of the subject, as rows are usually spread; each row is a subject here;
- **one engine, as large**: no shards, but as many open clusters as all shards have together (and,
  where the delay is in rows, as many rows held).

A delay in **rows** is one of the shard's own rows: n shards hold n times as many rows as one engine
would, and a row waits n times as long. A delay in **seconds** binds the whole cluster: it holds as
many rows as one engine would, and each of n shards about an n-th of them. The second is the fair
comparison, and the harder one.

Loss is the average information loss, from 0 to 1: the mean over seeds, which are other rows, in
another order, and other random choices, ± half of the difference between the smallest and the
largest (the bars in the picture). A difference counts if it is larger than the sum of both spreads.
In every run each row is decided once and each group has at least k people; otherwise the page isn't
generated. Rows that are still held at the end of the stream leave then.
"""

SECTIONS: dict[str, Callable[[bool], Figure]] = {
    "shards-loss": lambda quick: figure(ShardSizes.quick() if quick else ShardSizes()),
}
