"""The twin of z-anonymity: Figure 1, windows, what a parent may stand for, and its deviations."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algorithms.events import STREAMS, WINDOWS, event, levels, numbered
from tests.algorithms.world import check_section, flags_of
from tests.examples import examples
from tests.naive.z_anonymity import Decision, Deviations, NaiveZAnonymity, Row, run

# -- the paper's story ---------------------------------------------------------------------------


def test_figure_1() -> None:
    """z = 3 and a window of 10: only the third user's event is released, at t3."""
    t0, t1, t2, t3, t4 = 0.0, 2.0, 5.0, 8.0, 16.0
    twin = NaiveZAnonymity(3, window_seconds=10.0)

    def n_users(now: float) -> int:
        return sum(len(subjects) for subjects in twin.leaves(now).values())

    assert twin.push(event(t0, "u0", "a0")) == Decision((None,), (0,), 3)
    assert twin.push(event(t1, "u1", "a0")) == Decision((None,), (0,), 3)
    assert twin.push(event(t2, "u0", "a0")) == Decision((None,), (0,), 3)
    assert n_users(t2) == 2
    assert twin.push(event(t3, "u2", "a0")) == Decision((0,), (3,), 3)
    assert n_users(t0 + 10.5) == 3  # exposed again at t2, u0 has not expired
    assert n_users(t1 + 10.5) == 2  # u1 has
    assert n_users(t2 + 10.5) == 1  # and now u0
    assert twin.push(event(t4, "u3", "a0")) == Decision((None,), (0,), 3)
    assert n_users(t4) == 2


def test_an_exposure_repeated_lives_longer() -> None:
    """Without t2 of Figure 1, u0 would be gone when a third user comes at 11."""
    again = [event(0.0, "u0", "a"), event(2.0, "u1", "a"), event(5.0, "u0", "a")]
    last = event(11.0, "u2", "a")
    assert levels([*again, last], z=3, window_seconds=10.0)[-1] == 0
    assert levels([*again[:2], last], z=3, window_seconds=10.0)[-1] is None


# -- windows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("now", "level"), [(110.0, 0), (110.5, None)])
def test_what_is_exactly_as_old_as_the_window_is_in(now: float, level: int | None) -> None:
    rows = [event(100.0, "a", "x"), event(now, "b", "x")]
    assert levels(rows, z=2, window_seconds=10.0) == [None, level]


@pytest.mark.parametrize(("n_between", "level"), [(1, 0), (2, None)])
def test_a_window_in_rows_has_the_latest_of_them(n_between: int, level: int | None) -> None:
    rows = numbered(("a", "x"), *[("c", "y")] * n_between, ("b", "x"))
    assert levels(rows, z=2, window_rows=3)[-1] == level


def test_a_window_of_one_row_publishes_for_one_subject_alone() -> None:
    rows = numbered(("a", "x"), ("b", "x"), ("c", "x"))
    assert levels(rows, z=2, window_rows=1) == [None, None, None]
    assert levels(rows, z=1, window_rows=1) == [0, 0, 0]


def test_rows_with_nothing_but_gaps_fill_a_window_in_rows() -> None:
    rows = numbered(("a", "x"), ("c", None), ("c", None), ("b", "x"))
    assert levels(rows, z=2, window_rows=3) == [None, None, None, None]
    assert levels(rows, z=2, window_rows=4) == [None, None, None, 0]


def test_times_say_nothing_in_a_window_in_rows() -> None:
    rows = [event(0.0, "a", "x"), event(1e6, "b", "x"), event(5.0, "c", "x")]
    assert levels(rows, z=2, window_rows=2) == [None, 0, 0]


# -- who counts ----------------------------------------------------------------------------------


def test_one_subject_alone_is_never_published() -> None:
    assert set(levels(numbered(*[("a", "x*y")] * 20), z=2, window_rows=20)) == {None}


@pytest.mark.parametrize("z", [2, 3, 7])
def test_fewer_than_z_subjects_are_never_published_and_z_are(z: int) -> None:
    few = numbered(*[(subject, "x") for _ in range(4) for subject in range(z - 1)])
    assert set(levels(few, z=z, window_rows=100)) == {None}
    assert levels([*few, *numbered(("new", "x"))], z=z, window_rows=100)[-1] == 0


def test_each_attribute_of_a_row_is_decided_separately() -> None:
    rows = [
        event(None, "a", "x", "p*q"),
        event(None, "b", "x", "p*r"),
        event(None, "c", "y", "p*s"),
        event(None, "d", "x", None),
        event(None, "e", None, "p*s"),
    ]
    decisions, _ = run(rows, z=3, window_rows=10)
    assert [d.levels for d in decisions[2:]] == [(None, 1), (0, None), (None, 1)]
    assert [d.n_behind for d in decisions[2:]] == [(0, 3), (3, 0), (0, 4)]
    assert {d.levels for d in decisions[:2]} == {(None, None)}


