"""Discernibility, the average group and the classification metric, of runs and of tables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, Sensitive, anonymize
from shoal.errors import ParameterError
from shoal.metrics import Compared, groups_of
from shoal.metrics.base import Batch
from shoal.metrics.discernibility import Discernibility
from tests.examples import examples

SCHEMA = Schema(None, [Quasi("x", Range(0, 9, step=1))], [Sensitive("s")])


def batch(outcome: list[int], group_rows: list[int]) -> Batch:
    n = len(outcome)
    rows = np.array(group_rows, np.int64)
    return Batch(
        np.array(outcome, np.int8), np.zeros(n), np.zeros(n, np.int64), None, rows, rows.copy()
    )


def test_a_published_row_costs_its_group_and_a_suppressed_one_all_rows() -> None:
    metric = Discernibility()
    metric.add_batch(batch([0] * 5 + [2], [2, 3]))
    metric.add_batch(batch([2], []))
    assert metric.as_dict() == {"total": 4 + 9 + 2 * 7, "per_row": 27 / 7, "rows_per_group": 2.5}


def test_with_reuse_or_without_groups_it_is_not_known() -> None:
    metric = Discernibility()
    assert metric.as_dict() == {"total": None, "per_row": None, "rows_per_group": None}
    metric.add_batch(batch([0, 0, 1], [2]))
    assert metric.as_dict() == {"total": None, "per_row": None, "rows_per_group": 2.0}


def test_it_is_merged_and_restored() -> None:
    one, two, three = Discernibility(), Discernibility(), Discernibility()
    one.add_batch(batch([0, 0], [2]))
    two.add_batch(batch([0] * 3 + [2], [3]))
    one.merge(two)
    three.restore(one.state())
    assert three.total == 4 + 9 + 1 * 6


def test_a_run_and_its_tables_agree() -> None:
    people = pa.table({"who": list(range(40)), "x": [n * 7 % 10 for n in range(40)]})
    schema = Schema("who", [Quasi("x", Range(0, 9, step=1))])
    result = anonymize(people, schema, Policy(KAnonymity(3), delay=Delay(rows=39)), seed=1)
    counted = result.summary.as_dict()["discernibility"]
    assert isinstance(counted, dict)
    found = groups_of(Compared.from_tables(schema, people, result.frame))
    assert found.n_published == 40
    # Groups of one box are one in the tables, so that they tell less apart.
    assert found.discernibility >= counted["total"] >= 3 * 40
    assert found.classification is None


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30),
    more=st.integers(0, 4),
)
def test_boxes_against_the_definitions(rows: list[tuple[int, int]], more: int) -> None:
    original = pa.table(
        {
            "x": pa.array([x for x, _ in rows] + [9] * more, pa.int64()),
            "s": pa.array([s for _, s in rows] + [0] * more, pa.int64()),
        }
    )
    published = pa.table(
        {
            "x": pa.array([f"[{x}, {x + 1}]" for x, _ in rows], pa.string()),
            "s": pa.array([s for _, s in rows], pa.int64()),
        }
    )
    found = groups_of(Compared.from_tables(SCHEMA, original, published))
    n = len(rows) + more
    sharing = Counter(x for x, _ in rows)
    assert found.discernibility == sum(sharing[x] for x, _ in rows) + more * n
    common = sum(max(Counter(s for y, s in rows if y == x).values()) for x in sharing)
    assert found.classification == (pytest.approx((n - common) / n) if n else None)
    assert found.rows_per_box == (len(rows) / len(sharing) if rows else None)
    assert found.average(2) == (len(rows) / len(sharing) / 2 if rows else None)
    with pytest.raises(ParameterError, match="at least 1"):
        found.average(0)
