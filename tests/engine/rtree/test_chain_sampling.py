"""Chain sampling: as its twin does it, uniform over the latest rows, and in bounded room.

The bounds on chi-square are quantiles by the approximation of Wilson and Hilferty: a fair draw
exceeds one of them about once in 30,000 seeds, and all seeds are fixed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.engine.kernels.boxes import covers
from shoal.engine.kernels.rng import seeded
from shoal.engine.rtree import chain_sampling as kernels
from shoal.engine.rtree.chain_sampling import Chains, arrives, empty, inside, n_inside, renew
from tests.naive.chains import NaiveChains

Floats = NDArray[np.float64]
PLAIN = bool(numba.config.DISABLE_JIT)
#: A normal variable is beyond it with probability 1 / 31,574.
SIGMAS = 4.0


def bound(freedom: int) -> float:
    """Return the chi-square quantile for a probability of 1 in 30,000."""
    part = 2 / (9 * freedom)
    return freedom * (1 - part + SIGMAS * math.sqrt(part)) ** 3


def chi_square(counts: Iterable[int], cells: int) -> float:
    observed = list(counts)
    expected = sum(observed) / cells
    return sum((n - expected) ** 2 / expected for n in observed) + expected * (
        cells - len(observed)
    )


def rows(n: int, n_quasi: int = 2, seed: int = 1) -> Iterator[tuple[int, Floats, Floats]]:
    """Positions and boxes; some are empty on a side, as those of rows with gaps are."""
    draw = np.random.default_rng(seed)
    for position in range(n):
        lo = draw.integers(0, 10, n_quasi).astype(float)
        hi = lo + draw.integers(0, 3, n_quasi)
        if draw.random() < 0.1:
            lo[0], hi[0] = np.inf, -np.inf
        yield position, lo, hi


def take(
    chains: Chains, random: NDArray[np.int64], position: int, lo: Floats, hi: Floats
) -> list[int]:
    """One row comes; the chains that have changed."""
    changed = np.full(len(chains.positions), -1)
    n = arrives(chains, random, position, lo, hi, changed)
    for c in changed[:n]:
        renew(chains, c)
    return [int(c) for c in changed[:n]]


def run(
    samples: int, span: int, n: int, seed: str, *, random: NDArray[np.int64] | None = None
) -> Chains:
    """Chains after n rows whose only value is their position."""
    chains = empty(samples, span, 1)
    random = seeded(seed.encode(), "chains") if random is None else random
    for position in range(n):
        box = np.array([float(position)])
        take(chains, random, position, box, box)
    return chains


# -- the twin -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "span", "n_links"),
    [(1, 1, 20), (1, 2, 20), (7, 1, 20), (40, 2, 20), (13, 7, 20), (60, 30, 20), (300, 64, 20),
     (5, 1000, 20), (40, 20, 1), (40, 20, 2)],
)  # fmt: skip
def test_it_is_its_twin_draw_by_draw(samples: int, span: int, n_links: int) -> None:
    chains, twin = empty(samples, span, 2, n_links), NaiveChains(samples, span, n_links=n_links)
    random, same = (seeded(b"twin", "chains") for _ in range(2))
    for position, lo, hi in rows(150 if PLAIN else 1500):
        box = tuple(zip(lo.tolist(), hi.tolist(), strict=True))
        former = [(twin.position(c), twin.box(c)) for c in range(samples)] if position else []
        changed = np.full(samples, -1)
        n = arrives(chains, random, position, lo, hi, changed)
        assert former == (shown(chains) if position else [])
        assert changed[:n].tolist() == twin.arrives(same, position, box)
        assert (random == same).all()
        for c in changed[:n].tolist():
            renew(chains, c)
            twin.renew(c)
        assert shown(chains) == [(twin.position(c), twin.box(c)) for c in range(samples)]
        assert chains.chains["n_links"].tolist() == [len(chain.links) for chain in twin.chains]


def shown(chains: Chains) -> list[tuple[int, tuple[tuple[float, float], ...]]]:
    return [
        (int(position), tuple(zip(lo, hi, strict=True)))
        for position, lo, hi in zip(
            chains.positions, chains.lo.tolist(), chains.hi.tolist(), strict=True
        )
    ]


# -- uniform over the latest rows -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "moments"),
    [
        (1, [1, 2, 5]),
        (2, [1, 2, 3, 4, 9, 20]),
        (3, [2, 3, 4, 5, 7, 20]),
        (16, [9, 16, 17, 24, 32, 33, 80]),
    ],
)
def test_every_row_of_the_window_is_equally_likely(span: int, moments: list[int]) -> None:
    """Before the span is full, when it has just become so, and long after."""
    samples = 2000 if PLAIN else 30_000
    chains, random = empty(samples, span, 1), seeded(b"even", f"span {span}")
    for position in range(moments[-1]):
        box = np.array([float(position)])
        take(chains, random, position, box, box)
        if position + 1 in moments:
            latest = min(span, position + 1)
            assert chains.positions.max() == position
            assert chains.positions.min() == position + 1 - latest
            if latest > 1:
                counts = Counter(chains.positions.tolist()).values()
                assert chi_square(counts, latest) < bound(latest - 1)


def test_one_chain_is_even_over_time() -> None:
    """Ages of one sample, looked at so seldom that no row is seen twice."""
    span, times = 4, 400 if PLAIN else 4000
    chains, random, ages = empty(1, span, 1), seeded(b"one", "chains"), Counter[int]()
    for position in range(3 * span * times):
        box = np.array([float(position)])
        take(chains, random, position, box, box)
        if position % (3 * span) == 3 * span - 1:
            ages[position - int(chains.positions[0])] += 1
    assert set(ages) == set(range(span))
    assert chi_square(ages.values(), span) < bound(span - 1)


def test_a_coin_that_counts_when_the_sample_leaves_favours_the_newest_row() -> None:
    """The flaw that is fixed: over two rows, three in five samples would be the newest."""
    samples, shares = 2000, {}
    for coins_rest in (True, False):
        twin, random = NaiveChains(samples, 2, coins_rest=coins_rest), seeded(b"coin", "chains")
        for position in range(20):
            for c in twin.arrives(random, position, ((0.0, 0.0),)):
                twin.renew(c)
        newest = sum(twin.position(c) == 19 for c in range(samples))
        shares[coins_rest] = newest / samples
    spread = SIGMAS * math.sqrt(0.25 / samples)
    assert abs(shares[True] - 1 / 2) < spread
    assert abs(shares[False] - 3 / 5) < spread


@pytest.mark.parametrize("span", [2, 5, 40])
def test_chains_know_nothing_of_each_other(span: int) -> None:
    """Two chains agree as often as two uniform draws do, and so do their ranks."""
    samples = 2000 if PLAIN else 20_000
    positions = run(samples, span, 3 * span + 1, f"apart {span}").positions
    first, second = positions[0::2], positions[1::2]
    agree = int((first == second).sum())
    n, p = len(first), 1 / span
    assert abs(agree - n * p) < SIGMAS * math.sqrt(n * p * (1 - p))
    assert abs(np.corrcoef(first, second)[0, 1]) < SIGMAS / math.sqrt(n)


# -- the next row that a coin selects -------------------------------------------------------------


def rigged(*numbers: Fraction) -> NDArray[np.int64]:
    """A random state whose next uniform numbers are these (multiples of 2**-53)."""
    state = seeded(b"rigged", "chains")
    state[12:] = 0
    for i, number in enumerate(numbers):
        bits = int(number * 2**53)
        state[12 + 2 * i], state[13 + 2 * i] = (bits >> 26) << 5, (bits & (2**26 - 1)) << 6
    return state


ALMOST_1 = 1 - Fraction(1, 2**53)


@pytest.mark.parametrize(
    ("position", "span", "draws", "expected"),
    [
        (0, 1, [], 1),
        (41, 1, [], 42),
        (0, 100, [Fraction(0)], 1),
        # None of the rows 2 to 4 is selected with probability 1 / 4; the next is number 5.
        (0, 100, [Fraction(3, 4)], 4),
        (0, 100, [Fraction(3, 4) - Fraction(1, 2**53)], 3),
        (9, 100, [Fraction(1, 2)], 20),
        # Past the span the tosses are geometric from its end on.
        (0, 4, [Fraction(3, 4), Fraction(0)], 4),
        (0, 4, [Fraction(3, 4), Fraction(1, 4) + Fraction(1, 2**50)], 5),
        (0, 10_000_000, [ALMOST_1, Fraction(0)], 10_000_000),
        (3, 4, [Fraction(0)], 4),
        (77, 4, [Fraction(1, 4) - Fraction(1, 2**50)], 78),
        (77, 4, [Fraction(1, 4) + Fraction(1, 2**50)], 79),
    ],
)
def test_the_next_selected_row(
    position: int, span: int, draws: list[Fraction], expected: int
) -> None:
    state = rigged(*draws)
    assert kernels._next_selected(state, position, span) == expected
    assert state[28] == 2 * len(draws)


def test_the_rarest_draw_is_a_whole_number() -> None:
    far = kernels._next_selected(rigged(ALMOST_1, ALMOST_1), 5, 10_000_000)
    assert 360_000_000 < far < 380_000_000


@pytest.mark.parametrize("span", [2, 6])
def test_drawing_the_next_one_is_tossing_a_coin_for_each_row(span: int) -> None:
    """How often each of the first rows is selected: 1 / min(number, span)."""
    times, n = 1500 if PLAIN else 15_000, 4 * span
    random, selected = seeded(b"coins", "chains"), Counter[int]()
    for _ in range(times):
        position = 0
        while position < n:
            selected[position] += 1
            position = int(kernels._next_selected(random, position, span))
    assert selected[0] == times
    for position in range(1, n):
        p = 1 / min(position + 1, span)
        assert abs(selected[position] - times * p) < SIGMAS * math.sqrt(times * p * (1 - p))


# -- links and the wheel --------------------------------------------------------------------------


def test_chains_are_short() -> None:
    """Babcock et al.: a chain, its sample included, has fewer than e elements on average."""
    samples = 1000 if PLAIN else 3000
    links = run(samples, 50, 200, "short").chains["n_links"]
    assert 0 < links.mean() < math.e - 1
    assert links.max() < kernels.LINKS


@pytest.mark.parametrize("n_links", [1, 2])
def test_a_chain_without_room_still_has_a_sample_of_the_window(n_links: int) -> None:
    chains, random, span, was_full = empty(200, 10, 1, n_links), seeded(b"full", "c"), 10, 0
    for position in range(150):
        box = np.array([float(position)])
        take(chains, random, position, box, box)
        was_full += int((chains.chains["n_links"] == n_links).sum())
        assert (chains.positions > position - span).all()
        assert (chains.positions <= position).all()
        assert (chains.lo[:, 0] == chains.positions).all()
        assert (chains.chains["n_links"] <= n_links).all()
    assert was_full > 0


@pytest.mark.parametrize(("samples", "span"), [(1, 1), (30, 4), (30, 50), (3, 400)])
def test_every_chain_waits_in_the_bucket_of_what_it_has_to_do_next(samples: int, span: int) -> None:
    chains, random = empty(samples, span, 1), seeded(b"wheel", "chains")
    for position in range(4 * span if span > 1 else 9):
        box = np.array([float(position)])
        take(chains, random, position, box, box)
        waiting = {}
        for bucket, first in enumerate(chains.wheel.tolist()):
            c = first
            while c >= 0:
                waiting[c] = bucket
                c = int(chains.chains["following"][c])
        assert set(waiting) == set(range(samples))
        for c, bucket in waiting.items():
            chain = chains.chains[c]
            upcoming = min(chains.positions[c] + span, chain["awaited"], chain["selected"])
            assert position < upcoming <= position + span
            assert upcoming % span == bucket


def test_a_copy_continues_as_if_nothing_had_happened() -> None:
    chains, random = empty(50, 20, 2), seeded(b"copy", "chains")
    stream = list(rows(120))
    for row in stream[:55]:
        take(chains, random, *row)
    copy, again = Chains(*(array.copy() for array in chains)), random.copy()
    copy.marks[:] = 7
    for row in stream[55:]:
        assert take(chains, random, *row) == take(copy, again, *row)
        n_inside(chains, row[1], row[2])
    assert all((a == b).all() for a, b in zip(chains[:-1], copy[:-1], strict=True))
    assert (random == again).all()


def test_rows_are_not_changed() -> None:
    lo, hi = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    chains = empty(3, 5, 2)
    assert take(chains, seeded(b"0", "chains"), 0, lo, hi) == [0, 1, 2]
    lo[:] = hi[:] = 9.0
    assert shown(chains) == [(0, ((1.0, 3.0), (2.0, 4.0)))] * 3


# -- samples in a box -----------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [1, 127, 128, 129, 300])
def test_those_inside_a_box_are_those_it_covers(samples: int) -> None:
    chains, random = empty(samples, 400, 3), seeded(b"inside", "chains")
    for row in rows(300, 3):
        take(chains, random, *row)
    seen = Counter[bool]()
    boxes: list[tuple[Floats, Floats]] = [(lo, hi) for _, lo, hi in rows(20, 3, seed=2)]
    boxes += [(lo - 3, hi + 3) for lo, hi in boxes]
    boxes += [(np.zeros(3), np.full(3, 20.0)), (np.full(3, np.inf), np.full(3, -np.inf))]
    for lo, hi in boxes:
        expected = [c for c in range(samples) if covers(lo, hi, chains.lo[c], chains.hi[c])]
        assert inside(chains, lo, hi).tolist() == expected
        assert n_inside(chains, lo, hi) == len(expected)
        seen[bool(expected)] += 1
    assert seen[True]
    assert seen[False]


def test_where_no_row_has_come_nothing_is_inside() -> None:
    chains = empty(200, 10, 2)
    lo, hi = np.full(2, -1e300), np.full(2, 1e300)
    assert n_inside(chains, lo, hi) == 0
    assert len(inside(chains, lo, hi)) == 0
