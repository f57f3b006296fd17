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
#: Whose rounds are counted.
DRAWN = ("fads", "fast", "fads-arrived", "fast-arrived")
#: From which share on a number of rows is significant.
SIGNIFICANT = 0.1


def figure_8(sizes: FastSizes) -> Figure:
    """The share of rows by the number of rounds, in FADS and in FAST.

    How many there are depends on how rows are held. By count, a row that isn't near to others stays
    until it is the oldest, while groups leave and others come in their place. By arrival, the
    window is emptied by every group that leaves, and a row is due after δ arrivals, in which there
    are few rounds.
    """
    counted = {
        rival: [_rounds(ran) for ran in run(sizes, sizes.usual, rival).runs] for rival in DRAWN
    }
    most = max(int(one.counts.largest or 0) for found in counted.values() for one in found)
    xs = tuple(range(1, most + 1))
    curves = tuple(
        Curve(RIVALS[rival].label, tuple(_reading([_in(one, x) for one in found]) for x in xs))
        for rival, found in counted.items()
    )
    above = {
        rival: _reading([one.share_above(MANY) or 0.0 for one in found])
        for rival, found in counted.items()
    }
    verdicts: dict[str, Verdict] = {
        rival: "holds" if one.least >= 100 * SIGNIFICANT else "doesn't hold"
        for rival, one in above.items()
    }
    return Figure(
        "8",
        "Rounds that a row takes part in",
        f"{sizes.n_rows:,} rows of Adult (the paper has 33,178), Table 3: k = {sizes.k}, "
        f"δ = {sizes.delta}, T_kc = {sizes.age}, W = {sizes.workers}. A round is an "
        "instant at which something is decided; in FAST all workers have it together. "
        f"A number of rows is called significant here from {100 * SIGNIFICANT:g} % on. How many "
        "rounds a row takes part in depends on how rows are held. By count, as in the paper, a row "
        "that isn't near to others stays until it is the oldest, while groups leave and others "
        "come in their place. By arrival a row is due after δ others, and every group that leaves "
        "empties the window: there are few rounds in its time.",
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
                verdicts["fads"],
                f"{above['fads']} % in FADS, {above['fast']} % in FAST; in FADS "
                f"{_reused(sizes, 'fads')} % of the rows join a kept group",
            ),
            Claim(
                "The same by arrival.",
                verdicts["fads-arrived"],
                f"{above['fads-arrived']} % in FADS, {above['fast-arrived']} % in FAST; in FADS "
                f"{_reused(sizes, 'fads-arrived')} % of the rows join a kept group",
            ),
            Claim(
                "By count a row may wait for more than δ others (FADS; ours).",
                *_waits(sizes),
            ),
            _never_late(sizes),
        ),
        page="fast",
        source="the paper",
    )  # fmt: skip


def _reused(sizes: FastSizes, rival: str) -> Reading:
    runs = run(sizes, sizes.usual, rival).runs
    return _reading([float((ran.outcomes == Outcome.reuse).mean()) for ran in runs])


def _waits(sizes: FastSizes) -> tuple[Verdict, str]:
    """How long rows of FADS wait, held by count and by arrival."""
    told = {}
    for rival in ("fads", "fads-arrived"):
        runs = run(sizes, sizes.usual, rival).runs
        mean = Reading(tuple(float(ran.waited.mean()) for ran in runs), digits=1)
        most = max(int(ran.waited.max()) for ran in runs)
        told[rival] = most, f"{mean} rows on average, at most {most}"
    longest = told["fads"][0]
    evidence = f"{told['fads'][1]}; by arrival {told['fads-arrived'][1]}"
    return ("holds" if longest > sizes.delta else "doesn't hold"), evidence


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
    """Of every run of FAST by arrival that Figure 3 has: by count there is no expiration."""
    late = [
        int(np.count_nonzero(ran.waited > one.workers * one.delta))
        for axis in axes(sizes).values()
        for one in axis.settings
        for ran in run(sizes, one, "fast-arrived").runs
    ]
    return Claim(
        "FAST never publishes a row after its expiration (by arrival: in every run of Figure 3).",
        "doesn't hold" if any(late) else "holds",
        f"{sum(late):,} late rows in {len(late)} runs",
    )
