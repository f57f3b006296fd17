"""Classes of subjects."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.models.z import naive

from shoal.errors import JobError, ParameterError
from shoal.models.z import (
    Scenario,
    by_class,
    classes_of_activity,
    classes_of_interest,
    entropy,
    exact,
    published,
    published_by_class,
)

FIRST = Scenario(9, (0.4, 0.2, 0.05), 2.0, z=4, k=3)
SECOND = Scenario(6, (0.1, 0.6, 0.3), 2.0, z=4, k=3)
THIRD = Scenario(4, (0.3, 0.0, 0.9), 2.0, z=4, k=3)


@pytest.mark.parametrize("classes", [[FIRST], [FIRST, SECOND], [FIRST, SECOND, THIRD]])
def test_convolutions_are_sums_over_all_combinations(classes):
    publication = published_by_class(classes)
    for c, one in enumerate(classes):
        exposure = [naive.p_x(rate, one.window) for rate in one.rates]
        expected = [p * naive.p_o_of_class(classes, a, c) for a, p in enumerate(exposure)]
        assert publication[c] == pytest.approx(expected, abs=1e-9)
    found = by_class(classes)
    expected = [naive.p_k_anon_of_class(classes, publication, c) for c in range(len(classes))]
    assert found.probabilities == pytest.approx(expected, abs=1e-9)
    n = [one.n_subjects for one in classes]
    assert found.n_subjects == tuple(n)
    assert found.overall == pytest.approx(np.dot(n, expected) / sum(n))


def test_the_formula_as_printed_has_another_result():
    classes = [replace(FIRST, z=8), replace(SECOND, z=8)]
    right, slipped = (naive.p_o_of_class(classes, 0, 0, slip=slip) for slip in (False, True))
    # The second class exposes the attribute less than the first: taken for the first, it helps.
    assert slipped > right + 0.1
    exposure = naive.p_x(FIRST.rates[0], 2.0)
    assert published_by_class(classes)[0, 0] == pytest.approx(exposure * right)


@pytest.mark.parametrize(("z", "k"), [(1, 2), (4, 1), (30, 2), (120, 5)])
def test_equal_classes_are_like_one_class(z, k):
    half = Scenario.power_law(100, 8, z=z, k=k)
    whole = replace(half, n_subjects=200)
    found = by_class([half, half])
    assert published_by_class([half, half])[0] == pytest.approx(published(whole), abs=1e-9)
    assert found.probabilities == pytest.approx([exact(whole)] * 2, abs=1e-9)
    assert found.entropy == pytest.approx(entropy(whole), abs=1e-9)


def test_classes_of_activity_expose_as_much_as_before():
    scenario = Scenario.power_law(300, 5)
    classes = classes_of_activity(scenario, 0.2, n_first=100)
    assert [one.n_subjects for one in classes] == [100, 200]
    for rates in zip(scenario.rates, *(one.rates for one in classes), strict=True):
        whole, first, second = rates
        assert second == pytest.approx(0.2 * first)
        assert 100 * first + 200 * second == pytest.approx(300 * whole)
    silent = classes_of_activity(scenario, 0.0)[1]
    assert set(silent.rates) == {0.0}


def test_classes_of_interest_are_those_of_table_3():
    scenario = Scenario.power_law(10, 4)
    one, other = classes_of_interest(scenario, 0.5)
    eta = 0.75
    expected = [rate * (eta if rank % 2 == 0 else 1 - eta)
                for rank, rate in enumerate(scenario.rates, 1)]  # fmt: skip
    assert one.rates == pytest.approx(expected)
    assert [a + b for a, b in zip(one.rates, other.rates, strict=True)] == pytest.approx(
        scenario.rates
    )


def test_at_no_separation_both_classes_have_half_of_the_rates():
    scenario = Scenario.power_law(200, 8, z=20)
    halved = replace(scenario, rates=tuple(rate / 2 for rate in scenario.rates))
    found = by_class(classes_of_interest(scenario, 0.0))
    assert found.overall == pytest.approx(exact(halved))
    assert not math.isclose(found.overall, exact(scenario), abs_tol=0.01)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: by_class([]), "at least one"),
        (lambda: by_class([FIRST, replace(SECOND, z=5)]), "z: must be the same"),
        (lambda: by_class([FIRST, replace(SECOND, rates=(0.1,))]), "n_attributes: must be the"),
        (lambda: classes_of_activity(FIRST, -1.0), "imbalance"),
        (lambda: classes_of_interest(FIRST, 1.5), "separation"),
        (lambda: classes_of_interest(FIRST, 0.5, n_first=9), "each class.*got 9 of 9"),
    ],
)
def test_invalid_classes_are_refused(wrong, message):
    with pytest.raises((JobError, ParameterError), match=message):
        wrong()
