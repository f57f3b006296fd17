"""The kernels of TIDE and their twins decide alike, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms import Tide
from shoal.engine import Engine
from shoal.engine.tide import forming
from shoal.spec.policy import (
    EnhancedLikeness,
    EuclideanCloseness,
    JensenShannonCloseness,
    TCloseness,
    VariationalCloseness,
)
from tests.algorithms import cases
from tests.algorithms.test_on_deadline_equals_twin import compare as compare_decisions
from tests.examples import examples
from tests.naive import tide_forming as naive
from tests.naive.on_deadline import NaiveOnDeadline
from tests.naive.tide import NaiveRolling, NaiveTide

TWINS = {"batch": NaiveTide, "rolling": NaiveRolling}
MANY = examples(4 if numba.config.DISABLE_JIT else 60)


@dataclass(kw_only=True)
class Case(cases.Case):
    """A case with the knobs of TIDE."""

    release: Any
    effort: int = 20
    capacity: int = 0

    def naive(self, _: str) -> NaiveOnDeadline:
        return TWINS[self.release](
            self.domains, self.weights, missing=self.missing, **self.naively(),
            effort=self.effort, capacity=self.capacity,
        )  # fmt: skip

    def engine(self, _: str) -> Engine:
        anonymizer = Tide(
            release=self.release, effort=self.effort, capacity=self.capacity,
            loss=self.loss,  # type: ignore[arg-type]
        )  # fmt: skip
        return anonymizer.start(self.schema(), self.policy(), seed=cases.SEED)


def compare(case: Case, batch: int, ticks: bool) -> None:
    compare_decisions("tide", case, batch, ticks)  # type: ignore[arg-type]


def drawn(release: str, measured: st.SearchStrategy[Any]) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        seed=st.integers(0, 10**6),
        k=st.integers(1, 7),
        l=st.sampled_from([1, 1, 1, 2, 3, 4]),
        entropy=st.sampled_from([0.0, 0.0, 0.0, 1.5, 2.0]),
        recursive=st.sampled_from([(0.0, 0)] * 3 + [(2.0, 2), (1.5, 3)]),
        delay=st.tuples(st.integers(1, 60), st.sampled_from([None, None, 2.5, 20.0]))
        | st.tuples(st.none(), st.sampled_from([0.3, 2.5, 20.0])),
        timed=st.booleans(),
        n_subjects=st.sampled_from([40, 9, 40, 20, 3, 1]),
        n_rows=st.integers(1, 100),
        kept=st.just(0),
        reuse=st.just("random"),
        joins=st.just("alone"),
        loss=st.sampled_from(["glm", "lm", "uncertainty"]),
        step=st.sampled_from([None, 1.0, 5.0, 0.3]),
        spread=st.sampled_from([0, 3, 40]),
        weights=st.sampled_from([(1.0, 1.0, 1.0), (1.0, 0.5, 2.0), (0.3, 0.1, 0.7)]),
        missing=st.sampled_from(["quarantine", "extended", "maybe", "maybe"]),
        gaps=st.sampled_from([0.1, 0.3, 0.7]),
        two_sensitive=st.booleans(),
        measured=measured,
        window=st.sampled_from([1, 10, 30, 80]),
        release=st.just(release),
        effort=st.sampled_from([0, 3, 20]),
        capacity=st.sampled_from([0, 0, 7, 30]),
    )


@pytest.mark.parametrize("release", TWINS)
def test_kernel_and_twin_decide_alike(release: str) -> None:
    @settings(max_examples=MANY, deadline=None, derandomize=True, database=None)
    @given(
        case=drawn(release, st.just(("open", ())) | cases.MEASURED),
        batch=st.sampled_from([1, 7, 1000]),
        ticks=st.booleans(),
    )
    def alike(case: Case, batch: int, ticks: bool) -> None:
        compare(case, batch, ticks)

    alike()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("release", TWINS)
def test_on_a_longer_stream(release: str, seed: int) -> None:
    case = Case(
        seed=seed, k=3, l=[1, 2][seed], entropy=0.0, recursive=(0.0, 0), delay=(150, None),
        timed=False, n_subjects=200, n_rows=330, kept=0, reuse="random", joins="alone",
        loss="glm", step=5.0, spread=20, missing=["maybe", "quarantine"][seed], gaps=0.2,
        release=release, effort=4,
    )  # fmt: skip
    compare(case, 256, ticks=False)


def test_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (forming, naive):
        monkeypatch.setattr(module, "CHUNK", 8)
    case = Case(
        seed=3, k=2, l=1, entropy=0.0, recursive=(0.0, 0), delay=(150, None), timed=False,
        n_subjects=300, n_rows=160, kept=0, reuse="random", joins="alone",
        loss="glm", step=None, spread=20, release="batch", effort=4,
    )  # fmt: skip
    compare(case, 256, ticks=False)


@pytest.mark.parametrize("most", [50, 4])
def test_cell_by_cell(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    for module in (forming, naive):
        monkeypatch.setattr(module, "CELL", most)
    case = Case(
        seed=4, k=2, l=2, entropy=0.0, recursive=(0.0, 0), delay=(150, None), timed=False,
        n_subjects=100, n_rows=170, kept=0, reuse="random", joins="alone",
        loss="glm", step=None, spread=20, missing="maybe", gaps=0.2, release="batch", effort=4,
    )  # fmt: skip
    compare(case, 256, ticks=False)


@pytest.mark.parametrize("missing", ["quarantine", "maybe"])
@pytest.mark.parametrize("two_sensitive", [False, True])
@pytest.mark.parametrize(
    "measured",
    [
        ("numbers", (TCloseness(0.1, attribute="s0"),)),
        ("numbers", (TCloseness(0.3, attribute="s0"),)),
        ("tree", (TCloseness(0.2, attribute="s0"),)),
        ("tree", (EnhancedLikeness(1.0, attribute="s0"),)),
        ("tree", (VariationalCloseness(0.3, attribute="s0"),)),
        ("numbers", (EuclideanCloseness(0.3, attribute="s0"),)),
        ("open", (JensenShannonCloseness(0.4, attribute="s0"),)),
    ],
)
def test_where_groups_are_measured(measured: Any, two_sensitive: bool, missing: str) -> None:
    """Rows are cut or grown, and formed again, in shares of their sensitive values."""
    case = Case(
        seed=5, k=3, l=1, entropy=0.0, recursive=(0.0, 0), delay=(70, None), timed=False,
        n_subjects=120, n_rows=110, kept=0, reuse="random", joins="alone", loss="glm", step=5.0,
        spread=20, missing=missing, gaps=0.2, two_sensitive=two_sensitive, measured=measured,
        window=140, release="batch", effort=8,
    )  # fmt: skip
    compare(case, 256, ticks=False)
