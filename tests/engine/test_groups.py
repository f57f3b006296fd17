"""Groups of held rows: what is published of them, and that they are held no more."""

from __future__ import annotations

import numpy as np

from shoal import Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine.base import Out, Outcome
from shoal.engine.groups import publish, shape, suppress
from shoal.engine.kernels import held
from shoal.engine.space import Space

PETS = Hierarchy.from_dict({"*": {"Mammal": ["Cat", "Dog"], "Bird": ["Owl", "Jay"]}})
SCHEMA = Schema("person", [Quasi("age", Range(0, 100)), Quasi("pet", PETS)])
SPACE = Space(SCHEMA, Policy(KAnonymity(2), missing="maybe"))
GAP = np.nan
MARKS = np.dtype([("groups", np.int64), ("instants", np.int64)])


def marks(groups: int, instants: int) -> np.ndarray:
    """How many groups and instants there have been."""
    return np.array([(groups, instants)], MARKS)


def ring(*rows: tuple[float, float, int]) -> held.Held:
    """Held rows of (an age, a pet, a subject)."""
    found = held.empty(2, 0, 16)
    values = np.array([row[:2] for row in rows], float)
    lo, hi = SPACE.points(values)
    gaps = SPACE.gaps(values)
    for i, (*_, subject) in enumerate(rows):
        nothing = np.empty(0, np.int64)
        held.put(found, held.Arrival(lo[i], hi[i], subject, nothing, np.nan, int(gaps[i])), 0)
    return found


ROWS = [(20, 0, 1), (30, 1, 2), (70, 3, 3), (GAP, 1, 2)]


def test_the_shape_of_a_group_is_what_an_outsider_will_see() -> None:
    box, lo, hi = shape(SPACE.sides, SPACE.shown, ring(*ROWS), np.array([0, 1]))
    assert (lo.tolist(), hi.tolist()) == ([20.0, 0.0], [30.0, 1.0])  # Mammal
    assert (box.loss, box.n_rows, box.n_subjects, box.gaps) == ((0.1 + 0.5) / 2, 2, 2, 0)
    assert (box.group, box.window) == (-1, -1)


def test_the_shape_of_a_group_knows_who_lacks_what() -> None:
    box, lo, hi = shape(SPACE.sides, SPACE.shown, ring(*ROWS), np.array([1, 3]))
    assert (lo.tolist(), hi.tolist()) == ([30.0, 1.0], [30.0, 1.0])
    assert (box.n_rows, box.n_subjects, box.gaps) == (2, 1, 1)
    # A side without values loses nothing and covers nothing.
    box, lo, hi = shape(SPACE.sides, SPACE.shown, ring((GAP, 0, 1), (GAP, 2, 2)), np.array([0, 1]))
    assert lo[0] > hi[0]
    assert box.loss == 1.0


def test_a_group_formed_by_numbers_has_the_shape_that_is_shown() -> None:
    """By their numbers, dogs and owls are neighbours; in the tree, only all pets have both."""
    by_numbers = Space(SCHEMA, Policy(KAnonymity(2)), "uncertainty")
    box, lo, hi = shape(
        by_numbers.sides, by_numbers.shown, ring((20, 1, 1), (30, 2, 2)), np.array([0, 1])
    )
    assert (lo.tolist(), hi.tolist()) == ([20.0, 0.0], [30.0, 3.0])
    assert box.loss == (0.1 + 1.0) / 2


def test_one_member_has_the_shape_of_its_own_values() -> None:
    box, lo, hi = shape(SPACE.sides, SPACE.shown, ring(*ROWS), np.array([2]))
    assert (lo.tolist(), hi.tolist()) == ([70.0, 3.0], [70.0, 3.0])
    assert (box.loss, box.n_rows, box.n_subjects, box.gaps) == (0.0, 1, 1, 0)


def test_no_members_have_no_shape() -> None:
    box, lo, hi = shape(SPACE.sides, SPACE.shown, ring(*ROWS), np.empty(0, np.int64))
    assert box.loss == np.inf
    assert (box.n_rows, box.n_subjects, box.gaps) == (0, 0, 0)
    assert len(lo) == len(hi) == 0


def test_who_is_published_is_held_no_more() -> None:
    rows, out, counted = ring(*ROWS), Out.room(4, 2), marks(5, 9)
    publish(SPACE.sides, rows, np.array([0, 2]), counted, out)
    assert counted["groups"] == [6]
    decided = out.decisions()
    assert sorted(decided.rows.tolist()) == [0, 2]
    assert decided.groups.tolist() == [5]
    assert decided.instants.tolist() == [9, 9]
    assert decided.n_subjects.tolist() == decided.n_rows.tolist() == [2]
    assert (decided.lo.tolist(), decided.hi.tolist()) == ([[20.0, 0.0]], [[70.0, 3.0]])
    assert set(decided.outcomes) == {Outcome.group}
    assert rows.marks["n_rows"][0] == 2
    assert [bool(held.is_held(rows, position)) for position in range(4)] == [
        False,
        True,
        False,
        True,
    ]


def test_who_is_suppressed_is_held_no_more_and_has_no_box() -> None:
    rows, out = ring(*ROWS), Out.room(4, 2)
    suppress(rows, 3, marks(0, 2), out)
    decided = out.decisions()
    assert decided.rows.tolist() == [3]
    assert decided.boxes.tolist() == [-1]
    assert decided.gaps.tolist() == [1]
    assert decided.instants.tolist() == [2]
    assert decided.outcomes.tolist() == [Outcome.suppressed]
    assert rows.marks["n_rows"][0] == 3
