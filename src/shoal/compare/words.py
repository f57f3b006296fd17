"""A comparison as text: a table with the Pareto front marked, what couldn't be run, the choice."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.compare.choice import GridRun, told
from shoal.compare.measure import Figures
from shoal.metrics.wording import percent, short

if TYPE_CHECKING:
    from shoal.compare.comparison import Comparison

__all__ = [
    "FIGURES", "FRONT", "WIDTH", "columns_of", "headline", "lines_of", "nothing", "reasons_of",
    "row_of", "why_none", "wrapped",
]  # fmt: skip

WIDTH = 100
#: The columns of figures: their heads.
FIGURES = (
    "loss", "query error", "suppressed", "mean delay", "rows/s", "risk", "attack", "bound", "audit",
)  # fmt: skip


def lines_of(comparison: Comparison) -> list[str]:
    """Return a comparison as lines of text."""
    runs = comparison.runs
    done = [place for place, run in enumerate(runs) if run.figures is not None]
    lines = wrapped(headline(comparison))
    if done:
        _, keys = columns_of(runs)
        cells = [["", "algorithm", *keys, *FIGURES]]
        cells += [[_sign(comparison, place), *row_of(runs[place], keys)] for place in done]
        lines += ["", *_aligned(cells, n_left=2)]
        if comparison.front:
            lines += ["", *wrapped(f"* {FRONT}")]
        if comparison.recommended is not None:
            lines.append("> recommended, for the reason below")
    else:
        lines += ["", *wrapped(nothing(comparison))]
    lines += _not_run(comparison)
    if done:
        lines += ["", *_recommended(comparison)]
    return lines


def headline(comparison: Comparison) -> str:
    """Return how many runs were made, on how many rows, and what they share."""
    runs, n_rows = comparison.runs, comparison.n_rows
    n_bad = max((run.figures.n_quarantined for run in runs if run.figures is not None), default=0)
    shared, _ = columns_of(runs)
    text = f"{comparison.n_done} of {len(runs)} runs on {n_rows:,} rows"
    text += f" ({n_bad:,} of them can't be used)" if n_bad else ""
    n_seeds = max((run.figures.n_seeds for run in runs if run.figures is not None), default=1)
    text += f", each the mean of {n_seeds} seeds (± one standard deviation)" if n_seeds > 1 else ""
    text += ", interrupted" if comparison.interrupted else ""
    return text + (f", all with {told(shared)}" if shared else "")


FRONT = (
    "Pareto front: no other run under the same other promises has both less loss and less "
    "risk. Loss counts suppressed rows as 1. Risk is the mean of 1 / people in the group; attack "
    "is how often a person with known quasi values was linked to a row of theirs."
)


def columns_of(runs: Sequence[GridRun]) -> tuple[dict[str, int | float | str], list[str]]:
    """Return the promises that all runs share, and the keys of those in which they differ."""
    keys = list(dict.fromkeys(key for run in runs for key in run.cell.promise))
    values = {key: {run.cell.promise.get(key) for run in runs} for key in keys}
    differing = [key for key in keys if len(values[key]) > 1]
    first = runs[0].cell.promise if runs else {}
    return {key: first[key] for key in keys if key not in differing}, differing


def row_of(run: GridRun, keys: Sequence[str]) -> list[str]:
    """Return the cells of a run: algorithm, promises and figures."""
    found = run.figures
    assert found is not None
    promise = run.cell.promise
    return [run.cell.label, *(str(promise.get(key, "-")) for key in keys), *_figures(found)]


def _figures(found: Figures) -> list[str]:
    return [
        _spread(found, "loss_with_suppressed"),
        _spread(found, "query_error"),
        percent(found.suppression),
        "-" if found.delay_mean is None else f"{short(found.delay_mean)} {found.delay_unit}",
        f"{found.rows_per_s:,.0f}",
        _share(found.risk),
        _share(found.attack_success) + ("!" if found.attack_verdict == "exceeded" else ""),
        _share(found.attack_bound),
        found.audit,
    ]


def _share(number: float | None) -> str:
    return "-" if number is None else percent(number)


def _spread(found: Figures, name: str) -> str:
    """Return a figure, with its standard deviation over the seeds where there are several."""
    number, spread = getattr(found, name), found.spread.get(name)
    return _decimals(number) + ("" if spread is None else f" ±{spread:.3f}")


def _decimals(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"


def _sign(comparison: Comparison, place: int) -> str:
    chosen = comparison.recommended
    sign = "*" if place in comparison.front else ""
    return sign + (">" if chosen is not None and chosen.place == place else "")


def _aligned(cells: Sequence[Sequence[str]], n_left: int) -> list[str]:
    """Return rows with their columns aligned: the first ones left, the others right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < n_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _not_run(comparison: Comparison) -> list[str]:
    lines = [line for text in reasons_of(comparison) for line in wrapped(text)]
    return ["", *lines] if lines else []


def reasons_of(comparison: Comparison) -> list[str]:
    """Return why cells weren't run, those of one algorithm and reason together."""
    found: dict[tuple[str, str, str], int] = {}
    for run in comparison.runs:
        if run.figures is None:
            key = run.cell.label, run.outcome.status, run.outcome.reason
            found[key] = found.get(key, 0) + 1
    what = {"unsupported": "can't", "failed": "failed", "not run": "not run"}
    return [
        f"{label}: {what[status]}{'' if n == 1 else f' ({n} runs)'}{': ' if why else ''}{why}"
        for (label, status, why), n in found.items()
    ]


def nothing(comparison: Comparison) -> str:
    """Return a sentence for a comparison without a run."""
    if comparison.interrupted:
        return "It was interrupted before the first run ended: there is nothing to compare."
    return "No run could be made, so there is nothing to compare."


def why_none(comparison: Comparison) -> str:
    """Return why no run is recommended."""
    return "not all runs were made" if comparison.interrupted else "no run kept its promise"


def _recommended(comparison: Comparison) -> list[str]:
    chosen = comparison.recommended
    if chosen is None:
        return [f"recommended: none, since {why_none(comparison)}"]
    return wrapped(f"recommended: {' '.join(chosen.reason)}")


def wrapped(text: str, first: str = "", others: str = "  ") -> list[str]:
    """Return a text in lines, each with its beginning; ``k = 5`` stays in one line.

    >>> wrapped("k = 5 " * 18)[1]
    '  k = 5 k = 5'
    """
    tied = text.replace(" = ", "\u00a0=\u00a0")
    lines = textwrap.wrap(
        tied, WIDTH, initial_indent=first, subsequent_indent=others,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\u00a0", " ") for line in lines]
