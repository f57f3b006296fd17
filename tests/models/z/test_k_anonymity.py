"""Test p_k-anon: exact, approximate, and bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.models.z import naive

from shoal.errors import ParameterError
from shoal.models.z import Scenario, approximate, bounds, exact, k_anonymity, published
from shoal.models.z.approximate import approximate_of
from shoal.models.z.bounds import bounds_of
from shoal.models.z.exact import exact_of, realizations

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)

#: Sums in another order differ in their last digits.
ROUNDING = 1e-9

probabilities = st.lists(
    st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0, 1e-7, 1 - 1e-7]), min_size=1, max_size=7
)
subjects = st.integers(1, 60)
ks = st.integers(1, 6)


@SETTINGS
@given(probabilities, subjects, ks)
def test_exact_is_brute_force(publication, n_subjects, k):
    found = exact_of(np.array(publication), n_subjects, k)
    assert found == pytest.approx(naive.p_k_anon(publication, n_subjects, k), abs=ROUNDING)


def test_exact_of_the_paper_s_default_with_fewer_attributes():
    scenario = Scenario.power_law(n_attributes=10)
    expected = naive.p_k_anon(naive.p_y(scenario), 1000, 2)
    assert exact(scenario) == pytest.approx(expected, abs=ROUNDING)


def test_exact_in_parts_is_exact_at_once():
    # More than are held at once, of which some are never published: they change nothing.
    few = np.linspace(0.1, 0.9, 9)
    many = np.concatenate([few, np.zeros(12)])
    assert exact_of(many, 100, 2) == pytest.approx(exact_of(few, 100, 2), abs=ROUNDING)
    assert sum(part.sum() for part in realizations(many)) == pytest.approx(1.0)


def test_exact_refuses_what_would_take_hours():
    with pytest.raises(ParameterError, match=r"at most 24 attributes.*got 25.*bounds"):
        exact(Scenario.power_law(n_attributes=25))


@SETTINGS
@given(probabilities, subjects, ks, st.floats(0.5, 0.999), st.floats(0.01, 3), st.integers(1, 300))
def test_exact_lies_within_the_missing_mass(publication, n_subjects, k, mass, theta_1, most):
    true = naive.p_k_anon(publication, n_subjects, k)
    found = approximate_of(
        np.array(publication), n_subjects, k, mass=mass, theta_1=theta_1, most=most
    )
    assert found.lower - ROUNDING <= true <= found.upper + ROUNDING
    assert found.n_realizations <= most
    if most >= 2 ** len(publication):
        assert found.mass >= mass - ROUNDING


@pytest.mark.parametrize("z", [1, 100, 150, 300])
def test_the_default_is_approximated_as_the_paper_asks(z):
    scenario = Scenario.power_law(z=z)
    found = approximate(scenario)
    assert found.mass >= 0.98
    assert found.lower <= exact(scenario) <= found.upper
    assert found.n_realizations < 2**20
    # The threshold is that of Equation B.2: no set that was looked at is below it.
    effective = published(scenario)[published(scenario) >= found.theta_1 / 1000]
    assert found.n_attributes == len(effective)


def test_a_set_below_the_threshold_isnt_visited():
    found = approximate_of(np.array([0.3, 0.05]), 10, 2, mass=0.9, theta_1=0.1, most=100)
    likely = [0.7 * 0.95, 0.3 * 0.95, 0.7 * 0.05, 0.3 * 0.05]
    threshold = found.theta_2 / 2**found.n_attributes
    kept = [p for p in likely if p >= threshold * (1 - 1e-12)]
    assert found.n_realizations == len(kept) < 4
    assert found.mass == pytest.approx(sum(kept))


def test_a_mass_that_cant_be_reached_gives_wide_bounds():
    found = approximate(Scenario.power_law(n_attributes=1000, z=1), most=10_000)
    assert found.n_realizations <= 10_000
    assert found.mass < 0.5
    assert found.upper - found.lower == pytest.approx(1 - found.mass)
    hopeless = approximate_of(np.full(5000, 0.5), 1000, 2, mass=0.98, theta_1=1.0, most=100)
    assert (hopeless.mass, hopeless.lower, hopeless.upper) == (0.0, 0.0, 1.0)
    assert math.isfinite(hopeless.theta_2)


@pytest.mark.parametrize(("name", "value"), [("mass", 1.0), ("mass", 0.0), ("most", 0)])
def test_invalid_parameters_are_refused(name, value):
    with pytest.raises(ParameterError, match=name):
        approximate(Scenario.power_law(), **{name: value})


@SETTINGS
@given(probabilities, subjects, ks, st.sampled_from([0.5, 0.05, 0.002]))
def test_exact_lies_between_the_bounds(publication, n_subjects, k, step):
    true = naive.p_k_anon(publication, n_subjects, k)
    found = bounds_of(np.array(publication), n_subjects, k, step=step)
    assert 0 <= found.lower <= found.upper <= 1
    assert found.lower - 1e-8 <= true <= found.upper + 1e-8


@pytest.mark.parametrize("z", [1, 150, 250])
def test_bounds_are_close(z):
    scenario = Scenario.power_law(z=z)
    found = bounds(scenario)
    assert found.lower <= exact(scenario) <= found.upper
    assert found.upper - found.lower < 0.002


def test_a_smaller_step_brings_bounds_closer():
    rough, fine = (bounds(Scenario.power_law(), step=step) for step in (0.02, 0.002))
    assert fine.upper - fine.lower < (rough.upper - rough.lower) / 5
    assert rough.lower <= fine.lower <= fine.upper <= rough.upper


def test_thousands_of_attributes():
    found = k_anonymity(Scenario.power_law(n_attributes=5000, z=250))
    # Attributes of a rank beyond 20 aren't published under this z.
    assert found.lower - 1e-6 <= exact(Scenario.power_law(z=250)) <= found.upper + 1e-6
    assert found.upper - found.lower < 0.01
    nobody = bounds_of(np.full(5000, 0.5), 1000, 2)
    assert nobody.lower == 0.0
    assert nobody.upper < 1e-9


@SETTINGS
@given(probabilities, subjects, ks)
def test_it_falls_with_k_and_everybody_is_1_anonymous(publication, n_subjects, k):
    some = np.array(publication)
    found = exact_of(some, n_subjects, k)
    assert 0 <= found <= 1
    assert exact_of(some, n_subjects, k + 1) <= found + ROUNDING
    assert exact_of(some, n_subjects, 1) == pytest.approx(1.0)


@pytest.mark.parametrize("n_attributes", [5, 20, 300])
def test_where_nothing_is_published_all_are_alike(n_attributes):
    scenario = Scenario.power_law(50, n_attributes, z=51)
    assert k_anonymity(replace(scenario, k=50)).lower == pytest.approx(1.0)
    assert k_anonymity(replace(scenario, k=51)).upper == 0.0
