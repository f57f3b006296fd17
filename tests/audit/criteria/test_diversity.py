"""Diversity against a brute force that counts every class at every moment from scratch."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.audit import Verdict, audit
from shoal.audit.criteria.diversity import moments
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import (
    DistinctLDiversity,
    EntropyLDiversity,
    LDiversity,
    Policy,
    RecursiveLDiversity,
)
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.audit.test_matching import by_trying_all
from tests.audit.world import World

Row = tuple[int, str, int]  # group, value, subject

SCHEMA = Schema(
    subject="person",
    quasi=[Quasi("place", Hierarchy.flat(["a", "b", "c"]))],
    sensitive=[Sensitive("disease")],
)
BOX = {0: "a", 1: "b", 2: "b"}  # two groups share a box


def judge(
    criterion: LDiversity,
    rows: list[Row],
    n_first: int,
    joined: list[int] | None = None,
    order: list[int] | None = None,
) -> Verdict:
    """Audit rows of which the first n_first of each group were released at once.

    The others joined one by one, or at the moments ``joined``. The rows stand in the output in
    this order, or in ``order``.
    """
    joined = list(range(len(rows))) if joined is None else joined
    order = list(range(len(rows))) if order is None else order
    seen: Counter[int] = Counter()
    lines = []
    for row, (group, _, subject) in enumerate(rows):
        reuse = seen[group] >= n_first
        seen[group] += 1
        moment = 1_000 + joined[row] if reuse else group
        lines.append(
            {
                "row": row,
                "subject": subject,
                "outcome": "reuse" if reuse else "group",
                "arrived": row,
                "published": moment,
                "arrived_s": None,
                "published_s": None,
                "group": group,
                "seq": order.index(row),
            }
        )
    published = {
        "place": [BOX[rows[row][0]] for row in order],
        "disease": [rows[row][1] for row in order],
    }
    report = audit(
        SCHEMA, Policy(criterion), pa.table(published), trace=pa.Table.from_pylist(lines)
    )
    return report[f"{criterion.name} of disease"]


def classes(
    rows: list[Row], n_first: int, joined: list[int] | None = None
) -> list[list[tuple[int, str]]]:
    """Every state of every group, and every box, as lists of (subject, value)."""
    joined = list(range(len(rows))) if joined is None else joined
    found = [
        [(subject, value) for g, value, subject in rows if BOX[g] == box]
        for box in {BOX[group] for group, _, _ in rows}
    ]
    for group in {group for group, _, _ in rows}:
        members = [
            (subject, value, moment)
            for (g, value, subject), moment in zip(rows, joined, strict=True)
            if g == group
        ]
        first, later = members[:n_first], members[n_first:]
        found.append([member[:2] for member in first])
        for now in {moment for _, _, moment in later}:
            there = first + [member for member in later if member[2] <= now]
            found.append([member[:2] for member in there])
    return found


def is_matched(members: list[tuple[int, str]], needed: int) -> bool:
    codes = {value: code for code, value in enumerate(sorted({v for _, v in members}))}
    return by_trying_all({(subject, codes[value]) for subject, value in members}) >= needed


def by_rows_and_people(members: list[tuple[int, str]]) -> list[list[int]]:
    return [
        sorted(Counter(value for _, value in members).values(), reverse=True)
        for members in (members, set(members))
    ]


def entropy_holds(members: list[tuple[int, str]], least: float) -> bool:
    for counts in by_rows_and_people(members):
        shares = [n / sum(counts) for n in counts]
        if -sum(p * math.log(p) for p in shares) < math.log(least) - 1e-9:
            return False
    return is_matched(members, math.ceil(least))


def recursive_holds(members: list[tuple[int, str]], level: int, c: float) -> bool:
    for counts in by_rows_and_people(members):
        if not counts[0] < Fraction(c) * sum(counts[level - 1 :]):
            return False
    return is_matched(members, level)


streams = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("xyz"), st.integers(0, 3)), min_size=1, max_size=9
)


@given(streams, st.integers(1, 3), st.integers(1, 3))
def test_distinct(rows: list[Row], needed: int, n_first: int) -> None:
    # Nothing can be lost after the release, so the later moments change nothing.
    good = all(is_matched(members, needed) for members in classes(rows, n_first))
    assert (judge(DistinctLDiversity(needed), rows, n_first).verdict == "kept") == good


@given(streams, st.sampled_from([1.0, 1.5, 1.75, 2.0, 3.0]), st.integers(1, 4))
def test_entropy(rows: list[Row], least: float, n_first: int) -> None:
    good = all(entropy_holds(members, least) for members in classes(rows, n_first))
    assert (judge(EntropyLDiversity(least), rows, n_first).verdict == "kept") == good


@given(streams, st.integers(1, 3), st.sampled_from([0.5, 1.0, 1.5, 3.0]), st.integers(1, 4))
def test_recursive(rows: list[Row], level: int, c: float, n_first: int) -> None:
    good = all(recursive_holds(members, level, c) for members in classes(rows, n_first))
    assert (judge(RecursiveLDiversity(level, c=c), rows, n_first).verdict == "kept") == good


@given(st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 2)), max_size=8), st.data())
def test_what_joins_at_one_moment_joins_in_no_order(
    later: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Each moment is judged when all of it has happened, wherever its rows stand."""
    # Everybody is somebody else, so that evenness is all there is to lose.
    rows = [(0, value, who) for who, value in enumerate(["x", "y", *(v for v, _ in later)])]
    joined = [0, 0, *(moment for _, moment in later)]
    order = data.draw(st.permutations(range(len(rows))))
    states = classes(rows, 2, joined)
    good = all(entropy_holds(members, 1.8) for members in states)
    assert (judge(EntropyLDiversity(1.8), rows, 2, joined, order).verdict == "kept") == good
    good = all(recursive_holds(members, 2, 2.5) for members in states)
    verdict = judge(RecursiveLDiversity(2, c=2.5), rows, 2, joined, order).verdict
    assert (verdict == "kept") == good


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), min_size=1),
    st.integers(1, 3),
)
def test_tallies_at_every_moment(drawn: list[tuple[int, int, bool]], n_first: int) -> None:
    n_first = min(n_first, len(drawn))
    members = [(subject, value) for subject, value, _ in drawn]
    subjects, values, ends = (list(part) for part in zip(*drawn, strict=True))
    counted = [n_first, *(n for n in range(n_first + 1, len(drawn) + 1) if ends[n - 1])]
    tallies = moments(subjects, values, n_first, ends)
    for n, (rows, people) in zip(counted, tallies, strict=True):
        for tally, some in ((rows, members[:n]), (people, list(set(members[:n])))):
            counts = Counter(value for _, value in some)
            assert tally.counts == counts
            assert tally.total == len(some)
            shares = [count / len(some) for count in counts.values()]
            entropy = -sum(share * math.log(share) for share in shares)
            assert tally.entropy() == pytest.approx(entropy, abs=1e-12)


