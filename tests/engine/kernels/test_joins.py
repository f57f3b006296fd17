"""Rows that join kept groups: who comes along, when there is too little company, and who counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal import (
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    Quasi,
    Range,
    Schema,
    Sensitive,
)
from shoal.engine.kernels import held, kept_groups
from shoal.engine.kernels.boxes import Box
from shoal.engine.kernels.joins import ALONE, ANY, ENOUGH, find_joins
from shoal.engine.kernels.rng import seeded
from shoal.engine.space import Space

SCHEMA = Schema("person", [Quasi("x", Range(0, 100))], [Sensitive("s")])
#: One group takes whoever is from 20 to 40, the other one from 60 to 80.
BOTH = [(20.0, 40.0, 0.2), (60.0, 80.0, 0.1)]


def limits(*criteria: Any) -> Any:
    return Space(SCHEMA, Policy(*criteria)).limits


def ring(rows: list[tuple[float, int, int]]) -> held.Held:
    """Held rows of (a value, a subject, a sensitive value)."""
    found = held.empty(1, 1, 32)
    for value, subject, sensitive in rows:
        box = np.array([value])
        held.put(found, held.Arrival(box, box, subject, np.array([sensitive]), np.nan, 0), 0)
    return found


def groups(promise: Any, boxes: list[tuple[float, float, float]]) -> kept_groups.KeptGroups:
    """Kept groups of two people with different sensitive values, of (a side, its loss)."""
    found = kept_groups.empty(4, 1, 1, promise)
    for number, (lo, hi, loss) in enumerate(boxes):
        box = Box(loss, number, 2, 2, 0)
        kept_groups.keep(
            found, np.array([lo]), np.array([hi]), box, 0, np.array([90, 91]), np.array([[0], [1]])
        )
    return found


def joined(
    promise: Any,
    rows: list[tuple[float, int, int]],
    least: int,
    kept: kept_groups.KeptGroups | None = None,
    *,
    boxes: list[tuple[float, float, float]] = BOTH,
    best: bool = False,
    loss: float = np.inf,
) -> list[tuple[int, int]]:
    """Who joins which group, if the first row is due."""
    positions, places = find_joins(
        groups(promise, boxes) if kept is None else kept,
        promise,
        ring(rows),
        np.arange(len(rows)),
        0,
        best,
        loss,
        least,
        seeded(b"1", "joins"),
    )
    return list(zip(positions.tolist(), places.tolist(), strict=True))


#: Somebody who is covered, somebody who isn't, and three who are, two of them one person.
ROWS = [(30.0, 1, 0), (50.0, 2, 0), (70.0, 3, 0), (25.0, 3, 0), (35.0, 4, 0)]


@pytest.mark.parametrize(
    ("least", "k", "expected"),
    [
        (ALONE, 2, [(0, 0)]),
        (ENOUGH, 2, [(0, 0), (2, 1)]),
        (ENOUGH, 3, [(0, 0), (2, 1), (4, 0)]),
        (ENOUGH, 4, []),
        (ANY, 2, [(0, 0), (2, 1)]),
        (ANY, 4, [(0, 0), (2, 1), (4, 0)]),
    ],
)
def test_a_row_that_is_due_takes_along_as_many_people_as_it_needs(
    least: int, k: int, expected: list[tuple[int, int]]
) -> None:
    """A row that can't join stays; of a person's rows only the first one that can goes along."""
    assert joined(limits(KAnonymity(k)), ROWS, least) == expected


@pytest.mark.parametrize("least", [ALONE, ENOUGH, ANY])
def test_nobody_joins_if_the_row_that_is_due_cant(least: int) -> None:
    positions = joined(limits(KAnonymity(2)), [ROWS[1], *ROWS[2:]], least)
    assert positions == []


def test_company_must_be_as_diverse_as_a_group() -> None:
    promise = limits(KAnonymity(2), DistinctLDiversity(2))
    assert joined(promise, ROWS, ENOUGH) == []
    different = [*ROWS, (40.0, 5, 1)]
    assert joined(promise, different, ENOUGH) == [(0, 0), (2, 1), (4, 0), (5, 0)]


def test_the_best_group_takes_the_row_and_only_the_first_row_minds_its_own_loss() -> None:
    promise, everywhere = limits(KAnonymity(2)), [*BOTH, (0.0, 100.0, 1.0)]
    for loss, expected in [(0.3, [(0, 0), (1, 2)]), (0.2, [])]:
        found = joined(promise, ROWS, ENOUGH, boxes=everywhere, best=True, loss=loss)
        assert found == expected


def test_who_joins_is_a_member_when_the_next_one_asks() -> None:
    """Of a group with the values 0 and 1, five further rows with 0 are the most."""
    promise = limits(KAnonymity(2), EntropyLDiversity(1.5))
    rows = [(30.0, n, 0) for n in range(8)]
    assert joined(promise, rows, ANY, boxes=BOTH[:1]) == [(n, 0) for n in range(5)]
    kept = groups(promise, BOTH[:1])
    alone = [joined(promise, [row], ALONE, kept) for row in rows]
    assert alone == [[(0, 0)]] * 5 + [[]] * 3


def test_too_little_company_leaves_the_groups_as_they_were() -> None:
    promise = limits(KAnonymity(2), EntropyLDiversity(1.5))
    kept = groups(promise, BOTH)
    before = kept.groups.copy()
    for _ in range(9):
        assert joined(promise, ROWS[:3], ENOUGH, kept) == []
    assert (kept.groups == before).all()
    assert joined(promise, ROWS[:3], ANY, kept) == [(0, 0), (2, 1)]
    assert kept.groups["n_members"][:2].tolist() == [3, 3]
