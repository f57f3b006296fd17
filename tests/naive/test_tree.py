"""The naive twins of min-delay and of the R-tree family on random streams, and their parts."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from typing import Any

import pytest

from shoal.spec.hierarchy import Domain, Hierarchy, Range
from tests.algorithms.trees import TWINS, chances, line, members, seen_at, waiting
from tests.algorithms.world import groups
from tests.naive.castle import Decision
from tests.naive.forcing import NaiveForcing
from tests.naive.min_delay import NaiveMinDelay
from tests.naive.rtree import NaiveRTree, halves
from tests.naive.space import Row, Space, covers, n_subjects
from tests.naive.tree import NaiveTreeBasic, uniform

DOMAINS: list[Domain] = [Range(0, 100, step=5), Hierarchy.digits(2), Hierarchy.flat([*"abc"])]
SAMPLING: dict[str, Any] = {"samples": 6, "sampled": 30}
EVERY: dict[str, tuple[type[NaiveForcing], dict[str, Any]]] = {
    "min-delay": (NaiveMinDelay, {}),
    **{name: (twin, {} if name == "tree-basic" else SAMPLING) for name, twin in TWINS.items()},
}


def stream(seed: int, n_rows: int, n_people: int) -> list[tuple[list[float], int, list[str]]]:
    """Rows of people who come again, mostly with the values they had before."""
    draw = random.Random(seed)
    home = [
        [draw.choice([10.0, 40.0, 70.0]) + draw.randrange(20), draw.randrange(100), 1]
        for _ in range(n_people)
    ]
    rows = []
    for _ in range(n_rows):
        person = draw.randrange(n_people)
        values = [*home[person][:2], float(draw.randrange(3))]
        values = [math.nan if draw.random() < 0.1 else value for value in values]
        rows.append((values, person, [draw.choice("xxxyyz"), draw.choice("ppq")]))
    return rows


POLICIES: dict[str, dict[str, Any]] = {
    "k": {"k": 4},
    "one subject": {"k": 1},
    "distinct": {"k": 4, "l_needed": [3, 1]},
    "l above k": {"k": 2, "l_needed": [3, 2]},
    "entropy": {"k": 3, "l_needed": [2, 1], "entropy": [2.0, 0.0]},
    "recursive": {"k": 3, "l_needed": [2, 2], "recursive": [(2.0, 2), (0.0, 1)]},
}
BOUNDS: dict[str, dict[str, Any]] = {
    "rows": {"delay_rows": 40},
    "seconds": {"delay_seconds": 25.0},
    "capacity": {"capacity": 12},
    "all": {"delay_rows": 40, "delay_seconds": 25.0, "capacity": 30},
    "instants": {"delay_rows": 40, "instant": 0.5},
}


@pytest.mark.parametrize("n_people", [3, 100])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", EVERY)
def test_what_is_promised_is_kept(name: str, policy: str, bound: str, n_people: int) -> None:
    kind, knobs = EVERY[name]
    bounds = dict(BOUNDS[bound])
    if name == "min-delay":
        bounds.pop("instant", None)
    options = {**knobs, **POLICIES[policy], **bounds}
    missing = "maybe" if n_people == 3 else "extended"
    twin = kind(DOMAINS, [1, 2, 1], missing=missing, seed=b"7", **options)
    rows = stream(n_people, 110, n_people)
    seconds = [n * 0.7 for n in range(len(rows))]
    decisions: list[Decision] = []
    for n, (values, person, sensitive) in enumerate(rows):
        if n == 60:
            decisions += twin.advance(seconds[n] - 0.1)
        decisions += twin.push(values, person, sensitive, seconds[n])
        if capacity := bounds.get("capacity"):
            assert len(twin.held) <= capacity
    decisions += twin.flush()

    assert sorted(d.row for d in decisions) == list(range(len(rows)))
    assert not twin.held
    whole: dict[int, list[Row]] = defaultdict(list)
    for d in decisions:
        assert d.published - d.row <= bounds.get("delay_rows", 16 * bounds.get("capacity", 10**9))
        assert d.published_s is not None
        latest = seconds[d.row] + bounds.get("delay_seconds", math.inf)
        assert seconds[d.row] <= d.published_s <= latest
        values, person, sensitive = rows[d.row]
        own = Row(d.row, twin.space.row_box(values), person, tuple(sensitive))
        if d.group is None:
            continue
        whole[d.group].append(own)
        assert d.lo is not None and d.hi is not None
        assert covers(tuple(zip(d.lo, d.hi, strict=True)), own.box)
    for group in whole.values():
        assert n_subjects(group) >= options["k"]
        assert twin.promise.diverse(group)


def test_the_same_seed_makes_the_same_decisions() -> None:
    def run(seed: bytes) -> list[Decision]:
        twin = line("tree-full", 3, delay_rows=40, seed=seed, **SAMPLING)
        return [d for n in range(60) for d in twin.push([n * 37 % 101], n)]

    assert run(b"a") == run(b"a")
    assert run(b"a") != run(b"b")


def test_a_uniform_number_has_53_bits() -> None:
    class Words:
        def __init__(self) -> None:
            self.words = iter([0xFFFFFFFF, 0xFFFFFFFF, 0, 0, 1 << 31, 0])

    words = Words()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.naive.tree.rng.word", lambda state: next(state.words))
        assert [uniform(words) for _ in range(3)] == [1 - 2**-53, 0.0, 0.5]


# -- the tree --------------------------------------------------------------------------------------

SPACE = Space([Range(0, 100)], [1.0], "glm")


def point(at: float, subject: Any, number: int = 0) -> Row:
    return Row(number, ((at, at),), subject, ())


def test_halves_are_of_the_two_boxes_farthest_apart() -> None:
    boxes = [((at, at),) for at in (10.0, 90.0, 12.0, 60.0, 0.0)]
    assert halves(SPACE, boxes, 1) == ([1, 3], [0, 2, 4])


def test_halves_a_half_that_needs_all_the_rest_takes_it() -> None:
    boxes = [((at, at),) for at in (0.0, 1.0, 2.0, 3.0, 100.0, 4.0)]
    assert halves(SPACE, boxes, 2) == ([0, 1, 2, 3], [4, 5])
    assert halves(SPACE, boxes, 3)[1] == [3, 4, 5]


def test_halves_of_equal_boxes_are_equally_many() -> None:
    boxes = [((5.0, 5.0),)] * 6
    assert halves(SPACE, boxes, 1) == ([0, 2, 4], [1, 3, 5])


@pytest.mark.parametrize("n_people", [1, 5, 40, 1000])
@pytest.mark.parametrize("fan_out", [4, 16])
def test_the_tree_stays_whole(fan_out: int, n_people: int) -> None:
    draw = random.Random(n_people)
    tree = NaiveRTree(SPACE, 3, lambda rows: n_subjects(rows) >= 3, fan_out)
    inside: dict[int, Row] = {}
    largest = 0
    for number in range(250):
        row = point(draw.randrange(101), draw.randrange(n_people), number)
        tree.insert(row)
        inside[number] = row
        if draw.random() < 0.05:
            for leaf in draw.sample(tree.leaves, len(tree.leaves) // 3):
                tree.remove(leaf)
                inside = {n: r for n, r in inside.items() if r not in leaf.rows}
        elif draw.random() < 0.1:
            gone = inside.pop(draw.choice(list(inside)))
            tree.drop(gone)
        largest = max(largest, len(tree.nodes))
        leaves = tree.leaves
        assert sorted(n for leaf in leaves for n in members(leaf)) == sorted(inside)
        assert len({leaf.number for leaf in leaves}) == len(leaves)
        assert {leaf.number for leaf in leaves} | set(tree.free) == set(range(tree.n_numbers))
        assert all(1 <= len(node.leaves) <= fan_out for node in tree.nodes)
        for leaf in leaves:
            assert n_subjects(leaf.rows) == len(leaf.rows) <= 12
            assert leaf.box == SPACE.box(leaf.rows)
    assert largest > (2 if fan_out == 4 else 0)
    assert tree.n_numbers < 250


def test_a_row_goes_where_it_costs_least_but_not_to_its_own_subject() -> None:
    twin = line("tree-basic", 2)
    waiting(twin, [(10, "a"), (50, "b"), (12, "c"), (52, "d")])
    assert [members(leaf) for leaf in twin.tree.leaves] == [{0, 2}, {1, 3}]
    waiting(twin, [(12, "a")])
    assert [members(leaf) for leaf in twin.tree.leaves] == [{0, 2}, {1, 3, 4}]
    waiting(twin, [(51, "a")])  # nobody takes it
    assert [members(leaf) for leaf in twin.tree.leaves] == [{0, 2}, {1, 3, 4}, {5}]
    assert list(chances(twin)) == [0, 1]  # it isn't mature


def test_a_leaf_that_cant_be_split_is_tried_later() -> None:
    twin = line("tree-basic", 2, l_needed=[2])
    waiting(twin, [(at, at, "x") for at in (10, 20, 80)])
    waiting(twin, [(90, "d", "y")])
    (leaf,) = twin.tree.leaves
    assert leaf.next_try == 5
    waiting(twin, [(15, "e", "y")])
    assert [members(leaf) for leaf in twin.tree.leaves] == [{0, 1, 4}, {2, 3}]


def test_a_full_leaf_takes_no_more() -> None:
    twin = line("tree-basic", 2, l_needed=[2])
    waiting(twin, [(at, at, "x") for at in range(9)])
    assert [len(leaf.rows) for leaf in twin.tree.leaves] == [8, 1]


def test_the_node_of_too_few_leaves_is_given_up() -> None:
    twin = line("tree-basic", 2, fan_out=16)
    waiting(twin, [(at, "a") for at in [*range(9), *range(90, 98)]])
    assert sorted(len(node.leaves) for node in twin.tree.nodes) == [8, 9]
    for row in list(twin.held.values())[1:9]:
        twin.tree.drop(row)
    assert [len(node.leaves) for node in twin.tree.nodes] == [9]


# -- rows that are forced --------------------------------------------------------------------------


def test_a_mature_leaf_is_published_when_a_row_of_it_is_forced() -> None:
    twin = line("tree-basic", 2, delay_rows=4)
    waiting(twin, [(10, "a"), (12, "b"), (90, "c"), (92, "d")])
    twin.drawn = lambda: None
    assert groups(twin.push([11], "e")) == {0: {0, 1, 4}}


def test_a_leaf_that_isnt_mature_is_merged_with_the_nearest() -> None:
    twin = line("tree-basic", 2)
    rows = waiting(twin, [(10, "a"), (12, "b"), (80, "a"), (82, "b"), (50, "a")])
    assert [members(leaf) for leaf in twin.tree.leaves] == [{0, 1}, {2, 3}, {4}]
    assert groups(twin.force(rows[4], (4, None))) == {0: {2, 3, 4}}
    assert [members(leaf) for leaf in twin.tree.leaves] == [{0, 1}]


def test_a_union_of_enough_people_is_two_groups() -> None:
    twin = line("tree-basic", 2, l_needed=[2])
    rows = [(10, "a", "x"), (12, "b", "x"), (90, "c", "y"), (92, "d", "y")]
    waiting(twin, rows)
    (leaf,) = twin.tree.leaves
    assert groups(twin.publish_all([leaf], (4, None))) == {0: {0, 1, 2, 3}}  # halves are all x or y
    waiting(twin, [(10, "a", "x"), (12, "b", "y"), (90, "c", "y"), (92, "d", "x"), (11, "a", "x")])
    leaves = twin.tree.leaves
    assert sorted(map(sorted, groups(twin.publish_all(leaves, (9, None))).values())) == [
        [4, 5, 8], [6, 7],
    ]  # fmt: skip


def test_too_few_people_are_suppressed() -> None:
    twin = line("tree-basic", 3, delay_rows=2)
    decisions = [d for subject in "ababa" for d in twin.push([10], subject)]
    assert [(d.row, d.outcome) for d in decisions] == [(n, "suppressed") for n in range(3)]
    assert [d.outcome for d in twin.flush()] == ["suppressed"] * 2


def test_at_the_end_leaves_that_arent_mature_join_others_first() -> None:
    twin = line("tree-basic", 2)
    waiting(twin, [(10, "a"), (12, "b"), (11, "a")])
    assert [members(leaf) for leaf in twin.tree.leaves] == [{0, 1}, {2}]
    assert groups(twin.flush()) == {0: {0, 1, 2}}


# -- seconds ---------------------------------------------------------------------------------------


def test_seconds_leaves_are_due_between_rows() -> None:
    twin = line("tree-basic", 2, delay_seconds=1000.0, instant=1.0, seed=b"s")
    draw = random.Random(1)
    last, n_between = 0.0, 0
    for n in range(300):
        now = n * 2.0
        for d in twin.push([draw.randrange(101)], n, time=now):
            assert d.published_s is not None
            assert last <= d.published_s <= now
            last = d.published_s
            n_between += d.published_s < now
            assert d.published == n
    assert twin.gap == pytest.approx(2)
    assert n_between > 200
    assert len(twin.held) < 150


def test_seconds_silence_publishes_too() -> None:
    twin = line("tree-basic", 2, delay_seconds=1e9, instant=1.0)
    for n in range(4):
        twin.push([n], n, time=float(n))
    decisions = twin.advance(1e6)
    assert sorted(d.row for d in decisions if d.published == 4) == sorted(d.row for d in decisions)
    assert not twin.held
    assert twin.due == math.inf


def test_seconds_rows_of_one_second_set_no_time() -> None:
    twin = line("tree-basic", 2, delay_seconds=9.0, instant=1.0)
    for n in range(6):
        assert twin.push([n], n, time=5.0) == []
    assert twin.due == math.inf
    assert {d.published_s for d in twin.advance(100.0)} == {14.0}


def test_seconds_the_more_rows_come_the_shorter_a_wait_is() -> None:
    found = []
    for gap in (1.0, 4.0):
        twin = line("tree-density", 2, instant=2.0, alpha=0.5, **SAMPLING)
        for n, at in enumerate((10, 20)):
            twin.push([at], n, time=n * gap)
        (leaf,) = twin.tree.leaves
        n_samples = max(0.5, len(twin.samples_in(leaf)))
        found.append(math.log(twin.weight(leaf) * twin.loss(leaf)) / math.log(1.5) * n_samples / 6)
    # Two rows are awaited, of which 2 and 1/2 come at each instant.
    assert found == [pytest.approx(2 / 2), pytest.approx(2 / 0.5)]


def test_seconds_holding_counts_instants() -> None:
    twin = line("tree-full", 2, instant=10.0, alpha=1.0, samples=1, sampled=1)
    seen_at(twin, 49.0)
    for n, at in enumerate((0, 10, 50)):
        assert twin.push([at], n, time=5.0) == []
    (leaf,) = twin.tree.leaves
    assert [row.number for row in twin.held_back(leaf, (3, 30.0))] == [2]
    deadline = 3 + math.log2(0.5 / 0.01)
    assert twin.until[2] == pytest.approx(deadline)
    assert [row.number for row in twin.held_back(leaf, (3, 10 * deadline - 0.1))] == [2]
    assert twin.held_back(leaf, (3, 10 * deadline + 0.1)) == []


# -- time as a quasi attribute ---------------------------------------------------------------------


def test_time_as_an_attribute_makes_old_leaves_lose() -> None:
    twin = NaiveTreeBasic([Range(0, 1000), Range(0, 100)], [1.0, 1.0], k=2, clock=0, delay_rows=100)
    rows = [(0.0, 10), (1.0, 11), (500.0, 90), (501.0, 91)]
    twin.drawn = lambda: None  # type: ignore[method-assign]
    for n, (time, at) in enumerate(rows):
        twin.push([time, at], n, time=time)
    old, young = chances(twin).values()
    assert young > 10 * old
    losses = [twin.loss(leaf) for leaf in twin.tree.leaves]
    assert losses == [pytest.approx(2 * (0.501 + 0.01) / 2), pytest.approx(2 * (0.001 + 0.01) / 2)]
    twin.advance(5000.0)  # the range ends at 1000
    assert twin.loss(twin.tree.leaves[1]) == pytest.approx(2 * (0.5 + 0.01) / 2)


def test_draws_follow_the_weights() -> None:
    twin = line("tree-basic", 2, seed=b"w")
    waiting(twin, [(10, "a"), (12, "b"), (80, "c"), (90, "d")])
    n = 4000
    counts: dict[int, int] = defaultdict(int)
    for _ in range(n):
        if (leaf := twin.drawn()) is not None:
            counts[leaf.number] += 1
    for number, chance in chances(twin).items():
        # By Hoeffding, a right twin fails with probability 1e-6 at most for each leaf.
        assert abs(counts[number] / n - chance) < math.sqrt(math.log(2e6) / (2 * n))
