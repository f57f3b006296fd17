"""Figure 6: the time by the number of workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from benchmarks.figures.fast.data import QUASI, Repeated
from benchmarks.figures.fast.settings import KEPT, FastSizes
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, rises
from benchmarks.figures.trial import Trial, ran
from benchmarks.measure import interleaved

__all__ = ["figure_6"]


def figure_6(sizes: FastSizes) -> Figure:
    """Wall time of FAST for one and the same promise, cut among more and more workers."""
    light = (sizes.k, sizes.workers * sizes.delta, sizes.workers * sizes.age)
    heavy = (sizes.heavy_k, sizes.heavy_delta, sizes.heavy_delta)
    panels = []
    for k, delay, age in (light, heavy):
        readings = _times(sizes, k, delay, age)
        panels.append(
            Panel(
                f"k = {k}, delay {delay:,} rows", "workers", sizes.all_workers,
                (Curve("FAST", readings),), what="Wall time in seconds", axis="seconds",
            )
        )  # fmt: skip
    cores = os.cpu_count() or 1
    within = sum(workers <= cores for workers in sizes.all_workers)
    claims = [
        Claim(
            f"The execution time decreases tremendously with more threads ({panel.title}).",
            *rises(panel.curves[0].cells, falls=True),
        )
        for panel in panels
    ]
    claims += [
        Claim(
            f"The same up to the {cores} cores that there are ({panel.title}).",
            *rises(panel.curves[0].cells[:within], falls=True),
        )
        for panel in panels
        if 1 < within < len(sizes.all_workers)
    ]
    return Figure(
        "6",
        "Execution time by the number of workers",
        f"The engine alone, from codes to decisions, on {cores} cores; means of the "
        f"best {sizes.best} of {sizes.repeats} runs in turn. The delay is the same for any "
        "number of workers, each of which looks at its share of the held rows alone. The paper "
        "gave each thread a core.",
        tuple(panels),
        tuple(claims),
        page="fast",
        source="the paper",
        one_axis=False,
    )


def _times(sizes: FastSizes, k: int, delay: int, age: int) -> tuple[Reading, ...]:
    stream = Repeated(sizes.rows, QUASI)
    walls: dict[int, list[float]] = {workers: [] for workers in sizes.all_workers}

    def one(workers: int) -> None:
        knobs = {"age": age, "kept": KEPT, "loss": "lm", "reuse": "best", "workers": workers}
        walls[workers].append(ran(Trial(stream, "fast", k, delay, tuple(knobs.items()))).wall)

    actions: list[Callable[[], None]] = [partial(one, workers) for workers in sizes.all_workers]
    interleaved(sizes.repeats, *actions)
    # The first round compiles.
    return tuple(Reading(tuple(sorted(values[1:])[: sizes.best])) for values in walls.values())
