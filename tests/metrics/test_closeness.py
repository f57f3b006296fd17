from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import ParameterError
from shoal.metrics import closeness
from shoal.metrics.closeness import Exposure, exposure, group_exposure
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.policy import Window
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.metrics.world import slow_closeness

#: Figure 3.1 of the thesis.
DISEASES = Hierarchy.from_dict(
    {
        "respiratory and digestive": {
            "respiratory": ["SARS", "pneumonia", "bronchitis"],
            "digestive": ["intestinal cancer", "gastric flu", "gastric ulcer"],
        }
    }
)
UNEVEN = Hierarchy.from_dict({"*": {"a": {"b": ["c", "d"], "e": None}, "f": ["g", "h"], "i": None}})


def test_example_3_1() -> None:
    six = np.arange(6)
    found = group_exposure(np.array([1, 1, 1, 2, 2, 2]), six, six, DISEASES)
    assert found.closeness.tolist() == [0.5, 0.5]
    assert found.worst() == Exposure(2, 0.5, 1.0, math.inf)


def test_the_groups_of_example_3_2_are_a_third_from_the_table() -> None:
    six = np.arange(6)
    found = group_exposure(np.array([1, 2, 3, 1, 2, 3]), six, six, DISEASES)
    assert found.closeness == pytest.approx([1 / 3] * 3)


def test_numbers_in_order_by_hand() -> None:
    # p = (1/4, 1/2, 1/4), q = (0, 0, 1): 1/4 and 3/4 have to pass, over two steps.
    window = np.array([10, 20, 20, 30])
    found = group_exposure(np.array([0, 0]), np.array([30, 30]), window, Range(0, 100))
    assert found.closeness.tolist() == [0.5]
    assert found.likeness.tolist() == [3.0]
    assert found.disclosure.tolist() == [math.inf]


def test_disclosure_by_hand() -> None:
    window = np.array([0, 0, 0, 1])
    found = group_exposure(np.array([0, 0]), np.array([0, 1]), window, None)
    assert found.disclosure == pytest.approx([math.log(2)])
    assert found.likeness.tolist() == [1.0]
    assert found.worst().closeness is None


