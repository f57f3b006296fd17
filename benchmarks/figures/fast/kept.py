"""Figures 4 and 5: how many groups are kept, and how many rows have how many to choose from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.figures.fast.alive import n_alive, n_to_choose_from
from benchmarks.figures.fast.settings import KEPT, RIVALS, FastSizes, Setting, age_of, axes, run
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, rises
from benchmarks.figures.trial import Ran
from shoal.engine.kernels.arrays import Ints

__all__ = ["figure_4", "figure_5"]

#: In how many parts the stream is cut, and at how many numbers of groups rows are counted.
N_PARTS = 8
N_BINS = 12


def figure_4(sizes: FastSizes) -> Figure:
    """The largest number of kept groups in each part of the stream, by the number of workers."""
    runs = _runs(sizes, "fast")
    n_rows = len(next(iter(runs.values()))[1][0].rows)
    ends = np.linspace(0, n_rows, N_PARTS + 1).astype(np.int64)[1:]
    curves, largest = [], []
    for workers, (setting, found) in runs.items():
        most = [_most_alive(ran, setting, "fast", ends) for ran in found]
        cells = tuple(
            Reading(tuple(map(float, part)), digits=0) for part in zip(*most, strict=True)
        )
        curves.append(Curve(_label(workers), cells))
        largest.append(Reading(tuple(float(max(parts)) for parts in most), digits=0))
    total = sizes.workers * sizes.age
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
                "The maximum size of Set_kc increases with the number of threads (by arrival, "
                "T_kc·W rows).",
                *rises(_largest(sizes, "fast-arrived")),
            ),
            Claim(
                "The same for one stream whose groups are kept for as many rows, whatever the "
                f"number of workers (by arrival, T_kc = {total} rows).",
                *rises(_largest(sizes, "fast-arrived", rows=total)),
            ),
        ),
        page="fast",
        source="the paper",
    )


def figure_5(sizes: FastSizes) -> Figure:
    """The share of rows that were published while that many groups were kept."""
    sizes = replace(sizes, seeds=sizes.seeds_of_kept)
    chosen = _chosen(sizes, "fast")
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
    label = "kept groups" if width == 1 else f"kept groups, from here {width} numbers on"
    panel = Panel(
        "by kept groups", label, tuple(starts.tolist()), curves,
        what="Rows published while that many groups were kept, in % of all", axis="% of rows",
    )  # fmt: skip
    return Figure(
        "5",
        "Rows by the number of kept groups",
        f"{_setting(sizes)} {sizes.seeds} seeds. Groups are counted as the round began in which "
        "the row was published.",
        (panel,),
        (
            Claim(
                "With more threads, more rows are published with more groups in Set_kc (here: "
                "the mean number of groups).",
                *rises(_means(chosen)),
            ),
            Claim(
                "The same by arrival (T_kc·W rows).", *rises(_means(_chosen(sizes, "fast-arrived")))
            ),
        ),
        page="fast",
        source="the paper",
    )


def _runs(sizes: FastSizes, rival: str) -> dict[int, tuple[Setting, tuple[Ran, ...]]]:
    axis = axes(sizes)["workers"]
    return {
        workers: (one, run(sizes, one, rival).runs)
        for workers, one in zip(axis.xs, axis.settings, strict=True)
    }


def _chosen(sizes: FastSizes, rival: str) -> dict[int, list[Ints]]:
    """For each number of workers and each seed, how many groups each row had to choose from."""
    return {
        workers: [
            n_to_choose_from(
                ran.in_rounds() if RIVALS[rival].rounds else ran,
                age=age_of(setting, rival), kept=KEPT, renewed=True,
            )
            for ran in found
        ]
        for workers, (setting, found) in _runs(sizes, rival).items()
    }  # fmt: skip


def _means(chosen: dict[int, list[Ints]]) -> list[Reading]:
    return [
        Reading(tuple(float(counts.mean()) for counts in found), digits=1)
        for found in chosen.values()
    ]


def _most_alive(ran: Ran, setting: Setting, rival: str, ends: np.ndarray) -> list[int]:
    """The largest number of kept groups up to each of these row counts, since the one before."""
    at, parts = np.arange(ends[-1] + 1), ends[:-1] + 1
    if RIVALS[rival].rounds:
        parts = np.searchsorted(np.unique(ran.published), parts)
        ran = ran.in_rounds()
        at = np.arange(ran.published.max() + 1)
    alive = n_alive(ran, age=age_of(setting, rival), kept=KEPT, at=at, renewed=True)
    return [int(part.max(initial=0)) for part in np.split(alive, parts)]


def _largest(sizes: FastSizes, rival: str, rows: int | None = None) -> list[Reading]:
    """The largest number of kept groups by workers; with ``rows``, all are kept for that many."""
    readings = []
    for one in axes(sizes)["workers"].settings:
        setting = one if rows is None else replace(one, age=rows // one.workers)
        runs = run(sizes, setting, rival).runs
        ends = np.array([len(runs[0].rows)])
        values = (float(_most_alive(ran, setting, rival, ends)[0]) for ran in runs)
        readings.append(Reading(tuple(values), digits=0))
    return readings


def _label(workers: int) -> str:
    return f"{workers} worker{'s' * (workers > 1)}"


def _setting(sizes: FastSizes) -> str:
    return (
        f"FAST on {sizes.n_rows:,} rows of Adult (the paper has 33,178), k = {sizes.k}; each "
        f"worker decides a row when each has δ = {sizes.delta}. Groups are kept for "
        f"T_kc = {sizes.age} rounds since they were published or used last."
    )
