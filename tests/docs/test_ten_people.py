"""The page on the ten people shows what Shoal computes: its pictures, its tables, its sentences."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from benchmarks.concepts.__main__ import FOLDER, PAGE
from benchmarks.concepts.people import (
    DIAGNOSES,
    PEOPLE,
    PROMISES,
    published,
    seen_of,
    stays,
    values_at_once,
)
from benchmarks.concepts.pictures import pictures
from benchmarks.concepts.tables import tables

AGAIN = "draw them again: NUMBA_DISABLE_JIT=1 .venv/bin/python -m benchmarks.concepts"
NAMES = [f"ten-{name}" for name in ["box", "wait", "z", "seen", "attacks", "k", "l", "t", "beta"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_as_it_would_be_drawn_now(name: str) -> None:
    assert pictures()[name] == (FOLDER / f"{name}.svg").read_text(encoding="utf-8"), AGAIN


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_on_the_page_and_says_what_it_shows(name: str) -> None:
    (alt,) = re.findall(rf"!\[([^]]+)\]\(figures/{name}\.svg\)", PAGE.read_text(encoding="utf-8"))
    assert len(alt) > 20
    space = "{http://www.w3.org/2000/svg}"
    picture = ElementTree.fromstring(pictures()[name])
    inner = picture.find(f"{space}svg")
    assert inner is not None
    assert inner.get("role") == "img"
    assert inner.get("aria-label")
    assert inner.findtext(f"{space}desc")
    assert "prefers-color-scheme: dark" in (picture.findtext(f"{space}style") or "")


def test_no_other_picture_of_the_ten_lies_about() -> None:
    assert sorted(path.stem for path in FOLDER.glob("ten-*.svg")) == sorted(NAMES)


@pytest.mark.parametrize("name", sorted(tables()))
def test_a_table_is_as_it_would_be_written_now(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    there = page.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
    assert there.strip() == tables()[name], AGAIN


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_is_kept_and_everybody_published(promise: str) -> None:
    release = published(promise)
    assert release.verdict == "kept"
    assert sorted(name for group in release.groups for name in group.people) == sorted(
        person.name for person in PEOPLE
    )


def test_nobody_shares_age_and_district() -> None:
    assert len({(person.age, person.district) for person in PEOPLE}) == len(PEOPLE)


def test_a_group_of_k_agrees_and_one_of_l_does_not() -> None:
    assert seen_of("Ben", "k = 3").diagnoses["Asthma"] == 3
    assert len(seen_of("Ben", "k = 3").people) == 3
    assert seen_of("Ben", "l = 2").diagnoses == dict(zip(DIAGNOSES, (4, 2, 0, 0), strict=True))


def test_a_rare_value_gains_under_t_and_less_under_beta() -> None:
    assert len(seen_of("Hana", "t = 0.2").people) == 4
    assert len(seen_of("Hana", "beta = 1").people) == 5
    assert {group.district for group in published("t = 0.2").groups} == {"City"}


def test_short_delays_bring_strangers_together() -> None:
    groups = {delay: {stay.name for stay in stays(delay) if stay.group == 0} for delay in (2, 6)}
    assert groups == {2: {"Ada", "Gus", "Dora"}, 6: {"Ada", "Ben", "Eli"}}
    assert [stay.name for stay in stays(6) if stay.group is None] == ["Ivo"]


def test_z_hides_the_rare_value_and_publishes_a_combination_of_one_person() -> None:
    assert values_at_once(2)[6] == (None, None)
    assert values_at_once(2)[9] == ("Fort", "Flu")
    assert values_at_once(3)[4] == ("Riverside", "Lung")
    assert sum((person.district, person.diagnosis) == ("Fort", "Flu") for person in PEOPLE) == 1
