"""The partition map is even, keeps neighbours together, and is reproducible."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.arrow.codec import Codec
from shoal.datasets import census
from shoal.engine import Space
from shoal.engine.space import Loss
from shoal.errors import CheckpointError, ParameterError
from shoal.spark.partition_map import MOST_SHARDS, Cut, PartitionMap
from shoal.spec.policy import Window, ZAnonymity
from tests.examples import examples

PETS = Hierarchy.from_dict(
    {"*": {"Mammal": ["Cat", "Dog", "Rat"], "Bird": ["Owl", "Jay"], "Fish": ["Eel", "Cod", "Ide"]}}
)
SCHEMA = Schema(None, [Quasi("age", Range(0, 100)), Quasi("pet", PETS), Quasi("pay", Range(0, 10))])


def space_of(*quasi: Quasi, loss: Loss = "glm") -> Space:
    schema = Schema(None, quasi or SCHEMA.quasi)
    return Space(schema, Policy(KAnonymity(2), delay=Delay(rows=10), missing="maybe"), loss)


def column(values: Any) -> np.ndarray:
    return np.asarray(values, np.float64).reshape(-1, 1)


def rows(draw: np.random.Generator, n: int, missing: float = 0.0) -> np.ndarray:
    values = np.column_stack(
        [draw.normal(50, 20, n).clip(0, 100), draw.integers(0, 8, n), draw.exponential(1, n)]
    )
    return np.where(draw.random(values.shape) < missing, np.nan, values)


# -- balance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shards", [1, 2, 3, 5, 7, 8, 16])
def test_any_number_of_shards_is_about_equally_full(n_shards):
    draw = np.random.default_rng(1)
    places = PartitionMap.learn(space_of(), rows(draw, 4_000, 0.1), n_shards)
    counts = np.bincount(places.shards(rows(draw, 4_000, 0.1)), minlength=n_shards)
    assert len(counts) == places.n_shards == n_shards
    assert counts.min() > 0
    assert counts.max() < 1.5 * counts.mean()


def test_shards_are_given_by_the_number_of_rows_and_not_always_half_by_half():
    values = np.column_stack([np.repeat([10.0, 90.0], [750, 250]), np.tile(np.arange(10.0), 100)])
    places = PartitionMap.learn(
        space_of(Quasi("age", Range(0, 100)), Quasi("pay", Range(0, 10))), values, 4
    )
    counts = np.bincount(places.shards(values))
    assert isinstance(places.root, Cut)
    assert places.root.side == 0
    assert isinstance(places.root.high, int)
    assert counts[3] == 250


def test_a_value_in_most_rows_leaves_others_and_shards_empty_but_breaks_nothing():
    values = column([5.0] * 95 + [1, 2, 8, 9, 9.5])
    places = PartitionMap.learn(space_of(Quasi("age", Range(0, 10))), values, 8)
    found = places.shards(values)
    assert len(set(found[:95])) == 1
    assert found.min() >= 0
    assert found.max() < 8
    assert len(set(found)) > 1


@pytest.mark.parametrize("value", [3.0, np.nan])
def test_rows_that_are_all_alike_have_one_shard(value):
    places = PartitionMap.learn(space_of(Quasi("age", Range(0, 10))), column([value] * 50), 4)
    assert places.root == 0
    assert places.shards(column([0.0, value, 9.0])).tolist() == [0, 0, 0]


# -- nearness --------------------------------------------------------------------------------------


def test_the_attribute_is_cut_by_which_two_rows_of_a_shard_lose_least():
    draw = np.random.default_rng(2)
    near, far = draw.normal(50, 1, 1_000), draw.choice([5.0, 95.0], 1_000) + draw.random(1_000)
    quasi = [Quasi("near", Range(0, 100)), Quasi("far", Range(0, 100))]
    values = np.column_stack([near, far])
    assert PartitionMap.learn(space_of(*quasi), values, 2).sides == {1}
    # What counts is the loss: of an attribute that hardly matters, nothing is won.
    light = [quasi[0], Quasi("far", Range(0, 100), weight=1e-6)]
    assert PartitionMap.learn(space_of(*light), values, 2).sides == {0}


def test_attributes_that_go_together_are_worth_more_than_one_that_is_alone():
    draw = np.random.default_rng(3)
    alone, twin = draw.random((2, 2_000)) * 100
    values = np.column_stack([alone, twin, twin])
    quasi = [Quasi(name, Range(0, 100)) for name in ("alone", "twin", "other")]
    assert PartitionMap.learn(space_of(*quasi), values, 2).sides == {1}


def test_categories_are_cut_between_nodes_where_the_balance_allows():
    # Exact halves would cut through the mammals: 0 to 2, where birds are 3 and 4, fish 5 to 7.
    values = column(np.repeat(np.arange(8.0), [20, 16, 16, 8, 8, 10, 12, 10]))
    places = PartitionMap.learn(space_of(Quasi("pet", PETS)), values, 2)
    assert isinstance(places.root, Cut)
    assert places.root.at == 2


def test_a_cut_between_categories_that_no_row_has_goes_along_their_nodes():
    places = PartitionMap.learn(space_of(Quasi("pet", PETS)), column([0.0, 6.0] * 10), 2)
    assert places.shards(column(np.arange(8.0))).tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    # Taken for numbers, categories have no nodes.
    plain = PartitionMap.learn(
        space_of(Quasi("pet", PETS), loss="uncertainty"), column([0.0, 6.0] * 10), 2
    )
    assert plain.shards(column(np.arange(8.0))).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_cut_between_numbers_is_at_no_value_of_a_row():
    values = column(np.random.default_rng(4).integers(0, 50, 400))
    root = PartitionMap.learn(space_of(Quasi("age", Range(0, 50))), values, 2).root
    assert isinstance(root, Cut)
    assert root.at not in values
    # Unless there is nothing between them.
    close = column([1.0, np.nextafter(1.0, 2.0)] * 10)
    places = PartitionMap.learn(space_of(Quasi("age", Range(0, 50))), close, 2)
    assert places.shards(close[:2]).tolist() == [0, 1]


def test_missing_values_go_one_way_and_can_be_a_shard_of_their_own():
    values = column([np.nan, 4.0] * 20)
    places = PartitionMap.learn(space_of(Quasi("age", Range(0, 10))), values, 2)
    assert places.shards(column([np.nan, 0.0, 10.0, np.nan])).tolist() == [1, 0, 0, 1]


def test_similar_rows_are_in_one_shard():
    data = census(6_000, seed=5)
    values = np.vstack(
        [Codec(data.schema, key=bytes(8)).encode(batch).codes.values for batch in data.batches()]
    )
    space = Space(data.schema, Policy(KAnonymity(2), delay=Delay(rows=10)))
    found = PartitionMap.learn(space, values[:3_000], 8).shards(values)

    def mean_loss(shards: np.ndarray) -> float:
        losses = []
        for shard in range(8):
            lo, hi = space.points(values[shards == shard])
            losses += [
                space.loss(np.minimum(a, b), np.maximum(c, d))
                for a, b, c, d in zip(lo, lo[1:], hi, hi[1:], strict=False)
            ]
        return float(np.mean(losses))

    assert mean_loss(found) < 0.8 * mean_loss(np.arange(len(values)) % 8)


# -- the same again --------------------------------------------------------------------------------


def test_the_same_rows_in_another_order_give_the_same_map():
    values = rows(np.random.default_rng(6), 2_000, 0.05)
    places = PartitionMap.learn(space_of(), values, 6)
    again = PartitionMap.learn(space_of(), np.random.default_rng(7).permutation(values), 6)
    assert places == again
    assert hash(places) == hash(again)
    assert places != PartitionMap.learn(space_of(), values, 5)


def test_a_map_that_went_through_json_is_the_same():
    values = rows(np.random.default_rng(8), 500, 0.1)
    places = PartitionMap.learn(space_of(), values, 7)
    restored = PartitionMap.restored(json.loads(json.dumps(places.state())))
    assert restored == places
    assert np.array_equal(restored.shards(values), places.shards(values))


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.5, 40.0, 100.0, np.nan]),
            st.sampled_from([0.0, 2.0, 3.0, 7.0, np.nan]),
            st.floats(0, 10, allow_nan=False),
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 9),
)
def test_every_row_has_one_shard_whatever_the_sample(sample, n_shards):
    values = np.array(sample, np.float64)
    places = PartitionMap.learn(space_of(), values, n_shards)
    found = places.shards(rows(np.random.default_rng(9), 50, 0.3))
    assert found.dtype == np.int64
    assert ((found >= 0) & (found < n_shards)).all()
    assert PartitionMap.restored(places.state()) == places


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shards", [0, -1, 2.0, True, MOST_SHARDS + 1])
def test_a_strange_number_of_shards_is_refused(n_shards):
    with pytest.raises(ParameterError, match="n_shards"):
        PartitionMap.learn(space_of(), np.zeros((4, 3)), n_shards)


def test_values_of_another_width_are_refused():
    with pytest.raises(ParameterError, match=r"3 quasi attributes; got an array of shape \(4, 2\)"):
        PartitionMap.learn(space_of(), np.zeros((4, 2)), 2)
    with pytest.raises(ParameterError, match="3 quasi attributes"):
        PartitionMap.learn(space_of(), rows(np.random.default_rng(1), 9), 2).shards(np.zeros(3))


def test_a_map_needs_rows():
    with pytest.raises(ParameterError, match="needs rows"):
        PartitionMap.learn(space_of(), np.empty((0, 3)), 2)
    assert PartitionMap.learn(space_of(), np.empty((0, 3)), 1).shards(
        np.zeros((2, 3))
    ).tolist() == [0, 0]


def test_z_has_no_partition_map():
    schema = Schema("id", [Quasi("pet", PETS)], time="at")
    policy = Policy(ZAnonymity(3), window=Window(seconds=60))
    with pytest.raises(ParameterError, match="z-anonymity has none"):
        PartitionMap.learn(Space(schema, policy), np.empty((5, 0)), 4)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"n_shards": 2, "n_quasi": 1},
        {"n_shards": 2, "n_quasi": 1, "root": 2},
        {"n_shards": 2, "n_quasi": 1, "root": [1, 0.5, 0, 1]},
        {"n_shards": 2, "n_quasi": 1, "root": [0, float("nan"), 0, 1]},
        {"n_shards": 2, "n_quasi": 1, "root": [0, 0.5, 0]},
        {"n_shards": 2, "n_quasi": 1, "root": [0, "x", 0, 1]},
        {"n_shards": 2, "n_quasi": 1, "root": None},
    ],
)
def test_a_damaged_state_is_refused(state):
    with pytest.raises(CheckpointError, match="partition map"):
        PartitionMap.restored(state)


def test_repr_shows_no_value():
    values = rows(np.random.default_rng(10), 300)
    assert (
        repr(PartitionMap.learn(space_of(), values, 4))
        == "PartitionMap(4 shards, 3 quasi attributes)"
    )
