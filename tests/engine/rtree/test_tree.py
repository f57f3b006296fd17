"""The active R-tree: whole after any sequence of operations, and what is found in it is nearest."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal import Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine import Space
from shoal.engine.kernels import counter
from shoal.engine.kernels.arrays import Records
from shoal.engine.kernels.boxes import Sides, box_loss, join
from shoal.engine.rtree import tree as rtree
from shoal.engine.rtree.tree import FAN_OUT, FEWEST, LEAST, RTree, Wanted
from tests.engine.rtree.rtrees import check_tree
from tests.examples import examples

Floats = NDArray[np.float64]
SETTINGS = settings(max_examples=examples(25), deadline=None, derandomize=True, database=None)
SIDES = Space(
    Schema("p", [Quasi("x", Range(0, 1000)), Quasi("y", Hierarchy.digits(2), 0.5)]),
    Policy(KAnonymity(2)),
).sides
#: More than one leaf has.
MANY = 1000


def lost(sides: Sides, *boxes: tuple[Floats, Floats]) -> float:
    """What boxes lose together."""
    lo, hi = boxes[0][0].copy(), boxes[0][1].copy()
    for other_lo, other_hi in boxes:
        join(sides, lo, hi, other_lo, other_hi)
    return float(box_loss(sides, lo, hi))


@dataclass
class Forest:
    """A tree and its leaves' boxes as they should be."""

    draw: np.random.Generator
    tree: RTree = field(default_factory=lambda: rtree.empty(2, 16))
    counts: Records = field(default_factory=lambda: counter.empty(4000))
    boxes: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)

    @property
    def living(self) -> list[int]:
        return np.flatnonzero(self.tree.leaves["birth"] >= 0).tolist()

    def point(self) -> tuple[Floats, Floats]:
        """A place, mostly in one of two crowds; now and then it lacks a side, or both."""
        x = self.draw.choice([100, 800]) + self.draw.integers(0, 60)
        at = np.array([float(x), float(self.draw.integers(0, 100))])
        missing = self.draw.random(2) < 0.05
        return np.where(missing, np.inf, at), np.where(missing, -np.inf, at)

    def put(self, lo: Floats, hi: Floats, node: int) -> int:
        """A new leaf in a node (-1: a new one)."""
        if len(self.living) + 1 > len(self.tree.loss):
            self.tree = rtree.grown(self.tree, 2 * len(self.tree.loss))
            check_tree(self.tree)
        leaf = rtree.add_leaf(self.tree, node, 4)
        assert rtree.widen_leaf(SIDES, self.tree, leaf, lo, hi)
        self.boxes[leaf] = lo, hi
        rtree.split_node(SIDES, self.tree, int(self.tree.leaves["node"][leaf]))
        return int(leaf)

    def add(self) -> int:
        lo, hi = self.point()
        return self.put(lo, hi, rtree.choose_node(SIDES, self.tree, lo, hi))

    def widen(self, leaf: int) -> None:
        lo, hi = self.point()
        before = [side.copy() for side in self.boxes[leaf]]
        after = [side.copy() for side in before]
        join(SIDES, after[0], after[1], lo, hi)
        changed = rtree.widen_leaf(SIDES, self.tree, leaf, lo, hi)
        assert changed == (not np.array_equal(before, after))
        self.boxes[leaf] = after[0], after[1]

    def shrink(self, leaf: int) -> None:
        lo, _ = self.boxes[leaf]
        if np.isfinite(lo).all():
            self.boxes[leaf] = lo.copy(), lo.copy()
            rtree.shrink_leaf(SIDES, self.tree, leaf, *self.boxes[leaf])

    def remove(self, leaf: int) -> None:
        del self.boxes[leaf]
        rtree.tidy_node(SIDES, self.tree, rtree.remove_leaf(self.tree, leaf))

    def check(self) -> None:
        check_tree(self.tree)
        assert self.living == sorted(self.boxes)
        for leaf, (lo, hi) in self.boxes.items():
            assert (self.tree.lo[:, leaf] == lo).all()
            assert (self.tree.hi[:, leaf] == hi).all()
            assert self.tree.loss[leaf] == lost(SIDES, (lo, hi))

    def nodes(self) -> list[int]:
        """How many leaves each node has."""
        alive = self.tree.nodes["birth"] >= 0
        return self.tree.nodes["n_leaves"][alive].tolist()


def forest(n_leaves: int, seed: int = 1) -> Forest:
    found = Forest(np.random.default_rng(seed))
    for _ in range(n_leaves):
        found.add()
    return found


