"""CASTLE's naive twin on random streams, and what a release by CASTLE leaves open."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import pytest

from shoal.spec.hierarchy import Domain, Hierarchy, Range
from tests.naive.castle import Decision, NaiveCastle

DOMAINS: list[Domain] = [Range(0, 100, step=5), Hierarchy.digits(2), Hierarchy.flat([*"abc"])]


def stream(seed: int, n_rows: int, n_people: int) -> list[tuple[list[float], int, list[str]]]:
    """Rows of people who come again, mostly with the values they had before."""
    draw = random.Random(seed)
    home = [
        [
            draw.choice([10.0, 40.0, 70.0]) + draw.randrange(20),
            draw.randrange(100),
            draw.randrange(3),
        ]
        for _ in range(n_people)
    ]
    rows = []
    for _ in range(n_rows):
        person = draw.randrange(n_people)
        values = list(home[person])
        if draw.random() < 0.2:
            values[0] = float(draw.randrange(101))
        rows.append((values, person, [draw.choice("xxxyyz"), draw.choice("ppq")]))
    return rows


def can_be_told_apart(pairs: Iterable[tuple[Hashable, Hashable]], needed: int) -> bool:
    """Whether some people have as many different values: by trying every choice."""
    people_of = defaultdict(set)
    for person, value in pairs:
        people_of[value].add(person)

    def choose(values: list[Hashable], taken: frozenset[Hashable]) -> bool:
        if len(taken) == needed:
            return True
        if not values:
            return False
        head, *tail = values
        return choose(tail, taken) or any(
            choose(tail, taken | {person}) for person in people_of[head] - taken
        )

    return choose(list(people_of), frozenset())


def shape_holds(counts: Iterable[int], entropy: float, recursive: tuple[float, int]) -> bool:
    falling = sorted(counts, reverse=True)
    shares = [count / sum(falling) for count in falling]
    even = -sum(share * math.log(share) for share in shares) >= math.log(max(entropy, 1)) - 1e-9
    c, nth = recursive
    return even and (c == 0 or falling[0] < c * sum(falling[nth - 1 :]))


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


@pytest.mark.parametrize("n_people", [3, 25, 400])
@pytest.mark.parametrize("name", POLICIES)
def test_what_is_promised_is_kept(name: str, n_people: int) -> None:
    policy = POLICIES[name]
    rows = stream(n_people, 250, n_people)
    castle = NaiveCastle(
        DOMAINS, [1, 2, 1], delay_rows=40, delay_seconds=30, clusters=6, recent=5, seed=b"7",
        **{"kept": 50, **policy},
    )  # fmt: skip
    # At first 30 seconds are over sooner than 40 rows, later it is the other way round.
    seconds = [n if n < 125 else 125 + (n - 125) / 2 for n in range(len(rows))]
    decisions: list[Decision] = []
    for n, (values, person, sensitive) in enumerate(rows):
        if n == 120:
            decisions += castle.advance(seconds[n - 1] + 0.5)
        decisions += castle.push(values, person, sensitive, seconds[n])
    decisions += castle.flush()

    assert sorted(d.row for d in decisions) == list(range(len(rows)))
    assert not castle.held
    members: dict[int, list[int]] = defaultdict(list)
    released: dict[int, tuple[Any, ...]] = {}
    for d in decisions:
        assert d.published - d.row <= 40
        assert d.published_s is not None
        assert 0 <= d.published_s - seconds[d.row] <= 30
        if d.outcome == "suppressed":
            continue
        assert d.group is not None
        assert d.lo is not None
        assert d.hi is not None
        values = rows[d.row][0]
        assert all(lo <= value <= hi for lo, value, hi in zip(d.lo, values, d.hi, strict=True))
        if d.outcome == "group":
            released.setdefault(d.group, (d.lo, d.hi, d.published))
        else:
            assert d.group in released
            assert released[d.group][2] <= d.published
        assert released[d.group][:2] == (d.lo, d.hi)
        members[d.group].append(d.row)

    outcome = {d.row: d.outcome for d in decisions}
    needed = policy.get("l_needed", [1, 1])
    entropy = policy.get("entropy", [0.0, 0.0])
    recursive = policy.get("recursive", [(0.0, 1), (0.0, 1)])
    for numbers in members.values():
        fresh = sum(outcome[n] == "group" for n in numbers)
        for end in range(fresh, len(numbers) + 1):  # at the release and after each reuse
            now = [rows[n] for n in numbers[:end]]
            assert len({person for _, person, _ in now}) >= policy["k"]
            for j in range(2):
                pairs = {(person, sensitive[j]) for _, person, sensitive in now}
                assert can_be_told_apart(pairs, needed[j])
                for counts in (
                    Counter(sensitive[j] for _, _, sensitive in now),
                    Counter(value for _, value in pairs),
                ):
                    assert shape_holds(counts.values(), entropy[j], recursive[j])
    if policy.get("kept") == 0:
        assert "reuse" not in outcome.values()


def test_the_same_seed_makes_the_same_decisions() -> None:
    def run(seed: bytes) -> list[Decision]:
        castle = NaiveCastle(DOMAINS, [1, 1, 1], k=3, delay_rows=40, clusters=3, seed=seed)
        return [d for values, person, _ in stream(1, 200, 50) for d in castle.push(values, person)]

    assert run(b"a") == run(b"a")
    assert run(b"a") != run(b"b")


# -- what CASTLE leaves open: docs/deviations.md, "What stays open" --------------------------------


def line(k: int, **options: Any) -> NaiveCastle:
    return NaiveCastle([Range(0, 100)], [1.0], k=k, **options)


@pytest.mark.parametrize(
    ("kept", "joins", "alone"), [(10, "alone", True), (10, "together", False), (0, "alone", False)]
)
def test_open_reuse_publishes_a_row_alone(kept: int, joins: str, alone: bool) -> None:
    castle = line(2, delay_rows=1, kept=kept, joins=joins)
    instants = [
        castle.push([at], subject)
        for at, subject in [(20, "a"), (22, "b"), (21, "c"), (70, "d"), (70, "e")]
    ]
    counts = [len([d for d in now if d.outcome != "suppressed"]) for now in instants]
    assert (1 in counts) == alone


@pytest.mark.parametrize(("kept", "n_suppressed"), [(10, 1), (0, 0)])
def test_open_reuse_leaves_others_behind(kept: int, n_suppressed: int) -> None:
    castle = line(2, delay_rows=1, kept=kept, joins="alone")
    rows = [(20, "a"), (22, "b"), (21, "c"), (70, "d")]
    decisions = [d for at, subject in rows for d in castle.push([at], subject)] + castle.flush()
    assert [d.outcome for d in decisions].count("suppressed") == n_suppressed


def test_open_one_person_owns_nearly_every_row() -> None:
    castle = line(2, clusters=1)
    for subject in ["a"] * 9 + ["b"]:
        castle.push([20], subject)
    decisions = castle.flush()
    assert {(d.group, d.n_subjects) for d in decisions} == {(0, 2)}  # and 9 of 10 rows are a's


def test_open_the_edges_of_a_box_are_values_of_two_people() -> None:
    castle = line(2)
    for at, subject in [(24, "a"), (31, "b")]:
        castle.push([at], subject)
    assert {(d.lo, d.hi) for d in castle.flush()} == {((24,), (31,))}


def test_open_two_groups_of_one_box() -> None:
    castle = line(2, l_needed=[2], entropy=[2.0], delay_rows=1)
    rows = [("a", "x"), ("b", "y"), ("a", "x"), ("c", "y")]
    decisions = [d for s, v in rows for d in castle.push([30], s, [v])] + castle.flush()
    assert {(d.lo, d.hi) for d in decisions} == {((30,), (30,))}
    assert {d.group for d in decisions} == {0, 1}
    # Each group is even by itself; the people of the box are one x and two y.
    assert not shape_holds(Counter(v for _, v in set(rows)).values(), 2.0, (0.0, 1))


def test_open_a_value_that_stays_is_the_common_one() -> None:
    castle = line(2, l_needed=[2], delay_rows=1, kept=0)
    rows = [("victim", "x"), ("b", "y"), ("victim", "x"), ("c", "z")]
    seen: dict[int, set[str]] = defaultdict(set)
    for subject, value in rows:
        for d in castle.push([30], subject, [value]):
            assert d.group is not None
            seen[d.group].add(rows[d.row][1])
    assert set.intersection(*seen.values()) == {"x"}


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_one_person_stay_together_under_diversity(seed: int) -> None:
    castle = line(2, l_needed=[2], clusters=1, seed=bytes([seed]))
    rows = [(20, "e", "x"), (20, "b", "y"), (80, "c", "z"), (80, "d", "w"), (80, "e", "x")]
    for at, subject, value in rows:
        castle.push([at], subject, [value])
    assert len({d.group for d in castle.flush() if rows[d.row][1] == "e"}) == 1


@pytest.mark.parametrize(("n_rest", "n_suppressed"), [(31, 0), (32, 32)])
def test_open_more_people_at_the_end_are_suppressed(n_rest: int, n_suppressed: int) -> None:
    castle = line(2, l_needed=[2], kept=0)
    for at, subject, value in [
        (20, "a", "x"), (20, "b", "y"), *((80, f"r{n}", "x") for n in range(n_rest)),
    ]:  # fmt: skip
        castle.push([at], subject, [value])
    outcomes = [d.outcome for d in castle.flush()]
    assert outcomes.count("suppressed") == n_suppressed


@pytest.mark.parametrize(("value", "outcome"), [("x", "suppressed"), ("y", "reuse")])
def test_open_a_missing_row_discloses_its_value(value: str, outcome: str) -> None:
    castle = line(2, l_needed=[2], recursive=[(2.5, 2)], delay_seconds=1)
    rows = [(0, "a", "x"), (0, "b", "y"), (2, "c", "x"), (4, "d", value)]
    decisions = []
    for second, subject, theirs in rows:
        decisions += castle.push([20], subject, [theirs], second)
    decisions += castle.advance(5)
    assert [d.outcome for d in decisions] == ["group", "group", "reuse", outcome]
