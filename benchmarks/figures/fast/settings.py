"""The parameters of FAST's experiments (Table 3), and the runs that vary one of them.

As in the paper, rows are held by count: δ rows are there when FADS decides one of them, and δ rows
with each worker of FAST when each decides one of its own. T_kc counts rounds: one is a decision of
FADS, or one of each worker at once.

What Shoal does by default is beside it: a row is due when δ rows have arrived after it. Then a unit
of the paper's time is one row for FADS and W rows for FAST, for its threads take rows in at once:
FAST runs with a delay of W·δ rows and an age limit of W·T_kc rows.

Since FAST is given W times as much as FADS, FADS is run with as much, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.figures.axis import Axis
from benchmarks.figures.fast.data import QUASI, Repeated
from benchmarks.figures.trial import Found, Trial, WindowKind, bounds, found, warm

__all__ = ["KEPT", "RIVALS", "FastSizes", "Rival", "Setting", "age_of", "axes", "run"]


@dataclass(frozen=True)
class Rival:
    """What is compared: its label, how rows are held, in what T_kc counts, and whether rows and
    groups are held W times as long.
    """

    label: str
    algorithm: str
    window: WindowKind = "held"
    rounds: bool = True
    long: bool = False


#: By the paper, with T_kc in rows for comparison, and as Shoal does by default.
RIVALS = {
    "fads": Rival("FADS", "fads"),
    "fast": Rival("FAST", "fast", long=True),
    "fads-long": Rival("FADS with the rows of FAST", "fads", long=True),
    "fads-rows": Rival("FADS, T_kc in rows", "fads", rounds=False),
    "fast-rows": Rival("FAST, T_kc in rows", "fast", rounds=False, long=True),
    "fads-arrived": Rival("FADS, by arrival", "fads", "arrived", rounds=False),
    "fast-arrived": Rival("FAST, by arrival", "fast", "arrived", rounds=False, long=True),
    "fads-long-arrived": Rival(
        "FADS with the delay of FAST, by arrival", "fads", "arrived", rounds=False, long=True
    ),
}
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
    """Table 3, and what is varied: the paper doesn't say over which values.

    The paper has 30,162 rows of different people. With these, losses by arrival were the same
    within 0.01. FAST by count has a round for each few rows, so fewer rows save much time.
    """

    rows: int = 6_000
    k: int = 5
    n_quasi: int = 10
    delta: int = 30
    age: int = 20
    workers: int = 5
    alpha: float = 0.02
    ks: tuple[int, ...] = (3, 5, 10, 20)
    all_n_quasi: tuple[int, ...] = (2, 6, 10)
    deltas: tuple[int, ...] = (10, 30, 60)
    ages: tuple[int, ...] = (10, 20, 100)
    all_workers: tuple[int, ...] = (1, 2, 3, 4, 5)
    seeds: int = 3
    #: For the shares of rows by the number of kept groups.
    seeds_of_kept: int = 5
    #: For the time by workers: the paper's rows, and a window that is worth a thread.
    timed_rows: int = 30_162
    heavy_k: int = 50
    heavy_delta: int = 8_000
    #: Of this many runs in turn the best few count: what else the machine does isn't of interest.
    repeats: int = 5
    best: int = 3

    @property
    def n_rows(self) -> int:
        """A tenth of the people come twice."""
        return self.rows + self.rows // 10

    @property
    def usual(self) -> Setting:
        """Table 3."""
        return Setting(self.rows, self.k, self.n_quasi, self.delta, self.age, self.workers)

    @classmethod
    def quick(cls) -> FastSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=200, timed_rows=200, k=3, delta=10, workers=2, ks=(3, 4), all_n_quasi=(2, 10),
            deltas=(10, 15), ages=(10, 20), all_workers=(1, 2), seeds=2, seeds_of_kept=2,
            heavy_k=4, heavy_delta=20, repeats=1, best=1,
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


def age_of(setting: Setting, rival: str) -> int:
    """The age limit of kept groups, in the rival's unit."""
    one = RIVALS[rival]
    in_step = one.algorithm == "fast" and one.rounds
    return setting.age * (setting.workers if one.long and not in_step else 1)


def run(sizes: FastSizes, setting: Setting, rival: str) -> Found:
    """Run one of the rivals as the paper does: with the best reuse, and the loss of Equation 7."""
    one = RIVALS[rival]
    delay, bound = bounds(one.window, setting.delta * (setting.workers if one.long else 1))
    knobs: dict[str, object] = {
        "loss": "lm", "reuse": "best", "joins": "alone", "kept": KEPT,
        "age": age_of(setting, rival), "age_unit": "rounds" if one.rounds else "rows",
    } | bound  # fmt: skip
    if one.algorithm == "fast":
        knobs["workers"] = setting.workers
    warm(one.algorithm, "quarantine", Repeated)
    trial = Trial(
        Repeated(setting.rows, QUASI[: setting.n_quasi]),
        one.algorithm,
        setting.k,
        delay,
        tuple(sorted(knobs.items())),
    )
    return found(trial, sizes.seeds)