def test_the_same_value_in_two_attributes_is_two_values() -> None:
    rows = [event(None, "a", "x", None), event(None, "b", None, "x")]
    decisions, _ = run(rows, z=2, window_rows=10)
    assert [d.levels for d in decisions] == [(None, None), (None, None)]


def test_the_same_label_under_two_parents_is_two_values() -> None:
    rows: list[Row] = [(None, s, [("springfield", state)]) for s, state in enumerate("abab")]
    assert levels(rows, z=2, window_rows=10) == [None, None, 0, 0]
    assert levels(rows[:2], z=2, window_rows=10) == [None, None]


# -- what a parent stands for --------------------------------------------------------------------

#: Turin is popular, Aosta is one person's.
BETRAYAL = numbered(("a", "it*turin"), ("b", "it*turin"), ("c", "it*turin"), ("d", "it*aosta"))


def test_z_3_parents_count_the_residual() -> None:
    """Those of Turin are published as Turin: "it" alone would be the one from Aosta."""
    assert levels(BETRAYAL, z=3, window_rows=10) == [None, None, 0, None]
    assert levels(BETRAYAL, z=3, window_rows=10, count="plain") == [None, None, 0, 1]
    paper = Deviations(parents_count_the_residual=False)
    assert levels(BETRAYAL, z=3, window_rows=10, deviations=paper) == [None, None, 0, 1]


def test_one_newcomer_must_not_make_a_sibling_publishable() -> None:
    """Had d been a third in Turin, it would have been told: "it" would mean "not in Turin"."""
    rows = [event(5.0, "b", "it*turin"), event(6.0, "c", "it*turin"), event(11.0, "d", "it*aosta")]
    rows.append(event(12.0, "e", "it*turin"))
    assert levels(rows, z=3, window_seconds=20.0) == [None, None, None, 0]
    assert levels(rows, z=3, window_seconds=20.0, count="plain") == [None, None, 1, 0]


def test_people_of_whom_it_is_known_where_they_are_hide_nobody() -> None:
    """b and c were published as of Turin, which is rare again when a has left the window."""
    rows = [event(float(t), who, "it*turin") for t, who in [(0, "a"), (5, "b"), (6, "c"), (7, "b")]]
    rows += [event(11.0, "d", "it*aosta"), event(12.0, "e", "it*turin")]
    assert levels(rows, z=3, window_seconds=10.0) == [None, None, 0, 0, None, 0]


#: Three in three places.
SCATTERED = numbered(("a", "it*turin"), ("b", "it*asti"), ("c", "it*aosta"))


def test_a_parent_is_published_for_people_whose_own_places_cant_be() -> None:
    decisions, _ = run(SCATTERED, z=3, window_rows=10)
    assert decisions[-1] == Decision((1,), (3,), 3)
    # Two more in Turin, and it counts no longer: one newcomer would make it publishable.
    later = [*SCATTERED, *numbered(("d", "it*turin"), ("c", "it*aosta"))]
    assert levels(later, z=3, window_rows=10) == [None, None, 1, 1, None]
    assert levels(later, z=3, window_rows=10, count="plain") == [None, None, 1, 1, 1]


def test_who_is_published_counts_though_their_own_place_doesnt() -> None:
    """When d comes again, its place has two, too many to count; with a and b it is one of three."""
    rows = [*SCATTERED[:2], *numbered(("c", "it*aosta"), ("d", "it*aosta"), ("d", "it*aosta"))]
    decisions, _ = run(rows, z=3, window_rows=10)
    assert decisions[-2:] == [Decision((1,), (4,), 3), Decision((1,), (3,), 3)]


@pytest.mark.parametrize("z", [1, 2])
def test_no_parent_is_published_up_to_z_2(z: int) -> None:
    """Every value has a subject, and with a newcomer two."""
    published = levels(SCATTERED, z=z, window_rows=10)
    assert published == ([0, 0, 0] if z == 1 else [None, None, None])


def test_a_sibling_that_is_rare_again_counts_again() -> None:
    rows = [event(0.0, "a", "it*turin"), event(1.0, "b", "it*turin"), event(2.0, "e", "it*asti")]
    rows += [event(10.0, "d", "it*aosta"), event(10.5, "d", "it*aosta")]
    assert levels(rows, z=3, window_seconds=10.0) == [None, None, None, None, 1]


def shown_once(*later: Row) -> list[Row]:
    """a, b and c show Turin, c is published so; from 10.5 on c is there alone, and e is in Asti."""
    rows = [event(float(t), who, "it*turin") for t, who in [(0, "a"), (0, "b"), (5, "c")]]
    return [*rows, event(6.0, "e", "it*asti"), *later]


