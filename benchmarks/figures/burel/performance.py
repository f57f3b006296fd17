"""Figures 4.5 to 4.7: loss and time over beta, quasi attributes and rows."""

from __future__ import annotations

from benchmarks.figures.burel.settings import BurelSizes, axes, hardly_changes
from benchmarks.figures.burel.trial import ALGORITHMS, LABELS, Found, Trials
from benchmarks.figures.model import Claim, Curve, Figure, Measured, Panel, Verdict, below, rises

__all__ = ["figure_4_5", "figure_4_6", "figure_4_7"]

RIVALS = ALGORITHMS[1:]
#: What "about half" may be.
HALF = 0.6

Lines = dict[str, list[Found]]


def figure_4_5(sizes: BurelSizes) -> Figure:
    """Over beta."""
    trials, lines = _measured(sizes, "beta")
    claims = [
        Claim(f"As β grows, information loss falls ({LABELS[name]}).",
              *rises(_losses(lines, name), falls=True))
        for name in ALGORITHMS
    ]  # fmt: skip
    claims += [
        *_superior(sizes, "beta", lines),
        Claim(
            "LMondrian loses less than DMondrian, which bounds negative gains too.",
            *below(_losses(lines, "l-mondrian"), _losses(lines, "d-mondrian")),
        ),
    ]
    for words, measure in (("half the loss", _losses), ("half the time", _seconds)):
        claims += [
            Claim(
                f"BUREL has about {words} of {LABELS[rival]} (here: at most {HALF:g} times).",
                *_half(measure(lines, "burel"), measure(lines, rival)),
            )
            for rival in RIVALS
        ]
    return _figure(sizes, "4.5", "beta", "Loss and time over β", trials, lines, claims)


def figure_4_6(sizes: BurelSizes) -> Figure:
    """Over the number of quasi attributes."""
    trials, lines = _measured(sizes, "n_quasi")
    claims = [
        Claim(f"With more quasi attributes, loss grows ({LABELS[name]}).",
              *rises(_losses(lines, name)))
        for name in ALGORITHMS
    ]  # fmt: skip
    claims += _superior(sizes, "n_quasi", lines)
    title = "Loss and time over quasi attributes"
    return _figure(sizes, "4.6", "n_quasi", title, trials, lines, claims)


def figure_4_7(sizes: BurelSizes) -> Figure:
    """Over the number of rows."""
    trials, lines = _measured(sizes, "rows")
    claims = [
        Claim(
            f"The number of rows has no clear effect on loss ({LABELS[name]}; here: it changes by "
            "at most a tenth, or within the spreads).",
            *hardly_changes(_losses(lines, name)),
        )
        for name in ALGORITHMS
    ]
    claims += [
        Claim(f"With more rows, it takes longer ({LABELS[name]}).", *rises(_seconds(lines, name)))
        for name in ALGORITHMS
    ]
    claims += _superior(sizes, "rows", lines)
    return _figure(sizes, "4.7", "rows", "Loss and time over rows", trials, lines, claims)


def _measured(sizes: BurelSizes, key: str) -> tuple[Trials, Lines]:
    trials = Trials(sizes.seeds)
    settings = axes(sizes)[key].settings
    return trials, {
        name: [trials.found(setting, name) for setting in settings] for name in ALGORITHMS
    }


def _losses(lines: Lines, name: str) -> list[Measured]:
    return [found.loss for found in lines[name]]


def _seconds(lines: Lines, name: str) -> list[Measured]:
    return [found.seconds for found in lines[name]]


def _superior(sizes: BurelSizes, key: str, lines: Lines) -> list[Claim]:
    places = axes(sizes)[key].places
    return [
        Claim(
            f"BUREL {verb} than {LABELS[rival]}.",
            *below(measure(lines, "burel"), measure(lines, rival), places),
        )
        for verb, measure in (("loses less", _losses), ("is faster", _seconds))
        for rival in RIVALS
    ]


def _half(ours: list[Measured], others: list[Measured]) -> tuple[Verdict, str]:
    ratio = sum(one.mean for one in ours) / sum(other.mean for other in others)
    return ("holds" if ratio <= HALF else "doesn't hold"), f"{ratio:.2f} times over the whole axis"


def _figure(
    sizes: BurelSizes, name: str, key: str, title: str, trials: Trials, lines: Lines,
    claims: list[Claim],
) -> Figure:  # fmt: skip
    axis = axes(sizes)[key]
    losses, seconds = (
        tuple(Curve(LABELS[one], measure(lines, one)) for one in ALGORITHMS)
        for measure in (_losses, _seconds)
    )
    return Figure(
        name,
        title,
        f"{sizes.rows:,} rows, {sizes.n_quasi} quasi attributes, β = {sizes.beta:g}, except for "
        "the varied parameter. Time is processor time of the engine alone, from codes to "
        "decisions, and the smaller of two measurements; the thesis measured wall time of Java. "
        f"{trials}",
        (
            Panel(f"(a) over {axis.title}", axis.x_label, axis.xs, losses),
            Panel(
                f"(b) over {axis.title}", axis.x_label, axis.xs, seconds,
                what="Run time in seconds", axis="seconds",
            ),
        ),
        tuple(claims),
        page="burel",
        one_axis=False,
    )  # fmt: skip
