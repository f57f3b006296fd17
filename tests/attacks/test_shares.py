"""Wilson intervals against published values."""

from __future__ import annotations

import pytest

from shoal.attacks import Share, wilson


# Newcombe (1998), Statistics in Medicine 17, Table I: method 3, the score interval.
@pytest.mark.parametrize(
    ("successes", "attempts", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_intervals_of_newcombe(successes, attempts, low, high):
    assert wilson(successes, attempts) == pytest.approx((low, high), abs=5e-5)


def test_the_ends_are_exact():
    assert wilson(0, 7)[0] == 0.0
    assert wilson(7, 7)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)
    assert Share(0, 0).rate is None


def test_a_sum_of_probabilities_lies_in_its_interval():
    low, high = Share(2.5, 10).interval
    assert low < 0.25 < high