VERBS = st.tuples(
    st.sampled_from(["add", "add", "remove", "remove", "widen", "shrink"]), st.integers(1, 50)
)


@SETTINGS
@given(
    seed=st.integers(0, 1000), verbs=st.lists(VERBS, max_size=8), n=st.sampled_from([0, 60, 150])
)
def test_it_stays_whole(seed: int, verbs: list[tuple[str, int]], n: int) -> None:
    found = forest(n, seed)
    for verb, times in verbs:
        for _ in range(times):
            if verb == "add":
                found.add()
            elif found.living:
                getattr(found, verb)(int(found.draw.choice(found.living)))
        found.check()
    for leaf in found.living:
        found.remove(leaf)
    found.check()
    assert found.nodes() == []


# -- finding ---------------------------------------------------------------------------------------


@SETTINGS
@given(seed=st.integers(0, 1000), n=st.sampled_from([1, 5, 70, 200]))
def test_what_is_found_is_nearest(seed: int, n: int) -> None:
    found = forest(n, seed)
    tree = found.tree
    # Some are full, and some have the subject in them.
    full = set(found.draw.choice(found.living, n // 3).tolist())
    known = set(found.draw.choice(found.living, n // 4).tolist())
    for leaf in full:
        tree.leaves["n_rows"][leaf] = 4
    for leaf in known:
        counter.add(found.counts, leaf, 7)
    for _ in range(10):
        lo, hi = found.point()

        def cost(los: Floats, his: Floats, births: Records, c: int) -> tuple[float, float, int]:
            own = los[:, c].copy(), his[:, c].copy()
            alone = lost(SIDES, own)
            return lost(SIDES, own, (lo, hi)) - alone, alone, int(births["birth"][c])  # noqa: B023

        nodes = np.flatnonzero(tree.nodes["birth"] >= 0).tolist()
        node = rtree.choose_node(SIDES, tree, lo, hi)
        assert node == min(nodes, key=lambda c: cost(tree.node_lo, tree.node_hi, tree.nodes, c))
        row = Wanted(lo, hi, 7, 4)
        open_to_it = [leaf for leaf in found.living if leaf not in full | known]
        everywhere = min(
            open_to_it, key=lambda c: cost(tree.lo, tree.hi, tree.leaves, c), default=-1
        )
        assert rtree.find_leaf_anywhere(SIDES, tree, found.counts, row) == everywhere
        inside = [leaf for leaf in open_to_it if tree.leaves["node"][leaf] == node]
        in_it = min(inside, key=lambda c: cost(tree.lo, tree.hi, tree.leaves, c), default=-1)
        assert rtree.find_leaf(SIDES, tree, found.counts, node, row) == in_it


@SETTINGS
@given(seed=st.integers(0, 1000), n=st.sampled_from([1, 5, 70, 150]))
def test_the_nearest_leaf_is_one_that_is_not_taken(seed: int, n: int) -> None:
    found = forest(n, seed)
    lo, hi = found.point()
    taken = np.zeros(found.tree.marks["leaf_numbers"][0], np.int64)

    def cost(leaf: int) -> tuple[float, int]:
        together = lost(SIDES, found.boxes[leaf], (lo, hi))
        return together, int(found.tree.leaves["birth"][leaf])

    for leaf in sorted(found.living, key=cost):
        assert rtree.nearest_leaf(SIDES, found.tree, lo, hi, taken) == leaf
        taken[leaf] = 1
    assert rtree.nearest_leaf(SIDES, found.tree, lo, hi, taken) == -1


def test_in_an_empty_tree_nothing_is_found() -> None:
    tree, counts = rtree.empty(2, 4), counter.empty(4)
    lo = np.array([5.0, 5.0])
    assert rtree.choose_node(SIDES, tree, lo, lo) == -1
    assert rtree.find_leaf_anywhere(SIDES, tree, counts, Wanted(lo, lo, 1, 4)) == -1
    assert rtree.nearest_leaf(SIDES, tree, lo, lo, np.zeros(0, np.int64)) == -1
    check_tree(tree)


def test_who_is_in_every_leaf_is_found_in_none() -> None:
    found = forest(3)
    lo, hi = found.point()
    for leaf in found.living:
        counter.add(found.counts, leaf, 7)
        counter.add(found.counts, counter.EVERYWHERE, 7)
    row = Wanted(lo, hi, 7, MANY)
    assert rtree.find_leaf_anywhere(SIDES, found.tree, found.counts, row) == -1
    assert rtree.find_leaf_anywhere(SIDES, found.tree, found.counts, row._replace(subject=8)) >= 0


# -- numbers and nodes -----------------------------------------------------------------------------


def test_the_number_that_was_freed_last_is_used_first() -> None:
    found = forest(5)
    for leaf in (1, 3):
        found.remove(leaf)
    assert [found.add(), found.add(), found.add()] == [3, 1, 5]
    # Numbers are used again; births never are.
    births = [int(found.tree.leaves["birth"][leaf]) for leaf in (0, 2, 4, 3, 1, 5)]
    assert births == sorted(births)


def test_a_node_splits_when_it_has_one_leaf_too_many() -> None:
    found = forest(FAN_OUT)
    assert found.nodes() == [FAN_OUT]
    node = int(np.flatnonzero(found.tree.nodes["birth"] >= 0)[0])
    births = int(found.tree.marks["births"][0])
    found.add()
    found.check()
    assert len(found.nodes()) == 2
    assert sum(found.nodes()) == FAN_OUT + 1
    assert min(found.nodes()) >= LEAST
    # The leaf is the first to be born, then both nodes: the former one is no more.
    assert found.tree.nodes["birth"][node] == births + 1
    assert found.tree.marks["births"][0] == births + 3


def apart(n_left: int, n_right: int) -> Forest:
    """Two nodes, of leaves that lie far apart."""
    found = Forest(np.random.default_rng(1))
    left = [np.array([float(at), 0.0]) for at in range(n_left)]
    right = [np.array([900.0 + at, 0.0]) for at in range(n_right)]
    for lo in [*left, *right]:
        found.put(lo, lo, rtree.choose_node(SIDES, found.tree, lo, lo))
    assert sorted(found.nodes()) == sorted([n_left, n_right])
    return found


def test_a_node_that_has_no_place_is_passed_over() -> None:
    found = apart(30, 35)
    for leaf in range(30):
        counter.add(found.counts, leaf, 7)
    lo = np.array([5.0, 0.0])
    row = Wanted(lo, lo, 7, MANY)
    node = rtree.choose_node(SIDES, found.tree, lo, lo)
    assert rtree.find_leaf(SIDES, found.tree, found.counts, node, row) == -1
    assert rtree.find_leaf_anywhere(SIDES, found.tree, found.counts, row) == 30


def test_a_node_of_few_leaves_is_given_up() -> None:
    found = apart(30, 35)
    for leaf in range(30 - FEWEST):
        found.remove(leaf)
    assert sorted(found.nodes()) == [FEWEST, 35]
    found.remove(30 - FEWEST)
    found.check()
    assert found.nodes() == [FEWEST - 1 + 35]
    assert found.tree.marks["free_nodes"][0] == 1
    lo = np.array([29.0, 0.0])
    row = Wanted(lo, lo, 7, MANY)
    assert rtree.find_leaf_anywhere(SIDES, found.tree, found.counts, row) == 29


def test_the_only_node_is_not_given_up() -> None:
    found = forest(3)
    for n in (2, 1):
        found.remove(found.living[0])
        found.check()
        assert found.nodes() == [n]
    found.remove(found.living[0])
    found.check()
    assert found.nodes() == []


def test_who_takes_in_leaves_may_split() -> None:
    found = apart(30, 35)
    for at in range(FAN_OUT - 35):
        lo = np.array([940.0 + at, 0.0])
        found.put(lo, lo, rtree.choose_node(SIDES, found.tree, lo, lo))
    assert sorted(found.nodes()) == [30, FAN_OUT]
    for leaf in range(30 - FEWEST + 1):
        found.remove(leaf)
    found.check()
    assert len(found.nodes()) == 2
    assert sum(found.nodes()) == FAN_OUT + FEWEST - 1


@pytest.mark.parametrize("n", [3, 100])
def test_growing_changes_nothing(n: int) -> None:
    found = forest(n)
    before, larger = found.tree, rtree.grown(found.tree, 500)
    assert len(larger.loss) == 500
    check_tree(larger)
    found.tree = larger
    found.check()
    np.testing.assert_array_equal(before.marks, larger.marks)
    assert found.add() == n
    found.check()


def test_a_row_without_any_value_makes_a_leaf() -> None:
    found = Forest(np.random.default_rng(1))
    nothing = np.full(2, np.inf), np.full(2, -np.inf)
    leaf = found.put(*nothing, -1)
    assert found.tree.loss[leaf] == 0.0
    found.check()
    assert not rtree.widen_leaf(SIDES, found.tree, leaf, *nothing)
