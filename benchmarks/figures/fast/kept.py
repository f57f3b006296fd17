"""Figures 4 and 5: how many groups are kept, and how many rows have how many to choose from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.figures.fast.alive import n_alive, n_to_choose_from
from benchmarks.figures.fast.settings import KEPT, FastSizes, Setting, axes, run
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, rises
from benchmarks.figures.trial import Ran

__all__ = ["figure_4", "figure_5"]

#: In how many parts the stream is cut, and at how many numbers of groups rows are counted.
N_PARTS = 8
N_BINS = 12


def figure_4(sizes: FastSizes) -> Figure:
    """The largest number of kept groups in each part of the stream, by the number of workers."""
    runs = _runs(sizes)
    n_rows = len(next(iter(runs.values()))[1][0].rows)
    ends = np.linspace(0, n_rows, N_PARTS + 1).astype(np.int64)[1:]
    curves, largest = [], []
    for workers, (setting, found) in runs.items():
        most = [_most_alive(ran, _age(setting), ends) for ran in found]
        cells = tuple(
            Reading(tuple(map(float, part)), digits=0) for part in zip(*most, strict=True)
        )
        curves.append(Curve(_label(workers), cells))
        largest.append(Reading(tuple(float(max(parts)) for parts in most), digits=0))
    panel = Panel(
        "over time", "rows that have come", tuple(ends.tolist()), tuple(curves),
        what="Kept groups within their age, at most since the line above", axis="kept groups",
    )  # fmt: skip
    return Figure(
        "4",
        "Kept groups during the run",
        _setting(sizes),
        (panel,),
        (
            Claim(
                "The maximum size of Set_kc increases with the number of threads.",
                *rises(largest),
            ),
            Claim(
                "The same for one stream whose groups are kept for as many rows, whatever the "
                f"number of workers (T_kc = {sizes.workers * sizes.age} rows).",
                *rises(_largest_of_equal_age(sizes)),
            ),
        ),
        page="fast",
        source="the paper",
    )


def figure_5(sizes: FastSizes) -> Figure:
    """The share of rows that were published while that many groups were kept."""
    chosen = {
        workers: [
            n_to_choose_from(ran, age=_age(setting), kept=KEPT, renewed=True) for ran in found
        ]
        for workers, (setting, found) in _runs(sizes).items()
    }
    most = max(int(counts.max()) for found in chosen.values() for counts in found)
    width = max(1, -(-(most + 1) // N_BINS))
    starts = np.arange(0, most + 1, width)
    curves = tuple(
        Curve(
            _label(workers),
            tuple(
                Reading(
                    tuple(
                        100 * float(np.mean((counts >= low) & (counts < low + width)))
                        for counts in found
                    ),
                    digits=1,
                )
                for low in starts
            ),
        )
        for workers, found in chosen.items()
    )
    means = [
        Reading(tuple(float(counts.mean()) for counts in found), digits=1)
        for found in chosen.values()
    ]
    label = "kept groups" if width == 1 else f"kept groups, from here {width} numbers on"
    panel = Panel(
        "by kept groups", label, tuple(starts.tolist()), curves,
        what="Rows published while that many groups were kept, in % of all", axis="% of rows",
    )  # fmt: skip
    return Figure(
        "5",
        "Rows by the number of kept groups",
        _setting(sizes) + " Groups are counted as the round began in which the row was published.",
        (panel,),
        (
            Claim(
                "With more threads, more rows are published with more groups in Set_kc (here: "
                "the mean number of groups).",
                *rises(means),
            ),
        ),
        page="fast",
        source="the paper",
    )


def _runs(sizes: FastSizes) -> dict[int, tuple[Setting, tuple[Ran, ...]]]:
    axis = axes(sizes)["workers"]
    return {
        workers: (one, run(sizes, one, "fast").runs)
        for workers, one in zip(axis.xs, axis.settings, strict=True)
    }


def _age(setting: Setting) -> int:
    return setting.workers * setting.age


def _most_alive(ran: Ran, age: int, ends: np.ndarray) -> list[int]:
    """The largest number of kept groups up to each of these row counts, since the one before."""
    at = np.arange(ends[-1] + 1)
    alive = n_alive(ran, age=age, kept=KEPT, at=at, renewed=True)
    return [int(part.max()) for part in np.split(alive, ends[:-1] + 1)]


def _largest_of_equal_age(sizes: FastSizes) -> list[Reading]:
    total = sizes.workers * sizes.age
    readings = []
    for one in axes(sizes)["workers"].settings:
        setting = replace(one, age=total // one.workers)
        runs = run(sizes, setting, "fast").runs
        ends = np.array([len(runs[0].rows)])
        values = (float(_most_alive(ran, _age(setting), ends)[0]) for ran in runs)
        readings.append(Reading(tuple(values), digits=0))
    return readings


def _label(workers: int) -> str:
    return f"{workers} worker{'s' * (workers > 1)}"


def _setting(sizes: FastSizes) -> str:
    return (
        f"FAST on Adult, k = {sizes.k}, δ = {sizes.delta} rows of each worker, "
        f"T_kc = {sizes.age}, which is {sizes.age} rows of each worker: groups are kept for "
        f"{sizes.age}·W rows since they were published or used last."
    )
