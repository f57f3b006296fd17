"""Figure 4.4: the likeness that algorithms for t-closeness keep, beside BUREL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.figures.burel.settings import BurelSizes
from benchmarks.figures.burel.trial import LABELS, Found, Ran, Setting, Trials
from benchmarks.figures.model import Claim, Curve, Figure, Panel, below

__all__ = ["figure_4_4"]

RIVALS = ("sabre-ak", "t-mondrian")
NAMES = ("burel", *RIVALS)
#: Where searches begin: promises that are as good as the strictest and the weakest there are.
BETAS = (0.05, 8.0)
TS = (0.005, 1.0)

#: What each of the three algorithms came to, at each point of an axis.
Lines = dict[str, list[Found]]


def figure_4_4(sizes: BurelSizes) -> Figure:
    """The beta that is kept really, at equal closeness and at equal loss."""
    trials = Trials(sizes.seeds)
    by_beta = _over(trials, sizes.betas, lambda beta, usual: _at_beta(trials, beta, usual), sizes)
    by_t = _over(trials, sizes.ts, lambda t, usual: _at_t(trials, t, usual, sizes), sizes)
    by_loss = _over(
        trials, sizes.losses, lambda loss, usual: _at_loss(trials, loss, usual, sizes), sizes
    )
    panels = (
        _panel("(a) at the closeness of BUREL", "β of BUREL", sizes.betas, by_beta),
        _panel("(b) at equal closeness", "t", sizes.ts, by_t),
        _panel("(c) at equal loss", "mean loss", sizes.losses, by_loss),
    )
    claims = [
        Claim(
            f"{part}, BUREL keeps a lower β than {LABELS[rival]}.",
            *below(_likeness(lines, "burel"), _likeness(lines, rival)),
        )
        for part, lines in (
            ("At the closeness that BUREL comes to", by_beta),
            ("At equal t", by_t),
            ("At equal loss", by_loss),
        )
        for rival in RIVALS
    ]
    claims.append(
        Claim(
            "At equal loss, SABRE keeps a lower β than tMondrian.",
            *below(_likeness(by_loss, "sabre-ak"), _likeness(by_loss, "t-mondrian")),
        )
    )
    fair = [
        one.lost.published <= other.lost.published
        for rival in RIVALS
        for ours, theirs in zip(by_loss["burel"], by_loss[rival], strict=True)
        for one, other in zip(ours.runs, theirs.runs, strict=True)
    ]
    return Figure(
        "4.4",
        "The likeness of algorithms for t-closeness",
        f"{sizes.small_rows:,} rows, {sizes.n_quasi} quasi attributes. The β that is really kept "
        "is the largest gain (q − p) / p of a value in a group. (a) BUREL with a β; its rivals "
        "with the largest distance of its groups as t. (b) The rivals with a t; BUREL with the "
        "largest β at which its groups are within t. (c) All methods at about the same loss: "
        "BUREL with the smallest β that loses no more than stated, its rivals with the largest t "
        f"that loses no less than BUREL, which held in {sum(fair)} of {len(fair)} pairs of runs. "
        f"Searches halve an interval {sizes.halvings} times. {trials}",
        panels,
        tuple(claims),
        page="burel",
        one_axis=False,
    )


def _over(
    trials: Trials,
    xs: tuple[float, ...],
    measure: Callable[[float, Setting], dict[str, Ran]],
    sizes: BurelSizes,
) -> Lines:
    """Measure all three at each x, with each seed."""
    usual = replace(sizes.usual, rows=sizes.small_rows)
    points = [[measure(x, replace(usual, seed=seed)) for seed in range(trials.seeds)] for x in xs]
    return {name: [Found(tuple(one[name] for one in seeds)) for seeds in points] for name in NAMES}


def _at_beta(trials: Trials, beta: float, usual: Setting) -> dict[str, Ran]:
    burel = trials.run(replace(usual, beta=beta), "burel")
    at = replace(usual, t=burel.closeness)
    return {"burel": burel} | {rival: trials.run(at, rival) for rival in RIVALS}


def _at_t(trials: Trials, t: float, usual: Setting, sizes: BurelSizes) -> dict[str, Ran]:
    burel = halved(
        lambda beta: trials.run(replace(usual, beta=beta), "burel"),
        lambda ran: ran.closeness <= t, *BETAS, sizes.halvings,
    )  # fmt: skip
    return {"burel": burel} | {rival: trials.run(replace(usual, t=t), rival) for rival in RIVALS}


def _at_loss(trials: Trials, loss: float, usual: Setting, sizes: BurelSizes) -> dict[str, Ran]:
    burel = halved(
        lambda beta: trials.run(replace(usual, beta=beta), "burel"),
        lambda ran: ran.lost.published <= loss, *reversed(BETAS), sizes.halvings,
    )  # fmt: skip
    found = {"burel": burel}
    for rival in RIVALS:
        found[rival] = halved(
            lambda t, rival=rival: trials.run(replace(usual, t=t), rival),
            lambda ran: ran.lost.published >= burel.lost.published, *TS, sizes.halvings,
        )  # fmt: skip
    return found


def halved(
    run: Callable[[float], Ran], is_good: Callable[[Ran], bool], good: float, bad: float, times: int
) -> Ran:
    """The good run whose value is nearest to the bad end, by bisection.

    Where not even the good end is good, its run stands for the best there is.
    """
    best = run(good)
    for _ in range(times):
        middle = (good + bad) / 2
        found = run(middle)
        if is_good(found):
            good, best = middle, found
        else:
            bad = middle
    return best


def _likeness(lines: Lines, name: str) -> list:
    return [found.likeness for found in lines[name]]


def _panel(title: str, x_label: str, xs: tuple[float, ...], lines: Lines) -> Panel:
    curves = tuple(Curve(LABELS[name], _likeness(lines, name)) for name in NAMES)
    return Panel(title, x_label, xs, curves, what="β that is kept really", axis="real β")
