"""Tails of the binomial distribution against exact arithmetic, for few people and for very many."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from shoal.models.z import Scenario, k_anonymity, passed
from shoal.models.z.tails import at_least, pmf

#: By how many standard deviations p is beside m / n.
SHIFTS = (-20.0, -6.0, -1.0, 0.0, 0.5, 3.0, 8.0)


def beside(m: int, n: int) -> list[float]:
    """Probabilities around m / n."""
    p = m / n
    spread = math.sqrt(max(p * (1 - p), 1 / n) / n)
    return [one for shift in SHIFTS if 0.0 < (one := p + shift * spread) < 1.0]


def exactly(m: int, n: int, p: float) -> float:
    """The tail in sixty digits, term by term from m on, or down from the one below it."""
    with localcontext() as context:
        context.prec = 60
        up = Decimal(p)
        down = 1 - up
        is_above = m > n * up
        j = m if is_above else m - 1
        term = math.comb(n, j) * up**j * down ** (n - j)
        total, least = Decimal(0), term * Decimal("1e-25")
        while term > least:
            total += term
            if is_above:
                term = term * (n - j) / (j + 1) * up / down
                j += 1
            else:
                term = term * j / (n - j + 1) * down / up
                j -= 1
        return float(total if is_above else 1 - total)


@pytest.mark.parametrize(
    ("m", "n"),
    [
        (40, 60), (150, 400), (59, 60), (60, 60), (5000, 12_000), (12_000, 25_000),
        (33, 10**9), (100, 10**9), (3000, 10**12), (3, 10**15), (32, 10**15), (33, 10**15),
        (9000, 10**15), pytest.param(12_000, 10**15, marks=pytest.mark.nightly),
        (10**15 - 2, 10**15), (10**15 - 50, 10**15), (10**15, 10**15),
        pytest.param(10**15 - 12_000, 10**15, marks=pytest.mark.nightly),
    ],
)  # fmt: skip
def test_a_tail_is_exact_to_rounding(m, n):
    some = beside(m, n)
    assert some
    found = at_least(m, n, np.array(some))
    # Few terms are taken from 1, so that what is left of a far tail is exact as a difference.
    wrong = 1e-11 if m > 32 else 0.0
    assert found == pytest.approx([exactly(m, n, p) for p in some], rel=wrong, abs=1e-13)


@pytest.mark.parametrize("n", [10**3, 10**9, 10**12, 10**15])
def test_terms_are_exact_to_rounding(n):
    p = 7.3 / n
    exact = Fraction(p)
    with localcontext() as context:
        context.prec = 60
        nothing = Decimal(1) - Decimal(exact.numerator) / exact.denominator
        expected = [
            float(math.comb(n, j) * Decimal(p) ** j * nothing ** (n - j)) for j in range(40)
        ]
    assert pmf(n, np.array([p]), 40)[:, 0] == pytest.approx(expected, rel=1e-11)


def test_very_many_on_both_sides():
    n = 10**15
    half = at_least(n // 2, n, np.array([0.5]))[0]
    assert half - 0.5 == pytest.approx(0.5 * math.sqrt(2 / (math.pi * n)), rel=1e-6)
    spread = math.sqrt(0.09 / n)
    for shift in (-3.0, -1.0, 1.0, 3.0):
        found = at_least(n // 10, n, np.array([0.1 + shift * spread]))[0]
        assert found == pytest.approx(0.5 * math.erfc(-shift / math.sqrt(2)), abs=1e-7)


@pytest.mark.parametrize("m", [2, 33, 20_000, 10**14, 10**15 - 1, 10**15])
def test_a_tail_rises_with_p_from_0_to_1(m):
    p = np.array([0.0, 5e-324, 1e-200, 1e-15, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-9, 1 - 2**-53, 1.0])
    found = at_least(m, 10**15, p)
    assert (found[0], found[1], found[-1]) == (0.0, 0.0, 1.0)
    assert (np.diff(found) >= 0.0).all()


def test_the_model_of_very_many_people():
    assert passed(10**12, np.array([1e-9]), 1000)[0] == pytest.approx(
        exactly(999, 10**12 - 1, 1e-9), rel=1e-11
    )
    # What a tenth exposes, z of a tenth of all lets through for half of them.
    many = Scenario(10**15, (-math.log(0.9),), 1.0, 10**14, 2)
    assert passed(10**15, np.array([0.1]), 10**14)[0] == pytest.approx(0.5, abs=1e-6)
    assert k_anonymity(many).lower == pytest.approx(1.0)
