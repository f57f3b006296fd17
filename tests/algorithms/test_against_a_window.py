"""What is measured against the latest rows, in the algorithms that decide row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shoal import Delay, KAnonymity, Policy, Window
from shoal.algorithms import find, names
from shoal.engine import Decisions
from shoal.engine.base import Anonymizer
from shoal.errors import UnsupportedError
from shoal.spec.hierarchy import Range
from shoal.spec.policy import BasicLikeness, DeltaDisclosure, Measured
from shoal.testing.hostile import steady_stream
from shoal.testing.streams import Stream, difference, play
from tests.algorithms.rows import groups, outcomes, stream
from tests.naive.castle import Deviations as CastleDeviations
from tests.naive.castle import NaiveCastle
from tests.naive.fads import Deviations as FadsDeviations
from tests.naive.fads import NaiveFads
from tests.naive.measured import Measure

MEASURING = ["castle", "fads", "idea", "k-varp", "iot"]


def one(name: str, **knobs: Any) -> Anonymizer:
    return find(name)(**knobs)


def like(beta: float, delay: Delay, window: int = 10, k: int = 2) -> Policy:
    return Policy(KAnonymity(k), BasicLikeness(beta), delay=delay, window=Window(window))


def windows(decided: Decisions) -> dict[int, int]:
    """The window of each row that was published."""
    return {
        int(row): int(decided.windows[box])
        for row, box in zip(decided.rows, decided.boxes, strict=True)
        if box >= 0
    }


def test_these_are_all_that_measure_row_by_row() -> None:
    by_rows = [name for name in names() if find(name).publishes == "rows"]
    able = [name for name in by_rows if issubclass(BasicLikeness, find(name).enforces)]
    # That one has tests of its own.
    assert sorted(able) == sorted([*MEASURING, "tide"])


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEASURING)
def test_a_row_must_not_be_held_for_longer_than_its_window(name: str) -> None:
    for rows in (5, 20):
        with pytest.raises(UnsupportedError, match="window must be larger than the delay") as error:
            one(name).check(like(1.0, Delay(rows=20), window=rows))
        assert name in str(error.value)
        assert "at least 21" in str(error.value)
    one(name).check(like(1.0, Delay(rows=20), window=21))
    with pytest.raises(UnsupportedError, match="without a delay in rows") as error:
        one(name).check(like(1.0, Delay(seconds=20), window=9))
    assert "policy.delay.rows as well, to at most 8" in str(error.value)
    one(name).check(like(1.0, Delay(rows=8, seconds=20), window=9))


def test_fast_refuses_what_its_workers_cant_see_together() -> None:
    with pytest.raises(UnsupportedError, match="'fast' can't enforce basic beta-likeness"):
        one("fast").check(like(1.0, Delay(rows=5)))


@pytest.mark.parametrize("name", MEASURING)
def test_by_how_much_a_window_advances_means_nothing(name: str) -> None:
    rows = steady_stream(find(name), 80, measured=True)
    moving = Policy(
        *rows.policy.criteria, delay=rows.policy.delay, window=Window(rows=20, advance=5)
    )
    still = Policy(*rows.policy.criteria, delay=rows.policy.delay, window=Window(rows=20))
    assert (
        difference(
            play(one(name), replace(rows, policy=moving)),
            play(one(name), replace(rows, policy=still)),
        )
        is None
    )


# -- groups ---------------------------------------------------------------------------------------

#: Two people with the one value live at one end, two with the other at the other.
APART = [(20, "a", 0), (21, "b", 0), (80, "c", 1), (81, "d", 1)]


@pytest.mark.parametrize("name", MEASURING)
@pytest.mark.parametrize(("beta", "group"), [(1.0, {0, 1}), (0.5, {0, 1, 2}), (0.1, {0, 1, 2, 3})])
def test_a_group_takes_in_others_until_it_is_like_its_window(
    name: str, beta: float, group: set[int]
) -> None:
    decided = play(one(name), stream(APART, like(beta, Delay(rows=3))))
    assert groups(decided)[0] == group
    assert windows(decided)[0] == 4


def test_parts_of_a_large_cluster_are_measured_as_well() -> None:
    """By distance alone the cluster would be cut at the middle, value from value."""
    rows = [*APART, (22, "e", 0), (82, "f", 1)]
    free = play(one("castle", clusters=1), stream(rows, like(1.0, Delay(rows=5))))
    assert len(groups(free)) == 3
    bound = play(one("castle", clusters=1), stream(rows, like(0.4, Delay(rows=5))))
    values = [row[2] for row in rows]
    for group in groups(bound):
        assert 0 < sum(values[row] for row in group) < len(group)
    assert sum(map(len, groups(bound))) == len(rows)


@pytest.mark.parametrize("name", MEASURING)
def test_what_cant_reach_it_is_suppressed(name: str) -> None:
    """Rows that are gone are in the window, but in no group."""
    policy = Policy(
        KAnonymity(2), DeltaDisclosure(5.0), delay=Delay(rows=2), window=Window(rows=10)
    )
    rows = [(20, "a", 0), (20, "b", 1), (20, "c", 0), (20, "d", 0), (20, "e", 0)]
    decided = play(one(name, kept=0), stream(rows, policy))
    alone = [row for row, outcome in outcomes(decided).items() if outcome == "suppressed"]
    assert outcomes(decided)[0] == "group"
    assert alone
    assert 1 not in alone


@pytest.mark.parametrize("name", MEASURING)
def test_where_nothing_is_measured_no_window_is_named(name: str) -> None:
    engine = one(name).start(*_parts(stream(APART, Policy(KAnonymity(2), delay=Delay(rows=3)))))
    assert engine.state.held.recent.sensitive.size == 0
    decided = engine.push(stream(APART, Policy(KAnonymity(2), delay=Delay(rows=3))).codes)
    assert set(decided.windows.tolist()) == {-1}


def _parts(of: Stream) -> tuple[Any, Any]:
    return of.schema, of.policy


# -- groups that are kept -------------------------------------------------------------------------

#: After a and b, who differ, only one value comes, until the window has no other.
ONE_SIDED = [
    (20, "a", 0),
    (22, "b", 1),
    *((at, person, 0) for at, person in [(21, "c"), (90, "d"), (91, "e"), (21, "f"), (90, "g")]),
]


@pytest.mark.parametrize("name", MEASURING)
def test_a_kept_group_is_measured_with_the_row_against_the_window_of_the_moment(name: str) -> None:
    policy = like(0.6, Delay(rows=1), window=4)
    decided = play(one(name, kept=200, joins="alone"), stream(ONE_SIDED, policy))
    assert [row for row in range(7) if outcomes(decided)[row] == "reuse"] == [2]
    assert groups(decided) == [{0, 1}, {3, 4}, {5, 6}]
    assert [windows(decided)[row] for row in range(7)] == [2, 2, 4, 5, 5, 7, 7]


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("name", ["castle", "fads"])
def test_unmeasured_it_would_break_the_promise(name: str, checked: bool) -> None:
    measures = [Measure(BasicLikeness(0.6), 0, None)]
    options: dict[str, Any] = {
        "k": 2,
        "measures": measures,
        "window": 4,
        "delay_rows": 1,
        "joins": "alone",
    }
    flags = {"reuse_is_checked": checked}
    twin: NaiveCastle | NaiveFads
    if name == "castle":
        twin = NaiveCastle([Range(0, 100)], [1.0], **options, deviations=CastleDeviations(**flags))
    else:
        twin = NaiveFads([Range(0, 100)], [1.0], **options, deviations=FadsDeviations(**flags))
    decisions = []
    for value, person, sensitive in ONE_SIDED:
        decisions += twin.push([value], person, [sensitive])
    sixth = next(d for d in decisions if d.row == 5)
    # The kept group has b's value, which no row of the window has any more.
    assert (sixth.group == 0) == (not checked)


@pytest.mark.parametrize("criterion", [BasicLikeness(0.5), DeltaDisclosure(1.0)])
def test_a_kept_group_has_room_for_more_than_the_fewest(criterion: Measured) -> None:
    policy = Policy(KAnonymity(2), criterion, delay=Delay(rows=5), window=Window(10))
    engine = one("castle").start(*_parts(stream(APART, policy)))
    assert engine.state.kept.subject.shape[1] == 64
