"""The picture of a soak."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas

from benchmarks.figures.plot import COLOURS, STYLE
from benchmarks.soak_judge import Moment

__all__ = ["draw"]


def draw(moments: Sequence[Moment], path: Path) -> None:
    """Draw memory, handles, lag, speed and state over time, one above the other."""
    minutes = np.array([moment.seconds for moment in moments]) / 60
    n_out = np.array([moment.n_out for moment in moments])
    speed = np.diff(n_out) / (60 * np.diff(minutes))
    curves = [
        ("memory, MiB", minutes, [moment.resident / 2**20 for moment in moments]),
        ("file handles", minutes, [moment.handles for moment in moments]),
        ("rows in, not out\n(1000)", minutes, [moment.waiting / 1000 for moment in moments]),
        ("rows/s out\n(1000)", minutes[1:], speed / 1000),
        ("checkpoints, MB", minutes, [moment.checkpoint_bytes / 1e6 for moment in moments]),
        ("journal, kB", minutes, [moment.journal_bytes / 1e3 for moment in moments]),
    ]
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(8.4, 1.35 * len(curves)), layout="constrained")
        places = canvas.subplots(len(curves), 1, sharex=True)
        for i, (place, (name, xs, ys)) in enumerate(zip(places, curves, strict=True)):
            place.plot(xs, ys, color=COLOURS[i % len(COLOURS)], linewidth=1.0)
            place.set_ylabel(name, fontsize=8)
            place.set_ylim(bottom=0)
            place.margins(x=0.01)
        places[-1].set_xlabel("minutes")
        canvas.align_ylabels()
        canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
