"""The parameters of the experiments on windows, and the runs that vary one of them."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.figures.axis import Axis
from benchmarks.figures.sabre.trial import Found, Trial, briefly, found
from benchmarks.figures.salaries import Sample
from benchmarks.figures.variants import Knobs
from shoal.spec.policy import Window

__all__ = ["ALGORITHMS", "LABELS", "Setting", "SlidingSizes", "axes", "run"]

ALGORITHMS = ("sabre-w", "t-mondrian-w", "t-incognito-w")
LABELS = {"sabre-w": "SABRE_W", "t-mondrian-w": "tMondrian_W", "t-incognito-w": "tIncognito_W"}


@dataclass(frozen=True)
class Setting:
    """One point of an experiment."""

    window: int
    advance: int
    n_quasi: int
    t: float
    sample: Sample = "equal"
    knobs: Knobs = ()


@dataclass(frozen=True)
class SlidingSizes:
    """The parameters of §6.5; over which windows and advances it goes isn't in the text."""

    rows: int = 60_000
    window: int = 20_000
    advance: int = 5_000
    n_quasi: int = 7
    k: int = 6
    t: float = 0.35
    advances: tuple[int, ...] = (2_500, 5_000, 10_000, 20_000)
    windows: tuple[int, ...] = (5_000, 10_000, 20_000, 40_000)
    ts: tuple[float, ...] = (0.15, 0.25, 0.35, 0.45, 0.55)
    #: Of the variants of tMondrian_W, which are many.
    few_ts: tuple[float, ...] = (0.15, 0.35, 0.55)
    all_n_quasi: tuple[int, ...] = (3, 4, 5, 6, 7)
    seeds: int = 3

    @property
    def usual(self) -> Setting:
        return Setting(self.window, self.advance, self.n_quasi, self.t)

    @classmethod
    def quick(cls) -> SlidingSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=80, window=40, advance=20, n_quasi=2, k=3, t=0.5, advances=(20, 40),
            windows=(20, 40), ts=(0.45, 0.5), few_ts=(0.5,), all_n_quasi=(1, 2), seeds=1,
        )  # fmt: skip


def axes(sizes: SlidingSizes) -> dict[str, Axis[Setting]]:
    """The experiments, each of which varies one parameter."""

    def axis(name: str, x_label: str, key: str, xs: tuple[float, ...]) -> Axis[Setting]:
        return Axis.of(sizes.usual, key, xs, name=name, title=name, x_label=x_label)

    return {
        "advance": axis("I", "advance, rows", "advance", sizes.advances),
        "window": axis("ω", "window, rows", "window", sizes.windows),
        "t": axis("t", "t", "t", sizes.ts),
        "few_t": axis("t", "t", "t", sizes.few_ts),
        "n_quasi": axis("QI", "quasi attributes", "n_quasi", sizes.all_n_quasi),
    }


def run(sizes: SlidingSizes, setting: Setting, algorithm: str) -> Found:
    """Run one of the algorithms, with its default knobs unless the setting names others."""
    window = Window(rows=setting.window, advance=setting.advance)
    trial = Trial(
        algorithm, sizes.rows, setting.n_quasi, sizes.k, setting.t, window,
        sample=setting.sample, knobs=setting.knobs,
    )  # fmt: skip
    is_usual = setting.sample == "equal" and not setting.knobs
    return found(trial, sizes.seeds) if is_usual else briefly(trial, sizes.seeds)
