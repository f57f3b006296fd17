from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ParameterError
from shoal.metrics.axes import Axis
from shoal.metrics.compared import Compared
from shoal.metrics.queries import (
    Queries,
    QueryError,
    WindowedQueryError,
    counts,
    draw,
    estimates,
    query_error,
    windowed_query_error,
)
from tests.metrics.world import SCHEMA, places, release, slow_count, slow_estimate


def compared(seed: int) -> Compared:
    return Compared.from_tables(SCHEMA, *release(seed))


def asked(first: list[float], last: list[float], secrets: tuple[float, float]) -> Queries:
    """One query on the first attributes."""
    return Queries(
        np.arange(len(first))[None], np.array([first]), np.array([last]), np.array([secrets])
    )


AGE = Axis.of_cells("age", 100)
HEIGHT = Axis("height", 1.0, 2.0, 0.0)
SALARY = Axis.of_cells("salary", 5)

#: Four people: two between 20 and 29 and 1.5 to 1.9 tall, two aged 50 and 1.6 tall.
FOUR = Compared(
    axes=(AGE, HEIGHT),
    sensitive=SALARY,
    values=places((20, 1.5), (29, 1.9), (50, 1.6), (50, 1.6)),
    secrets=np.array([0.0, 1.0, 1.0, 4.0]),
    lo=places((20, 1.5), (50, 1.6)),
    hi=places((29, 1.9), (50, 1.6)),
    boxes=np.array([0, 0, 1, 1]),
    published_secrets=np.array([0.0, 1.0, 1.0, 4.0]),
)


@pytest.mark.parametrize(
    ("first", "last", "secrets", "truth", "estimate"),
    [
        # Two of ten years, and all salaries: two people times 0.2, where nobody is.
        ([25, 1.0], [26, 2.0], (0, 4), 0, 0.4),
        # Half of the years, a quarter of the height, one of the two.
        ([20, 1.5], [24, 1.6], (0, 0), 1, 0.5 * 0.25),
        # A point is in a query or it isn't.
        ([50, 1.6], [50, 1.7], (0, 4), 2, 2),
        ([50, 1.61], [50, 1.7], (0, 4), 0, 0),
        ([0, 1.0], [99, 2.0], (1, 3), 2, 2),
        ([60, 1.0], [99, 2.0], (0, 4), 0, 0),
    ],
)
def test_by_hand(
    first: list[float], last: list[float], secrets: tuple[float, float], truth: int, estimate: float
) -> None:
    queries = asked(first, last, secrets)
    assert counts(FOUR, queries).tolist() == [truth]
    assert estimates(FOUR, queries) == pytest.approx([estimate])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_quasi", [1, 2, 3])
def test_as_the_slow_way(seed: int, n_quasi: int) -> None:
    both = compared(seed)
    queries = draw(both, n_queries=60, selectivity=0.2, n_quasi=n_quasi, seed=seed)
    found, guessed = counts(both, queries), estimates(both, queries)
    assert found.sum() > 0
    for i in range(60):
        assert found[i] == slow_count(both, queries, i)
        assert guessed[i] == pytest.approx(slow_estimate(both, queries, i), abs=1e-12)


def test_missing_values_are_in_no_query() -> None:
    holes = Compared(
        axes=(AGE, HEIGHT),
        sensitive=SALARY,
        values=places((np.nan, 1.5), (20, np.nan), (20, 1.5)),
        secrets=np.array([0.0, 0.0, np.nan]),
        lo=places((np.inf, 1.5), (20, np.inf), (20, 1.5)),
        hi=places((-np.inf, 1.5), (20, -np.inf), (20, 1.5)),
        boxes=np.array([0, 1, 2]),
        published_secrets=np.array([0.0, 0.0, np.nan]),
    )
    everything = asked([0, 1.0], [99, 2.0], (0, 4))
    assert counts(holes, everything).tolist() == [0]
    assert estimates(holes, everything).tolist() == [0]
    only_height = everything._replace(
        attributes=np.array([[1]]), first=places((1.0,)), last=places((2.0,))
    )
    assert counts(holes, only_height).tolist() == [1]
    assert estimates(holes, only_height).tolist() == [1]


def test_suppressed_rows_are_in_no_estimate() -> None:
    both = FOUR.window(0, 4)
    fewer = Compared(
        both.axes, both.sensitive, both.values, both.secrets, both.lo, both.hi,
        both.boxes[:3], both.published_secrets[:3],
    )  # fmt: skip
    everything = asked([0, 1.0], [99, 2.0], (0, 4))
    assert counts(fewer, everything).tolist() == [4]
    assert estimates(fewer, everything).tolist() == [3]


def test_nothing_published_is_an_error_of_all() -> None:
    nothing = Compared(
        FOUR.axes, FOUR.sensitive, FOUR.values, FOUR.secrets, FOUR.lo[:0], FOUR.hi[:0],
        FOUR.boxes[:0], FOUR.published_secrets[:0],
    )  # fmt: skip
    assert query_error(nothing, n_queries=200, selectivity=0.5).median == 1


