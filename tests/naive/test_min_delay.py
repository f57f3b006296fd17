"""The naive twin of the minimum delay method against Zhou et al. (EDBT 2009), section 2.2."""

from __future__ import annotations

from typing import Any

from shoal.spec.hierarchy import Domain, Hierarchy, Range
from tests.algorithms.world import check_section, flags_of, groups
from tests.naive.castle import Decision
from tests.naive.min_delay import Deviations, NaiveMinDelay

POSTCODE = Hierarchy.from_dict(
    {"*": {"102**": ["10210", "10230", "10250"], "210**": ["21020", "21040"]}}
)
OCCUPATION = Hierarchy.from_dict(
    {
        "professional": {
            "teacher": ["high school teacher", "primary school teacher", "sessional instructor"],
            "medical doctor": ["physician", "surgeon"],
        }
    }
)
#: Table 2.
STREAM = [
    ("Allen", "10230", "high school teacher", 32),
    ("Betty", "21020", "physician", 42),
    ("Allen", "10230", "high school teacher", 32),
    ("Cathy", "10210", "primary school teacher", 38),
    ("David", "21040", "surgeon", 36),
    ("Edward", "10250", "sessional instructor", 28),
]
#: Table 3.
PUBLISHED = [
    ("Allen", "*", "professional", (32, 42), 1),
    ("Betty", "*", "professional", (32, 42), 1),
    ("Cathy", "*", "professional", (32, 42), 1),
    ("Allen", "*", "professional", (28, 36), 2),
    ("David", "*", "professional", (28, 36), 2),
    ("Edward", "*", "professional", (28, 36), 2),
]


def line(k: int, **options: Any) -> NaiveMinDelay:
    """A twin over one number from 0 to 100."""
    return NaiveMinDelay([Range(0, 100)], [1.0], k=k, **options)


def test_example_5_and_table_3() -> None:
    domains: list[Domain] = [POSTCODE, OCCUPATION, Range(0, 120)]
    twin = NaiveMinDelay(domains, [1, 1, 1], k=3)
    decisions: list[Decision] = []
    for name, postcode, occupation, age in STREAM:
        codes = [POSTCODE.leaves.index(postcode), OCCUPATION.leaves.index(occupation), age]
        decisions += twin.push(codes, name)
    table = []
    for d in decisions:
        assert d.lo is not None and d.hi is not None and d.group is not None
        (p, o, a), (q, r, b) = d.lo, d.hi
        labels = POSTCODE.label(int(p), int(q)), OCCUPATION.label(int(o), int(r))
        table.append((STREAM[d.row][0], *labels, (a, b), d.group + 1))
    assert table == PUBLISHED
    # The first class is complete when Cathy comes, the second when Edward does.
    assert [d.published for d in decisions] == [3, 3, 3, 5, 5, 5]
    assert not twin.held


def test_a_class_waits_for_what_else_is_promised() -> None:
    twin = line(2, l_needed=[2])
    decisions = twin.push([10], "a", ["x"]) + twin.push([20], "b", ["x"])
    assert decisions == []
    assert groups(twin.push([90], "c", ["y"])) == {0: {0, 1, 2}}


def test_min_delay_1_bounded() -> None:
    rows = [([n], "a") for n in range(30)]
    paper = line(2, delay_rows=5, capacity=4, deviations=Deviations(bounded=False))
    shoal = line(2, delay_rows=5)
    tight = line(2, capacity=4)
    for twin in (paper, shoal, tight):
        for values, subject in rows:
            twin.push(values, subject)
    assert len(paper.classes) == len(paper.held) == 30  # and so on for ever
    assert len(shoal.held) == 5
    assert len(tight.held) == 4


def test_a_forced_class_takes_others_along_in_their_order() -> None:
    twin = line(3, capacity=3)
    rows = [(10, "a"), (20, "a"), (30, "b"), (40, "b")]
    decisions = [d for at, subject in rows for d in twin.push([at], subject)]
    # Of a and b together there are two people only: nothing can be published.
    assert [(d.row, d.outcome) for d in decisions] == [(0, "suppressed")]
    assert [[row.number for row in rows] for rows in twin.classes] == [[2, 1], [3]]
    assert groups(twin.push([50], "c")) == {0: {1, 2, 4}}
    assert list(twin.held) == [3]


def test_a_forced_row_that_can_leave_with_others_does() -> None:
    twin = line(2, l_needed=[2], delay_rows=2)
    rows = [(10, "a", "x"), (40, "a", "y"), (20, "b", "x"), (30, "c", "x")]
    decisions = [d for at, subject, value in rows for d in twin.push([at], subject, [value])]
    # The first class has x only; with the second one, b has x and a has y.
    assert groups(decisions) == {0: {0, 1, 2}}
    assert {(d.lo, d.hi, d.published) for d in decisions} == {((10,), (40,), 2)}
    assert list(twin.held) == [3]


def test_rows_of_a_subject_stay_in_the_first_classes() -> None:
    twin = line(3, capacity=3)
    for at, subject in [(10, "b"), (20, "a"), (30, "a")]:
        twin.push([at], subject)
    twin.push([40], "b")
    assert [[row.number for row in rows] for rows in twin.classes] == [[1, 3], [2]]
    twin.push([50], "b")  # b has another row in the first class: a's second one comes there
    assert [[row.number for row in rows] for rows in twin.classes] == [[3, 2], [4]]
    twin.push([60], "a")
    assert [[row.number for row in rows] for rows in twin.classes] == [[3, 5], [4]]


def test_a_delay_in_seconds_fires_between_rows() -> None:
    twin = line(3, delay_seconds=2.5)
    assert twin.push([10], "a", time=0.0) == []
    assert twin.push([10], "b", time=1.0) == []
    first = twin.advance(2.6)
    assert [(d.row, d.outcome, d.published, d.published_s) for d in first] == [
        (0, "suppressed", 2, 2.5)
    ]
    second = twin.push([10], "c", time=9.0)
    assert [(d.row, d.published, d.published_s) for d in second] == [(1, 2, 3.5)]
    assert [d.published for d in twin.flush()] == [3]


def test_the_end_takes_what_there_is() -> None:
    twin = line(2, l_needed=[2])
    for subject, value in [("a", "x"), ("b", "x"), ("a", "x"), ("c", "x")]:
        twin.push([10], subject, [value])
    assert {d.outcome for d in twin.flush()} == {"suppressed"}
    for subject, value in [("a", "x"), ("a", "y"), ("b", "x")]:
        twin.push([10], subject, [value])
    assert {d.outcome for d in twin.flush()} == {"group"}


def test_open_the_last_to_come_has_the_other_value() -> None:
    twin = line(3, l_needed=[2])
    rows = [("a", "x"), ("b", "x"), ("c", "x"), ("d", "x"), ("e", "y")]
    decisions = [d for subject, value in rows for d in twin.push([10], subject, [value])]
    # Five people, where three would do: four of them weren't diverse, and the fifth came just then.
    assert groups(decisions) == {0: {0, 1, 2, 3, 4}}
    assert {d.published for d in decisions} == {4}


def test_every_deviation_is_described_and_tested() -> None:
    check_section("Minimum delay", "min-delay", flags_of(Deviations))
