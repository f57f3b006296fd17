"""Pseudonyms: habits link them across their change."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from shoal.attacks.pseudonyms import Pseudonyms
from tests.attacks.test_oracle import setting

PEOPLE = range(9)


def habits(pages: Sequence[Sequence[str]], periods: int = 2) -> list[tuple[int, str]]:
    """Each person reads their pages twice in each period; the first reading may be hidden."""
    once = [(who, page) for i in range(len(pages[0])) for who in PEOPLE for page in [pages[who][i]]]
    return once * (2 * periods)


def test_habits_link_pseudonyms() -> None:
    # Each page has three readers, each pair of pages one.
    pairs = [(f"a{i}", f"b{j}") for i, j in itertools.product(range(3), range(3))]
    rows = habits(pairs)
    found = setting(rows, z=3, pseudonym={"rotate": len(rows) / 2})
    (result,) = Pseudonyms().run(found)
    assert result.success.attempts == len(PEOPLE)
    assert result.success.rate == 1
    assert result.baseline == pytest.approx(1 / len(PEOPLE))
    assert result.verdict == "unbounded"


def test_people_who_do_the_same_are_not_linked() -> None:
    rows = habits([("a", "b")] * len(PEOPLE))
    found = setting(rows, z=3, pseudonym={"rotate": len(rows) / 2})
    (result,) = Pseudonyms().run(found)
    assert result.success.rate <= 2 / len(PEOPLE)


def test_without_pseudonyms_there_is_nothing_to_link() -> None:
    found = setting(habits([("a", "b")] * len(PEOPLE)), z=3)
    assert Pseudonyms().misfit(found) == "no pseudonyms are published"