def test_the_workload_is_as_asked_for() -> None:
    queries = draw(FOUR, n_queries=4000, selectivity=0.1, n_quasi=2, seed=3)
    share = 0.1 ** (1 / 3)
    is_age = queries.attributes == 0
    assert is_age.sum(axis=1).tolist() == [1] * 4000
    n_cells = queries.last[is_age] - queries.first[is_age] + 1
    assert set(n_cells) == {np.floor(100 * share + 0.5)}
    assert queries.first[is_age].min() == 0
    assert queries.last[is_age].max() == 99
    length = queries.last[~is_age] - queries.first[~is_age]
    np.testing.assert_allclose(length, share)
    assert queries.first[~is_age].min() >= 1
    assert queries.last[~is_age].max() <= 2 + 1e-12
    # Half of 5 cells, 2.32 of them, are 2, and begin in four places alike.
    begin, n = np.unique(queries.secrets[:, 0], return_counts=True)
    assert begin.tolist() == [0, 1, 2, 3]
    assert n.min() > 900


def test_cells_are_rounded_half_up_and_there_is_always_one() -> None:
    five = Compared(
        (Axis.of_cells("one", 5), Axis.of_cells("two", 2)), None, places((0, 0)), np.zeros(1),
        places((0, 0)), places((0, 0)), np.zeros(1, np.int64), np.zeros(1),
    )  # fmt: skip
    one = draw(five, n_queries=50, selectivity=0.5, n_quasi=1, seed=0)
    n_cells = {
        int(d): set((one.last - one.first + 1)[one.attributes == d].tolist()) for d in (0, 1)
    }
    assert n_cells == {0: {3}, 1: {1}}
    tiny = draw(five, n_queries=50, selectivity=1e-6, n_quasi=1, seed=0)
    assert (tiny.first == tiny.last).all()


def test_all_attributes_are_asked_alike() -> None:
    queries = draw(compared(0), n_queries=3000, selectivity=0.1, n_quasi=1, seed=5)
    n = np.bincount(queries.attributes[:, 0])
    assert len(n) == 3
    assert n.min() > 900


def test_the_seed_decides_and_more_attributes_than_there_are_means_all() -> None:
    both = compared(1)
    one = query_error(both, n_queries=300, n_quasi=9, seed=4)
    assert (
        one.errors.tolist() == query_error(both, n_queries=300, n_quasi=3, seed=4).errors.tolist()
    )
    assert one.errors.tolist() != query_error(both, n_queries=300, seed=5).errors.tolist()


def test_exact_boxes_answer_exactly() -> None:
    exact = Compared(
        FOUR.axes, FOUR.sensitive, FOUR.values, FOUR.secrets, FOUR.values, FOUR.values,
        np.arange(4), FOUR.secrets,
    )  # fmt: skip
    found = query_error(exact, n_queries=500, selectivity=0.4)
    assert len(found.errors) > 50
    assert found.errors.max() == pytest.approx(0)


def test_the_figures_of_a_workload() -> None:
    found = QueryError.of(np.array([4, 0, 10, 1, 2]), np.array([5.0, 2, 10, 0, 5]))
    assert sorted(found.errors) == [0, 0.25, 1, 1.5]
    assert found.as_dict() == pytest.approx(
        {
            "median": 0.625,
            "mean": 0.6875,
            "p25": 0.1875,
            "p75": 1.125,
            "p95": 1.425,
            "queries": 4,
            "dropped": 1,
        }
    )
    assert repr(found) == "QueryError(median=0.625, 4 queries)"


def test_a_workload_without_truth_has_no_error() -> None:
    found = QueryError.of(np.zeros(3, np.int64), np.ones(3))
    assert (found.median, found.mean, found.n_dropped) == (None, None, 3)
    assert repr(found) == "QueryError(median=none, 0 queries)"


def test_windows_by_position() -> None:
    # The first two rows leave as they came; in the place of the others stand other people.
    swapped = Compared(
        FOUR.axes, FOUR.sensitive, FOUR.values, FOUR.secrets, FOUR.values, FOUR.values,
        np.array([0, 1, 0, 1]), np.array([0.0, 1.0, 0.0, 1.0]),
    )  # fmt: skip
    found = windowed_query_error(swapped, rows=2, n_queries=400, selectivity=0.4)
    assert len(found.windows) == 2
    assert found.medians[0] == pytest.approx(0)
    assert found.medians[1] == pytest.approx(1)
    assert found.mean == pytest.approx(0.5)


def test_one_window_is_the_whole_and_the_rest_isnt_asked() -> None:
    both = compared(2)
    whole = query_error(both, n_queries=300)
    found = windowed_query_error(both, rows=both.n_rows, n_queries=300)
    assert found.medians == (whole.median,)
    assert len(windowed_query_error(both, rows=15, n_queries=10).windows) == 2


def test_a_window_in_which_nobody_was_asked_for_doesnt_count() -> None:
    nothing, half = QueryError(np.empty(0), 5), QueryError(np.array([0.5]), 0)
    assert WindowedQueryError((nothing, half)).mean == 0.5
    assert WindowedQueryError((nothing,)).mean is None


@pytest.mark.parametrize(
    ("knobs", "what"),
    [
        ({"n_queries": 0}, "n_queries: must be a whole number of at least 1; got 0"),
        ({"n_quasi": 1.5}, "n_quasi: must be a whole number of at least 1; got 1.5"),
        ({"n_quasi": True}, "n_quasi: must be a whole number"),
        ({"selectivity": 1.0}, "selectivity: must be between 0 and 1; got 1.0"),
    ],
)
def test_wrong_knobs_are_refused(knobs: dict[str, float], what: str) -> None:
    with pytest.raises(ParameterError, match=what):
        query_error(FOUR, **knobs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        (5, "must be at most the rows of the input; got 5 of 4"),
        (0, "must be a whole number of at least 1"),
    ],
)
def test_wrong_windows_are_refused(rows: int, what: str) -> None:
    with pytest.raises(ParameterError, match=what):
        windowed_query_error(FOUR, rows=rows)
