"""The parameters of the experiments of §5, and those that vary one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.figures.axis import Axis
from benchmarks.figures.trees.data import Data
from benchmarks.figures.trees.trial import Due, Setting

__all__ = ["Bound", "TreeSizes", "axes"]


@dataclass(frozen=True)
class Bound:
    """How many rows are held, or how long, and when the due times of leaves are drawn."""

    capacity: int = 0
    delay: int = 0
    due: Due = "current"

    def __str__(self) -> str:
        held = f"at most {self.capacity:,} rows held"
        bound = held if self.capacity else f"a delay of {self.delay:,} rows"
        return f"due times drawn once, {bound}" if self.due == "drawn" else bound


@dataclass(frozen=True)
class TreeSizes:
    """What the paper names; over which k and samples it goes, and W, isn't in its text.

    Figures 6 to 8 have 100,000 rows in the paper, and the others up to as many.
    """

    rows: int = 10_000
    #: Figures 6 and 7.
    few_rows: int = 5_000
    #: Figures 4 and 5, and Figures 9 to 11.
    all_rows: tuple[int, ...] = (5_000, 10_000, 20_000)
    some_rows: tuple[int, ...] = (10_000, 20_000)
    #: Figure 3.
    alpha_rows: int = 10_000
    alphas: tuple[float, ...] = (0, 0.0005, 0.001, 0.0015, 0.002)
    alpha: float = 0.001
    n_quasi: int = 7
    all_n_quasi: tuple[int, ...] = (3, 4, 5, 6, 7)
    k: int = 10
    ks: tuple[int, ...] = (5, 10, 15, 20, 25)
    samples: int = 3_000
    all_samples: tuple[int, ...] = (1_000, 2_000, 3_000, 4_000, 5_000)
    #: W, the window that is sampled.
    sampled: int = 10_000
    #: The paper draws a leaf's due time once, and has no bound; this one is hardly ever reached.
    #: The others draw at every instant: with the same bound, and with one after which a row has
    #: lost e times what it lost at first: 1 / alpha.
    paper: Bound = Bound(capacity=5_000, due="drawn")
    wide: Bound = Bound(capacity=5_000)
    tight: Bound = Bound(delay=1_000)
    #: Of the comparison of due times: the rows, and another window that is sampled.
    due_rows: tuple[int, ...] = (4_000, 8_000, 16_000)
    due_sampled: int = 1_000
    seeds: int = 10
    #: Of the figures with most runs.
    few_seeds: int = 3

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The paper's, and the one with which the methods are of use."""
        return (self.paper, self.tight)

    def usual(self, data: Data = "employees", bound: Bound | None = None) -> Setting:
        """What isn't varied."""
        n_quasi = self.n_quasi if data in ("employees", "distinct") else 3
        held = bound or self.paper
        return Setting(
            data, self.rows, n_quasi, self.k, self.alpha, self.samples, self.sampled,
            held.capacity, held.delay, held.due,
        )  # fmt: skip

    @classmethod
    def quick(cls) -> TreeSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=120, few_rows=120, all_rows=(60, 120), some_rows=(60, 120), alpha_rows=60,
            alphas=(0, 0.002), n_quasi=4, all_n_quasi=(1, 2, 3, 4), k=3, ks=(2, 3, 4), samples=20,
            all_samples=(10, 20), sampled=50, paper=Bound(capacity=40, due="drawn"),
            wide=Bound(capacity=40),
            tight=Bound(delay=20), seeds=2, few_seeds=1, due_rows=(60, 120), due_sampled=30,
        )  # fmt: skip


def axes(
    sizes: TreeSizes, data: Data = "employees", bound: Bound | None = None
) -> dict[str, Axis[Setting]]:
    """The experiments, each of which varies one parameter."""

    def axis(
        name: str, x_label: str, key: str, xs: tuple[float, ...], usual: Setting
    ) -> Axis[Setting]:
        return Axis.of(usual, key, xs, name=name, title=name, x_label=x_label)

    usual = sizes.usual(data, bound)
    short = replace(usual, rows=sizes.alpha_rows)
    return {
        "alpha": axis("α", "decaying factor α", "alpha", sizes.alphas, short),
        "rows": axis("n", "rows", "rows", sizes.all_rows, usual),
        "some_rows": axis("n", "rows", "rows", sizes.some_rows, usual),
        "k": axis("k", "k", "k", sizes.ks, usual),
        "n_quasi": axis("d", "quasi attributes", "n_quasi", sizes.all_n_quasi, usual),
        "samples": axis("ω", "samples", "samples", sizes.all_samples, usual),
    }
