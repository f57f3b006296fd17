"""HalfSipHash-2-4 with 64 bits, by the reference vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.engine.kernels.hashing import hash_strings
from tests.examples import examples

KEY = np.frombuffer(bytes(range(8)), "<u4").astype(np.int64)


def hashed(strings: list[bytes], key: np.ndarray = KEY) -> list[int]:
    offsets = np.cumsum([0, *map(len, strings)])
    data = np.frombuffer(b"".join(strings) or b"\0", np.uint8).copy()
    return [int(code) for code in hash_strings(key, offsets, data)]


@pytest.mark.parametrize(
    ("n", "code"),
    [(0, 0xC83CB8B9591F8D21), (1, 0x157338F8122455BE), (7, 0x84C67BB0282720FF)],
)
def test_reference_vectors(n: int, code: int) -> None:
    """Key 00 … 07, message 00 … (n - 1); the 64 bits are kept in a signed number."""
    assert hashed([bytes(range(n))])[0] % 2**64 == code


@settings(max_examples=examples(40), deadline=None, derandomize=True, database=None)
@given(strings=st.lists(st.binary(max_size=12), max_size=6))
def test_a_string_is_hashed_alike_wherever_it_lies(strings: list[bytes]) -> None:
    assert hashed(strings) == [hashed([string])[0] for string in strings]


def test_codes_are_distinct_and_depend_on_the_key() -> None:
    strings = [f"person {i}".encode() for i in range(2000)]
    codes = hashed(strings)
    assert len(set(codes)) == len(codes)
    assert min(codes) < 0 < max(codes)
    assert not set(codes) & set(hashed(strings, KEY + 1))
