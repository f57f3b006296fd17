from __future__ import annotations

import math

import pytest

from shoal.cli.init.bands import band_rows, read_band, read_bands
from shoal.spec.hierarchy import Hierarchy


@pytest.mark.parametrize(
    ("text", "lo", "hi"),
    [
        ("[0-10)", 0, 10),
        ("[0, 10)", 0, 10),
        ("(0;10]", 0, 10),
        ("18-25", 18, 25),
        ("18 – 25", 18, 25),
        ("18 to 25 years", 18, 25),
        ("1.5..2.5", 1.5, 2.5),
        ("65+", 65, math.inf),
        ("over 65", 65, math.inf),
        (">= 65", 65, math.inf),
        ("65 and over", 65, math.inf),
        ("<18", -math.inf, 18),
        ("under 18", -math.inf, 18),
    ],
)
def test_these_are_bands(text: str, lo: float, hi: float) -> None:
    band = read_band(text)
    assert band is not None
    assert (band.lo, band.hi) == (lo, hi)


@pytest.mark.parametrize("text", ["42", "2020-01", "a-b", "", "10115 Berlin", "90-80"])
def test_these_are_none(text: str) -> None:
    assert read_band(text) is None


def test_bands_that_overlap_or_are_few_are_no_scale() -> None:
    assert read_bands(["0-10", "5-15", "20-30"]) is None
    assert read_bands(["12-345", "13-222", "99-101"]) is None
    assert read_bands(["0-10", "10-20"]) is None
    assert read_bands(["0-10", "10-20", "20-30", "a", "b", "c"]) is None


@pytest.mark.parametrize("n", range(3, 14))
def test_a_tree_of_any_number_of_bands_keeps_their_order(n: int) -> None:
    texts = [f"[{10 * i}-{10 * i + 10})" for i in range(n)]
    bands = read_bands(texts[::-1])
    assert bands is not None
    tree = Hierarchy.from_rows(band_rows(bands, ["unknown"], "*"))
    assert tree.leaves == (*texts, "unknown")
    assert tree.label(0, 1) == "[0-20)"
    # What isn't a band is nobody's neighbour.
    assert tree.label(0, n) == "*"


def test_open_ends_are_joined_too() -> None:
    bands = read_bands(["<18", "18-39", "40-64", "65+"])
    assert bands is not None
    rows = band_rows(bands, [], "*")
    assert [row[1] for row in rows] == ["<39", "<39", "40+", "40+"]
