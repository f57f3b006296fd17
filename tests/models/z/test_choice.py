"""Test the estimation of parameters, and the choice of z."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ParameterError
from shoal.models.z import (
    Bounds,
    Choice,
    Estimate,
    Events,
    Point,
    Scenario,
    best,
    candidate_windows,
    choose,
    curve,
    estimate,
    exact,
    least_z,
    poisson_events,
    rising,
)
from shoal.models.z.choice import z_grid

TWO = np.zeros((2, 2), np.int64)


def test_parameters_are_found_again():
    scenario = Scenario.power_law(300, 12)
    found = estimate(poisson_events(scenario, seed=2, windows=80), 12)
    assert (found.n_windows, found.n_seen, found.n_attributes) == (80, 300, 12)
    assert found.rates == pytest.approx(scenario.rates, rel=0.05)
    assert found.n_subjects == 300
    assert found.scenario(7, 3) == Scenario(300, found.rates, 12, 7, 3)


def test_silent_subjects_arent_counted_in_a_window():
    scenario = Scenario.power_law(300, 12, window=5)
    found = estimate(poisson_events(scenario, seed=2, windows=80), 5)
    silent = np.exp(-5 * sum(scenario.rates))
    assert found.n_seen == 300
    assert found.n_subjects == pytest.approx(300 * (1 - silent), abs=2)
    seen = -np.expm1(-5 * scenario.rates[0]) / (1 - silent)
    assert found.rates[0] == pytest.approx(-np.log1p(-seen) / 5, rel=0.02)


def test_repeated_exposures_count_once():
    clock = np.arange(40.0) / 10
    subjects = np.array([0] * 10 + [0, 1] * 5 + [0] * 10 + [1] * 10)
    events = Events(clock, subjects, np.zeros(40, np.int64), begin=0.0, end=4.0)
    found = estimate(events, 1.0)
    assert found.n_subjects == round(5 / 4)
    assert found.rates == pytest.approx((-np.log(0.5 / 5),))


def test_an_attribute_of_half_of_the_subjects_has_the_rate_of_a_half():
    events = Events(np.arange(4.0), np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1]), end=4.0)
    assert estimate(events, 2.0).rates == pytest.approx((np.log(2) / 2,) * 2)


def test_a_sample_that_is_too_short_is_refused():
    events = Events(np.array([0.0, 5.0]), *TWO)
    with pytest.raises(ParameterError, match="spans 5 seconds; got 6"):
        estimate(events, 6)
    with pytest.raises(ParameterError, match="above 0"):
        estimate(events, 0)
    with pytest.raises(ParameterError, match="spans 2 rows"):
        estimate(Events(np.array([0.0, 1.0]), *TWO, in_rows=True), 3)


def test_a_z_that_gives_the_probability_and_none_below_it():
    events = poisson_events(Scenario.power_law(), seed=11, windows=6)
    found = choose(events, 12, k=2, probability=0.9)
    scenario = found.estimate.scenario
    assert found.by_model.model.lower >= 0.9
    assert exact(scenario(found.by_model.z, 2)) >= 0.9
    assert exact(scenario(found.by_model.z - 1, 2)) < 0.9 + 0.002  # the width of the bounds
    assert found.by_count.measured >= 0.9
    assert found.chosen is found.by_count
    assert abs(found.by_count.z - found.by_model.z) < 30
    zs = [at.z for at in found.points]
    assert zs == sorted(set(zs))
    assert zs[0] == 1
    assert zs[-1] == found.estimate.n_subjects + 1
    assert found.points[-1].measured == found.points[-1].model.lower == 1.0
    assert found.points[-1].published == 0.0
    assert found.points[0].published == 1.0


def test_a_sample_of_one_window_has_nothing_to_count():
    events = poisson_events(Scenario.power_law(100), seed=1, windows=1)
    found = choose(events, 12, k=2, probability=0.5)
    assert found.by_count is None
    assert found.chosen is found.by_model
    assert {at.measured for at in found.points} == {None}


@pytest.mark.parametrize("probability", [0.0, 1.5, -1.0])
def test_invalid_probabilities_are_refused(probability):
    with pytest.raises(ParameterError, match="probability"):
        choose(poisson_events(Scenario.power_law(10), 0), 12, k=2, probability=probability)


def test_a_curve_neednt_be_monotonic():
    reaches = {1: True, 5: False, 9: True, 20: True}
    assert least_z(list(reaches), list(reaches.values()), lambda z: z >= 7) == 7
    assert least_z([1, 5], [True, True], lambda z: False) == 1


def test_a_probability_never_reached_publishes_nothing():
    # Fewer subjects than k: nobody is k-anonymous, whatever is published.
    events = poisson_events(Scenario.power_law(5), seed=1, windows=4)
    found = choose(events, 12, k=6, probability=0.5)
    assert found.by_model.z == found.estimate.n_subjects + 1
    assert found.by_model.model.upper == 0.0


def test_some_z():
    assert z_grid(1, 8) == [1]
    assert z_grid(3, 8) == [1, 2, 3]
    many = z_grid(10**6, 20)
    assert len(many) == 18  # both ends are in both halves
    assert (many[0], many[-1]) == (1, 10**6)


def test_a_curve_has_more_points_where_it_rises():
    points = curve(Scenario.power_law())
    steep = rising(points)
    assert steep[-1].model.lower >= 0.9995
    assert steep[-2].model.lower < 0.9995
    assert len(steep) > 16
    assert points[-1].z == 1001


def choice(window, published):
    made = Estimate(window, 4, 10, 10, (0.1,))
    point = Point(3, Bounds(0.9, 0.9), None if published is None else 0.9, published)
    return Choice(made, (point,), point, None if published is None else point)


def test_the_best_publishes_most():
    assert best([choice(1, 0.2), choice(2, 0.5), choice(3, 0.1)]).estimate.window == 2
    assert best([choice(1, None), choice(2, None)]).estimate.window == 2
    assert best([choice(1, 0.0), choice(9, None)]).estimate.window == 1


def test_windows_to_try():
    assert candidate_windows(Events(np.array([0.0, 2.0]), *TWO)) == [0.5]
    in_rows = Events(np.array([0.0, 9_999.0]), *TWO, in_rows=True)
    assert candidate_windows(in_rows) == [100.0, 200.0, 500.0, 1000.0]
    assert candidate_windows(Events(np.array([3.0, 3.0]), *TWO)) == [1.0]
