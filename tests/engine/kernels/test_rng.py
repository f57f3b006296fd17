"""The random numbers: the published test vector, and even draws."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from shoal.engine.kernels.rng import below, block, seeded, shuffle, uniform, word


def chi_square(counts: list[int]) -> float:
    expected = sum(counts) / len(counts)
    return sum((count - expected) ** 2 / expected for count in counts)


def generous(cells: int) -> float:
    """A bound on chi-square that chance passes once in many thousands of seeds."""
    freedom = cells - 1
    return freedom + 5 * (2 * freedom) ** 0.5


def test_the_block_of_rfc_8439_section_2_3_2() -> None:
    key = np.frombuffer(bytes(range(32)), "<u4").astype(np.int64)
    tail = np.array([0x00000001, 0x09000000, 0x4A000000, 0x00000000])
    out = np.empty(16, np.int64)
    block(key, tail, 20, out)
    assert [f"{number:08x}" for number in out] == [
        "e4e7f110", "15593bd1", "1fdd0f50", "c47120a3",
        "c7f4d1c7", "0368c033", "9aaa2204", "4e6cd4c3",
        "466482d2", "09aa9f07", "05d7c214", "a2028bd9",
        "d19c12b5", "b94e16de", "e883d0cb", "4e3c50a2",
    ]  # fmt: skip


def test_words_are_the_blocks_of_twelve_rounds_one_after_another() -> None:
    state = seeded(b"words", "test")
    key, nonce = state[:8].copy(), state[10:12].copy()
    out, expected = np.empty(16, np.int64), []
    for count in range(3):
        block(key, np.array([count, 0, *nonce]), 12, out)
        expected += out.tolist()
    assert [int(word(state)) for _ in range(48)] == expected


def test_the_counter_carries() -> None:
    state = seeded(b"carry", "test")
    state[8] = 0xFFFFFFFF
    word(state)
    assert state[8:10].tolist() == [0, 1]


def test_seeds_and_streams_differ_and_repeat() -> None:
    draws = {
        name: tuple(int(word(state)) for _ in range(4))
        for name, state in {
            "one": seeded(b"1", "a"), "other seed": seeded(b"2", "a"), "other": seeded(b"1", "b"),
        }.items()
    }  # fmt: skip
    assert len(set(draws.values())) == 3
    again = seeded(b"1", "a")
    assert tuple(int(word(again)) for _ in range(4)) == draws["one"]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10])
def test_below_is_even(n: int) -> None:
    state = seeded(b"even", f"below {n}")
    counts = Counter(int(below(state, n)) for _ in range(300 * n))
    assert set(counts) == set(range(n))
    if n > 1:
        assert chi_square([counts[i] for i in range(n)]) < generous(n)


def test_below_draws_again_past_the_last_multiple() -> None:
    """With n = 3 · 2^30 a plain remainder would favour the first third two to one."""
    state = seeded(b"again", "below")
    n = 3 * 2**30
    low = sum(below(state, n) < 2**30 for _ in range(900))
    assert abs(low - 300) < 5 * (900 * 1 / 3 * 2 / 3) ** 0.5


def test_below_reaches_the_whole_width() -> None:
    state, same = seeded(b"wide", "below"), seeded(b"wide", "below")
    assert [int(below(state, 2**32)) for _ in range(20)] == [int(word(same)) for _ in range(20)]


def test_uniform_is_53_bits_of_two_words() -> None:
    state, same = seeded(b"bits", "uniform"), seeded(b"bits", "uniform")
    for _ in range(50):
        high, low = int(word(same)) >> 5, int(word(same)) >> 6
        assert uniform(state) == (high * 2**26 + low) / 2**53
    assert (state == same).all()


@pytest.mark.parametrize(("bits", "number"), [(0, 0.0), (0xFFFFFFFF, 1 - 2.0**-53)])
def test_uniform_reaches_from_0_to_below_1(bits: int, number: float) -> None:
    state = seeded(b"ends", "uniform")
    word(state)
    state[12:28] = bits
    assert uniform(state) == number


def test_uniform_is_even() -> None:
    state = seeded(b"even", "uniform")
    counts = Counter(int(uniform(state) * 20) for _ in range(4000))
    assert set(counts) == set(range(20))
    assert chi_square(list(counts.values())) < generous(20)


def test_shuffle_is_even_over_all_orders() -> None:
    state = seeded(b"orders", "shuffle")
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(2400):
        items = np.arange(4)
        shuffle(state, items)
        counts[tuple(items.tolist())] += 1
    assert len(counts) == 24
    assert chi_square(list(counts.values())) < generous(24)


def test_shuffle_of_little_draws_nothing() -> None:
    state = seeded(b"little", "shuffle")
    before = state.copy()
    for items in (np.arange(0), np.arange(1)):
        shuffle(state, items)
    assert (state == before).all()
