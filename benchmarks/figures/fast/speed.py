"""Figure 6: the time by the number of workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

from benchmarks.figures.fast.data import QUASI, Repeated
from benchmarks.figures.fast.settings import KEPT, FastSizes
from benchmarks.figures.model import Claim, Curve, Figure, Measured, Panel, Reading, rises
from benchmarks.figures.trial import WINDOWS, Trial, WindowKind, bounds, ran
from benchmarks.machine_use import DISTURBED, Use
from benchmarks.measure import interleaved

__all__ = ["figure_6"]


def figure_6(sizes: FastSizes) -> Figure:
    """Wall time of FAST for one and the same promise, cut among more and more workers."""
    light = (sizes.k, sizes.workers * sizes.delta, sizes.workers * sizes.age)
    heavy = (sizes.heavy_k, sizes.heavy_delta, sizes.heavy_delta)
    cores = os.cpu_count() or 1
    within = sum(workers <= cores for workers in sizes.all_workers)
    panels, claims = [], []
    busiest = 0.0
    for window, (k, delta, age) in product(WINDOWS, (light, heavy)):
        use = Use.now()
        readings = _times(sizes, window, k, delta, age)
        others = use.since().others
        busiest = max(busiest, others)
        title = f"k = {k}, " + (f"{delta:,} held" if window == "held" else f"delay {delta:,} rows")
        panels.append(
            Panel(
                title, "workers", sizes.all_workers, (Curve("FAST", readings),),
                what="Wall time in seconds", axis="seconds",
            )
        )  # fmt: skip
        words = "The execution time decreases tremendously with more threads"
        claims.append(_claim(f"{words} ({title}).", readings, others))
        if 1 < within < len(readings):
            words = f"The same up to the {cores} cores that there are"
            claims.append(_claim(f"{words} ({title}).", readings[:within], others))
    return Figure(
        "6",
        "Execution time by the number of workers",
        f"The engine alone, from codes to decisions, on {cores} cores; means of the best "
        f"{sizes.best} of {sizes.repeats} runs in turn. The number of rows that are held, or the "
        "delay, is the same for any number of "
        "workers, each of which looks at its share of the held rows alone. The paper gave each "
        f"thread a core. Others had up to {100 * busiest:.0f} % of this machine meanwhile; from "
        f"{100 * DISTURBED:g} % on nothing is concluded.",
        tuple(panels),
        tuple(claims),
        page="fast",
        source="the paper",
        one_axis=False,
    )


def _claim(words: str, readings: Sequence[Measured], others: float) -> Claim:
    """Threads that must share their cores with others say nothing of what threads are worth."""
    verdict, evidence = rises(readings, falls=True)
    return Claim(words, verdict if others < DISTURBED else "inconclusive", evidence)


def _times(
    sizes: FastSizes, window: WindowKind, k: int, delta: int, age: int
) -> tuple[Reading, ...]:
    stream = Repeated(sizes.timed_rows, QUASI)
    delay, bound = bounds(window, delta)
    walls: dict[int, list[float]] = {workers: [] for workers in sizes.all_workers}

    def one(workers: int) -> None:
        knobs = {
            "age": age, "kept": KEPT, "loss": "lm", "reuse": "best", "joins": "alone",
            "workers": workers,
        } | bound  # fmt: skip
        walls[workers].append(ran(Trial(stream, "fast", k, delay, tuple(knobs.items()))).wall)

    actions: list[Callable[[], None]] = [partial(one, workers) for workers in sizes.all_workers]
    interleaved(sizes.repeats, *actions)
    # The first round compiles.
    return tuple(Reading(tuple(sorted(values[1:])[: sizes.best])) for values in walls.values())
