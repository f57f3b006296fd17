"""Weights for a workload: what is asked for weighs, and the queries are answered better."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, anonymize
from shoal.algorithms import Castle
from shoal.errors import ParameterError
from shoal.metrics import Compared, for_workload, query_error, workload_weights

SCHEMA = Schema("who", [Quasi(name, Range(0, 99, step=1)) for name in ("a", "b", "c")])


def test_narrow_and_frequent_queries_weigh_more() -> None:
    narrow = workload_weights(SCHEMA, [{"a": 0.05}, {"b": 0.1}])
    often = workload_weights(SCHEMA, [{"a": 0.1}, {"b": 0.1}, {"a": 0.1}])
    assert narrow == often == {"a": 1.0, "b": 0.5, "c": 0.01}


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ([], "at least one query"),
        ([{}], "at least one query"),
        ([{"A": 0.1}], "must name quasi attributes"),
        ([{"a": 0.0}], "a share above 0"),
        ([{"a": 1.5}], "a share above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(workload: list[dict[str, float]], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        workload_weights(SCHEMA, workload)


def test_queries_are_answered_better_and_others_worse() -> None:
    draw = np.random.default_rng(5)
    people = pa.table({"who": range(200)} | {name: draw.integers(0, 100, 200) for name in "abc"})
    policy = Policy(KAnonymity(5), delay=Delay(rows=199))
    errors = []
    for schema in (SCHEMA, for_workload(SCHEMA, [{"a": 0.2}])):
        public = anonymize(people, schema, policy, Castle(clusters=5), seed=3).frame
        compared = Compared.from_tables(schema, people, public)
        errors.append(
            [
                query_error(compared, n_queries=200, selectivity=0.2, n_quasi=1, asked=asked).median
                for asked in ([0], [1, 2])
            ]
        )
    (a, others), (a_weighted, others_weighted) = np.array(errors, dtype=np.float64)
    assert a_weighted < a / 2
    assert others_weighted > others


@pytest.mark.parametrize("asked", [[], [3], [-1]])
def test_only_attributes_that_exist_can_be_asked_for(asked: list[int]) -> None:
    table = pa.table({"a": [1], "b": [2], "c": [3]})
    published = pa.table({name: ["[1, 5]"] for name in "abc"})
    compared = Compared.from_tables(Schema(None, SCHEMA.quasi), table, published)
    with pytest.raises(ParameterError, match="asked"):
        query_error(compared, n_queries=10, asked=asked)
