"""The parameters of FAST's experiments (Table 3), and the runs that vary one of them.

The paper counts time, and its threads take rows in at once: in the time in which FADS takes in one
row, FAST with W workers takes in W. So a unit of the paper's time is one row for FADS and W rows
for FAST, whose workers hold δ rows each: it runs here with a delay of W·δ rows and an age limit of
W·T_kc rows. Since that is more than FADS is given, FADS is run with the same delay and age, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.figures.axis import Axis
from benchmarks.figures.fast.data import QUASI, Repeated
from benchmarks.figures.trial import Found, Trial, found, warm

__all__ = ["KEPT", "RIVALS", "FastSizes", "Setting", "axes", "run"]

#: What is compared: its name and label.
RIVALS = {"fads": "FADS", "fast": "FAST", "fads-long": "FADS with the delay of FAST"}
#: How many groups are kept at most. The paper bounds their age alone.
KEPT = 1_000


@dataclass(frozen=True)
class Setting:
    """One point of an experiment, in the units of the paper."""

    rows: int
    k: int
    n_quasi: int
    delta: int
    age: int
    workers: int


@dataclass(frozen=True)
class FastSizes:
    """Table 3, and what is varied: the paper doesn't say over which values."""

    rows: int = 30_162
    k: int = 5
    n_quasi: int = 10
    delta: int = 30
    age: int = 20
    workers: int = 5
    alpha: float = 0.02
    ks: tuple[int, ...] = (3, 5, 10, 15, 20)
    all_n_quasi: tuple[int, ...] = (2, 4, 6, 8, 10)
    deltas: tuple[int, ...] = (10, 20, 30, 40, 60)
    ages: tuple[int, ...] = (10, 20, 50, 100, 500)
    all_workers: tuple[int, ...] = (1, 2, 3, 4, 5)
    seeds: int = 3
    #: For the time by workers: a window that is worth a thread.
    heavy_k: int = 50
    heavy_delta: int = 8_000
    #: Of this many runs in turn the best few count: what else the machine does isn't of interest.
    repeats: int = 5
    best: int = 3

    @property
    def usual(self) -> Setting:
        """Table 3."""
        return Setting(self.rows, self.k, self.n_quasi, self.delta, self.age, self.workers)

    @classmethod
    def quick(cls) -> FastSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=200, k=3, delta=10, workers=2, ks=(3, 4), all_n_quasi=(2, 10), deltas=(10, 15),
            ages=(10, 20), all_workers=(1, 2), seeds=2, heavy_k=4, heavy_delta=20,
            repeats=1, best=1,
        )  # fmt: skip


def axes(sizes: FastSizes) -> dict[str, Axis[Setting]]:
    """The five experiments, each of which varies one parameter."""

    def axis(
        name: str, title: str, x_label: str, key: str, xs: tuple[int, ...], *, log: bool = False
    ) -> Axis[Setting]:
        return Axis.of(sizes.usual, key, xs, name=name, title=title, x_label=x_label, log=log)

    return {
        "k": axis("k", "(a) k", "k", "k", sizes.ks),
        "n_quasi": axis("QID", "(b) QID", "quasi attributes", "n_quasi", sizes.all_n_quasi),
        "delta": axis("δ", "(c) δ", "δ, rows of a worker", "delta", sizes.deltas),
        "age": axis("T_kc", "(d) T_kc", "age limit T_kc", "age", sizes.ages, log=True),
        "workers": axis("W", "(e) threads", "workers", "workers", sizes.all_workers),
    }


def run(sizes: FastSizes, setting: Setting, rival: str) -> Found:
    """Run one of the rivals as the paper does: with the best reuse, and the loss of Equation 7."""
    times = 1 if rival == "fads" else setting.workers
    knobs: dict[str, object] = {
        "loss": "lm", "reuse": "best", "joins": "alone", "kept": KEPT, "age": times * setting.age,
    }  # fmt: skip
    algorithm = rival.partition("-")[0]
    if algorithm == "fast":
        knobs["workers"] = setting.workers
    warm(algorithm, "quarantine", Repeated)
    trial = Trial(
        Repeated(setting.rows, QUASI[: setting.n_quasi]),
        algorithm,
        setting.k,
        times * setting.delta,
        tuple(sorted(knobs.items())),
    )
    return found(trial, sizes.seeds)
