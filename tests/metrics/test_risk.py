"""Risk is counted in people, whoever has how many rows."""

import numpy as np
import pytest

from shoal.metrics.risk import attribute_shares, covered, risk


def test_a_person_with_several_rows_is_found_by_the_smallest_class() -> None:
    classes = np.array([0, 0, 1, 1, 1])
    people = np.array([1, 2, 1, 3, 4])
    found = risk(classes, people)
    assert found.sizes.tolist() == [2, 3]
    assert sorted(found.worst) == pytest.approx([1 / 3, 1 / 3, 1 / 2, 1 / 2])
    assert found.average == pytest.approx((1 / 2 + 1 / 2 + 1 / 3 + 1 / 3) / 4)
    assert found.marketer == pytest.approx(((1 / 2 + 1 / 3) / 2 + 1 / 2 + 1 / 3 + 1 / 3) / 4)


def test_rows_of_one_person_are_no_company() -> None:
    found = risk(np.zeros(10, np.int64), np.full(10, 7))
    assert (found.highest, found.n_unique, found.row_share) == (1.0, 1, 1.0)


def test_the_journalist_never_has_fewer_candidates_than_the_prosecutor() -> None:
    classes, people = np.array([0, 0, 1]), np.array([0, 1, 2])
    assert risk(classes, people, np.array([10, 0])).worst.tolist() == [0.1, 0.1, 1.0]


def test_nobody_has_no_risk() -> None:
    nothing = np.empty(0, np.int64)
    assert risk(nothing, nothing).as_dict()["highest"] is None
    assert attribute_shares([nothing], nothing) == [0.0]


def test_people_of_a_population_are_counted_in_boxes_once() -> None:
    values = np.array([[30.0, 0], [35, 1], [35, 1], [np.nan, 0]])
    boxes = np.array([[30.0, 0], [31, 0]]), np.array([[40.0, 0], [40, 1]])
    assert covered(*boxes, values, np.array([0, 1, 1, 2])).tolist() == [2, 2]


@pytest.mark.parametrize("n", [3, 7])
def test_the_shares_of_attributes_are_the_whole_risk(n: int) -> None:
    random = np.random.default_rng(1)
    people = np.arange(60)
    columns = [random.integers(3, size=60) for _ in range(n - 1)] + [np.zeros(60, np.int64)]
    shares = attribute_shares(columns, people)
    classes = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1)
    average = risk(classes, people).average
    assert average is not None
    assert sum(shares) == pytest.approx(average - 1 / 60)
    assert shares[-1] == 0