def test_the_smallest_number_of_matched_subjects_is_exact() -> None:
    rows = [(group, value, subject) for group in (0, 1) for subject in (1, 2, 3) for value in "xyz"]
    figures = judge(DistinctLDiversity(1), rows, 9).figures
    assert figures["smallest_group_n_subjects_with_values"] == 3
    assert figures["smallest_box_n_subjects_with_values"] == 3


def test_one_person_with_all_values_stands_for_one() -> None:
    rows = [(0, "x", 1), (0, "y", 1), (0, "z", 1), (0, "x", 2)]
    verdict = judge(DistinctLDiversity(3), rows, 4)
    assert verdict.verdict == "broken"
    assert verdict.figures["smallest_group_n_values"] == 3
    assert verdict.figures["smallest_group_n_subjects_with_values"] == 2


def test_what_was_uneven_for_a_moment_is_found() -> None:
    """x y, then x x x, then y y y: even at the release and at the end, not in between."""
    rows = [(0, v, i) for i, v in enumerate("xyxxxyyy")]
    for criterion in (EntropyLDiversity(1.8), RecursiveLDiversity(2, c=2.5)):
        verdict = judge(criterion, rows, 2)
        assert verdict.verdict == "broken"
        assert verdict.figures["n_boxes_below"] == 0
        assert verdict.figures["n_groups_below"] == 1


