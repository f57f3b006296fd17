"""The data of FAST and of IDEA are what the papers say of them."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.figures.fast.data import QUASI, Repeated
from benchmarks.figures.idea.data import INFORMS, TREES, Incomplete, data_of
from benchmarks.figures.streams import ADULT
from benchmarks.incomplete import gap_masks, insert_gaps

from shoal.spec.hierarchy import Range

needs_adult = pytest.mark.skipif(
    not (ADULT.exists() and TREES.exists()), reason="../shared/data has no adult.csv or hierarchies"
)
needs_informs = pytest.mark.skipif(
    not (INFORMS.exists() and TREES.exists()), reason="../shared/data has no INFORMS or hierarchies"
)

#: IDEA's Table 1: least and most of a number; height and leaves of a tree.
TABLE_1 = {
    "adult": [
        ("age", 0, 100),
        ("education_num", 0, 20),
        ("hours_per_week", 0, 100),
        ("workclass", 5, 8),
        ("education", 5, 16),
        ("marital_status", 4, 7),
        ("occupation", 3, 14),
        ("relationship", 3, 6),
        ("race", 3, 5),
        ("sex", 2, 2),
    ],
    "informs": [
        ("dobmm", 1, 12),
        ("dobyy", 1920, 2005),
        ("income", 0, 210_722),
        ("sex", 2, 2),
        ("racex", 2, 6),
        ("educyear", 3, 18),
        ("marry", 4, 6),
    ],
}


@pytest.mark.parametrize(
    ("name", "n_rows"),
    [
        pytest.param("adult", 30_162, marks=needs_adult),
        pytest.param("informs", 30_187, marks=needs_informs),
    ],
)
def test_the_attributes_of_idea(name, n_rows):
    stream = data_of(name)
    found = [
        (quasi.name, quasi.domain.lo, quasi.domain.hi)
        if isinstance(quasi.domain, Range)
        else (quasi.name, quasi.domain.depth, len(quasi.domain))
        for quasi in stream.schema.quasi
    ]
    assert found == TABLE_1[name]
    assert stream.codes.values.shape == (n_rows, len(found))
    assert not np.isnan(stream.codes.values).any()
    assert len(np.unique(stream.codes.subjects)) == n_rows


@needs_adult
def test_a_part_of_the_data_with_gaps():
    stream = Incomplete("adult", 1000, 3, seed=1).stream()
    missing = np.isnan(stream.codes.values)
    assert np.bincount(missing.sum(axis=1)).tolist() == [250] * 4
    whole = data_of("adult").codes
    np.testing.assert_array_equal(stream.codes.values[~missing], whole.values[:1000][~missing])
    assert {len(array) for array in stream.codes[:4]} == {1000}
    other = Incomplete("adult", 1000, 3, seed=2).stream()
    assert (np.isnan(other.codes.values) != missing).any()


def test_gaps_fall_anywhere_and_by_the_seed_alone():
    values = np.random.default_rng(0).random((6000, 5))
    once, again = insert_gaps(values, 4, seed=3), insert_gaps(values, 4, seed=3)
    np.testing.assert_array_equal(once, again)
    assert not np.isnan(values).any()
    missing = np.isnan(once)
    assert np.bincount(missing.sum(axis=1)).tolist() == [1200] * 5
    # On average two of five are missing, each attribute as often as any other.
    np.testing.assert_allclose(missing.mean(axis=0), 0.4, atol=0.03)
    # Any two of them as often as any other two, where two are missing: one in ten.
    pairs = gap_masks(once)[missing.sum(axis=1) == 2]
    assert len(set(pairs.tolist())) == 10
    # How many are missing doesn't depend on where the row stands.
    assert abs(missing.sum(axis=1)[:3000].mean() - 2) < 0.1


def test_numbers_of_rows_differ_by_at_most_one():
    missing = np.isnan(insert_gaps(np.zeros((100, 3)), 2, seed=0)).sum(axis=1)
    assert sorted(np.bincount(missing).tolist()) == [33, 33, 34]


@needs_adult
def test_the_attributes_and_repeats_of_fast():
    stream = Repeated(30_162, seed=1).stream()
    codes = stream.codes
    assert len(codes.subjects) == 33_178
    kinds = [isinstance(quasi.domain, Range) for quasi in stream.schema.quasi]
    assert kinds == [True] * 6 + [False] * 4
    subjects, first, n_rows = np.unique(codes.subjects, return_index=True, return_counts=True)
    assert len(subjects) == 30_162
    assert np.bincount(n_rows).tolist() == [0, 30_162 - 3_016, 3_016]
    # Who comes twice comes with the same values, anywhere.
    order = np.argsort(codes.subjects, kind="stable")
    same = np.flatnonzero(np.diff(codes.subjects[order]) == 0)
    earlier, later = order[same], order[same + 1]
    np.testing.assert_array_equal(codes.values[earlier], codes.values[later])
    np.testing.assert_array_equal(codes.sensitive[earlier], codes.sensitive[later])
    assert (later - earlier).max() > 20_000
    assert stream.schema.sensitive[0].name == "occupation"
    assert first.min() == 0


@needs_adult
def test_fewer_attributes_are_the_first_ones():
    few = Repeated(200, quasi=QUASI[:3]).stream()
    many = Repeated(200).stream()
    assert [quasi.name for quasi in few.schema.quasi] == list(QUASI[:3])
    np.testing.assert_array_equal(few.codes.values, many.codes.values[:, :3])
