"""Ladders: which labels a value can be published under, and how they lie above each other."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ParameterError
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import DEGREE, Grid, Open, Path, level_labels, n_levels

TREE = Hierarchy.from_dict(
    {"*": {"Italy": {"Turin": ["Crocetta", "Lingotto"], "Milan": None}, "Malta": None}}
)


# -- paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Italy*Turin*Crocetta", ("Italy*Turin*Crocetta", "Italy*Turin", "Italy")),
        ("Italy*Turin", ("Italy*Turin", "Italy*Turin", "Italy")),
        ("Italy", ("Italy", "Italy", "Italy")),
        # More parts than levels: the finest level has them all, the next is short already.
        ("Italy*Turin*Crocetta*5*b", ("Italy*Turin*Crocetta*5*b", "Italy*Turin", "Italy")),
        # A separator at the beginning belongs to the first part.
        ("*Italy*Turin", ("*Italy*Turin", "*Italy*Turin", "*Italy")),
        ("*", ("*", "*", "*")),
        # Parts that are empty are none.
        ("Italy**x", ("Italy**x", "Italy*x", "Italy")),
        # White space around a separator doesn't make another label.
        ("Italy * Turin * x", ("Italy * Turin * x", "Italy*Turin", "Italy")),
    ],
)
def test_a_path_loses_a_part_with_every_level(text, expected):
    assert level_labels(Path("*", levels=3), text) == expected


def test_a_path_of_one_level_is_an_open_domain():
    assert level_labels(Path("/", levels=1), "a/b/c") == level_labels(Open(), "a/b/c") == ("a/b/c",)


def test_the_white_space_of_a_separator_is_its_own():
    commas = Path(", ", levels=3)
    assert level_labels(commas, "Italy, , x") == ("Italy, , x", "Italy, x", "Italy")
    assert level_labels(commas, "Italy,") == ("Italy,", "Italy,", "Italy,")
    assert level_labels(commas, "Italy, Turin") == ("Italy, Turin", "Italy, Turin", "Italy")


def test_a_separator_may_have_several_characters():
    assert level_labels(Path("::", levels=3), "a:b::c::d") == ("a:b::c::d", "a:b::c", "a:b")


texts = st.text(alphabet="ab/ ", min_size=1, max_size=12).map(str.strip).filter(bool)


separators = st.sampled_from(["/", "/a", "/ ", " / ", " "])


@given(st.lists(texts, min_size=2, max_size=8), st.integers(1, 6), separators)
def test_a_label_lies_under_the_same_labels_whatever_text_it_comes_from(given_texts, n, separator):
    above: dict[tuple[int, str], str] = {}
    for text in given_texts:
        ladder = level_labels(Path(separator, levels=n), text)
        assert len(ladder) == n
        assert ladder[0] == text
        assert all(ladder)
        for level in range(n - 1):
            coarser = above.setdefault((level, ladder[level]), ladder[level + 1])
            assert coarser == ladder[level + 1]


@pytest.mark.parametrize(
    ("separator", "levels", "key"),
    [
        ("", 5, "Path.separator"),
        (None, 5, "Path.separator"),
        ("/", 0, "Path.levels"),
        ("/", 21, "Path.levels"),
        ("/", True, "Path.levels"),
        ("/", 2.0, "Path.levels"),
    ],
)
def test_paths_that_are_none_are_refused(separator, levels, key):
    with pytest.raises(ParameterError, match=key):
        Path(separator, levels)


# -- hierarchies, numbers, open domains ----------------------------------------------------------


def test_a_leaf_climbs_up_to_below_the_root_and_a_short_branch_repeats_its_leaf():
    assert level_labels(TREE, "Crocetta") == ("Crocetta", "Turin", "Italy")
    assert level_labels(TREE, "Milan") == ("Milan", "Milan", "Italy")
    assert level_labels(TREE, "Malta") == ("Malta", "Malta", "Malta")
    assert level_labels(Hierarchy.flat(["a", "b"]), "a") == ("a",)
    # One value alone, that is its own root, still has a level.
    assert n_levels(Hierarchy.flat(["a"])) == 1


@pytest.mark.parametrize(
    ("domain", "number", "expected"),
    [
        (Range(0, 100, step=10), 0, "[0, 10)"),
        (Range(0, 100, step=10), 9.999, "[0, 10)"),
        (Range(0, 100, step=10), 10, "[10, 20)"),
        (Range(0, 100, step=10), 100, "[100, 110)"),
        (Range(-50, 50, step=20), -50, "[-60, -40)"),
        (Range(-50, 50, step=20), -0.5, "[-20, 0)"),
        (Range(0, 1, step=0.1), 0.3, "[0.3, 0.4)"),
        (Range(0, 1, step=0.1), 0.7, "[0.7, 0.8)"),
        (Range(0, 9, step=2.5), 7.5, "[7.5, 10)"),
        # Divided by the step, these are rounded to the other side of a bound.
        (Range(0, 9, step=0.7), 3.4999999999999996, "[2.8, 3.5)"),
        (Range(0, 9, step=0.3), 5.699999999999999, "[5.4, 5.7)"),
    ],
)
def test_a_number_is_the_step_that_it_lies_in(domain, number, expected):
    assert level_labels(domain, number) == (expected,)


@given(st.floats(-1000, 1000), st.sampled_from([0.01, 0.1, 0.3, 1.0, 2.5, 7.0, 1 / 3]))
def test_a_number_is_in_its_own_half_open_step(number, step):
    (label,) = level_labels(Range(-1000, 1000, step=step), number)
    low, high = (float(bound) for bound in label[1:-1].split(","))
    # Labels have fifteen digits.
    assert low <= number + 1e-9
    assert number < high + 1e-9
    assert high - low == pytest.approx(step)


def test_what_domains_are():
    assert Open() == Open()
    assert Open() != Path("/")
    assert hash(Open()) == hash(Open())
    assert repr(Open()) == "Open()"
    assert Path("/", 3) == Path("/", levels=3) != Path("/", 4)
    assert len({Path("/", 3), Path("/", 3), Path("*", 3)}) == 2
    assert Path("/") != "/"
    assert repr(Path("*", 3)) == "Path('*', levels=3)"
    one, other = Grid("lat", "lon", [10, 20]), Grid("lat", "lon", (10, 20))
    assert one == other != Grid("lat", "lon", [10])
    assert len({one, other, Grid("a", "lon", [10, 20])}) == 2
    assert one != "lat"
    assert repr(one) == "Grid('lat', 'lon', [10, 20])"
    assert [n_levels(d) for d in (one, Open(), Range(0, 1, step=1), TREE)] == [2, 1, 1, 3]


# -- grids ---------------------------------------------------------------------------------------

latitudes, longitudes = st.floats(-90, 90), st.floats(-180, 180)
GRID = Grid("lat", "lon", [500, 1000, 5000])


def corners(label: str, wide: float) -> tuple[float, float, float, float]:
    """South, north, west and east of a cell, given how many metres a degree of longitude has."""
    middle, side = label.split("/")
    latitude, longitude = (float(part) for part in middle.split(","))
    high, across = int(side) / DEGREE / 2, int(side) / wide / 2
    return latitude - high, latitude + high, longitude - across, longitude + across


@given(latitudes, longitudes)
def test_a_position_lies_in_its_cells_and_a_cell_in_the_next_coarser_one(latitude, longitude):
    labels = level_labels(GRID, (latitude, longitude))
    assert labels == GRID.level_labels(latitude, longitude)
    assert [label.split("/")[1] for label in labels] == ["500", "1000", "5000"]
    wide = GRID.cell(latitude, longitude, 0).scale
    slack = 1.1e-5
    boxes = [corners(label, wide) for label in labels]
    for south, north, west, east in boxes:
        assert south - slack <= latitude <= north + slack
        assert west - slack <= longitude <= east + slack
    for fine, coarse in itertools.pairwise(boxes):
        assert coarse[0] - slack <= fine[0] < fine[1] <= coarse[1] + slack
        assert coarse[2] - slack <= fine[2] < fine[3] <= coarse[3] + slack


@given(st.floats(-85, 85), longitudes)
def test_a_cell_is_about_as_wide_as_it_is_high(latitude, longitude):
    cell = GRID.cell(latitude, longitude, 0)
    at_the_position = math.cos(math.radians(latitude)) * DEGREE
    assert cell.scale == pytest.approx(at_the_position, rel=0.01)


def test_near_by_positions_share_a_cell_and_far_ones_dont():
    mole, castle, rome = (45.0690, 7.6932), (45.0708, 7.6862), (41.89, 12.49)
    fine, middle, coarse = zip(GRID.level_labels(*mole), GRID.level_labels(*castle), strict=True)
    assert fine[0] != fine[1]
    assert coarse[0] == coarse[1]
    assert middle[0] != middle[1]
    assert not set(GRID.level_labels(*mole)) & set(GRID.level_labels(*rome))


@pytest.mark.parametrize("latitude", [-90.0, 90.0, 89.9999])
def test_the_poles_have_cells_too(latitude):
    assert len(set(GRID.level_labels(latitude, 180.0))) == 3


@pytest.mark.parametrize(
    ("latitude", "longitude", "cells", "match"),
    [
        ("", "lon", [10], "Grid.latitude: must name a column"),
        ("lat", None, [10], "Grid.longitude: must name a column"),
        ("lat", "lat", [10], "another column than the latitude"),
        ("lat", "lon", [], "1 to 20 sides"),
        ("lat", "lon", [10 * 2**i for i in range(21)], "1 to 20 sides"),
        ("lat", "lon", [500.0], "whole metres"),
        ("lat", "lon", [True], "whole metres"),
        ("lat", "lon", [9], "from 10 to 10,000,000 metres; got 9"),
        ("lat", "lon", [20_000_000], "from 10 to 10,000,000"),
        ("lat", "lon", [500, 500], "got 500 after 500. For example 500, 1000"),
        ("lat", "lon", [1000, 500], "from fine to coarse"),
        ("lat", "lon", [500, 1200], "got 1200 after 500. For example 500, 1000"),
    ],
)
def test_grids_that_are_none_are_refused(latitude, longitude, cells, match):
    with pytest.raises(ParameterError, match=match):
        Grid(latitude, longitude, cells)
