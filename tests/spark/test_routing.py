"""Spark SQL routes rows as the partition map does by their codes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.arrow.codec import Codec
from shoal.datasets import adult, census
from shoal.engine import Space
from shoal.errors import ParameterError
from shoal.spark.partition_map import Cut, PartitionMap, Tree
from shoal.spark.routing import shard_of, shard_sql

DATA = Path(__file__).parents[3] / "shared" / "data"
PETS = Hierarchy.from_dict(
    {"*": {"Mammal": ["Cat", "Dog", "Rat"], "Bird": ["Owl", "Jay"], "Fish": ["Eel", "Cod", "Ide"]}}
)


def coded(schema: Schema, frame: DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The codes of all rows that have any, and which rows these are: what a worker would see."""
    batch = frame.toArrow().combine_chunks().to_batches()[0]
    encoded = Codec(schema, key=bytes(8), with_gaps=True).encode(batch)
    return encoded.codes.values, encoded.good


def routed(places: PartitionMap, schema: Schema, frame: DataFrame) -> np.ndarray:
    found = frame.select(shard_of(places, schema, frame.schema).alias("shard")).toArrow()
    return found["shard"].to_numpy()


def agree(spark: SparkSession, schema: Schema, table: pa.Table, n_shards: int) -> np.ndarray:
    """Learn from rows, see that both ways lead to the same shards, and count the rows of each."""
    frame = spark.createDataFrame(table)
    values, good = coded(schema, frame)
    policy = Policy(KAnonymity(2), delay=Delay(rows=10), missing="maybe")
    places = PartitionMap.learn(Space(schema, policy), values, n_shards)
    by_code = places.shards(values)
    assert np.array_equal(routed(places, schema, frame)[good], by_code)
    return np.bincount(by_code, minlength=n_shards)


def shards_of(
    spark: SparkSession, root: Tree, domain: Hierarchy | Range, column: pa.Array, kind: str = ""
) -> list[int]:
    """Where the values of one column go; the codec's codes must go there too."""
    frame = spark.createDataFrame(pa.table({"it's": column}))
    if kind:
        frame = frame.select(frame["`it's`"].cast(kind))
    found: list[list[int]] = []
    for time in ("it's", None) if isinstance(domain, Range) and kind else (None,):
        schema, places = Schema(None, [Quasi("it's", domain)], time=time), PartitionMap(9, 1, root)
        shards = routed(places, schema, frame)
        values, good = coded(schema, frame)
        assert np.array_equal(shards[good], places.shards(values))
        found.append(shards.tolist())
    assert all(shards == found[0] for shards in found)
    return found[0]


# -- whole tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shards", [3, 16])
def test_a_census_is_routed_by_its_codes(spark, n_shards):
    data = census(3_000, seed=11)
    counts = agree(spark, data.schema, data.table(), n_shards)
    assert counts.min() > 0


@pytest.mark.skipif(not (DATA / "adult.csv").exists(), reason="../shared/data has no adult.csv")
def test_uci_adult_is_routed_by_its_codes(spark):
    data = adult(DATA / "adult.csv")
    assert agree(spark, data.schema, data.table().slice(0, 5_000), 8).min() > 0


def test_values_that_are_missing_or_badly_written_find_a_shard(spark):
    draw = np.random.default_rng(12)
    ages = draw.choice(["17", " 30.5", "\t64 ", "8e1", "", "  ", "old", None], 800)
    pets = draw.choice([" Cat", "Dog", "Owl  ", "Jay", "Eel", "Cod", "Yak", "", None], 800)
    pay = np.where(draw.random(800) < 0.2, np.nan, draw.random(800))
    table = pa.table(
        {
            "age": pa.array(ages.tolist(), pa.string()),
            "pet": pa.array(pets.tolist(), pa.string()),
            "pay": pa.array(pay, from_pandas=True),
        }
    )
    schema = Schema(
        None, [Quasi("age", Range(0, 99)), Quasi("pet", PETS), Quasi("pay", Range(0, 1))]
    )
    assert agree(spark, schema, table, 7).min() > 0