def test_a_pair_that_is_shown_hides_nobody_until_it_leaves_the_window() -> None:
    now = shown_once(event(11.0, "d", "it*aosta"))
    assert levels(now, z=3, window_seconds=10.0) == [None, None, 0, None, None]
    # Exposed again in time it is the same, and a day later a new one.
    renewed = [event(11.0, "c", "it*turin"), event(16.0, "d", "it*aosta")]
    assert levels(shown_once(*renewed), z=3, window_seconds=10.0)[-2:] == [None, None]
    new = [event(t, who, f"it*{place}") for t, who, place in [
        (100.0, "c", "turin"), (100.0, "e", "asti"), (101.0, "d", "aosta"),
    ]]  # fmt: skip
    assert levels(shown_once(*new), z=3, window_seconds=10.0)[-3:] == [None, None, 1]


def test_what_is_published_as_it_is_is_shown_of_its_own_subject_alone() -> None:
    twin = NaiveZAnonymity(2, window_rows=10)
    twin.push(event(None, "a", "it*turin", "x"))
    assert twin.shown == set()
    twin.push(event(None, "b", "it*turin", "y"))
    assert twin.shown == {((0, 0, ("it*turin", "it")), "b")}


def test_who_is_at_a_popular_and_at_a_rare_place_counts_for_the_rare_one() -> None:
    rows = [*BETRAYAL, *numbered(("c", "it*asti"), ("b", "it*bra"))]
    decisions, _ = run(rows, z=3, window_rows=10)
    assert decisions[-1] == Decision((1,), (3,), 3)


def test_residuals_go_up_the_whole_tree() -> None:
    """x can be published once three places of it are exposed; for "all" it counts no longer then.

    At the end y*p and z*p stand for one each, and x for too many; with i there are three.
    """
    rows = numbered(
        ("a", "all*x*p"), ("b", "all*y*p"), ("c", "all*x*q"), ("d", "all*x*r"),
        ("f", "all*y*p"), ("g", "all*z*p"), ("h", "all*y*q"), ("i", "all*w*p"), ("j", "all*v*p"),
    )  # fmt: skip
    decisions, _ = run(rows, z=3, window_rows=20)
    published = [(d.levels[0], d.n_behind[0]) for d in decisions]
    assert published == [
        (None, 0),  # a
        (None, 0),  # a, b
        (2, 3),  # "all": a and b, each in a place that counts, and c
        (1, 3),  # x: a, c, d; so many that it doesn't count for "all" from now on
        (None, 0),  # y*p: two, so that it doesn't count for y, nor y for "all"
        (None, 0),  # z: g alone
        (None, 0),  # y: h alone, with g two behind "all"
        (2, 3),  # g, h, i
        (2, 4),
    ]


Exposure = tuple[Hashable, tuple[str, ...]]


def standing_for(
    exposures: set[Exposure], shown: set[Exposure], labels: Sequence[str], level: int, z: int
) -> list[set[Hashable]]:
    """R of a node by its definition, from the top down, as one set for each child that counts."""
    under = {(subject, leaf) for subject, leaf in exposures if leaf[level:] == tuple(labels)}
    if level == 0:
        return [{subject for subject, _ in under}]
    counted = []
    for child in {leaf[level - 1 :] for _, leaf in under}:
        crowd = set().union(*standing_for(under, shown, child, level - 1, z))
        if len(crowd) <= z - 2:
            counted.append({who for who in crowd if level > 1 or (who, child) not in shown})
    return [crowd for crowd in counted if crowd]


def in_window(rows: Sequence[Row], i: int, attribute: int, **window: Any) -> set[Any]:
    """Who exposed what before row i, in the window that ends with it."""
    if "window_rows" in window:
        clocks = [float(number) for number in range(len(rows))]
        begin = i - window["window_rows"] + 1
    else:
        times = [time for time, _, _ in rows]
        clocks = [max(times[: j + 1]) for j in range(len(rows))]  # type: ignore[type-var]
        begin = clocks[i] - window["window_seconds"]
    return {
        (subject, cells[attribute])
        for clock, (_, subject, cells) in zip(clocks[:i], rows, strict=False)
        if clock >= begin and cells[attribute] is not None
    }


def shown_in(twin: NaiveZAnonymity, attribute: int) -> set[Exposure]:
    return {(who, labels) for (a, _, labels), who in twin.shown if a == attribute}


@settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
@given(rows=STREAMS, z=st.integers(1, 6), window=WINDOWS)
def test_every_cell_is_published_at_the_finest_level_with_z_subjects_behind_it(
    rows: list[Row], z: int, window: dict[str, Any]
) -> None:
    """And what is published above its own value stands for two rarer values or more."""
    twin = NaiveZAnonymity(z, **window)
    for i, row in enumerate(rows):
        _, subject, cells = row
        before, decision = copy.deepcopy(twin), twin.push(row)
        before.forget(before.move_on(row[0]), [])
        for attribute, labels in enumerate(cells):
            level, crowd = decision.levels[attribute], decision.n_behind[attribute]
            if labels is None:
                assert (level, crowd) == (None, 0)
                continue
            exposures, shown = in_window(rows, i, attribute, **window), shown_in(before, attribute)
            assert shown <= exposures
            behind = [standing_for(exposures, shown, labels[n:], n, z) for n in range(len(labels))]
            n_subjects = [len({subject}.union(*children)) for children in behind]
            assert level == next((n for n, people in enumerate(n_subjects) if people >= z), None)
            assert crowd == (0 if level is None else n_subjects[level])
            if level:
                assert len(behind[level]) >= 2


@settings(max_examples=examples(30), deadline=None, derandomize=True, database=None)
@given(rows=STREAMS, z=st.integers(1, 5), window=WINDOWS)
def test_the_plain_count_publishes_no_less(rows: list[Row], z: int, window: dict[str, Any]) -> None:
    residual, _ = run(rows, z=z, **window)
    plain, _ = run(rows, z=z, count="plain", **window)
    for ours, theirs in zip(residual, plain, strict=True):
        for level, other in zip(ours.levels, theirs.levels, strict=True):
            assert level is None or (other is not None and other <= level)


@settings(max_examples=examples(30), deadline=None, derandomize=True, database=None)
@given(rows=STREAMS, z=st.integers(1, 5), window=WINDOWS)
def test_subjects_by_other_names_are_decided_alike(
    rows: list[Row], z: int, window: dict[str, Any]
) -> None:
    renamed = [(time, f"person {-subject}", cells) for time, subject, cells in rows]  # type: ignore[operator]
    options = {"z": z, "probability": 0.8, **window}
    assert run(rows, **options) == run(renamed, **options)


# -- deviations ----------------------------------------------------------------------------------


def test_z_1_late_rows_are_of_the_latest_time() -> None:
    """At 200 the users of 100 are long gone; by its own time the late row still finds them."""
    rows = [event(100.0, "a", "x"), event(101.0, "b", "x"), event(200.0, "d", "y")]
    rows.append(event(105.0, "c", "x"))
    options = {"z": 3, "window_seconds": 10.0}
    # In the paper nothing is evicted before its value is exposed again (z-2).
    shoal = Deviations(values_are_forgotten=False)
    paper = Deviations(values_are_forgotten=False, late_rows_are_of_the_latest_time=False)
    assert levels(rows, deviations=shoal, **options)[-1] is None
    assert levels(rows, deviations=paper, **options)[-1] == 0


def test_z_1_a_late_row_takes_no_time_from_its_subject() -> None:
    """Line 13 puts the time of c back from 9 to 2, and c is gone before its window has passed."""
    rows = [event(9.0, "c", "x"), event(2.0, "c", "x"), event(15.0, "d", "x")]
    paper = Deviations(late_rows_are_of_the_latest_time=False)
    assert levels(rows, z=2, window_seconds=10.0) == [None, None, 0]
    assert levels(rows, z=2, window_seconds=10.0, deviations=paper) == [None, None, None]


def remembered(deviations: Deviations) -> tuple[list[tuple[int, int]], list[Decision]]:
    """How much is remembered along a stream of values that come once, and what is decided."""
    twin = NaiveZAnonymity(2, window_seconds=10.0, deviations=deviations)
    held, decisions = [], []
    for t in range(100):
        decisions.append(twin.push(event(float(t), t % 7, f"value {t}")))
        held.append((twin.n_exposures, twin.n_values))
    return held, decisions


def test_z_2_values_are_forgotten() -> None:
    """Nobody exposes a value again; the paper evicts its users when somebody does."""
    ours, decisions = remembered(Deviations())
    paper, the_same = remembered(Deviations(values_are_forgotten=False))
    assert max(ours) == (11, 11)
    assert paper[-1] == (100, 100)
    assert decisions == the_same


@settings(max_examples=examples(40), deadline=None, derandomize=True, database=None)
@given(rows=STREAMS, z=st.integers(1, 5), window=WINDOWS)
def test_z_2_what_is_forgotten_changes_no_decision(
    rows: list[Row], z: int, window: dict[str, Any]
) -> None:
    options = {"z": z, "probability": 0.8, **window}
    paper = Deviations(values_are_forgotten=False)
    assert run(rows, **options) == run(rows, deviations=paper, **options)


def test_every_deviation_is_described_and_tested() -> None:
    check_section("z-anonymity", "z", flags_of(Deviations))


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("window", [{}, {"window_rows": 1, "window_seconds": 1.0}])
def test_a_window_is_in_rows_or_in_seconds(window: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="rows or in seconds"):
        NaiveZAnonymity(2, **window)
