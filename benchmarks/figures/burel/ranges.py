"""Figure 4.9: range-based likeness, and what it costs beside enhanced likeness."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.burel.settings import BurelSizes, marginal
from benchmarks.figures.burel.trial import ALGORITHMS, LABELS, Setting, Trials
from benchmarks.figures.model import Claim, Curve, Figure, Measured, Panel, rises

__all__ = ["figure_4_9"]


def figure_4_9(sizes: BurelSizes) -> Figure:
    """Loss over epsilon and over beta, with ranges and without."""
    trials = Trials(sizes.seeds)
    usual = replace(sizes.usual, epsilon=sizes.epsilon)
    lines: dict[str, tuple[tuple[float, ...], list[Setting]]] = {
        "ε": (sizes.epsilons, [replace(usual, epsilon=x) for x in sizes.epsilons]),
        "β": (sizes.betas, [replace(usual, beta=x) for x in sizes.betas]),
    }
    panels, claims = [], []
    for letter, (symbol, (xs, settings)) in zip("ab", lines.items(), strict=True):
        for name in ALGORITHMS:
            ranged = [trials.found(one, name).loss for one in settings]
            plain = [trials.found(replace(one, epsilon=None), name).loss for one in settings]
            label = LABELS[name]
            curves = (Curve("range-based", ranged), Curve("enhanced only", plain))
            panels.append(Panel(f"({letter}) {label} over {symbol}", symbol, xs, curves))
            claims += _claims(symbol, label, ranged, plain)
    claims.sort(key=lambda claim: claim.paper.startswith("Range"))
    return Figure(
        "4.9",
        "Range-based likeness",
        f"{sizes.rows:,} rows, {sizes.n_quasi} quasi attributes; (a) β = {sizes.beta:g}, (b) "
        f"ε = {sizes.epsilon:g} classes. DMondrian gets the δ by which runs of values are no more "
        "frequent than allowed, δ = ln(1 + min(β, −ln ρ)) for the largest share ρ of a run, which "
        "is stricter than a check of likeness itself; the thesis doesn't say how it adapted it. "
        f"{trials}",
        tuple(panels),
        tuple(claims),
        page="burel",
    )


def _claims(symbol: str, label: str, ranged: list[Measured], plain: list[Measured]) -> list[Claim]:
    trend = (
        Claim(f"Loss grows slightly with ε ({label}; here: it grows).", *rises(ranged))
        if symbol == "ε"
        else Claim(f"Loss falls as β grows ({label}).", *rises(ranged, falls=True))
    )
    premium = Claim(
        f"Range-based likeness costs only marginally more ({label}, over {symbol}; here: at most a "
        "tenth).",
        *marginal(ranged, plain),
    )
    return [trend, premium]
