"""Test the counts in events, and the simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.models.z import naive

from shoal.models.z import (
    Events,
    Measured,
    Scenario,
    exact,
    n_in_window,
    poisson_events,
    simulate,
    simulated_shares,
)

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, database=None)

rows = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(0, 3)), max_size=60
).map(sorted)


def events_of(rows, **more):
    clock, subjects, attributes = zip(*rows, strict=True)
    return Events(
        np.array(clock, float), np.array(subjects, np.int64), np.array(attributes, np.int64), **more
    )


@SETTINGS
@given(rows.filter(len), st.integers(1, 12))
def test_counters_are_those_of_algorithm_1(rows, window):
    assert n_in_window(events_of(rows), window).tolist() == naive.counters(rows, window)


@SETTINGS
@given(rows.filter(len), st.integers(1, 12))
def test_a_window_in_rows_has_that_many_rows(rows, window):
    numbered = [(i, u, a) for i, (_, u, a) in enumerate(rows)]
    found = n_in_window(events_of(numbered, in_rows=True), window)
    assert found.tolist() == naive.counters(numbered, window, in_rows=True)
    expected = [
        len({u for _, u, b in numbered[max(0, i - window + 1) : i + 1] if b == a})
        for i, _, a in numbered
    ]
    assert found.tolist() == expected


def test_what_is_as_old_as_the_window_is_in_it():
    events = events_of([(0, 0, 0), (10, 1, 0), (10.5, 2, 0)])
    assert n_in_window(events, 10).tolist() == [1, 2, 2]


@SETTINGS
@given(rows.filter(len), st.integers(2, 8), st.integers(1, 4), st.booleans())
def test_anonymity_sets_publish_the_same(rows, window, z, with_silent):
    n_windows = 31 // window
    n_subjects = 7 if with_silent else None
    measured = Measured(events_of(rows, begin=0.0, end=31.0), window, n_subjects)
    found = measured.anonymity_sets(z)
    expected = naive.anonymity_sets(rows, window, z, n_windows, n_subjects)
    assert sorted(found.n_subjects.tolist()) == expected
    total = sum(expected)
    assert measured.n_present == total
    for k in (1, 2, 3):
        share = sum(n for n in expected if n >= k) / total if total else 1.0
        assert found.share(k) == pytest.approx(share)
    inside = [window <= t < n_windows * window for t, _, _ in rows]
    passed = [count >= z for count in naive.counters(rows, window)]
    both = sum(a and b for a, b in zip(inside, passed, strict=True))
    assert measured.published(z) == pytest.approx(both / sum(inside) if any(inside) else 0.0)


def test_no_events():
    nothing = Events(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    assert (nothing.span, nothing.start, len(nothing)) == (0.0, 0.0, 0)
    assert n_in_window(nothing, 3).tolist() == []
    measured = Measured(nothing, 3)
    assert (measured.n_windows, measured.n_present, measured.published(2)) == (0, 0, 0.0)
    assert measured.anonymity_sets(2).share(2) == 1.0


def test_a_repr_has_no_values():
    assert repr(events_of([(1, 4242, 0)])) == "Events(n_events=1)"


def test_events_follow_their_rates():
    scenario = Scenario.power_law(200, 4)
    events = poisson_events(scenario, seed=3, windows=20)
    assert events.span == 240
    counts = np.bincount(events.attributes)
    expected = np.array(scenario.rates) * 240 * 200
    assert (np.abs(counts - expected) < 4 * np.sqrt(expected)).all()
    again = poisson_events(scenario, seed=3, windows=20)
    assert np.array_equal(events.clock, again.clock)
    assert not np.array_equal(events.clock, poisson_events(scenario, seed=4, windows=20).clock[:1])


def test_a_simulation_discards_the_transient():
    run = simulate(Scenario.power_law(100), seed=0)
    assert run.n_windows == 1
    assert run.n_present == 100  # silent ones, too


# -- the model against the simulation -----------------------------------------------------------

SEEDS = range(10)


def apart(scenario):
    """The mean of the simulations less the model, and its standard error."""
    shares = simulated_shares(scenario, SEEDS)
    return shares.mean() - exact(scenario), shares.std(ddof=1) / math.sqrt(len(shares))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_simulation_agrees_with_the_model_in_table_2(k):
    gap, error = apart(Scenario.power_law(k=k))
    assert abs(gap) <= 3 * error


@pytest.mark.parametrize("z", [1, 100, 200, 250])
def test_and_under_other_z(z):
    gap, error = apart(Scenario.power_law(z=z))
    assert abs(gap) <= 3 * error


@pytest.mark.parametrize("z", [280, 300, 350])
def test_where_z_is_large_the_model_promises_a_little_less_than_is_there(z):
    # All subjects see the same counts, which leaves them more alike than the model thinks. With
    # few attributes left the simulations vary so little that it can be seen.
    gap, error = apart(Scenario.power_law(z=z))
    assert 3 * error < gap < 0.02


def test_the_default_is_the_paper_s():
    # What the paper prints beside Figure 3, as far as it can be had: see docs/figures/z.md.
    assert exact(Scenario.power_law(z=400)) > 0.99
    assert exact(Scenario.power_law(z=100)) - exact(Scenario.power_law(z=1)) < 0.01
