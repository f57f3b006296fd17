"""Scenarios, tails and the probabilities of one attribute."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.models.z import naive

from shoal.errors import JobError
from shoal.models.z import (
    Scenario,
    entropy,
    exposed,
    information_loss,
    passed,
    published,
)
from shoal.models.z.probabilities import entropy_of
from shoal.models.z.tails import at_least, pmf

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)

PROBABILITIES = np.array([0.0, 1e-9, 0.01, 0.15, 0.5, 0.9, 1 - 1e-9, 1.0])


@pytest.mark.parametrize(
    ("m", "n"), [(0, 5), (1, 5), (3, 5), (5, 5), (6, 5), (40, 60), (60, 60), (2, 400), (150, 400)]
)
def test_a_tail_is_the_sum_of_its_terms(m, n):
    exact = [math.fsum(naive.binomial(n, p, j) for j in range(m, n + 1)) for p in PROBABILITIES]
    assert at_least(m, n, PROBABILITIES) == pytest.approx(exact, rel=1e-7, abs=1e-13)


def test_a_tail_far_out_isnt_lost():
    assert at_least(200, 1000, np.array([0.01]))[0] == pytest.approx(
        math.fsum(naive.binomial(1000, 0.01, j) for j in range(200, 260)), rel=1e-9
    )


def test_a_tail_of_very_many_is_near_a_half_at_its_mean():
    assert at_least(400_000, 10_000_000, np.array([0.04]))[0] == pytest.approx(0.5, abs=1e-3)


def test_terms_of_a_distribution():
    found = pmf(5, PROBABILITIES, 8)
    expected = [[naive.binomial(5, p, j) for p in PROBABILITIES] for j in range(8)]
    assert found == pytest.approx(np.array(expected), abs=1e-12)
    assert pmf(5, PROBABILITIES, 0).shape == (0, len(PROBABILITIES))


def test_the_paper_s_default():
    scenario = Scenario.power_law()
    assert scenario.rates[:3] == (0.2, 0.1, 0.2 / 3)
    assert published(scenario) == pytest.approx(naive.p_y(scenario), abs=1e-9)


def test_with_z_1_all_is_published():
    scenario = Scenario.power_law(z=1)
    assert (published(scenario) == exposed(scenario.rates, scenario.window)).all()
    assert information_loss(scenario) == 0.0


def test_the_subject_itself_is_one_of_the_z():
    # Two subjects, z = 2: published if the other one has exposed it.
    assert passed(2, np.array([0.3]), 2) == pytest.approx([0.3])
    assert passed(2, np.array([1.0]), 3).tolist() == [0.0]


@SETTINGS
@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_entropy_in_closed_form_is_the_sum_over_all_sets(publication):
    assert entropy_of(np.array(publication)) == pytest.approx(naive.entropy(publication), abs=1e-9)


@SETTINGS
@given(
    n=st.integers(1, 300), a=st.integers(1, 6), window=st.floats(0.01, 100), z=st.integers(1, 320)
)
def test_probabilities_lie_between_0_and_1_and_fall_with_z(n, a, window, z):
    scenario = Scenario.power_law(n, a, window=window, z=z)
    found = published(scenario)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found <= exposed(scenario.rates, window)).all()
    stricter = published(Scenario.power_law(n, a, window=window, z=z + 1))
    assert (stricter <= found + 1e-12).all()
    assert entropy(scenario) >= 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_subjects": 0}, "n_subjects: must be a whole number of at least 1; got 0"),
        ({"z": 0}, "z: must be"),
        ({"k": 0}, "k: must be"),
        ({"window": 0.0}, "window: must be a finite number above 0"),
        ({"window": math.nan}, "window: must be a finite"),
        ({"rates": ()}, "rates: names no attribute"),
        ({"rates": (0.1, -1.0, math.inf)}, "got 2 that aren't"),
    ],
)
def test_invalid_scenarios_are_refused(change, message):
    with pytest.raises(JobError, match=message):
        Scenario(**({"n_subjects": 10, "rates": (0.1,), "window": 1.0, "z": 2, "k": 2} | change))
