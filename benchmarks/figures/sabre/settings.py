"""The parameters of the experiments on tables, and the runs that vary one of them."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.figures.axis import Axis
from benchmarks.figures.sabre.trial import Found, Trial, briefly, found
from benchmarks.figures.salaries import Sample
from benchmarks.figures.variants import Knobs

__all__ = ["ALGORITHMS", "LABELS", "OURS", "RIVALS", "SabreSizes", "Setting", "axes", "run"]

OURS, RIVALS = ("sabre-knn", "sabre-ak"), ("t-mondrian", "t-incognito")
ALGORITHMS = (*OURS, *RIVALS)
LABELS = {
    "sabre-knn": "SABRE-KNN",
    "sabre-ak": "SABRE-AK",
    "t-mondrian": "tMondrian",
    "t-incognito": "tIncognito",
}


@dataclass(frozen=True)
class Setting:
    """One point of an experiment."""

    rows: int
    n_quasi: int
    k: int
    t: float
    fanout: int | None = None
    shuffled: bool = False
    sample: Sample = "equal"
    knobs: Knobs = ()


@dataclass(frozen=True)
class SabreSizes:
    """The parameters of §3.5; over which k and fanouts it goes isn't in the text."""

    rows: int = 20_000
    n_quasi: int = 7
    k: int = 6
    t: float = 0.35
    ts: tuple[float, ...] = (0.15, 0.25, 0.35, 0.45, 0.55)
    all_n_quasi: tuple[int, ...] = (3, 4, 5, 6, 7)
    all_rows: tuple[int, ...] = (10_000, 20_000, 40_000, 80_000)
    ks: tuple[int, ...] = (3, 6, 12, 25, 50)
    fanouts: tuple[int, ...] = (2, 3, 4, 5, 7, 10, 25)
    #: How many attributes a query asks for, and the share of rows that it should find.
    lambdas: tuple[int, ...] = (1, 2, 3, 4, 5)
    thetas: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.25)
    n_asked: int = 3
    theta: float = 0.1
    n_queries: int = 2_000
    level: int = 2
    levels: tuple[int, ...] = (1, 2, 3)
    seeds: int = 3

    @property
    def usual(self) -> Setting:
        return Setting(self.rows, self.n_quasi, self.k, self.t)

    @classmethod
    def quick(cls) -> SabreSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=60, n_quasi=2, k=3, t=0.5, ts=(0.45, 0.5), all_n_quasi=(1, 2), all_rows=(40, 60),
            ks=(2, 3), fanouts=(2, 7), lambdas=(1, 2), thetas=(0.1, 0.3), n_asked=1, n_queries=20,
            level=1, levels=(1, 2), seeds=1,
        )  # fmt: skip


def axes(sizes: SabreSizes) -> dict[str, Axis[Setting]]:
    """The experiments, each of which varies one parameter."""

    def axis(name: str, x_label: str, key: str, xs: tuple[float, ...]) -> Axis[Setting]:
        return Axis.of(sizes.usual, key, xs, name=name, title=name, x_label=x_label)

    return {
        "t": axis("t", "t", "t", sizes.ts),
        "n_quasi": axis("QI", "quasi attributes", "n_quasi", sizes.all_n_quasi),
        "rows": axis("rows", "rows", "rows", sizes.all_rows),
        "k": axis("k", "k", "k", sizes.ks),
        "fanout": axis("fanout", "fanout of the tree", "fanout", sizes.fanouts),
    }


def run(sizes: SabreSizes, setting: Setting, algorithm: str) -> Found:
    """Run one of the algorithms, with its default knobs unless the setting names others."""
    trial = Trial(
        algorithm, setting.rows, setting.n_quasi, setting.k, setting.t,
        fanout=setting.fanout, shuffled=setting.shuffled, sample=setting.sample,
        knobs=setting.knobs,
    )  # fmt: skip
    is_usual = setting.sample == "equal" and not setting.knobs
    return found(trial, sizes.seeds) if is_usual else briefly(trial, sizes.seeds)
