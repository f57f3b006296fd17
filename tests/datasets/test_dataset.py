import pyarrow as pa
import pytest

from shoal.datasets import (
    Dataset,
    census,
    gaussian_points,
    power_law,
    transactions,
    uniform_points,
)
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema

GENERATORS = {
    "census": lambda **kw: census(70_000, subjects=2000, **kw),
    "transactions": lambda **kw: transactions(300, **kw),
    "power_law": lambda **kw: power_law(70_000, 2, alpha=1.0, largest=50, **kw),
    "uniform_points": lambda **kw: uniform_points(70_000, **kw),
    "gaussian_points": lambda **kw: gaussian_points(70_000, **kw),
}

generators = pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS.keys())


@generators
def test_a_seed_fixes_the_rows(make):
    data = make(seed=5)
    assert data.table().equals(data.table())
    assert data.table().equals(make(seed=5).table())
    assert not data.table().equals(make(seed=6).table())


@generators
def test_the_seed_is_0_unless_given(make):
    assert make().table().equals(make(seed=0).table())


@generators
def test_batching_never_changes_the_rows(make):
    whole = make(seed=5).table()
    batches = list(make(seed=5, batch_rows=999).batches())
    assert {batch.num_rows for batch in batches[:-1]} == {999}
    assert 0 < batches[-1].num_rows <= 999
    assert pa.Table.from_batches(batches).combine_chunks().equals(whole.combine_chunks())


@generators
def test_rows_fit_the_schema(make):
    data = make(seed=5)
    table = data.table()
    assert table.num_rows == data.n_rows
    assert set(data.schema.columns) <= set(table.column_names)
    for attribute in (*data.schema.quasi, *data.schema.sensitive):
        column = table[attribute.name]
        assert column.null_count == 0
        if isinstance(attribute.domain, Hierarchy):
            assert set(column.unique().to_pylist()) <= set(attribute.domain.leaves)
        else:
            values = column.to_numpy()
            assert values.min() >= attribute.domain.lo
            assert values.max() <= attribute.domain.hi


@generators
@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_refuses_a_wrong_seed(make, seed):
    with pytest.raises(ParameterError, match=r"seed: must be a whole number"):
        make(seed=seed)


@generators
def test_refuses_batches_without_rows(make):
    with pytest.raises(ParameterError, match="batch_rows"):
        make(batch_rows=0)


def test_from_table_joins_small_pieces():
    table = pa.concat_tables([pa.table({"age": [n, n + 1]}) for n in range(5)])
    data = Dataset.from_table(
        table, Schema(None, [Quasi("age", Range(0, 9))]), name="ages", batch_rows=4
    )
    assert [batch.num_rows for batch in data.batches()] == [4, 4, 2]
    assert [age for batch in data.batches() for age in batch["age"].to_pylist()] == table[
        "age"
    ].to_pylist()


def test_from_table_refuses_a_schema_of_another_table():
    with pytest.raises(ParameterError, match="lacks columns of the schema: weight"):
        Dataset.from_table(
            pa.table({"age": [1]}), Schema(None, [Quasi("weight", Range(0, 9))]), name="ages"
        )
