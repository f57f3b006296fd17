"""The parameters of the experiments, those of Table 2 where the paper names no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.figures.model import Curve, Measured, Panel, Reading, Verdict
from shoal.models.z import Bounds, Scenario

__all__ = ["ZSizes", "about", "at_most", "line", "panel", "turns", "verdict"]


@dataclass(frozen=True)
class ZSizes:
    """What is varied; the paper's text doesn't tell its axes, but for what is said of them."""

    n_subjects: int = 1000
    n_attributes: int = 20
    #: Figure 2.
    many_attributes: int = 1000
    ranks: tuple[int, ...] = (1, 2, 4, 8, 13, 20, 50, 100, 300, 1000)
    few_z: tuple[int, ...] = (1, 50, 100, 200)
    #: Figure 3.
    all_z: tuple[int, ...] = (1, 50, 100, 150, 200, 250, 300, 350, 400, 450)
    ks: tuple[int, ...] = (2, 3, 4)
    seeds: tuple[int, ...] = tuple(range(10))
    #: Of all simulations, to tell how far off the model is.
    more_seeds: int = 200
    windows: tuple[float, ...] = (2, 4, 6, 8, 10, 12, 16, 20, 24)
    #: Figure 5.
    all_n_attributes: tuple[int, ...] = (1, 2, 4, 7, 10, 20, 50, 100)
    #: Figure 6.
    all_n_subjects: tuple[int, ...] = (30, 100, 300, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    proportion: int = 25
    #: Figures 7 and 8.
    class_z: int = 50
    imbalances: tuple[float, ...] = (0.01, 0.04, 0.1, 0.25, 1, 4, 10, 25, 100)
    separations: tuple[float, ...] = (0, 0.2, 0.4, 0.6, 0.8, 1)

    def scenario(self, *, z: int = 150, k: int = 2, window: float = 12.0) -> Scenario:
        """Table 2, but for what is said."""
        return Scenario.power_law(self.n_subjects, self.n_attributes, window=window, z=z, k=k)

    @classmethod
    def quick(cls) -> ZSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            n_subjects=300, n_attributes=8, many_attributes=60, ranks=(1, 13, 60),
            seeds=(0, 1, 2), more_seeds=3, all_n_attributes=(1, 8, 20),
            all_n_subjects=(100, 300, 1_000), imbalances=(0.1, 1, 10), separations=(0, 1),
        )  # fmt: skip


def line(label: str, values: Sequence[float | Bounds], digits: int = 3) -> Curve:
    """A curve of numbers that have no spread, or of bounds."""
    cells = [
        Reading((value.lower, value.upper), digits)
        if isinstance(value, Bounds) and value.upper - value.lower >= 0.5 * 10.0**-digits
        else Reading((value.middle if isinstance(value, Bounds) else value,), digits)
        for value in values
    ]
    return Curve(label, cells)


def panel(
    title: str, x_label: str, xs: Sequence[float], curves: Sequence[Curve],
    *, what: str = "p_k-anon", log: bool = False,
) -> Panel:  # fmt: skip
    """A panel of probabilities, unless stated otherwise."""
    return Panel(title, x_label, tuple(xs), tuple(curves), what=what, axis=what, log=log)


def verdict(holds: bool) -> Verdict:
    return "holds" if holds else "doesn't hold"


def about(value: float, expected: float, within: float) -> tuple[Verdict, str]:
    """Whether a number is near to what the paper says.

    >>> about(0.93, 0.8, within=0.05)
    ("doesn't hold", '0.930, and 0.8 in the paper')
    """
    return verdict(abs(value - expected) <= within), f"{value:.3f}, and {expected:g} in the paper"


def at_most(value: float, most: float) -> tuple[Verdict, str]:
    """Whether a number isn't above another.

    >>> at_most(0.5, 1e-6)
    ("doesn't hold", '0.5')
    """
    return verdict(value <= most), f"{value:.2g}"


def turns(cells: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether numbers first fall and then rise, each by more than the spreads.

    >>> turns([Reading((x,)) for x in (1.0, 0.2, 0.1, 0.4)])
    ('holds', 'from 1.000 down to 0.100, then up to 0.400')
    """
    means = [cell.mean for cell in cells]
    low = means.index(min(means))
    tell = cells[0].tell
    steps = [after - before for before, after in pairwise(means)]
    falls, rises = steps[:low], steps[low:]
    holds = bool(falls and rises) and max(falls) <= 0 and min(rises) >= 0
    evidence = f"from {tell(means[0])} down to {tell(means[low])}, then up to {tell(means[-1])}"
    return verdict(holds), evidence
