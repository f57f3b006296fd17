"""What z-anonymity published of each attribute, and how alike people look by it."""

from __future__ import annotations

import math
from typing import Any

from shoal.metrics.z.exposure import value_exposure
from shoal.report.charts import Axis, Bar, Mark, Series, bars, lines
from shoal.report.markup import Markup
from shoal.report.page import Section, paragraph, side, table
from shoal.report.release import Release
from shoal.report.words import count, number, percent

__all__ = ["measure", "show"]

_MOST_WINDOWS = 200


def measure(release: Release) -> dict[str, Any]:
    """Return the shares of cells by level, and what is k-anonymous by them."""
    figures: dict[str, Any] = {
        "shown": {
            each.name: _shown(release, each.name)
            for each in release.schema.quasi
            if each.name in release.published.column_names
        },
        "exposure": None,
    }
    if release.original is not None and release.trace is not None:
        found = value_exposure(release.schema, release.policy, release.original, release.trace)
        exposure = found.as_dict()
        windows = exposure["windows"]
        assert isinstance(windows, list)
        exposure["windows"] = windows[:_MOST_WINDOWS]
        figures["exposure"] = exposure
    return figures


def show(figures: dict[str, Any]) -> Section:
    """Return the figures as a section."""
    said = paragraph(
        "There are no groups: each cell is published, more general, or hidden by itself. In a row "
        "of the release a hidden cell looks like a missing one."
    )
    exposure = figures["exposure"]
    if exposure is None:
        cells = [Bar(name, [share]) for name, share in figures["shown"].items()]
        axis = Axis("share of the release's rows", "%", lo=0, hi=1)
        return Section("Values", [said, bars("Cells that show a value", cells, axis)])
    most = max((len(shares) for shares in exposure["levels"].values()), default=0)
    rows = []
    for name, shares in exposure["levels"].items():
        padded = [percent(share) for share in shares] + [""] * (most - len(shares))
        rows.append([name, *padded, percent(max(0.0, 1 - math.fsum(shares)))])
    heads = ["attribute", *(f"level {i}" for i in range(most)), "hidden"]
    hidden = [
        Bar(name, [max(0.0, 1 - math.fsum(shares))]) for name, shares in exposure["levels"].items()
    ]
    parts: list[Markup | Section] = [
        said,
        table("Cells by the level at which they were published", heads, rows,
              numbers=range(1, most + 2)),
        side(
            bars("Hidden cells", hidden, Axis("share of cells", "%", lo=0, hi=1)),
            *([_windows(exposure)] if exposure["windows"] else []),
        ),
        paragraph(
            f"{count(exposure['n_cells'])} cells in {count(exposure['n_windows'])} windows. On "
            f"average {percent(exposure['k_anonymous'])} of the people of a window have published "
            f"the same as {exposure['k'] - 1} others at least. This is measured, and not promised. "
            f"Entropy of what people published: {number(exposure['entropy'])} nats, of "
            f"{number(exposure['exposed_entropy'])} that they exposed."
        ),
    ]  # fmt: skip
    return Section("Values", parts)


def _windows(exposure: dict[str, Any]) -> Markup:
    marks = [Mark(i + 1, each["k_anonymous"]) for i, each in enumerate(exposure["windows"])]
    name = f"{exposure['k']}-anonymous"
    return lines(
        "People who look like others, by window", [Series(name, marks)],
        Axis("window", "number"), Axis("share of people", "%", lo=0, hi=1),
    )  # fmt: skip


def _shown(release: Release, name: str) -> float | None:
    column = release.published[name]
    return 1 - column.null_count / len(column) if len(column) else None
