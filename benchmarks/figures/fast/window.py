"""Rows held by count or by arrival: what that loses, and how long rows wait."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.fast.data import Repeated
from benchmarks.figures.fast.settings import FastSizes
from benchmarks.figures.idea.data import Incomplete
from benchmarks.figures.idea.settings import IdeaSizes
from benchmarks.figures.model import Reading
from benchmarks.figures.trial import Found, Trial, bounds, found
from benchmarks.markdown import table

__all__ = ["window_text"]

#: A delay as the hard bound beside a capacity is this many times as long.
TIMES = 2


def window_text(fast: FastSizes, idea: IdeaSizes) -> str:
    """The section: losses and waits by arrival, by count, and by count with the same mean wait."""
    few, many = Repeated(fast.rows), Incomplete("adult", idea.rows, 0)
    gappy = Incomplete("adult", idea.rows, idea.gaps)
    trials = {
        f"{name}, k = {k}, δ = {delta:,}": (Trial(stream, name, k, None), delta)
        for stream, k, delta, names in (
            (few, fast.k, fast.delta, ("fads",)),
            (few, fast.k, fast.workers * fast.delta, ("fads", "fast")),
            (many, idea.k, idea.delay, ("fads", "fast", "idea")),
        )
        for name in names
    }
    trials[f"idea, the same with at most {idea.gaps} missing values"] = (
        Trial(gappy, "idea", idea.k, None, missing="maybe"),
        idea.delay,
    )
    lines = [line for name, one in trials.items() for line in _lines(name, *one, idea.seeds)]
    return "\n\n".join(
        [
            "## Rows held by count and by arrival",
            "What a user gets: nothing is reused (`kept = 0`), all other knobs are defaults but "
            f'for `loss = "lm"`; {fast.n_rows:,} rows of Adult for k = {fast.k} '
            f"and {idea.rows:,} for k = {idea.k}, {idea.seeds} seeds. By count the window is "
            "always full, and rows wait longer, on average and at most; a delay next to it "
            "bounds that. The last line of each has the capacity at which rows wait as long on "
            "average as by arrival. "
            "Mean loss of published rows, and the wait in rows.",
            table(
                ["algorithm", "held", "loss", "to by arrival", "mean wait", "longest wait"], lines
            ),
        ]
    )


def _lines(name: str, trial: Trial, delta: int, seeds: int) -> list[list[str]]:
    """One line for each way to hold rows."""
    arrived = found(replace(trial, delay=delta, knobs=_knobs({})), seeds)
    wait = round(_wait(arrived).mean)
    ways = {f"by arrival, delay = {delta:,}": arrived}
    for capacity, delay in ((delta - 1, None), (delta - 1, TIMES * delta), (wait, None)):
        _, bound = bounds("held", capacity + 1)
        way = f"by count, capacity = {capacity:,}" + (f", delay = {delay:,}" if delay else "")
        ways[way] = found(replace(trial, delay=delay, knobs=_knobs(bound)), seeds)
    return [
        [
            name if way.startswith("by arrival") else "",
            way,
            str(one.loss),
            f"{one.loss.mean / arrived.loss.mean:.2f}",
            f"{_wait(one).mean:,.0f}",
            f"{max(int(ran.waited.max()) for ran in one.runs):,}",
        ]
        for way, one in ways.items()
    ]


def _knobs(bound: dict[str, object]) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(({"loss": "lm"} | bound).items()))


def _wait(runs: Found) -> Reading:
    return Reading(tuple(float(ran.waited.mean()) for ran in runs.runs), digits=0)
