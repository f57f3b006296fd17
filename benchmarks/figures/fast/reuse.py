"""What safe reuse costs: any covering group, in place of the best one."""

from __future__ import annotations

from benchmarks.figures.fast.data import Repeated
from benchmarks.figures.fast.settings import FastSizes
from benchmarks.figures.idea.data import Incomplete
from benchmarks.figures.idea.settings import IdeaSizes
from benchmarks.figures.trial import Found, Trial, found
from benchmarks.markdown import table
from shoal.engine import Outcome

__all__ = ["reuse_text"]


def reuse_text(fast: FastSizes, idea: IdeaSizes) -> str:
    """The section: losses with ``reuse = "best"`` and ``"random"``, beside each other."""
    complete, gappy = (Incomplete("adult", idea.rows, gaps) for gaps in (0, idea.gaps))
    window = {
        algorithm: Trial(complete, algorithm, idea.k, idea.delay)
        for algorithm in ("castle", "fads", "fast", "idea")
    }
    short = (("age", fast.age),)
    trials = {
        **{f"{name}, k = {idea.k}, δ = {idea.delay:,}": one for name, one in window.items()},
        f"idea, the same with at most {idea.gaps} missing values": Trial(
            gappy, "idea", idea.k, idea.delay, missing="maybe"
        ),
        f"fads, k = {fast.k}, δ = {fast.delta}, T_kc = {fast.age}": Trial(
            Repeated(fast.rows), "fads", fast.k, fast.delta, short
        ),
    }
    lines = [_line(name, trial, idea.seeds) for name, trial in trials.items()]
    return "\n\n".join(
        [
            "## What safe reuse costs",
            "The papers let a row join the covering group that loses least, if it loses less than "
            "a new one would. Whoever sees that learns where the row isn't. Safe reuse, which is "
            "the default, lets it join any covering group, without a look at losses. The "
            f"knobs are the defaults, on {idea.rows:,} complete rows of Adult with the attributes "
            "of IDEA's Table 1, unless the line says otherwise.",
            table(
                ["algorithm", "loss, best", "loss, random", "times", "reused, best",
                 "reused, random"],
                lines,
            ),
        ]
    )  # fmt: skip


def _line(name: str, trial: Trial, seeds: int) -> list[str]:
    best, safe = (found(_with(trial, reuse), seeds) for reuse in ("best", "random"))
    ratio = safe.loss.mean / best.loss.mean
    return [name, str(best.loss), str(safe.loss), f"{ratio:.2f}", _reused(best), _reused(safe)]


def _with(trial: Trial, reuse: str) -> Trial:
    knobs = dict(trial.knobs) | {"reuse": reuse, "loss": "lm"}
    return Trial(
        trial.stream, trial.algorithm, trial.k, trial.delay, tuple(sorted(knobs.items())),
        trial.missing,
    )  # fmt: skip


def _reused(runs: Found) -> str:
    shares = [float((ran.outcomes == Outcome.reuse).mean()) for ran in runs.runs]
    return f"{100 * sum(shares) / len(shares):.1f} %"
