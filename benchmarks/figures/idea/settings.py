"""The parameters of IDEA's experiments (Table 2), and the runs that vary one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from benchmarks.figures.axis import Axis
from benchmarks.figures.idea.data import Incomplete
from benchmarks.figures.trial import Found, Trial, WindowKind, bounds, found, warm
from shoal.spec.policy import Missing

__all__ = ["ALGORITHMS", "DATA", "LABELS", "Data", "IdeaSizes", "Setting", "axes", "label", "run"]

Data: TypeAlias = Literal["adult", "informs"]
DATA: dict[Data, str] = {"adult": "Adult", "informs": "INFORMS"}
ALGORITHMS = ("iot", "k-varp", "idea")
LABELS = {"iot": "IoT", "k-varp": "K-VARP", "idea": "IDEA"}


def label(algorithm: str, window: WindowKind) -> str:
    """What an algorithm is called in a figure, by how rows are held."""
    return LABELS[algorithm] + (", by arrival" if window == "arrived" else "")


@dataclass(frozen=True)
class IdeaSizes:
    """Table 2. Which values of the missing attributes and of the data size are the default can't
    be seen in the text; 3 and 30,000 are those of its example (§5.1).
    """

    rows: int = 30_000
    gaps: int = 3
    k: int = 50
    delay: int = 2_000
    all_rows: tuple[int, ...] = (5_000, 10_000, 15_000, 20_000, 25_000, 30_000)
    #: INFORMS has seven attributes: with 7 missing ones a row has nothing left to lose.
    adult_gaps: tuple[int, ...] = (1, 3, 5, 7, 9)
    informs_gaps: tuple[int, ...] = (1, 3, 5)
    ks: tuple[int, ...] = (5, 10, 50, 100, 200, 400)
    delays: tuple[int, ...] = (500, 1_000, 2_000, 4_000, 8_000, 16_000)
    threshold: float = 0.5
    thresholds: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9, 1.0)
    kept: int = 200
    radius: float = 0.2
    seeds: int = 3

    @property
    def fewer(self) -> IdeaSizes:
        """Every other value of k, of δ and of the data size, for figures with very many runs."""
        return replace(self, ks=self.ks[::2], delays=self.delays[::2], all_rows=self.all_rows[1::2])

    @classmethod
    def quick(cls) -> IdeaSizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=120, k=5, delay=40, all_rows=(80, 120), adult_gaps=(1, 3), informs_gaps=(1, 3),
            ks=(3, 5), delays=(20, 40), thresholds=(0.5, 1.0), seeds=2,
        )  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One point of an experiment."""

    data: Data
    rows: int
    gaps: int
    k: int
    delay: int


def axes(sizes: IdeaSizes, data: Data) -> dict[str, Axis[Setting]]:
    """The four experiments on a data set, each of which varies one parameter."""
    usual = Setting(data, sizes.rows, sizes.gaps, sizes.k, sizes.delay)
    gaps = sizes.adult_gaps if data == "adult" else sizes.informs_gaps

    def axis(name: str, title: str, x_label: str, key: str, xs: tuple[int, ...]) -> Axis[Setting]:
        log = key in ("k", "delay")
        return Axis.of(usual, key, xs, name=name, title=title, x_label=x_label, log=log)

    return {
        "gaps": axis("gaps", "(a) missing values", "missing attributes at most", "gaps", gaps),
        "k": axis("k", "(b) k", "k", "k", sizes.ks),
        "delay": axis("δ", "(c) δ", "δ, rows", "delay", sizes.delays),
        "rows": axis("rows", "(d) data size", "rows", "rows", sizes.all_rows),
    }


def run(
    sizes: IdeaSizes,
    setting: Setting,
    algorithm: str,
    missing: Missing = "maybe",
    attempt: int = 0,
    *,
    window: WindowKind = "held",
) -> Found:
    """Run an algorithm as the paper does: with the best reuse, and the loss of Definition 10.

    A row is decided when δ rows are held (Algorithm 1, line 6); or, for comparison, when δ have
    arrived after it. Another attempt is the same run, timed again.
    """
    delay, bound = bounds(window, setting.delay)
    knobs: dict[str, object] = {
        "loss": "lm",
        "reuse": "best",
        "joins": "alone",
        "kept": sizes.kept,
        "threshold": sizes.threshold,
        "age": None,
    } | bound
    if algorithm == "k-varp":
        knobs["radius"] = sizes.radius
    warm(algorithm, missing, Incomplete)
    stream = Incomplete(setting.data, setting.rows, setting.gaps)
    trial = Trial(stream, algorithm, setting.k, delay, tuple(sorted(knobs.items())), missing)
    return found(trial, sizes.seeds, attempt)
