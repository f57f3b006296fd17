"""The kernels of the R-tree family and their naive twins make the same decisions, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms.tree import TreeBasic, TreeDensity, TreeFull
from shoal.engine import Engine
from shoal.engine.rtree.tree import FAN_OUT
from tests.algorithms import cases, waiting_cases
from tests.algorithms.trees import TWINS
from tests.algorithms.waiting_cases import CASES, compare
from tests.examples import examples
from tests.naive.tree import NaiveTreeBasic

#: Compiled code draws many streams; plain Python looks whether it does the same.
MANY = examples(4 if numba.config.DISABLE_JIT else 50)
ANONYMIZERS: dict[str, type[TreeBasic | TreeDensity | TreeFull]] = {
    "tree-basic": TreeBasic, "tree-density": TreeDensity, "tree-full": TreeFull,
}  # fmt: skip


@dataclass(kw_only=True)
class Case(waiting_cases.Case):
    """A case with the knobs of the family."""

    name: str
    instant: float = 0.0
    due: str = "current"
    alpha: float = 0.001
    samples: int = 10
    sampled: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        # Instants that last need rows that have a time.
        self.timed = self.timed or self.instant > 0

    def knobs(self) -> dict[str, Any]:
        knobs: dict[str, Any] = {"instant": self.instant, "due": self.due}
        if self.name != "tree-basic":
            knobs |= {"alpha": self.alpha, "samples": self.samples, "sampled": self.sampled}
        return knobs

    def naive(self) -> NaiveTreeBasic:
        return TWINS[self.name](
            self.domains,
            self.weights,
            clock=len(self.domains) - 1 if self.time_is_quasi else None,
            fan_out=FAN_OUT,
            **self.knobs(),
            **self.naively(),
        )

    def engine(self) -> Engine:
        anonymizer = ANONYMIZERS[self.name](
            loss=self.loss,  # type: ignore[arg-type]
            capacity=self.capacity,
            **self.knobs(),
        )
        return anonymizer.start(self.schema(), self.policy(), seed=cases.SEED)


KNOBS = {
    "instant": st.sampled_from([0.0, 0.0, 0.7, 5.0]),
    "due": st.sampled_from(["current", "drawn"]),
    "alpha": st.sampled_from([0.0, 0.001, 0.05, 1.0]),
    "samples": st.sampled_from([1, 4, 12]),
    "sampled": st.sampled_from([1, 10, 60]),
}


@pytest.mark.parametrize("name", ANONYMIZERS)
@settings(max_examples=MANY, deadline=None, derandomize=True)
@given(data=st.data(), batch=st.sampled_from([1, 7, 1000]), ticks=st.booleans())
def test_kernel_and_twin_decide_alike(
    name: str, data: st.DataObject, batch: int, ticks: bool
) -> None:
    case = data.draw(st.builds(Case, name=st.just(name), **CASES, **KNOBS))
    compare(case, case.engine(), case.naive(), batch, ticks)


def quiet(**options: Any) -> dict[str, Any]:
    """A case of nothing special."""
    return {
        "seed": 1, "k": 3, "l": 1, "entropy": 0.0, "recursive": (0.0, 0), "delay": (150, None),
        "n_subjects": 400, "n_rows": 400, "loss": "glm", "step": 5.0, "spread": 20, **options,
    }  # fmt: skip


#: Twins of this many rows are slow, whether they are compared with compiled code or not.
SLOW = pytest.mark.nightly


@pytest.mark.compiled
@pytest.mark.parametrize("name", ANONYMIZERS)
@pytest.mark.parametrize(
    "options",
    [
        # One person alone makes a leaf of each row: nodes split and are given up.
        pytest.param({"n_subjects": 1, "n_rows": 450, "delay": (300, None)}, marks=SLOW),
        {"n_subjects": 2, "n_rows": 450, "delay": (300, None), "k": 2},
        # Nothing may leave for a long time; then each leaf is larger than it need be.
        pytest.param({"l": 2, "dull": 250, "delay": (280, None)}, marks=SLOW),
        # Leaves are due, and rows are overdue, between the same two rows.
        {"samples": 40, "sampled": 100, "delay": (None, 60.0), "instant": 1.0},
        # Many leaves, and hardly anything that differs: far ones are asked, too.
        pytest.param(
            {"n_subjects": 3, "entropy": 1.9, "dull": 290, "n_rows": 330, "delay": (280, None)},
            marks=SLOW,
        ),
        # A row that the others need for their diversity can't be held.
        {"k": 2, "l": 3, "samples": 40, "sampled": 100, "alpha": 0.01, "delay": (100, None)},
    ],
)
def test_on_a_longer_stream(name: str, options: dict[str, Any]) -> None:
    case = Case(name=name, **quiet(**options))
    compare(case, case.engine(), case.naive(), 256, ticks=False)
