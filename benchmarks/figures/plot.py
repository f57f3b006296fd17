"""Figures as SVG: the same numbers give the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from benchmarks.figures.model import Figure, Panel

__all__ = ["draw"]

#: Colours that the colour-blind tell apart (Okabe and Ito), from dark to light; line and marker
#: tell the curves apart without any colour.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v")

STYLE = {
    "svg.hashsalt": "shoal",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


def draw(figure: Figure, path: Path) -> None:
    """Draw all panels side by side, at most two in a row; the ending of the path is the format."""
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    with mpl.rc_context(STYLE):
        width = 5.2 if columns == 1 else 4.2 * columns
        canvas = Canvas(figsize=(width, 3.2 * rows), layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False, sharey=True)
        for place, panel in zip(axes.flat, figure.panels, strict=False):
            _draw_panel(place, panel)
        for line in axes:
            line[0].set_ylabel("mean information loss (0 to 1)")
        canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw_panel(axes: Any, panel: Panel) -> None:
    for i, curve in enumerate(panel.curves):
        axes.errorbar(
            panel.xs,
            [cell.mean for cell in curve.cells],
            yerr=[
                [cell.mean - min(run.published for run in cell.runs) for cell in curve.cells],
                [max(run.published for run in cell.runs) - cell.mean for cell in curve.cells],
            ],
            label=curve.label,
            color=COLOURS[i % len(COLOURS)],
            linestyle=LINES[i % len(LINES)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=4,
            linewidth=1.3,
            elinewidth=0.8,
            capsize=2,
        )
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x_label)
    axes.set_ylim(bottom=0)
    if all(float(x).is_integer() for x in panel.xs):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(panel.curves) > 1:
        axes.legend(fontsize=8)
