"""Figures as a page of Markdown: picture, numbers, and what becomes of the paper's claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.figures.model import Figure, Panel
from benchmarks.markdown import table

__all__ = ["figure_text", "picture_name"]


def picture_name(figure: Figure) -> str:
    """The name of the picture, without its ending."""
    return f"{figure.page}-{figure.name.replace('.', '-')}"


def figure_text(figure: Figure) -> str:
    """The section of one figure."""
    parts = [
        f"## {figure}",
        figure.setting,
        f"![{figure}]({picture_name(figure)}.svg)",
    ]
    for panel in figure.panels:
        parts += _panel_parts(panel)
    parts.append(
        table(
            [figure.source, "here", "numbers"],
            [[claim.paper, f"**{claim.verdict}**", claim.evidence] for claim in figure.claims],
            numbers=False,
        )
    )
    return "\n\n".join(parts)


def _panel_parts(panel: Panel) -> list[str]:
    parts = [f"{panel.what}, {panel.title}:", _matrix(panel, str)]
    if not panel.losses:
        return parts
    if panel.suppressed == 0:
        return [*parts, "No row was suppressed."]
    return [
        *parts,
        f"The same with suppressed rows as 1 (at most {100 * panel.suppressed:.2f} % of the rows "
        "were suppressed):",
        _matrix(panel, lambda cell: f"{cell.with_suppressed:.3f}"),
    ]


def _matrix(panel: Panel, tell: Callable[[Any], str]) -> str:
    head = [panel.x_label, *(curve.label for curve in panel.curves)]
    cells: Sequence[Sequence[object]] = [curve.cells for curve in panel.curves]
    return table(
        head,
        [[f"{x:,g}", *map(tell, line)] for x, *line in zip(panel.xs, *cells, strict=True)],
    )
