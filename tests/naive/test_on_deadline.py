"""What the twins of FADS, FAST, IDEA, K-VARP and IoT share: the flaws Shoal fixes, and streams."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from typing import Any

import pytest

from shoal.spec.hierarchy import Domain, Hierarchy, Range
from tests.algorithms.world import (
    ON_DEADLINE,
    TWINS,
    both,
    check_section,
    feed,
    flags_of,
    groups,
    line,
)
from tests.naive.examples import EXAMPLES
from tests.naive.on_deadline import Decision, Deviations, Group, NaiveOnDeadline
from tests.naive.test_castle import can_be_told_apart, shape_holds

GAP = math.nan

#: So that one worker sees all rows, in a round that falls on the first deadline.
ALONE: dict[str, dict[str, Any]] = {name: {} for name in TWINS} | {
    "fast": {"workers": 1, "block": 3}
}


def square(name: str, k: int, **options: Any) -> NaiveOnDeadline:
    """A twin over two numbers, either of which may be missing."""
    domains: list[Domain] = [Range(0, 100), Range(0, 10)]
    return TWINS[name](domains, [1.0, 1.0], k=k, missing="maybe", **options)


# -- the deviations that all of them share, each off and on ----------------------------------------


@pytest.mark.parametrize("name", ON_DEADLINE)
def test_on_deadline_1_deadlines_by_position(name: str) -> None:
    # The first group leaves few rows held, and in the papers the next row waits for others.
    rows = [(at, f"s{n}") for n, at in enumerate([20, 90, 20, 20, 91, 92, 50, 60, 70])]
    paper, shoal = (
        feed(line(name, 3, delay_rows=4, kept=0, deviations=d), rows, end=False)
        for d in both(name, "deadlines_by_position")
    )
    assert [d.published for d in paper if d.row == 1] == [6]
    assert [d.published for d in shoal if d.row == 1] == [5]


def test_on_deadline_1_deadlines_by_position_in_rounds() -> None:
    # Rounds come with full blocks only: whoever waits for one waits as long as it takes.
    paper, shoal = (
        line("fast", 1, delay_rows=4, delay_seconds=10, workers=1, block=3, deviations=d)
        for d in both("fast", "deadlines_by_position")
    )
    decisions = []
    for twin in (paper, shoal):
        for n, second in enumerate([0, 1, 50]):
            decisions.append(twin.push([20], f"s{n}", (), second))
    assert decisions[:2] == [[], []]
    assert {(d.row, d.published_s) for d in decisions[2]} == {(0, 50), (1, 50)}  # 40 s late
    # The next round may be far: the row that has just come is in danger, too.
    assert {(d.row, d.published_s) for d in decisions[5]} == {(0, 10), (1, 11), (2, 50)}


@pytest.mark.parametrize("name", TWINS)
def test_on_deadline_2_groups_count_people(name: str) -> None:
    rows = [(20, "a"), (20, "a"), (90, "b")]
    paper, shoal = (
        feed(line(name, 2, delay_rows=2, deviations=d, **ALONE[name]), rows, end=False)
        for d in both(name, "groups_count_people")
    )
    assert {d.row: d.n_subjects for d in paper if d.outcome == "group"} == {0: 1, 1: 1}
    assert {d.row: d.n_subjects for d in shoal if d.outcome == "group"} == {0: 2, 2: 2}


@pytest.mark.parametrize("name", ["k-varp", "iot"])
def test_on_deadline_2_merged_partitions_count_people(name: str) -> None:
    rows = [((20, 1), "a"), ((20, GAP), "a"), ((20, GAP), "a")]
    paper, shoal = (
        feed(square(name, 2, deviations=d), rows) for d in both(name, "groups_count_people")
    )
    assert {(d.outcome, d.n_subjects) for d in paper} == {("group", 1)}
    assert {d.outcome for d in shoal} == {"suppressed"}


@pytest.mark.parametrize("name", TWINS)
def test_on_deadline_3_groups_are_diverse(name: str) -> None:
    rows = [(20, "a", "x"), (21, "b", "x"), (90, "c", "y")]
    paper, shoal = (
        feed(
            line(name, 2, l_needed=[2], delay_rows=2, deviations=d, **ALONE[name]), rows, end=False
        )
        for d in both(name, "groups_are_diverse")
    )
    assert {rows[d.row][2] for d in paper if d.outcome == "group"} == {"x"}
    assert groups(shoal) == {0: {0, 1, 2}}


@pytest.mark.parametrize("name", ["k-varp", "iot"])
def test_on_deadline_3_merged_partitions_are_diverse(name: str) -> None:
    rows = [((20, 1), "a", "x"), ((20, GAP), "b", "x"), ((GAP, 1), "c", "y")]
    # By their rows the first two partitions are enough; the second has more in it than the third.
    rows.insert(2, ((20, GAP), "d", "x"))
    paper, shoal = (
        feed(square(name, 2, l_needed=[2], delay_rows=3, deviations=d), rows, end=False)
        for d in both(name, "groups_are_diverse")
    )
    assert {rows[d.row][2] for d in paper} == {"x"}
    assert groups(shoal) == {0: {0, 1, 2, 3}}


@pytest.mark.parametrize("name", ON_DEADLINE)
@pytest.mark.parametrize(
    ("shape", "n_reused"), [({"entropy": [2.0]}, 0), ({"recursive": [(2.5, 2)]}, 1)]
)
def test_on_deadline_4_reuse_is_checked(name: str, shape: dict[str, Any], n_reused: int) -> None:
    rows = [(20, "a", "x"), (20, "b", "y"), (20, "c", "x"), (20, "d", "x"), (20, "d", "x")]
    paper, shoal = (
        [
            d.outcome
            for d in feed(
                line(name, 2, l_needed=[2], delay_rows=1, deviations=d, **shape), rows, end=False
            )
        ]
        for d in both(name, "reuse_is_checked")
    )
    assert paper == ["group", "group", "reuse", "reuse"]  # x, y, x, x is neither
    assert shoal.count("reuse") == n_reused
    assert shoal.count("suppressed") == 2 - n_reused


@pytest.mark.parametrize("name", ON_DEADLINE)
def test_on_deadline_4_what_is_remembered_is_bounded(name: str) -> None:
    twin = line(name, 2, l_needed=[2], recursive=[(9.0, 2)], delay_rows=1, joins="alone")
    rows = [(20, f"s{n}", "xy"[n % 2]) for n in range(12)]
    decisions = feed(twin, rows, end=False)
    # Room for 4 times 2 members: then a new group is formed.
    assert {n: len(members) for n, members in groups(decisions).items()} == {0: 8, 1: 3}
    # A group that has more members from the start isn't kept at all.
    twin = line(name, 2, l_needed=[2], recursive=[(9.0, 2)])
    feed(twin, [(20, "a", "x"), (20, "b", "y"), *[(20, "b", "y")] * 7])
    assert twin.n_groups == 1
    assert twin.kept == []


@pytest.mark.parametrize("name", TWINS)
def test_on_deadline_5_end_takes_the_rest(name: str) -> None:
    rows = [(20, "a"), (20, "b"), (90, "c")]
    # FAST's workers come first: the rest is what none of them could place.
    options = {"workers": 3, "block": 1} if name == "fast" else {}
    paper, shoal = (
        feed(line(name, 2, deviations=d, **options), rows) for d in both(name, "end_takes_the_rest")
    )
    assert {d.row: d.outcome for d in paper} == {0: "group", 1: "group", 2: "suppressed"}
    assert groups(shoal) == {0: {0, 1, 2}}


@pytest.mark.parametrize("name", TWINS)
def test_on_deadline_5_the_rest_must_keep_the_promise(name: str) -> None:
    # Together they aren't diverse by shape; so the rest isn't one group, though few people.
    rows = [(20, "a", "x"), (20, "b", "x"), (90, "a", "x")]
    decisions = feed(line(name, 2, l_needed=[2]), rows)
    assert {d.outcome for d in decisions} == {"suppressed"}


C2, C3 = ((26.0, 28.0),), ((24.0, 27.0),)


def reused(name: str, age: float, **options: Any) -> tuple[tuple[float, float], ...]:
    """The box with which a lonely row is published when C2 and C3 are kept (Example 5.5)."""
    twin = line(name, 4, **options)
    twin.kept = [Group(box, twin.space.loss(box), 4, 0, n) for n, box in enumerate((C2, C3))]
    twin.push([age], "x")
    (decision,) = twin.flush()
    assert decision.outcome == "reuse"
    return tuple(zip(decision.lo, decision.hi, strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TWINS)
def test_on_deadline_6_reuse_the_least_loss_narrows_the_age_down(name: str) -> None:
    best = {age for age in range(24, 28) if reused(name, age, reuse="best") == C3}
    assert best == {24, 25}  # C2 loses less, so what comes out with C3's box isn't in C2
    at_random = {
        age for age in range(24, 29) for n in range(12)
        if reused(name, age, seed=bytes([n])) == C3
    }  # fmt: skip
    assert at_random == {24, 25, 26, 27}


@pytest.mark.parametrize("name", ON_DEADLINE)
@pytest.mark.parametrize("reuse", ["best", "random"])
def test_on_deadline_6_comparing_with_the_new_group_discloses_neighbours(
    name: str, reuse: str
) -> None:
    outcomes = {}
    for neighbour in (31, 90):
        rows = [(20, "a"), (40, "b"), (30, "t"), (neighbour, "n")]
        twin = line(name, 2, delay_rows=1, reuse=reuse, joins="alone")
        (outcomes[neighbour],) = {d.outcome for d in feed(twin, rows, end=False) if d.row == 2}
    if reuse == "best":
        # t comes alone: nobody within 20 of t is about to come out.
        assert outcomes == {31: "group", 90: "reuse"}
    else:
        assert outcomes == {31: "reuse", 90: "reuse"}


@pytest.mark.parametrize("name", ["idea", "k-varp", "iot"])
def test_on_deadline_7_kept_groups_get_old(name: str) -> None:
    """Two people at the ends of the domain are a group that covers everybody after them."""
    rows = [(10, "a"), (70, "b"), *[(40, f"s{n}") for n in range(20)]]
    for age in (None, 6):
        twin = line(name, 2, delay_rows=1, age=age, threshold=1.0)
        losses = {d.row: d.loss for d in feed(twin, rows, end=False)}
        assert losses[0] == losses[2] == losses[6] == 0.6
        # Whoever is left joins the wide one for ever, or those who are like them form their own.
        assert (losses[19] == 0.6) == (age is None)
        assert (losses[19] == 0.0) == (age is not None)


def test_every_shared_deviation_is_described_and_tested() -> None:
    check_section(
        "The on-deadline family", "on-deadline", [*flags_of(Deviations), "reuse", "age", "joins"]
    )


# -- worked examples -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "name"), [(title, name) for title, e in EXAMPLES.items() for name in e.algorithms]
)
@pytest.mark.parametrize("reuse", ["random", "best"])
def test_worked_examples(title: str, name: str, reuse: str) -> None:
    example = EXAMPLES[title]
    twin = TWINS[name](
        list(example.domains.values()), [1.0] * len(example.domains), k=example.k,
        delay_rows=example.delay_rows, missing=example.missing, reuse=reuse, **example.knobs,
    )  # fmt: skip
    decisions = [d for s, _ in example.rows for d in twin.push(example.values(s), s)]
    got = {example.rows[d.row][0]: example.published(d.outcome, d.lo, d.hi) for d in decisions}
    assert got == dict(example.expected)


# -- streams ---------------------------------------------------------------------------------------

DOMAINS: list[Domain] = [Range(0, 100, step=5), Hierarchy.digits(2), Hierarchy.flat([*"abc"])]


def stream(
    seed: int, n_rows: int, n_people: int, missing: str
) -> list[tuple[list[float], int, list[str]]]:
    """Rows of people who come again, mostly with the values they had before, some with gaps."""
    draw = random.Random(seed)
    home = [
        [draw.choice([10.0, 40.0, 70.0]) + draw.randrange(20), draw.randrange(100),
         draw.randrange(3)]
        for _ in range(n_people)
    ]  # fmt: skip
    rows = []
    for _ in range(n_rows):
        person = draw.randrange(n_people)
        values = [float(value) for value in home[person]]
        if draw.random() < 0.2:
            values[0] = float(draw.randrange(101))
        if missing != "quarantine":
            values = [GAP if draw.random() < 0.2 else value for value in values]
        rows.append((values, person, [draw.choice("xxxyyz"), draw.choice("ppq")]))
    return rows


POLICIES: dict[str, dict[str, Any]] = {
    "k": {"k": 4},
    "one subject": {"k": 1},
    "distinct": {"k": 4, "l_needed": [3, 1]},
    "l above k": {"k": 2, "l_needed": [3, 2]},
    "entropy": {"k": 3, "l_needed": [2, 1], "entropy": [2.0, 0.0]},
    "recursive": {"k": 3, "l_needed": [2, 2], "recursive": [(2.0, 2), (0.0, 1)]},
    "best": {"k": 4, "reuse": "best", "loss": "lm", "kept": 3},
    "never again": {"k": 4, "kept": 0},
}


@pytest.mark.parametrize("missing", ["quarantine", "extended", "maybe"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", TWINS)
def test_what_is_promised_is_kept(name: str, policy: str, missing: str) -> None:
    options = POLICIES[policy]
    if name == "fast" and policy in ("entropy", "recursive"):
        pytest.skip("FAST keeps k and distinct diversity")
    for n_people in (3, 25, 400):
        rows = stream(n_people, 160, n_people, missing)
        twin = TWINS[name](
            DOMAINS, [1, 2, 1], delay_rows=30, delay_seconds=24, seed=b"7", missing=missing,
            **{"kept": 50, **options},
        )  # fmt: skip
        # At first 24 seconds are over sooner than 30 rows, later it is the other way round.
        seconds = [n if n < 80 else 80 + (n - 80) / 2 for n in range(len(rows))]
        decisions: list[Decision] = []
        for n, (values, person, sensitive) in enumerate(rows):
            if n == 60:
                decisions += twin.advance(seconds[n - 1] + 0.5)
            decisions += twin.push(values, person, sensitive, seconds[n])
        decisions += twin.flush()
        assert not twin.held
        check(decisions, rows, seconds, options, missing)


def check(
    decisions: list[Decision],
    rows: list[tuple[list[float], int, list[str]]],
    seconds: list[float],
    options: dict[str, Any],
    missing: str,
) -> None:
    assert sorted(d.row for d in decisions) == list(range(len(rows)))
    members: dict[int, list[int]] = defaultdict(list)
    released: dict[int, tuple[Any, ...]] = {}
    for d in decisions:
        assert d.published - d.row <= 30
        assert d.published_s is not None
        assert 0 <= d.published_s - seconds[d.row] <= 24
        if d.outcome == "suppressed":
            continue
        assert d.group is not None and d.lo is not None and d.hi is not None
        for domain, value, lo, hi in zip(DOMAINS, rows[d.row][0], d.lo, d.hi, strict=True):
            if not math.isnan(value):
                assert lo is not None and hi is not None and lo <= value <= hi
            elif missing == "extended":
                assert (lo, hi) == ((0, 100) if isinstance(domain, Range) else (0, len(domain) - 1))
        if d.outcome == "group":
            released.setdefault(d.group, (d.lo, d.hi, d.published))
        else:
            assert released[d.group][2] <= d.published
        assert released[d.group][:2] == (d.lo, d.hi)
        members[d.group].append(d.row)
    outcome = {d.row: d.outcome for d in decisions}
    needed = options.get("l_needed", [1, 1])
    entropy = options.get("entropy", [0.0, 0.0])
    recursive = options.get("recursive", [(0.0, 1), (0.0, 1)])
    for numbers in members.values():
        fresh = sum(outcome[n] == "group" for n in numbers)
        for end in range(fresh, len(numbers) + 1):  # at the release and after each reuse
            now = [rows[n] for n in numbers[:end]]
            assert len({person for _, person, _ in now}) >= options["k"]
            for j in range(2):
                pairs = {(person, sensitive[j]) for _, person, sensitive in now}
                assert can_be_told_apart(pairs, needed[j])
                for counts in (
                    Counter(sensitive[j] for _, _, sensitive in now),
                    Counter(value for _, value in pairs),
                ):
                    assert shape_holds(counts.values(), entropy[j], recursive[j])
    if options.get("kept") == 0:
        assert "reuse" not in outcome.values()


@pytest.mark.parametrize("name", TWINS)
def test_the_same_seed_makes_the_same_decisions(name: str) -> None:
    def run(seed: bytes) -> list[Decision]:
        twin = TWINS[name](DOMAINS, [1, 1, 1], k=2, delay_rows=20, missing="maybe", seed=seed)
        rows = stream(1, 200, 50, "maybe")
        return [d for values, person, _ in rows for d in twin.push(values, person)]

    assert run(b"a") == run(b"a")
    assert run(b"a") != run(b"b")


def test_a_gap_is_no_value_in_quarantine() -> None:
    with pytest.raises(ValueError, match="missing value"):
        line("fads", 2, delay_rows=2).push([GAP], "a")


@pytest.mark.parametrize("name", TWINS)
def test_a_row_without_a_time_has_none_when_it_decides(name: str) -> None:
    twin = line(name, 1, delay_rows=1, **ALONE[name])
    twin.advance(5.0)
    assert twin.push([1], "a", (), GAP) == []
    assert {d.published_s for d in twin.push([1], "b")} == {None}
    assert {d.published_s for d in twin.push([1], "c", (), 7.0) + twin.flush()} == {7.0}


# -- what stays open -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ON_DEADLINE)
@pytest.mark.parametrize(("kept", "is_alone"), [(10, True), (0, False)])
def test_open_without_anybody_about_a_reused_row_leaves_alone(
    name: str, kept: int, is_alone: bool
) -> None:
    """The last resort: c comes again and again, and nobody else."""
    twin = line(name, 2, delay_rows=1, kept=kept)
    rows = [(20, "a"), (22, "b"), (21, "c"), (21, "c"), (21, "c")]
    instants = Counter(d.instant for d in feed(twin, rows, end=False) if d.outcome != "suppressed")
    assert (1 in instants.values()) == is_alone


@pytest.mark.parametrize("name", ON_DEADLINE)
@pytest.mark.parametrize(("joins", "alone"), [("alone", True), ("together", False)])
def test_on_deadline_8_rows_join_in_company(name: str, joins: str, alone: bool) -> None:
    twin = line(name, 2, delay_rows=1, joins=joins)
    rows = [(20, "a"), (22, "b"), (21, "c"), (70, "d"), (70, "e")]
    instants = Counter(d.instant for d in feed(twin, rows, end=False) if d.outcome != "suppressed")
    assert (1 in instants.values()) == alone


@pytest.mark.parametrize("name", ["fads", "idea", "k-varp", "iot"])
def test_open_gaps_tell_members_apart(name: str) -> None:
    # Who knows that a's second value is missing, and b's first, knows which row is whose.
    rows = [((20, GAP), "a", "x"), ((GAP, 5), "b", "y"), ((20, 5), "c", "z")]
    decisions = feed(square(name, 3, delay_rows=2), rows, end=False)
    assert groups(decisions) == {0: {0, 1, 2}}
    published = Counter(tuple(math.isnan(value) for value in rows[d.row][0]) for d in decisions)
    assert set(published.values()) == {1}