def test_a_tree_with_many_leaves_is_one_look_up_or_a_few_comparisons(spark):
    draw = np.random.default_rng(13)
    codes = Hierarchy.digits(3)
    # In an order of no use: neighbours in the tree are far from each other in the alphabet.
    mixed = Hierarchy.from_rows(
        [f"{(code * 7919) % 1000:03d}", f"part {code // 50}", "*"] for code in range(1000)
    )
    texts = pa.array([f"{code:03d}" for code in draw.integers(0, 1000, 2_000)])
    for domain, is_range in ((codes, True), (mixed, False)):
        schema, table = Schema(None, [Quasi("code", domain)]), pa.table({"code": texts})
        assert agree(spark, schema, table, 6).min() > 0
        sql = shard_sql(PartitionMap(2, 1, Cut(0, 499.0, 0, 1)), schema, spark_fields(spark, table))
        assert ("BETWEEN" in sql) is is_range
        assert (" IN (" in sql) is not is_range


def spark_fields(spark: SparkSession, table: pa.Table) -> StructType:
    return spark.createDataFrame(table).schema


# -- numbers and times -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 3, None], pa.int8()),
        pa.array([1.0, 2.5, 3.5, None], pa.float32()),
        pa.array([Decimal("1.00"), Decimal("2.50"), Decimal("2.51"), None], pa.decimal128(9, 2)),
        pa.array(["1", " +2.5\t", "1e1", ""]),
    ],
    ids=lambda column: str(column.type),
)
def test_numbers_are_numbers_in_any_type(spark, column):
    assert shards_of(spark, Cut(0, 2.5, 0, 1), Range(-10, 10), column) == [0, 0, 1, 1]


def test_cuts_may_be_tiny_huge_and_below_nothing(spark):
    column = pa.array([-3e200, -1e-9, 0.0, 1e-9, 3e200])
    root = Cut(0, -1e200, 0, Cut(0, -1e-12, 1, Cut(0, 1e-12, 2, Cut(0, 1e200, 3, 4))))
    assert shards_of(spark, root, Range(-1e300, 1e300), column) == [0, 1, 2, 3, 4]


def test_what_is_no_number_goes_the_way_of_a_missing_one(spark):
    for column in (pa.array(["x", "NaN"]), pa.array([True, False]), pa.array([float("nan"), None])):
        assert shards_of(spark, Cut(0, 5.0, 0, 1), Range(0, 10), column) == [1, 1]


#: Noon of the first day of 2024.
SECONDS = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC).timestamp()


@pytest.mark.parametrize(
    "texts",
    [
        [f" {SECONDS - 1}", f"{SECONDS:.0f}", f"{SECONDS + 0.5}"],
        ["2024-01-01 11:59:59", "2024-01-01T12:00:00", " 2024-01-01 12:00:00.5 "],
        ["2024-01-01T11:59:59Z", "2024-01-01 13:00:00+01:00", "2024-01-01 07:00:01-0500"],
        ["2023-12-31", "2024-01-01 12:00", "soon"],
    ],
)
def test_a_time_that_is_a_quasi_attribute_is_read_in_seconds(spark, texts):
    domain = Range(SECONDS - 1e6, SECONDS + 1e6)
    root = Cut(0, SECONDS - 0.5, 0, Cut(0, SECONDS + 0.25, 1, 2))
    frame = spark.createDataFrame(pa.table({"at": texts}))
    schema, places = Schema(None, [Quasi("at", domain)], time="at"), PartitionMap(3, 1, root)
    values, good = coded(schema, frame)
    found = routed(places, schema, frame)
    assert found.tolist() == [0, 1, 2]
    assert np.array_equal(found[good], places.shards(values))


@pytest.mark.parametrize("kind", ["double", "timestamp_ntz", "timestamp"])
def test_moments_are_seconds_in_any_type(spark, kind):
    points = [dt.datetime(2024, 1, 1, 11, 59, 59), dt.datetime(2024, 1, 1, 12, 0, 0, 250_000)]
    column = pa.array([*points, None])
    # Without a zone of its own a point is one of the session's, which is five hours behind.
    at = SECONDS if kind == "timestamp_ntz" else SECONDS + 5 * 3600
    domain = Range(at - 10, at + 10)
    assert shards_of(spark, Cut(0, at, 0, 1), domain, column, kind) == [0, 1, 1]


