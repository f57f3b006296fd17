"""Figure 8: the rounds that a row takes part in."""

from __future__ import annotations

import numpy as np

from benchmarks.figures.fast.settings import RIVALS, FastSizes, axes, run
from benchmarks.figures.model import Claim, Curve, Figure, Panel, Reading, Verdict
from benchmarks.figures.trial import Ran
from shoal.engine.base import Outcome
from shoal.metrics.rounds import Rounds

__all__ = ["figure_8"]

#: The paper finds that this share takes part in more than this many rounds.
PAPER_SHARE, MANY = 0.29, 10
#: From which share on a number of rows is significant.
SIGNIFICANT = 0.1


def figure_8(sizes: FastSizes) -> Figure:
    """The share of rows by the number of rounds, in FADS and in FAST."""
    counted = {
        rival: [_rounds(ran) for ran in run(sizes, sizes.usual, rival).runs]
        for rival in ("fads", "fast")
    }
    most = max(int(one.counts.largest or 0) for found in counted.values() for one in found)
    xs = tuple(range(1, most + 1))
    curves = tuple(
        Curve(RIVALS[rival], tuple(_reading([_in(one, x) for one in found]) for x in xs))
        for rival, found in counted.items()
    )
    above = {
        rival: _reading([one.share_above(MANY) or 0.0 for one in found])
        for rival, found in counted.items()
    }
    reused = _reading(
        [
            float((ran.outcomes == Outcome.reuse).mean())
            for ran in run(sizes, sizes.usual, "fads").runs
        ]
    )
    verdict: Verdict = "holds" if above["fads"].least >= 100 * SIGNIFICANT else "doesn't hold"
    return Figure(
        "8",
        "Rounds that a row takes part in",
        f"Table 3: k = {sizes.k}, δ = {sizes.delta}, T_kc = {sizes.age}, W = {sizes.workers}. A "
        "round is an instant at which something is decided; in FAST all workers have it together. "
        f"A number of rows is called significant here from {100 * SIGNIFICANT:g} % on.",
        (
            Panel(
                "Table 3", "rounds", xs, curves,
                what="Rows that take part in that many rounds, in % of all", axis="% of rows",
            ),
        ),
        (
            Claim(
                f"In FADS a significant number of rows takes part in more than {MANY} rounds "
                f"({100 * PAPER_SHARE:g} %).",
                verdict,
                f"{above['fads']} % in FADS, {above['fast']} % in FAST; in FADS {reused} % of the "
                "rows join a kept group, and only rounds in which one does move on by a single row",
            ),
            _never_late(sizes),
        ),
        page="fast",
        source="the paper",
    )  # fmt: skip


def _rounds(ran: Ran) -> Rounds:
    rounds = Rounds()
    rounds.add(ran.rows, ran.published)
    return rounds


def _in(rounds: Rounds, n: int) -> float:
    """The share of rows that took part in exactly n rounds."""
    return (rounds.share_above(n - 1) or 0.0) - (rounds.share_above(n) or 0.0)


def _reading(shares: list[float]) -> Reading:
    return Reading(tuple(100 * share for share in shares), digits=1)


def _never_late(sizes: FastSizes) -> Claim:
    """Of every run of FAST that Figure 3 has."""
    late = [
        int(np.count_nonzero(ran.waited > one.workers * one.delta))
        for axis in axes(sizes).values()
        for one in axis.settings
        for ran in run(sizes, one, "fast").runs
    ]
    return Claim(
        "FAST never publishes a row after its expiration (here: in every run of Figure 3).",
        "doesn't hold" if any(late) else "holds",
        f"{sum(late):,} late rows in {len(late)} runs",
    )
