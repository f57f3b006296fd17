from __future__ import annotations

import numpy as np
import pytest

from shoal.metrics.axes import Axis, sensitive_axis, sensitive_places
from shoal.spec.hierarchy import Hierarchy, Range

NOBODY = np.empty(0, np.int64)


def test_a_category_is_a_cell() -> None:
    axis = Axis.of("pet", Hierarchy.flat(["Cat", "Dog", "Owl"]))
    assert (axis.lowest, axis.highest, axis.length) == (0, 2, 3)
    assert axis.places(np.array([2.0])).tolist() == [2]


def test_cells_lie_at_multiples_of_the_step() -> None:
    axis = Axis.of("age", Range(17, 90, step=5))
    # [15, 20), [20, 25), …, [90, 95)
    assert axis.length == 16
    assert axis.places(np.array([17.0, 19.9, 20.0, 90.0])).tolist() == [0, 0, 1, 15]


def test_a_step_that_no_float_holds_is_met_exactly() -> None:
    axis = Axis.of("weight", Range(0, 1, step=0.1))
    assert axis.places(np.arange(11) / 10).tolist() == list(range(11))


def test_a_missing_value_and_an_empty_side_lie_nowhere() -> None:
    axis = Axis.of("age", Range(0, 9, step=1))
    found = axis.places(np.array([np.nan, np.inf, -np.inf]))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [np.inf, -np.inf]


def test_without_a_step_values_are_points() -> None:
    axis = Axis.of("height", Range(1, 2))
    assert (axis.unit, axis.length) == (0, 1)
    assert axis.cut(4).tolist() == [1, 1.25, 1.5, 1.75, 2]


def test_cells_stay_whole_when_a_line_is_cut() -> None:
    axis = Axis.of_cells("month", 12)
    assert axis.cut(100).tolist() == list(range(13))
    assert axis.cut(5).tolist() == [0, 2, 4, 7, 9, 12]


def ordered_code(number: float) -> int:
    bits = int(np.array([number]).view(np.int64)[0])
    return bits ^ (2**63 - 1) if bits < 0 else bits


def test_codes_of_numbers_are_read_back() -> None:
    domain = Range(-10, 10)
    axis = sensitive_axis("balance", domain, NOBODY)
    numbers = [-10.0, -0.5, 0.0, 3.25, 10.0]
    codes = np.array([*map(ordered_code, numbers), -1])
    assert sorted(codes[:-1].tolist()) == codes[:-1].tolist()
    found = sensitive_places(axis, domain, codes, NOBODY)
    assert found[:-1].tolist() == numbers
    assert np.isnan(found[-1])


def test_codes_of_leaves_are_cells() -> None:
    domain = Hierarchy.flat(["a", "b"])
    axis = sensitive_axis("illness", domain, NOBODY)
    found = sensitive_places(axis, domain, np.array([1, -1, 0]), NOBODY)
    np.testing.assert_array_equal(found, [1, np.nan, 0])


def test_an_open_domain_is_that_of_the_values_there_are() -> None:
    known = np.array([-700, 5, 900])
    axis = sensitive_axis("illness", None, known)
    assert axis.length == 3
    found = sensitive_places(axis, None, np.array([900, -700, 6, -1, 1000]), known)
    np.testing.assert_array_equal(found, [2, 0, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("domain", [None, Range(0, 1), Hierarchy.flat(["a"])])
def test_nobody_lies_nowhere(domain: Hierarchy | Range | None) -> None:
    axis = sensitive_axis("illness", domain, NOBODY)
    assert len(sensitive_places(axis, domain, NOBODY, NOBODY)) == 0
