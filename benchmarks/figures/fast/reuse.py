"""What safe reuse costs: any covering group, in place of the best one."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.fast.data import Repeated
from benchmarks.figures.fast.settings import FastSizes
from benchmarks.figures.idea.data import Incomplete
from benchmarks.figures.idea.settings import IdeaSizes
from benchmarks.figures.trial import Found, Trial, found
from benchmarks.markdown import table
from shoal.engine.base import Outcome

__all__ = ["reuse_text"]

#: How many groups are kept, for each algorithm.
KEPT = {"castle": 1_000, "fads": 50, "fast": 50, "idea": 200}
#: Many groups, and for long: more than in the other lines.
MANY = (("age", 10_000), ("kept", 1_000))


def reuse_text(fast: FastSizes, idea: IdeaSizes) -> str:
    """The section: losses with each kind of reuse, and without any, beside each other."""
    complete, gappy = (Incomplete("adult", idea.rows, gaps) for gaps in (0, idea.gaps))
    promise = f"k = {idea.k}, δ = {idea.delay:,}"
    trials = {
        f"{algorithm}, {promise}, kept = {n:,}": Trial(
            complete, algorithm, idea.k, idea.delay, (("kept", n),)
        )
        for algorithm, n in KEPT.items()
    }
    trials[f"idea, the same with at most {idea.gaps} missing values"] = Trial(
        gappy, "idea", idea.k, idea.delay, (("kept", KEPT["idea"]),), missing="maybe"
    )
    for algorithm in ("fads", "fast"):
        words = ", ".join(f"{knob} = {value:,}" for knob, value in MANY)
        trials[f"{algorithm}, {promise}, {words}"] = Trial(
            complete, algorithm, idea.k, idea.delay, MANY
        )
    trials[f"fads, FAST's Table 3: k = {fast.k}, δ = {fast.delta}, age = {fast.age}"] = Trial(
        Repeated(fast.rows),
        "fads",
        fast.k,
        fast.delta,
        (("age", fast.age), ("kept", KEPT["fads"])),
    )
    lines = [_line(name, trial, idea.seeds) for name, trial in trials.items()]
    return "\n\n".join(
        [
            "## What safe reuse costs",
            "The papers let a row join the covering group that loses least, if it loses less than "
            "a new one would. Anyone who sees that learns where the row isn't. Reuse at random "
            "lets it join any covering group, without a look at losses; then more rows join "
            "larger boxes. In both, rows leave alone, as in the papers. Mean losses of published "
            "rows, and the share of rows that join a kept group. The other knobs are the "
            f"defaults, on {idea.rows:,} complete rows of "
            "Adult with the attributes of IDEA's Table 1, unless the line says otherwise.",
            table(
                ["algorithm", "best", "random", "random / best", "none", "reused, best",
                 "reused, random"],
                lines,
            ),
        ]
    )  # fmt: skip


def _line(name: str, trial: Trial, seeds: int) -> list[str]:
    best, safe, none = (
        found(_with(trial, **knobs), seeds)
        for knobs in ({"reuse": "best"}, {"reuse": "random"}, {"kept": 0})
    )
    ratio = safe.loss.mean / best.loss.mean
    losses = [str(one.loss) for one in (best, safe, none)]
    return [name, *losses[:2], f"{ratio:.2f}", losses[2], _reused(best), _reused(safe)]


def _with(trial: Trial, **knobs: object) -> Trial:
    changed = dict(trial.knobs) | knobs | {"loss": "lm", "joins": "alone"}
    return replace(trial, knobs=tuple(sorted(changed.items())))


def _reused(runs: Found) -> str:
    shares = [float((ran.outcomes == Outcome.reuse).mean()) for ran in runs.runs]
    return f"{100 * sum(shares) / len(shares):.1f} %"
