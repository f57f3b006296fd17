"""From columns to levels: one key and one label for one value, nothing for what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.arrow.ladders import Ladders, LevelLabels, _chained, level_column
from shoal.engine.kernels.arrays import Bools, Ints
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import AnyDomain, Grid, Open, Path, level_labels, n_levels
from shoal.spec.schema import Quasi, Schema

KEY = bytes(range(8))
TREE = Hierarchy.from_dict({"*": {"pets": {"cats": None, "dogs": ["pug", "boxer"]}, "oak": None}})


class Made:
    """What became of one batch."""

    def __init__(
        self, columns: Mapping[str, Any], *quasi: Quasi, gaps: bool = False, key: bytes = KEY
    ) -> None:
        self.reasons: dict[int, str] = {}
        batch = pa.record_batch(dict(columns))
        self.keys: Ints
        self.keys, self._labels = Ladders(Schema("who", quasi), key).encode(
            batch, gaps, self._complain
        )

    def _complain(self, rows: Bools, reason: str) -> None:
        for row in np.flatnonzero(rows).tolist():
            self.reasons.setdefault(row, reason)

    def labels(self, name: str, level: int = 0) -> list[str | None]:
        found: list[str | None] = self._labels[level_column(name, level)].to_pylist()
        return found


def one(domain: AnyDomain, column: Any, **options: Any) -> Made:
    return Made({"x": column}, Quasi("x", domain), **options)


# -- text ----------------------------------------------------------------------------------------

SAME = [
    (pa.array(["7", " 7 "]), "7"),
    (pa.array([7.5, 7.5]), "7.5"),
    (pa.array(["caf\u00e9", "cafe\u0301", "caf\u00e9\u200b"]), "caf\u00e9"),
    (pa.array([7.0, 7.0]), "7"),
    (pa.array([7, 7], pa.int8()), "7"),
    (pa.array(["a", "a"]).dictionary_encode(), "a"),
    (pa.array(["a", " a"], pa.large_string()), "a"),
    (pa.array([b"\x00\xff", b"\x00\xff"]), "00ff"),
    (pa.array([b"\x00\xff", b"\x00\xff"]).dictionary_encode(), "00ff"),
    (pa.array([True, True]), "true"),
]


@pytest.mark.parametrize(("column", "label"), SAME)
def test_one_value_has_one_key_and_one_label_however_it_is_written(column, label):
    made = one(Open(), column)
    assert len(set(made.keys[:, 0].tolist())) == 1
    assert set(made.labels("x")) == {label}
    # Whatever kind of column it comes in, it is the same.
    assert made.keys[0, 0] == one(Open(), pa.array([label])).keys[0, 0]


@pytest.mark.parametrize("domain", [Open(), Path(".", 2)])
def test_numbers_that_are_text_stay_as_they_are(domain):
    made = one(domain, pa.array(["1.1", "1.10", "1.10.2", "7.0", "7"]))
    assert made.labels("x") == ["1.1", "1.10", "1.10.2", "7.0", "7"]
    assert len(set(made.keys[:, 0].tolist())) == 5


def test_other_values_other_levels_other_attributes_and_other_secrets_have_other_keys():
    quasi = Quasi("x", Path("/", 2)), Quasi("y", Path("/", 2))
    columns = {"x": ["a", "b", "a/b"], "y": ["a", "b", "b/a"]}
    made = Made(columns, *quasi)
    # By level: three leaves and two parents for each attribute, and no key twice.
    assert [len(set(made.keys[:, j].tolist())) for j in range(4)] == [3, 2, 3, 2]
    assert len(set(made.keys.flat)) == 10
    assert not set(made.keys.flat) & set(Made(columns, *quasi, key=bytes(8)).keys.flat)


def test_cells_depend_on_the_key():
    schema = Schema("who", [Quasi("x", Open())])
    batch, silent = pa.record_batch({"x": ["a"]}), lambda rows, reason: None
    of_zeros, of_key = (
        Ladders(schema, key).encode(batch, False, silent)[0] for key in (bytes(8), KEY)
    )
    assert of_zeros != of_key
    assert of_key == one(Open(), ["a"]).keys


NOTHING = [
    pa.array(["", "a", None, "  "]),
    pa.array(["", "a", None, "  "]).dictionary_encode(),
    # A fraction that is no number, and characters that can't be seen, tell nothing either.
    pa.array([float("nan"), 1.5, None, float("nan")]),
    pa.array(["\u200b", "a", None, "\ufeff "]),
    pa.array([b"", b"a", None, b""]),
]


@pytest.mark.parametrize("column", NOTHING)
@pytest.mark.parametrize("domain", [Open(), Path("/", 2)])
def test_what_is_missing_exposes_nothing(column, domain):
    made = one(domain, column, gaps=True)
    assert (made.keys[[0, 2, 3]] == 0).all()
    assert (made.keys[1] != 0).all()
    for level in range(n_levels(domain)):
        labels = made.labels("x", level)
        assert labels[0] is labels[2] is labels[3] is None
        assert labels[1] is not None
    assert not made.reasons
    strict = one(domain, column)
    assert strict.reasons == dict.fromkeys([0, 2, 3], "x is missing")


@pytest.mark.parametrize(
    "domain",
    [Open(), Path("/", 3), TREE, Range(0, 9, step=1)],
    ids=["open", "path", "tree", "range"],
)
def test_columns_of_nothing_and_batches_without_rows(domain):
    made = one(domain, pa.nulls(2), gaps=True)
    assert made.keys.shape == (2, n_levels(domain))
    assert not made.keys.any()
    empty = one(domain, pa.array([], pa.string()))
    assert empty.keys.shape == (0, n_levels(domain))
    assert empty.labels("x") == []


parts = st.text(alphabet="ab/7.0 ", max_size=8)


@given(st.lists(st.one_of(st.none(), parts), min_size=1, max_size=12), st.integers(1, 4))
def test_paths_have_the_labels_that_their_domain_says(values, levels):
    made = one(Path("/", levels), pa.array(values, pa.string()), gaps=True)
    whole = made.labels("x")
    for level in range(levels):
        expected = [t if t is None else level_labels(Path("/", levels), t)[level] for t in whole]
        assert made.labels("x", level) == expected
    for row, text in enumerate(whole):
        # Equal labels of a level, equal keys.
        for other, more in enumerate(whole):
            assert (made.keys[row, 0] == made.keys[other, 0]) == (text == more)


# -- numbers, categories, positions --------------------------------------------------------------


def test_numbers_are_steps_and_what_is_out_of_range_is_bad():
    column = pa.array(["25", "25.9", "101", "x", None, "100", "-1"])
    made = one(Range(0, 100, step=10), column, gaps=True)
    assert made.labels("x")[:2] == ["[20, 30)", "[20, 30)"]
    assert made.labels("x")[5] == "[100, 110)"
    assert made.keys[0] == made.keys[1] != made.keys[5]
    assert made.keys[4] == 0
    assert made.reasons == {
        2: "x is out of its range", 3: "x isn't a number", 6: "x is out of its range",
    }  # fmt: skip
    assert one(Range(0, 100, step=10), column).reasons[4] == "x is missing"


def test_fractions_that_are_no_numbers_are_bad_numbers():
    made = one(Range(0, 9, step=1), pa.array([1.0, float("nan"), float("inf")]), gaps=True)
    assert made.reasons == dict.fromkeys([1, 2], "x isn't a finite number")


def test_categories_climb_and_unknown_ones_are_bad():
    made = one(TREE, pa.array([" pug", "boxer", "cats", "oak", "dogs", None]), gaps=True)
    ladders = list(zip(*(made.labels("x", level) for level in range(3)), strict=True))
    assert ladders[0] == level_labels(TREE, "pug")
    assert ladders[2] == ("cats", "cats", "pets")
    assert ladders[3] == ("oak", "oak", "oak")
    assert ladders[5] == (None, None, None)
    # What isn't a leaf is none of the values that the attribute has.
    assert made.reasons == {4: "x has a category that its hierarchy lacks"}
    assert made.keys[0, 1] == made.keys[1, 1]
    assert made.keys[0, 2] == made.keys[2, 2] != made.keys[3, 2]


GRID = Grid("lat", "lon", [500, 1000, 5000])


@given(st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=20))
def test_positions_have_the_cells_that_their_grid_says(places):
    lat, lon = (pa.array(values) for values in zip(*places, strict=True))
    made = Made({"lat": lat, "lon": lon}, Quasi("cell", GRID))
    assert not made.reasons
    by_row = zip(*(made.labels("cell", level) for level in range(3)), strict=True)
    assert list(by_row) == [GRID.level_labels(*place) for place in places]


def test_a_position_needs_both_columns_and_degrees_that_there_are():
    columns = {
        "lat": ["45.07", None, "45.07", "90.1", "x", "45.07"],
        "lon": ["7.68", "7.68", "", "7.68", "7.68", "-180.5"],
    }
    made = Made(columns, Quasi("cell", GRID), gaps=True)
    assert made.labels("cell", 1)[:3] == [GRID.level_labels(45.07, 7.68)[1], None, None]
    assert (made.keys[1:3] == 0).all()
    assert made.reasons == {
        3: "lat isn't within 90 degrees",
        4: "lat isn't a number",
        5: "lon isn't within 180 degrees",
    }
    strict = Made(columns, Quasi("cell", GRID))
    assert strict.reasons[1] == strict.reasons[2] == "cell is missing"


def test_a_batch_of_positions_without_rows():
    none = pa.array([], pa.float64())
    made = Made({"lat": none, "lon": none}, Quasi("cell", GRID))
    assert made.keys.shape == (0, 3)


def test_a_level_shows_no_values():
    assert repr(LevelLabels(np.zeros(3, np.int64), pa.array(["canary"]))) == "LevelLabels(3 rows)"


def test_a_label_under_another_one_has_another_key():
    labels, above = np.array([5, 5, 7]), np.array([1, 2, 1])
    keys = _chained(labels, above)
    assert len(set(keys.tolist())) == 3
    assert _chained(labels[:1], above[:1])[0] == keys[0]
    assert _chained(np.array([0]), np.array([0]))[0] == 1  # 0 stands for what is missing