@pytest.mark.parametrize("domain", [DISEASES, UNEVEN, Range(0, 9), None])
@pytest.mark.parametrize("seed", range(5))
def test_as_the_slow_way(seed: int, domain: Domain | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closeness, "_COUNTS", 12)
    random = np.random.default_rng(seed)
    # Some values are rare, and one is in nobody's row.
    window = random.choice(5, 60, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    sensitive, groups = window[:45], random.integers(0, 7, 45) * 10
    found = group_exposure(groups, sensitive, window, domain)
    p = Counter(window.tolist())
    for i, group in enumerate(found.groups):
        own = sensitive[groups == group].tolist()
        q = Counter(own)
        ratios = [q[value] / len(own) / (n / 60) for value, n in p.items()]
        assert found.likeness[i] == pytest.approx(max(ratios) - 1)
        logs = [abs(math.log(ratio)) if ratio else math.inf for ratio in ratios]
        assert found.disclosure[i] == pytest.approx(max(logs))
        if domain is None:
            assert math.isnan(found.closeness[i])
            continue
        tree = domain if isinstance(domain, Hierarchy) else None
        expected = slow_closeness(own, window.tolist(), tree)
        assert found.closeness[i] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("domain", [DISEASES, UNEVEN, Range(0, 9)])
def test_the_distance_of_a_union_isnt_above_the_larger_one(domain: Domain) -> None:
    random = np.random.default_rng(11)
    for _ in range(50):
        window = random.integers(0, 6, 40)
        sensitive, groups = window[:20], random.integers(0, 2, 20)
        apart = group_exposure(groups, sensitive, window, domain)
        union = group_exposure(np.zeros(20, np.int64), sensitive, window, domain)
        assert union.closeness[0] <= apart.closeness.max() + 1e-12


def test_a_value_that_the_window_lacks_breaks_everything() -> None:
    found = group_exposure(
        np.array([0, 0, 1]), np.array([1, 2, 1]), np.array([1, 1, 3]), Range(0, 9)
    )
    assert [column[0] for column in found[1:]] == [math.inf] * 3
    assert all(np.isfinite(column[1]) for column in found[1:3])


@pytest.mark.parametrize("domain", [Range(0, 9), Hierarchy.flat(["a"])])
def test_one_value_discloses_nothing(domain: Domain) -> None:
    zeros = np.zeros(4, np.int64)
    assert group_exposure(zeros, zeros, zeros, domain).worst() == Exposure(1, 0.0, 0.0, 0.0)


def test_a_missing_value_has_no_distance_but_is_a_value() -> None:
    codes = np.array([-1, -1, 0, 0])
    found = group_exposure(np.array([0, 0, 1, 1]), codes, codes, Range(0, 9))
    assert found.worst() == Exposure(2, None, 1.0, math.inf)


def test_an_empty_window_lacks_every_value() -> None:
    nothing = np.empty(0, np.int64)
    found = group_exposure(np.array([0]), np.array([1]), nothing, Range(0, 9))
    assert found.worst() == Exposure(1, math.inf, math.inf, math.inf)


# -- by a trace ---------------------------------------------------------------------------------

SCHEMA = Schema(
    None, [Quasi("age", Range(0, 99))], [Sensitive("salary", Range(0, 9)), Sensitive("illness")]
)


def table(salaries: list[float]) -> pa.Table:
    n = len(salaries)
    return pa.table({"age": [30] * n, "salary": salaries, "illness": [f"i{s}" for s in salaries]})


def lines(
    groups: list[int | None],
    windows: list[int | None],
    published: list[int],
    outcomes: list[str] | None = None,
) -> pa.Table:
    n = len(groups)
    done = outcomes or ["suppressed" if group is None else "group" for group in groups]
    return pa.table(
        {
            "row": list(range(n)),
            "outcome": done,
            "arrived": list(range(n)),
            "published": published,
            "group": pa.array(groups, pa.int64()),
            "window": pa.array(windows, pa.int64()),
        }
    )


def test_a_table_is_measured_as_a_whole() -> None:
    original = table([1, 1, 2, 2])
    trace = lines([0, 0, 1, None], [None] * 4, [4] * 4)
    found = exposure(SCHEMA, original, trace)
    assert found["salary"] == Exposure(2, 0.5, 1.0, math.inf)
    assert found["illness"] == Exposure(2, None, 1.0, math.inf)


def test_rows_that_are_bad_or_held_have_their_part() -> None:
    original = table([1, 77, 1, 2])
    trace = pa.table(
        {
            "row": [3, 2, 1, 0],
            "outcome": ["held", "group", "quarantined", "group"],
            "arrived": [2, 1, None, 0],
            "published": [None, 1, None, 1],
            "group": [None, 0, None, 0],
            "window": pa.nulls(4, pa.int64()),
        }
    )
    # Two of three good rows have a 1, all of the group have.
    assert exposure(SCHEMA, original, trace)["salary"].likeness == pytest.approx(0.5)


def test_each_group_has_its_window() -> None:
    # Against its own window each is even; against all rows neither is.
    original = table([1, 2, 1, 2, 3, 4, 3, 4])
    trace = lines([0, 0, None, None, 1, 1, None, None], [4] * 4 + [8] * 4, [4] * 4 + [8] * 4)
    assert exposure(SCHEMA, original, trace, window=Window(4)) == {
        "salary": Exposure(2, 0.0, 0.0, 0.0),
        "illness": Exposure(2, None, 0.0, 0.0),
    }
    assert exposure(SCHEMA, original, trace)["salary"].likeness == 1.0


def test_the_first_window_begins_where_the_stream_does() -> None:
    original = table([1, 2, 1])
    trace = lines([0, 0, None], [2, 2, 3], [2, 2, 3])
    assert exposure(SCHEMA, original, trace, window=Window(100))["salary"].closeness == 0.0


def test_who_joins_is_measured_with_those_before() -> None:
    # Group 0 is formed of a 1 and a 2; then two with a 1 join it, one after the other.
    original = table([1, 2, 1, 1])
    trace = lines([0, 0, 0, 0], [2, 2, 3, 4], [1, 1, 2, 3], ["group"] * 2 + ["reuse"] * 2)
    found = exposure(SCHEMA, original, trace, window=Window(100))["salary"]
    # Everything that was published by then is all that there was.
    assert found == Exposure(1, 0.0, 0.0, 0.0)
    narrow = exposure(SCHEMA, original, trace, window=Window(2))["salary"]
    # The last window is 1, 1, and lacks the 2 that is in the group.
    assert narrow == Exposure(1, math.inf, math.inf, math.inf)


def test_each_moment_is_looked_at_separately() -> None:
    # Rows 2 and 3 join within one window, and only in between the group is uneven.
    original = table([1, 2, 1, 2])
    trace = lines([0, 0, 0, 0], [4] * 4, [3, 3, 4, 5], ["group"] * 2 + ["reuse"] * 2)
    assert exposure(SCHEMA, original, trace, window=Window(4))["salary"].likeness == pytest.approx(
        2 / 3 / (1 / 2) - 1
    )
    together = lines([0, 0, 0, 0], [4] * 4, [3, 3, 5, 5], ["group"] * 2 + ["reuse"] * 2)
    assert exposure(SCHEMA, original, together, window=Window(4))["salary"].likeness == 0


def test_nothing_published_discloses_nothing() -> None:
    trace = lines([None, None], [None, None], [2, 2])
    for window in ("all", Window(2)):
        found = exposure(SCHEMA, table([1, 2]), trace, window=window)  # type: ignore[arg-type]
        assert found["salary"] == Exposure(0, 0.0, 0.0, 0.0)


def test_a_trace_without_windows_is_refused() -> None:
    with pytest.raises(ParameterError, match="2 lines without a window"):
        exposure(SCHEMA, table([1, 2]), lines([0, 0], [None] * 2, [2] * 2), window=Window(2))


def test_a_trace_of_another_input_is_refused() -> None:
    with pytest.raises(ParameterError, match="rows that the input doesn't have"):
        exposure(SCHEMA, table([1]), lines([0, 0], [None] * 2, [2] * 2))


def test_a_trace_that_lacks_columns_is_refused() -> None:
    with pytest.raises(ParameterError, match="lacks the columns window"):
        exposure(SCHEMA, table([1]), lines([0], [None], [1]).drop_columns(["window"]))


def test_shards_have_no_window_in_common() -> None:
    trace = lines([0, 0], [None] * 2, [2] * 2)
    one = trace.append_column("shard", pa.array([3, 3]))
    assert exposure(SCHEMA, table([1, 2]), one) == exposure(SCHEMA, table([1, 2]), trace)
    with pytest.raises(ParameterError, match="trace: is of several shards"):
        exposure(SCHEMA, table([1, 2]), trace.append_column("shard", pa.array([0, None])))


def test_a_line_about_a_change_of_the_job_is_no_row() -> None:
    schema = Schema(None, [Quasi("age", Range(0, 99))], [Sensitive("illness")])
    original = pa.table({"age": [20, 21, 50, 51], "illness": ["flu", "flu", "flu", "gout"]})
    trace = pa.table(
        {
            "row": [0, 1, 2, 3], "outcome": ["group"] * 4, "arrived": [0, 1, 2, 3],
            "published": [4] * 4, "group": [0, 0, 1, 1], "window": [4] * 4,
        }
    )  # fmt: skip
    # The job was changed after the last row.
    line = {"row": 4, "outcome": 'changed {"what": []}', "arrived": 4}
    change = pa.table({f.name: pa.array([line.get(f.name)], f.type) for f in trace.schema})
    changed = pa.concat_tables([trace, change])
    for window in ("all", Window(rows=4)):
        assert exposure(schema, original, changed, window=window) == exposure(
            schema, original, trace, window=window
        )