UNEVEN_IN_BETWEEN = [(0, v, i) for i, v in enumerate("xyxxxyyy")]


@pytest.mark.parametrize("criterion", [EntropyLDiversity(1.8), RecursiveLDiversity(2, c=2.5)])
@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ([0] * 8, "kept"),  # x y, then x x x y y y at once
        ([0, 0, 0, 0, 0, 1, 1, 1], "broken"),  # x y, then x x x, then y y y
        ([0, 0, 1, 0, 0, 0, 1, 1], "kept"),  # x y, then x x y, then x y y
    ],
)
def test_a_group_is_even_at_the_end_of_every_moment(
    criterion: LDiversity, joined: list[int], expected: str
) -> None:
    for order in ([0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 7, 4, 5, 3, 6, 2]):
        verdict = judge(criterion, UNEVEN_IN_BETWEEN, 2, joined, order)
        assert verdict.verdict == expected
        assert verdict.figures["n_groups_below"] == (expected == "broken")


def test_subjects_that_join_at_once_do_not_repair_the_release() -> None:
    """The group left with x x x y; that y y leave at the same moment changes nothing."""
    rows = [(0, v, i) for i, v in enumerate("xxxyyy")]
    at_release = [-1_000] * 6
    assert judge(EntropyLDiversity(1.8), rows, 4, at_release).verdict == "broken"


def test_the_repetitions_of_one_person_even_nothing_out() -> None:
    rows = [(0, "x", 1), (0, "x", 2), (0, "x", 3), (0, "y", 4), (0, "y", 4), (0, "y", 4)]
    verdict = judge(EntropyLDiversity(1.9), rows, 6)
    assert verdict.verdict == "broken"
    assert verdict.figures["worst_group_effective_values_by_rows"] == pytest.approx(2.0)
    assert verdict.figures["worst_group_effective_values_by_subjects"] < 1.9


def test_over_people_evenness_is_promised_of_groups() -> None:
    """Both groups are even, but subject 2 counts once in the box: a figure, not a verdict."""
    rows = [(1, "x", 1), (1, "y", 2), (2, "x", 3), (2, "y", 2)]
    verdict = judge(EntropyLDiversity(2), rows, 2)
    assert verdict.verdict == "kept"
    assert verdict.figures["worst_group_effective_values_by_subjects"] == pytest.approx(2)
    over_people = verdict.figures["worst_box_effective_values_by_subjects"]
    assert over_people is not None
    assert over_people < 2


def test_numbers_are_values_by_what_they_mean() -> None:
    schema = Schema(subject=None, quasi=SCHEMA.quasi, sensitive=[Sensitive("pay", Range(0, 10))])
    table = pa.table({"place": ["a", "a"], "pay": ["1", "1.0"]})
    report = audit(schema, Policy(DistinctLDiversity(2)), table)
    assert report["distinct l-diversity of pay"].verdict == "broken"


def test_a_missing_sensitive_column_cannot_be_judged() -> None:
    report = audit(SCHEMA, Policy(DistinctLDiversity(2)), pa.table({"place": ["a", "a"]}))
    assert report["distinct l-diversity of disease"].verdict == "unverifiable"


