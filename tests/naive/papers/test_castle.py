"""CASTLE's naive twin against the thesis: its worked examples, and the flaws Shoal fixes."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shoal.spec.hierarchy import Domain, Hierarchy, Range
from tests.naive.castle import Cluster, Decision, Deviations, Group, NaiveCastle
from tests.naive.space import Row, n_subjects

AGE = Range(18, 120)
EDUCATION = Hierarchy.from_dict(
    {
        "Any": {
            "School": ["Primary School", "Secondary School"],
            "University": ["Bachelor", "Master", "Ph.D"],
        }
    }
)
PRIMARY, SECONDARY, BACHELOR, MASTER, PHD = range(5)


def people(**options: Any) -> NaiveCastle:
    """A twin over age and education, as in the examples of chapter 5."""
    return NaiveCastle([AGE, EDUCATION], [1.0, 1.0], **options)


def line(k: int, **options: Any) -> NaiveCastle:
    """A twin over one number from 0 to 100."""
    return NaiveCastle([Range(0, 100)], [1.0], k=k, **options)


def feed(
    castle: NaiveCastle, rows: Sequence[tuple[Any, ...]], *, end: bool = True
) -> list[Decision]:
    """Push (value, subject, sensitive values…) and end the stream."""
    decisions = []
    for value, subject, *sensitive in rows:
        decisions += castle.push([value], subject, sensitive)
    return decisions + castle.flush() if end else decisions


def groups(decisions: Sequence[Decision]) -> dict[int, set[int]]:
    """The rows of each group, reuses included."""
    found = defaultdict(set)
    for decision in decisions:
        if decision.group is not None:
            found[decision.group].add(decision.row)
    return dict(found)


def row(castle: NaiveCastle, number: int, subject: str, *values: float) -> Row:
    return Row(number, castle.space.row_box(values), subject, ())


# -- the worked examples of chapter 5 ------------------------------------------------------------


def test_example_5_1_range_intervals_and_people() -> None:
    castle = people(k=3)
    rows = [
        row(castle, 0, "pid1", 25, BACHELOR),
        row(castle, 1, "pid2", 26, MASTER),
        row(castle, 2, "pid3", 30, PHD),
    ]
    assert castle.space.box(rows) == ((25, 30), (BACHELOR, PHD))
    assert n_subjects(rows) == 3
    again = [*rows, row(castle, 3, "pid1", 25, BACHELOR)]
    assert castle.space.box(again) == castle.space.box(rows)
    assert n_subjects(again) == 3


def test_example_5_2_generalization() -> None:
    assert EDUCATION.label(BACHELOR, PHD) == "University"


def test_example_5_3_enlargement_and_selection() -> None:
    castle = people(k=3, clusters=2)
    c1 = Cluster([row(castle, 0, "a", 18, PRIMARY), row(castle, 1, "b", 22, SECONDARY)])
    c2 = Cluster([row(castle, 2, "c", 26, BACHELOR), row(castle, 3, "d", 28, MASTER)])
    x = row(castle, 4, "e", 24, BACHELOR)
    box1, box2 = castle.space.box(c1.rows), castle.space.box(c2.rows)
    assert castle.space.loss(box1) == pytest.approx(1 / 2 * (4 / 102 + 2 / 5))
    assert castle.space.loss(box2) == pytest.approx(1 / 2 * (2 / 102 + 3 / 5))
    assert castle.space.enlargement(box1, x.box) == pytest.approx(0.309, abs=1e-3)
    assert castle.space.enlargement(box2, x.box) == pytest.approx(0.01, abs=1e-3)
    grown = castle.space.join([box1, x.box])
    assert (grown[0], EDUCATION.label(int(grown[1][0]), int(grown[1][1]))) == ((18, 24), "Any")
    castle.open = [c1, c2]
    assert castle.best_selection(x) is c2


C2 = ((26.0, 28.0), (BACHELOR, PHD))
C3 = ((24.0, 27.0), (BACHELOR, PHD))


def reused(age: int, education: int, *kept: tuple[Any, ...], **options: Any) -> tuple[Any, ...]:
    """The box with which a lonely row is published when some boxes are kept."""
    castle = people(k=4, **options)
    castle.kept = [Group(n, box, castle.space.loss(box), 4) for n, box in enumerate(kept)]
    castle.push([age, education], "x")
    (decision,) = castle.flush()
    assert decision.outcome == "reuse"
    assert decision.lo is not None and decision.hi is not None
    return tuple(zip(decision.lo, decision.hi, strict=True))


def test_example_5_4_reuse() -> None:
    assert reused(26, BACHELOR, C2) == C2
    assert EDUCATION.label(*C2[1]) == "University"


def test_example_5_5_the_least_loss_narrows_the_age_down() -> None:
    # C2 loses less, so what comes out with C3's box can't be in their overlap, [26, 27].
    with_c3 = {a for a in range(24, 28) if reused(a, MASTER, C2, C3, reuse="best") == C3}
    assert with_c3 == {24, 25}


def test_example_5_6_a_random_choice_doesnt() -> None:
    with_c3 = {
        a for a in range(24, 29) for n in range(12)
        if reused(a, MASTER, C2, C3, seed=bytes([n])) == C3
    }  # fmt: skip
    assert with_c3 == {24, 25, 26, 27}


@pytest.mark.parametrize(
    ("reuse", "suspects"), [("best", {"P1", "P2"}), ("random", {"P1", "P2", "P3", "P4"})]
)
def test_example_5_7_who_may_own_the_row(reuse: str, suspects: set[str]) -> None:
    persons = {"P1": (24, BACHELOR), "P2": (25, MASTER), "P3": (26, BACHELOR), "P4": (27, MASTER)}
    assert {
        name for name, (age, education) in persons.items() for n in range(12)
        if reused(age, education, C2, C3, reuse=reuse, seed=bytes([n])) == C3
    } == suspects  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_table_5_2_three_and_three_customers(seed: int) -> None:
    sex = Hierarchy.flat(["M", "F"])
    domains: list[Domain] = [sex, Range(53703, 53715), Range(21, 31)]
    castle = NaiveCastle(domains, [1, 1, 1], k=3, clusters=1, seed=bytes([seed]))
    customers = {
        "Mike": (0, 53708, 31), "Alice": (1, 53715, 21), "John": (0, 53703, 28),
        "Bob": (0, 53706, 26), "Beth": (1, 53703, 24), "Carol": (1, 53706, 22),
    }  # fmt: skip
    for name, values in customers.items():
        castle.push(values, name)
    boxes = {(decision.row, decision.lo, decision.hi) for decision in castle.flush()}
    men, women = ((0, 53703, 26), (0, 53708, 31)), ((1, 53703, 21), (1, 53715, 24))
    assert boxes == {
        (number, *(women if values[0] else men)) for number, values in enumerate(customers.values())
    }


# -- the deviations, each off and on -------------------------------------------------------------


def both(name: str, **others: bool) -> tuple[Deviations, Deviations]:
    """The paper in one point, and Shoal; ``others`` are the same in both."""
    return Deviations(**{name: False, **others}), Deviations(**{name: True, **others})


def test_castle_1_every_row_expires() -> None:
    rows = [(10 * n, f"s{n}") for n in range(6)]
    paper, shoal = (
        feed(line(1, delay_rows=2, deviations=d), rows, end=False)
        for d in both("every_row_expires")
    )
    assert paper == []  # every row makes a new cluster, and so nothing ever expires
    assert [(d.row, d.published) for d in shoal] == [(0, 2), (1, 3), (2, 4), (3, 5)]


def test_castle_2_merge_counts_people() -> None:
    rows = [(20, "a"), (60, "a")]
    paper, shoal = (feed(line(2, deviations=d), rows) for d in both("merge_counts_people"))
    assert {(d.outcome, d.n_subjects) for d in paper} == {("group", 1)}  # one is not two
    assert {d.outcome for d in shoal} == {"suppressed"}


def test_castle_3_rows_of_one_subject_differ() -> None:
    rows = [(20, "a"), (20, "b"), (80, "c"), (80, "d"), (20, "e"), (80, "e"), (80, "f"), (20, "f")]
    paper, shoal = (
        [
            sum(d.loss for d in feed(line(2, clusters=1, seed=bytes([n]), deviations=dev), rows))
            for n in range(20)
        ]
        for dev in both("rows_of_one_subject_differ")
    )
    assert max(paper) > 0  # the row that stands for e or f is at the other end
    assert max(shoal) == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("k", "needed", "values"), [(3, 2, "xxxxxxxxy" * 3), (2, 3, "xyz" * 4)])
def test_castle_4_whole_shares(k: int, needed: int, values: str, seed: int) -> None:
    rows = [(n, f"s{n}", value) for n, value in enumerate(values)]

    def fewest(deviations: Deviations) -> tuple[int, int]:
        castle = line(k, l_needed=[needed], clusters=1, seed=bytes([seed]), deviations=deviations)
        decisions = feed(castle, rows)
        assert len(decisions) == len(rows)
        return (
            min(decision.n_subjects for decision in decisions),
            min(len({values[n] for n in group}) for group in groups(decisions).values()),
        )

    paper, shoal = (
        fewest(d) for d in both("whole_shares", parts_are_checked=False, plain_split_first=False)
    )
    assert paper[0] < k or paper[1] < needed  # a share of less than one row is none
    assert shoal[0] >= k
    assert shoal[1] >= needed


def test_castle_5_diverse_representatives() -> None:
    rows = [*((n, f"s{n}", "x") for n in range(4)), *((n, f"s{n}", "y") for n in range(4))]
    paper, shoal = (
        feed(line(2, l_needed=[2], clusters=1, deviations=d), rows)
        for d in both("diverse_representatives", plain_split_first=False)
    )
    assert paper == []  # everybody stands for x, no part can be made, all rows are lost
    assert {d.row for d in shoal} == set(range(8))
    assert all({rows[n][2] for n in group} == {"x", "y"} for group in groups(shoal).values())


def test_castle_6_diversity_counts_people() -> None:
    rows = [(1, "a", "x"), (1, "a", "y"), (1, "a", "z"), (1, "b", "x")]
    paper, shoal = (
        feed(line(2, l_needed=[3], deviations=d), rows) for d in both("diversity_counts_people")
    )
    # Three values of two people: b takes away b's own row, and reads a's.
    assert {(d.outcome, d.n_subjects) for d in paper} == {("group", 2)}
    assert {d.outcome for d in shoal} == {"suppressed"}


def test_castle_7_parts_are_checked() -> None:
    rows = [(20, "a", "x", "p"), (20, "b", "y", "p"), (80, "c", "x", "q"), (80, "d", "y", "q")]
    paper, shoal = (
        groups(feed(line(2, l_needed=[2, 2], clusters=1, deviations=d), rows))
        for d in both("parts_are_checked", plain_split_first=False)
    )
    assert sorted(map(sorted, paper.values())) == [[0, 1], [2, 3]]  # one value of p, q each
    assert list(shoal.values()) == [{0, 1, 2, 3}]


@pytest.mark.parametrize(
    ("shape", "n_reused"), [({"entropy": [2.0]}, 0), ({"recursive": [(2.5, 2)]}, 1)]
)
def test_castle_8_reuse_is_checked(shape: dict[str, Any], n_reused: int) -> None:
    rows = [(20, "a", "x"), (20, "b", "y"), (20, "c", "x"), (20, "d", "x")]
    paper, shoal = (
        [d.outcome for d in feed(line(2, l_needed=[2], delay_rows=1, deviations=d, **shape), rows)]
        for d in both("reuse_is_checked")
    )
    assert paper == ["group", "group", "reuse", "reuse"]  # x, y, x, x is neither
    assert shoal.count("reuse") == n_reused
    assert shoal.count("suppressed") == 2 - n_reused


def test_castle_9_perfect_groups_are_kept() -> None:
    rows = [(20, "a"), (20, "b"), (20, "c")]
    paper, shoal = (
        [d.outcome for d in feed(line(2, delay_rows=1, deviations=d), rows)]
        for d in both("perfect_groups_are_kept")
    )
    assert paper == ["group", "group", "suppressed"]  # 0 < 0 never holds
    assert shoal == ["group", "group", "reuse"]


def test_castle_10_kept_is_bounded() -> None:
    rows = [(at, f"{name}{at}") for at in range(0, 60, 10) for name in "ab"]
    paper, shoal = (line(2, delay_rows=1, kept=2, deviations=d) for d in both("kept_is_bounded"))
    for castle in (paper, shoal):
        feed(castle, rows)
    assert [group.number for group in paper.kept] == [0, 1, 2, 3, 4, 5]  # and so on for ever
    assert [group.number for group in shoal.kept] == [4, 5]


def test_castle_11_end_keeps_the_promise() -> None:
    too_few = [(20, "a"), (60, "b")]
    paper, shoal = (feed(line(3, deviations=d), too_few) for d in both("end_keeps_the_promise"))
    assert {(d.outcome, d.n_subjects) for d in paper} == {("group", 2)}
    assert {d.outcome for d in shoal} == {"suppressed"}


def test_castle_11_the_last_rows_are_taken_along() -> None:
    # a and b would do, and would leave c with nobody.
    rows = [(20, "a"), (20, "b"), (90, "c")]
    assert groups(feed(line(2), rows)) == {0: {0, 1, 2}}


def test_castle_12_merges_reach_diversity() -> None:
    rows = [(20, "a", "x"), (21, "b", "x"), (80, "c", "y")]
    paper, shoal = (
        feed(line(2, l_needed=[2], delay_rows=2, deviations=d), rows, end=False)
        for d in both("merges_reach_diversity")
    )
    assert {rows[d.row][2] for d in paper} == {"x"}  # two people, but one value
    assert {d.row for d in shoal} == {0, 1, 2}


def test_castle_13_decided_rows_leave() -> None:
    rows = [(20, "a"), (22, "b"), (21, "c"), (30, "d"), (30, "d")]
    paper, shoal = (
        feed(line(2, delay_rows=1, joins="alone", deviations=d), rows, end=False)
        for d in both("decided_rows_leave")
    )
    boxes = [(d.lo, d.hi) for d in paper if d.row == 2]
    assert boxes == [((20,), (22,)), ((21,), (30,))]  # c twice: between 21 and 22, that is
    assert [d.row for d in shoal].count(2) == 1
    assert [d.outcome for d in shoal if d.row == 3] == ["suppressed"]


def test_castle_14_joins_have_company() -> None:
    """With [20, 22] kept, c joins it alone; d can't, so that c and d leave as a group instead."""
    rows = [(20, "a"), (22, "b"), (21, "c"), (70, "d")]
    paper, shoal = (
        feed(line(2, delay_rows=1, deviations=d), rows, end=False)
        for d in both("joins_have_company")
    )
    assert [d.row for d in paper if d.published == 3] == [2]
    assert [d.row for d in shoal if d.published == 3] == [2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_castle_15_plain_split_first(seed: int) -> None:
    """Both ends have two values; the split by values wants half of each value in every part."""
    rows = [(20 if n < 4 else 80, f"s{n}", value) for n, value in enumerate("xxxyyyyx")]
    paper, shoal = (
        feed(line(4, l_needed=[2], clusters=1, seed=bytes([seed]), deviations=d), rows)
        for d in both("plain_split_first")
    )
    assert {d.loss for d in paper} == {0.6}
    assert groups(shoal).values() and {d.loss for d in shoal} == {0.0}


def test_where_a_plain_part_is_not_diverse_the_better_repair_is_taken() -> None:
    """Of the plain parts merged and the parts by values, those of less loss; or more of them."""
    apart = [(at, f"{at}{n}", value) for at, value in ((40, "x"), (50, "y")) for n in range(4)]
    mixed = feed(line(2, l_needed=[2], clusters=1), apart)
    assert len(groups(mixed)) == 4  # an x and a y in each; the plain parts end as one
    ends = [*((0, f"a{n}", "xxxy"[n]) for n in range(4)), *((80, f"b{n}", "xy"[n]) for n in (0, 1))]
    merged = feed(line(2, l_needed=[2], clusters=1), ends)
    assert {d.loss for d in merged} == {0.0}


def test_every_deviation_is_described_and_tested() -> None:
    here = Path(__file__)
    page = (here.parents[3] / "docs" / "deviations.md").read_text(encoding="utf-8")
    castle = page[page.index("## CASTLE") :].split("\n## ")[0]
    table = re.findall(r"^\| \[castle-(\d+)\]\(.*?\) \| `(\w+)`", castle, re.MULTILINE)
    flags = [flag.name for flag in dataclasses.fields(Deviations)]
    assert table == [(str(n), flag) for n, flag in enumerate(flags, start=1)]
    tests = "".join(path.read_text(encoding="utf-8") for path in here.parents[2].rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", castle):
        assert f"def {name}(" in tests
