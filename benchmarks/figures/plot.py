"""Figures as SVG: the same numbers give the same file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from benchmarks.figures.model import Figure, Panel

__all__ = ["draw"]

#: Colours that the colour-blind tell apart (Okabe and Ito), from dark to light; line and marker
#: tell the curves apart without any colour.
COLOURS = (
    "#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#999999",
)  # fmt: skip
LINES = (
    "-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)),
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

#: From this share of the largest loss on, the least one makes a picture narrow.
NARROW = 0.8

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
    "legend.fontsize": 8,
}


def draw(figure: Figure, path: Path) -> None:
    """Draw all panels side by side, at most two in a row; the ending of the path is the format."""
    columns = min(2, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    with mpl.rc_context(STYLE):
        width = 5.2 if columns == 1 else 4.2 * columns
        canvas = Canvas(figsize=(width, 3.2 * rows), layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False, sharey=figure.one_axis)
        for place, panel in zip(axes.flat, figure.panels, strict=False):
            _draw_panel(place, panel)
        narrow = _is_narrow(figure)
        for place, panel in zip(axes.flat, figure.panels, strict=False):
            if panel.log_y:
                place.set_yscale("log")
            elif not narrow:
                place.set_ylim(bottom=0)
            if place in axes[:, 0] or not figure.one_axis:
                place.set_ylabel(panel.axis + "; axis cut" * narrow)
        for place in axes.flat[len(figure.panels) :]:
            place.set_visible(False)
        _add_legend(canvas, axes.flat[: len(figure.panels)])
        canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _is_narrow(figure: Figure) -> bool:
    """Whether all losses are so much alike that an axis from 0 would show one flat line."""
    losses = [
        cell.mean for panel in figure.panels for curve in panel.curves for cell in curve.cells
    ]
    return min(losses) > NARROW * max(losses)


def _draw_panel(axes: Any, panel: Panel) -> None:
    for i, curve in enumerate(panel.curves):
        axes.errorbar(
            panel.xs,
            [cell.mean for cell in curve.cells],
            yerr=[
                # The mean of equal numbers may be a bit off them.
                [max(0.0, cell.mean - cell.least) for cell in curve.cells],
                [max(0.0, cell.most - cell.mean) for cell in curve.cells],
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
    if panel.log:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(panel.xs, [f"{x:g}" for x in panel.xs])


def _add_legend(canvas: Any, places: Sequence[Any]) -> None:
    """One below all panels if they have the same curves, else one in each."""
    labels = [place.get_legend_handles_labels()[1] for place in places]
    if all(some == labels[0] for some in labels):
        if len(labels[0]) > 1:
            handles = places[0].get_legend_handles_labels()[0]
            columns = _legend_columns(labels[0], float(canvas.get_figwidth()))
            canvas.legend(handles, labels[0], loc="outside lower center", ncols=columns)
        return
    for place, some in zip(places, labels, strict=True):
        if len(some) > 1:
            place.legend()


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """How many labels stand beside each other in the legend of a canvas of this width in inches.

    >>> _legend_columns(["FADS", "FAST"], 8.4), _legend_columns(["FAST, by arrival"] * 6, 8.4)
    (2, 5)
    """
    # A line with its marker, and letters of 8 points.
    rooms = [0.6 + 0.062 * len(label) for label in labels]
    return len(labels) if sum(rooms) <= width else max(1, int(width / max(rooms)))