def test_each_attribute_has_its_own_verdict() -> None:
    schema = Schema(
        subject=None, quasi=SCHEMA.quasi, sensitive=[Sensitive("disease"), Sensitive("pay")]
    )
    table = pa.table({"place": ["a", "a"], "disease": ["x", "y"], "pay": ["1", "1"]})
    report = audit(schema, Policy(DistinctLDiversity(2)), table)
    assert report["distinct l-diversity of disease"].verdict == "kept"
    assert report["distinct l-diversity of pay"].verdict == "broken"
    report = audit(schema, Policy(DistinctLDiversity(2, attribute="disease")), table)
    with pytest.raises(KeyError):
        report["distinct l-diversity of pay"]


def test_the_most_frequent_value_must_stay_below_the_bound_and_not_reach_it() -> None:
    """Of five people three have one value: 3 < c * 2."""
    rows: list[Row] = [(0, "x" if who < 3 else "y", who) for who in range(5)]
    assert judge(RecursiveLDiversity(2, c=1.5), rows, 5).verdict == "broken"
    verdict = judge(RecursiveLDiversity(2, c=1.75), rows, 5)
    assert verdict.verdict == "kept"
    assert verdict.figures["worst_group_largest_to_tail_by_rows"] == 1.5
    assert verdict.figures["worst_group_largest_to_tail_by_subjects"] == 1.5


# -- what is said ----------------------------------------------------------------------------------

L = "distinct l-diversity of disease"


def test_what_was_kept_is_said_with_the_numbers_of_boxes_and_groups(world: World) -> None:
    verdict = world.report()[L]
    assert verdict.detail == (
        "at least 2 different subjects with different values in each of 2 boxes and 3 groups"
    )
    assert verdict.figures == {
        "l": 2,
        "n_boxes": 2,
        "n_boxes_below": 0,
        "smallest_box_n_values": 2,
        "smallest_box_n_subjects_with_values": 2,
        "n_groups": 3,
        "n_groups_below": 0,
        "smallest_group_n_values": 2,
        "smallest_group_n_subjects_with_values": 2,
    }


def test_that_values_are_even_enough_is_said() -> None:
    rows = [(0, v, i) for i, v in enumerate("xy")]
    assert judge(EntropyLDiversity(1.8), rows, 2).detail == (
        "at least 2 different subjects with different values and even enough "
        "in each of 1 box and 1 group"
    )


def test_a_group_may_have_become_uneven_later_and_a_box_has_no_history() -> None:
    uneven = [(0, v, i) for i, v in enumerate("xyxxx")]
    assert judge(EntropyLDiversity(1.8), uneven, 2).detail == (
        "1 of 1 box has values that are too uneven; "
        "1 of 1 group (0) had when released or later values that are too uneven"
    )


@pytest.mark.parametrize(("criterion", "said"), [
    (DistinctLDiversity(2), "fewer than 2 different subjects with different values"),
    (EntropyLDiversity(1.5), "or later values that are too uneven"),
])  # fmt: skip
def test_a_group_without_a_release_hides_no_other_and_is_not_counted(
    world: World, criterion: LDiversity, said: str
) -> None:
    """All rows of group 0 joined it, and the two of group 1 have one value now."""
    world.criteria = [criterion]
    for row in (0, 1, 2):
        world.line(row)["outcome"] = "reuse"
    world.shown(4)["disease"] = world.original[4]["disease"] = "flu"
    verdict = world.report()[f"{criterion.name} of disease"]
    assert f"1 of 2 groups (1) had when released {said}" in verdict.detail
    assert verdict.figures["n_groups"] == 2
    assert verdict.figures["n_groups_below"] == 1


def test_without_a_trace_rows_are_diverse_and_their_people_unknown(world: World) -> None:
    verdict = world.report(trace=False)[L]
    assert verdict.verdict == "unverifiable"
    assert verdict.detail == (
        "the rows of every box are diverse enough, "
        "but whose rows these are can't be told without a trace"
    )
    assert verdict.figures["n_boxes"] == 2


def test_with_a_trace_that_does_not_fit_nothing_is_said_of_boxes(world: World) -> None:
    world.published.append(world.published[0])
    assert world.report()[L].detail == "the trace doesn't fit the output row by row"