def test_dates_are_seconds_too(spark):
    days = pa.array([dt.date(1970, 1, 2), dt.date(1970, 1, 3), None])
    assert shards_of(spark, Cut(0, 86_400.0, 0, 1), Range(0, 1e6), days, "date") == [0, 1, 1]


# -- categories ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 10, None]),
        pa.array([1.0, 2.0, 10.0, None]),
        pa.array([Decimal("1.0"), Decimal("2.0"), Decimal("10.0"), None]),
        pa.array(["1", " 2", "10", ""]),
    ],
    ids=lambda column: str(column.type),
)
def test_categories_that_are_numbers_are_their_text(spark, column):
    domain = Hierarchy.flat(["1", "2", "10", "1.5"])
    assert shards_of(spark, Cut(0, 1.0, 0, 1), domain, column) == [0, 0, 1, 1]


def test_fractions_and_truth_are_text_too(spark):
    fractions = Hierarchy.flat(["1.5", "0.25", "2"])
    assert shards_of(spark, Cut(0, 0.0, 0, 1), fractions, pa.array([1.5, 0.25, 2.0])) == [0, 1, 1]
    truth = Hierarchy.flat(["false", "true"])
    assert shards_of(spark, Cut(0, 0.0, 0, 1), truth, pa.array([True, False])) == [1, 0]


def test_labels_of_any_letters_are_distinguished(spark):
    labels = ["it's", "a\\n", "${x}", '"q"', "é", "日本", "%", "`", "a;b--", "--", "a\nb", "$"]
    domain = Hierarchy.flat(labels)
    root: Tree = 8
    for code in range(7, -1, -1):
        root = Cut(0, float(code), code, root)
    expected = [min(code, 8) for code in range(len(labels))]
    assert shards_of(spark, root, domain, pa.array(labels)) == expected


def test_blanks_around_a_category_are_nothing_and_rarer_white_space_does_no_harm(spark):
    frame = spark.createDataFrame(
        pa.table({"pet": ["Cat", "  Cat ", "C at", "Cat\u3000", "\tCat"]})
    )
    schema, places = Schema(None, [Quasi("pet", PETS)]), PartitionMap(2, 1, Cut(0, 0.0, 0, 1))
    values, good = coded(schema, frame)
    # To the codec all cats are cats; those who look like none go where a missing value goes.
    assert places.shards(values).tolist() == [0, 0, 0, 0]
    assert good.tolist() == [0, 1, 3, 4]
    assert routed(places, schema, frame).tolist() == [0, 0, 1, 1, 1]


def test_a_cut_below_another_one_of_the_same_tree_holds_nothing(spark):
    root = Cut(0, 4.0, 0, Cut(0, 2.0, 1, Cut(0, 6.5, 2, 3)))
    assert shards_of(spark, root, PETS, pa.array(PETS.leaves)) == [0, 0, 0, 0, 0, 2, 2, 3]


# -- the expression --------------------------------------------------------------------------------


def test_one_shard_looks_at_nothing():
    schema = Schema(None, [Quasi("age", Range(0, 10))])
    assert shard_sql(PartitionMap(1, 1, 0), schema, StructType([])) == "0"


def test_a_column_that_the_stream_lacks_is_named():
    schema = Schema(None, [Quasi("age", Range(0, 10))])
    fields = StructType([StructField("years", IntegerType())])
    with pytest.raises(ParameterError, match=r"schema\.quasi\.age: isn't a column.*are years"):
        shard_sql(PartitionMap(2, 1, Cut(0, 5.0, 0, 1)), schema, fields)


@pytest.mark.skipif(
    not (DATA / "hierarchies" / "acs_income_2018").exists(),
    reason="../shared/data has no acs_income_2018",
)
def test_real_people_are_routed_by_their_codes(spark):
    table = pq.read_table(DATA / "acs_income_2018.parquet").slice(0, 20_000)
    schema = Schema(
        None,
        [
            Quasi("age", Range(17, 96, step=1)),
            *(
                Quasi(
                    name,
                    Hierarchy.from_csv(DATA / "hierarchies" / "acs_income_2018" / f"{name}.csv"),
                )
                for name in ("education", "state", "relationship", "workclass")
            ),
        ],
    )
    assert agree(spark, schema, table.select([q.name for q in schema.quasi]), 16).min() > 0
