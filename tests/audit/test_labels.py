from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.audit.labels import Numeric, Side, read_side
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi

AGE = Quasi("age", Range(17, 90, step=5))
FREE = Quasi("age", Range(0, 1))
TREE = Hierarchy.from_dict({"Any": {"North": ["Oslo", "Turku"], "South": ["Rome"]}})


def read(attribute: Quasi, numeric: Numeric = "range", **columns: Any) -> Side:
    side = read_side(pa.table(columns), attribute, numeric)
    assert side is not None
    return side


@pytest.mark.parametrize("label", ["[20, 30]", "[17, 90]", "[85, 90]", "[17, 20]", "[25, 25]"])
def test_ranges_that_can_be(label: str) -> None:
    assert read(AGE, age=[label]).flaws == []


@pytest.mark.parametrize(
    ("label", "flaw"),
    [
        ("[30, 20]", "upside down"),
        ("[15, 20]", "outside the range"),
        ("[20, 95]", "outside the range"),
        ("[20, 31]", "multiple of the step"),
        ("[20.5, 30]", "multiple of the step"),
        ("[20.0, 30]", "unusual way"),
        ("[+20, 30]", "unusual way"),
        ("[2e1, 30]", "unusual way"),
        ("[020, 30]", "unusual way"),
        ("[20,30]", "no range"),
        ("[20, 30)", "no range"),
        (" [20, 30]", "no range"),
        ("[20, 30]\n", "no range"),
        ("[a, b]", "no range"),
        ("[nan, 30]", "no range"),
        ("[17, inf]", "outside the range"),
        ("", "no range"),
        (None, "no range"),
        ("*", "no range"),
    ],
)
def test_ranges_that_cannot_be(label: str | None, flaw: str) -> None:
    flaws = read(AGE, age=pa.array(["[20, 30]", label], pa.string())).flaws
    assert any(flaw in text and "column age" in text and "1 rows" in text for text in flaws)


@given(st.floats(0, 1), st.floats(0, 1))
def test_any_float_is_written_and_read_back_exactly(one: float, other: float) -> None:
    lo, hi = sorted((one, other))
    text = f"[{', '.join(str(int(x)) if x.is_integer() else repr(x) for x in (lo, hi))}]"
    side = read(FREE, age=[text])
    assert (side.lo[0], side.hi[0], side.flaws) == (lo, hi, [])


@pytest.mark.parametrize("step", [0.1, 0.3, 1e-3, 7.0, 2.5])
def test_what_snaps_is_on_the_step(step: float) -> None:
    domain = Range(-3.3, 50.1, step=step)
    for value in np.random.default_rng(5).uniform(-3.3, 50.1, 200):
        lo, hi = domain.snap(float(value), float(value))
        bounds = {"x_min": [lo], "x_max": [hi]}
        assert read(Quasi("x", domain), "bounds", **bounds).flaws == []
        assert read(Quasi("x", domain), "midpoint", x=[(lo + hi) / 2]).flaws == []


def test_bounds() -> None:
    side = read(AGE, "bounds", age_min=[17, 20, 30], age_max=["90", "25", "20"])
    assert side.root.tolist() == [True, False, False]
    assert len(side.flaws) == 1
    assert "upside down" in side.flaws[0]
    assert read(AGE, "bounds", age_min=[None, 20.0], age_max=[30.0, 30.0]).flaws == [
        "column age has no bounds in 1 rows"
    ]
    assert read(AGE, "bounds", age_min=[True], age_max=[True]).flaws == [
        "column age isn't a number"
    ]


def test_midpoints() -> None:
    side = read(AGE, "midpoint", age=[53.5, 25.0, 18.5])
    assert side.flaws == []
    assert side.root.tolist() == [True, False, False]
    # Around 25 the range allows [17, 33] and no more, and so on.
    assert side.lo == pytest.approx([17, 17, 17])
    assert side.hi == pytest.approx([90, 33, 20])
    for wrong in (16.0, 91.0, 23.3, None):
        flaws = read(AGE, "midpoint", age=pa.array([wrong], pa.float64())).flaws
        assert len(flaws) >= 1


@pytest.mark.parametrize("numeric", ["range", "midpoint"])
def test_a_number_in_a_column_of_the_wrong_type(numeric: Numeric) -> None:
    flaws = read(AGE, numeric, age=[True]).flaws
    assert flaws == ["column age isn't " + ("text" if numeric == "range" else "a number")]


def test_nodes() -> None:
    side = read(Quasi("city", TREE), city=["Any", "North", "Rome", "Paris", None])
    assert side.lo[:3].tolist() == [0, 0, 2]
    assert side.hi[:3].tolist() == [2, 1, 2]
    assert np.isnan(side.lo[3:]).all()
    assert side.root.tolist() == [True, False, False, False, False]
    assert side.flaws == ["column city has no node of the hierarchy in 2 rows"]
    assert read(Quasi("city", TREE), city=[1, 2]).flaws == ["column city isn't text"]


def test_rows_are_distinguished_by_what_is_written() -> None:
    assert read(AGE, age=["[20, 30]", "[20, 30.0]", "[20, 30]"]).labels.tolist() == [0, 1, 0]
    assert read(AGE, "bounds", age_min=[20, 20, 25], age_max=[30, 35, 30]).labels.tolist() == [
        0,
        1,
        2,
    ]


def test_a_missing_column_is_no_side() -> None:
    assert read_side(pa.table({"age_min": [1]}), AGE, "bounds") is None
