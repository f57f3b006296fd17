"""The loss below which a group may be used again: the paper says that it hardly matters."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures.idea.data import Incomplete
from benchmarks.figures.idea.settings import ALGORITHMS, DATA, LABELS, IdeaSizes, Setting, run
from benchmarks.figures.model import Claim, Curve, Figure, Panel
from benchmarks.figures.sweep import Cell
from benchmarks.figures.trial import Trial, bounds, found, warm

__all__ = ["figure_threshold"]

#: What changes the loss by less than this share of it has little impact.
LITTLE = 0.1


def figure_threshold(sizes: IdeaSizes) -> Figure:
    """Loss by τ, beside that of FADS, which keeps every group and knows no partitions."""
    panels, claims = [], []
    for data, label in DATA.items():
        setting = Setting(data, sizes.rows, sizes.gaps, sizes.k, sizes.delay)
        cells = {
            LABELS[algorithm]: [
                run(replace(sizes, threshold=tau), setting, algorithm).loss
                for tau in sizes.thresholds
            ]
            for algorithm in ALGORITHMS
        }
        claims += [_little(f"{name}, {label}", losses) for name, losses in cells.items()]
        curves = [Curve(name, losses) for name, losses in cells.items()]
        curves.append(Curve("FADS", [_fads(sizes, setting)] * len(sizes.thresholds)))
        panels.append(Panel(label, "threshold τ", sizes.thresholds, tuple(curves)))
    return Figure(
        "threshold",
        "the threshold for reuse",
        f"{sizes.rows:,} rows of which equally many lack 0, 1, …, {sizes.gaps} values, "
        f"k = {sizes.k}, δ = {sizes.delay:,} rows held, β = {sizes.kept}. A row that is due is "
        "often one that nobody is near to; if no kept group covers it, it takes k - 1 others with "
        "it. FADS keeps every group, and looks for neighbours in the whole window: a value that "
        "only one of two rows has is lost altogether, but no row is out of reach. An impact is "
        f"called little below {100 * LITTLE:g} % of the loss.",
        tuple(panels),
        tuple(claims),
        page="idea",
        source="the paper",
        heading="§5.1",
    )


def _little(name: str, losses: list[Cell]) -> Claim:
    least, most = (pick(losses, key=lambda cell: cell.mean) for pick in (min, max))
    return Claim(
        f"The change of τ has little impact on the performance ({name}).",
        "holds" if most.mean - least.mean < LITTLE * most.mean else "doesn't hold",
        f"from {least} to {most}",
    )


def _fads(sizes: IdeaSizes, setting: Setting) -> Cell:
    warm("fads", "maybe", Incomplete)
    stream = Incomplete(setting.data, setting.rows, setting.gaps)
    # No group becomes too old: only their number is bounded, as in IDEA.
    knobs = {
        "age": 10 * setting.rows, "kept": sizes.kept, "loss": "lm", "reuse": "best",
        "joins": "alone",
    }  # fmt: skip
    delay, bound = bounds("held", setting.delay)
    trial = Trial(stream, "fads", setting.k, delay, tuple((knobs | bound).items()), "maybe")
    return found(trial, sizes.seeds).loss
