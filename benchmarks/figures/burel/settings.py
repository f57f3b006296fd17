"""The parameters of the experiments of chapter 4, and those that vary one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.figures.axis import Axis
from benchmarks.figures.burel.trial import Setting
from benchmarks.figures.model import Measured, Verdict

__all__ = ["BurelSizes", "axes", "hardly_changes", "marginal", "wavers"]


@dataclass(frozen=True)
class BurelSizes:
    """§4.4: beta is 4 and the first three attributes are quasi, unless they are varied.

    The thesis has 500,000 rows, and varies them from 100,000 on; here there are 204,309. It
    doesn't tell over which t, losses and selectivities it varies.
    """

    rows: int = 100_000
    #: For searches, which run often.
    small_rows: int = 40_000
    #: Of the variants of LMondrian, which are many.
    few_rows: int = 20_000
    n_quasi: int = 3
    beta: float = 4.0
    betas: tuple[float, ...] = (1, 2, 3, 4, 5)
    few_betas: tuple[float, ...] = (1, 3, 5)
    all_n_quasi: tuple[int, ...] = (1, 2, 3, 4, 5)
    all_rows: tuple[int, ...] = (40_000, 80_000, 120_000, 160_000, 200_000)
    ts: tuple[float, ...] = (0.1, 0.15, 0.2, 0.25, 0.3)
    losses: tuple[float, ...] = (0.2, 0.25, 0.3, 0.35, 0.4)
    #: So often an interval is halved in a search.
    halvings: int = 7
    query_n_quasi: int = 5
    n_asked: int = 3
    all_n_asked: tuple[int, ...] = (1, 2, 3, 4, 5)
    selectivity: float = 0.1
    selectivities: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25)
    #: The thesis asks 10,000.
    n_queries: int = 2_000
    epsilon: float = 6.0
    epsilons: tuple[float, ...] = (2, 4, 6, 8, 10)
    seeds: int = 3

    @property
    def usual(self) -> Setting:
        return Setting(self.rows, self.n_quasi, self.beta)

    @classmethod
    def quick(cls) -> BurelSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=400, small_rows=300, few_rows=300, betas=(2, 4), few_betas=(2,),
            all_n_quasi=(1, 3), all_rows=(200, 400), ts=(0.2, 0.4), losses=(0.4, 0.8), halvings=2,
            query_n_quasi=2, all_n_asked=(1, 2), selectivities=(0.2, 0.4), n_queries=200,
            epsilons=(2, 6), seeds=2,
        )  # fmt: skip


def axes(sizes: BurelSizes) -> dict[str, Axis[Setting]]:
    """The experiments on loss and time, each of which varies one parameter."""

    def axis(title: str, x_label: str, key: str, xs: tuple[int, ...]) -> Axis[Setting]:
        return Axis.of(sizes.usual, key, xs, name=key, title=title, x_label=x_label)

    return {
        "beta": axis("β", "β", "beta", sizes.betas),
        "few_beta": axis("β", "β", "beta", sizes.few_betas),
        "n_quasi": axis("QI", "quasi attributes", "n_quasi", sizes.all_n_quasi),
        "rows": axis("rows", "rows", "rows", sizes.all_rows),
    }


#: Up to this share of the least, a change counts as none, and a premium as marginal.
SMALL = 0.1


def hardly_changes(cells: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether the largest is at most a tenth above the least, or within the spreads.

    >>> from benchmarks.figures.model import Reading
    >>> hardly_changes([Reading((1.0,)), Reading((1.05,))])
    ('holds', 'between 1.000 and 1.050')
    >>> hardly_changes([Reading((1.0,)), Reading((1.2,))])[0]
    "doesn't hold"
    """
    least, most = (pick(cells, key=lambda cell: cell.mean) for pick in (min, max))
    alike = most.mean - least.mean <= max(SMALL * least.mean, least.spread + most.spread)
    evidence = f"between {least.tell(least.mean)} and {most.tell(most.mean)}"
    return ("holds" if alike else "doesn't hold"), evidence


def marginal(cells: Sequence[Measured], without: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether each is at most a tenth more than without something.

    >>> from benchmarks.figures.model import Reading
    >>> marginal([Reading((1.05,))], [Reading((1.0,))])
    ('holds', '5.0 % to 5.0 % more')
    """
    more = [one.mean / other.mean - 1 for one, other in zip(cells, without, strict=True)]
    evidence = f"{100 * min(more):.1f} % to {100 * max(more):.1f} % more"
    if max(more) <= SMALL:
        return "holds", evidence
    n_small = sum(one <= SMALL for one in more)
    return ("holds in general" if 2 * n_small > len(more) else "doesn't hold"), evidence


def wavers(cells: Sequence[Measured]) -> tuple[Verdict, str]:
    """Whether some steps go up and some down, each by more than the spreads of its ends.

    >>> from benchmarks.figures.model import Reading
    >>> wavers([Reading((1.0,)), Reading((2.0,)), Reading((1.5,))])
    ('holds', '1 step up, 1 down')
    """
    steps = [
        (after.mean - before.mean, before.spread + after.spread)
        for before, after in pairwise(cells)
    ]
    up = sum(step > noise for step, noise in steps)
    down = sum(-step > noise for step, noise in steps)
    evidence = f"{up} step{'s' * (up != 1)} up, {down} down"
    if up and down:
        return "holds", evidence
    return ("doesn't hold" if up + down == len(steps) else "inconclusive"), evidence
