"""Every way to break a promise that we could think of is found, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from shoal.spec.policy import (
    Criterion,
    Delay,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    RecursiveLDiversity,
)
from tests.audit.world import World

K = "k-anonymity"
L = "distinct l-diversity of disease"


# -- one thing wrong at a time ---------------------------------------------------------------------


def a_subject_counted_twice(w: World) -> None:
    """Two rows of group 1 are of one person; group 2 in the same box can't make up for it."""
    w.line(4)["subject"] = w.original[4]["person"] = "dan"


def a_small_group_in_a_large_box(w: World) -> None:
    w.line(9)["group"] = 3


def a_small_box(w: World) -> None:
    w.append({"age": "[20, 25]", "city": "Oslo"}, group=3)


def all_values_alike(w: World) -> None:
    for row in (9, 10):
        w.shown(row)["disease"] = w.original[row]["disease"] = "flu"


def values_are_null(w: World) -> None:
    for row in (9, 10):
        w.shown(row)["disease"] = w.original[row]["disease"] = None


def late_by_a_row(w: World) -> None:
    w.line(6)["published"] = 11


def late_by_a_second(w: World) -> None:
    w.line(5)["published_s"] = 91.0


def held_for_too_many_rows(w: World) -> None:
    """The run went on for more rows after a held row came than it could be held for."""
    for _ in range(4):
        w.append({}, group=0, outcome="reuse")
    w.delay = Delay(rows=4)


def held_for_too_many_seconds(w: World) -> None:
    for _ in range(4):
        w.append({}, group=0, outcome="reuse")
    w.delay = Delay(seconds=40.0)


def decided_before_it_came(w: World) -> None:
    w.line(5)["published"] = 4


def decided_before_its_time(w: World) -> None:
    w.line(5)["published_s"] = 49.0


def no_moment(w: World) -> None:
    w.line(6)["published"] = None


def wrong_arrival(w: World) -> None:
    """A trace that moves an arrival could hide that the row was late."""
    w.line(6)["arrived"] = 7


def quarantined_but_arrived(w: World) -> None:
    w.line(7)["arrived"] = 7


def two_rows_in_one_place(w: World) -> None:
    w.append({}, group=0, outcome="reuse")
    w.published.pop()
    w.trace[-1]["seq"] = 0


def a_place_of_nobody(w: World) -> None:
    w.append({}, group=0, outcome="reuse")
    w.trace[-1]["seq"] += 1


def a_line_without_a_row(w: World) -> None:
    w.trace.append({**w.line(8), "row": None, "arrived": 10})


def doubled_in_the_output(w: World) -> None:
    w.published.append(dict(w.published[0]))


def published_twice(w: World) -> None:
    """The same row again, in the same box."""
    w.published.append(dict(w.published[0]))
    w.trace.append({**w.trace[0], "seq": len(w.published) - 1, "outcome": "reuse"})


def published_in_two_boxes(w: World) -> None:
    """Row 1 has its own box, and a second one in a new group: their intersection tells more."""
    box = {"age": "[20, 30]", "city": "Any"}
    w.append({**box, "disease": "flu"}, group=3)
    moment = {name: w.trace[-1][name] for name in ("published", "published_s")}
    w.published.append({**w.shown(1), **box})
    w.trace.append({**w.line(1), **moment, "group": 3, "seq": len(w.published) - 1})
    w.delay = None


def lost_from_the_output(w: World) -> None:
    w.append({}, group=0, outcome="reuse")
    w.published.pop()


def lost_from_the_trace(w: World) -> None:
    w.trace.remove(w.line(6))


def lost_at_the_end(w: World) -> None:
    w.original.append(dict(w.original[0]))


def called_published_but_absent(w: World) -> None:
    w.append({}, group=0, outcome="reuse")
    w.published.pop()
    w.trace[-1]["seq"] = None


def unknown_outcome(w: World) -> None:
    w.line(8)["outcome"] = "forgotten"


def quarantined_in_the_output(w: World) -> None:
    w.append({}, outcome="quarantined", group=None, arrived=None)


def other_quarantine(w: World) -> None:
    w.options["n_quarantined"] = 2


def a_number_outside_its_box(w: World) -> None:
    w.original[5]["age"] = "31"


def a_category_outside_its_box(w: World) -> None:
    w.original[3]["city"] = "Bari"


def an_original_that_is_missing(w: World) -> None:
    w.original[3]["city"] = None


def another_sensitive_value(w: World) -> None:
    w.original[0]["disease"] = "gout"


def another_kept_value(w: World) -> None:
    w.original[0]["visits"] = 77


def another_subject(w: World) -> None:
    w.original[0]["person"] = "zoe"


def reuse_in_another_box(w: World) -> None:
    """The box is known and large enough; it isn't that of the group the row claims to join."""
    w.shown(5).update(age="[40, 50]", city="Rome")
    w.original[5].update(age="42", city="Rome")


def reuse_of_no_group(w: World) -> None:
    w.line(5)["group"] = 99


def reuse_before_its_group(w: World) -> None:
    w.line(5)["group"] = 2
    w.shown(5).update(age="[40, 50]", city="Rome")
    w.original[5].update(age="42", city="Rome")


def a_group_with_two_boxes(w: World) -> None:
    for disease in ("flu", "cold"):
        box = {"age": "[20, 30]", "city": "Any", "disease": disease}
        w.append(box, group=0, published=2, published_s=20.0)
    w.delay = None


def a_group_in_two_parts(w: World) -> None:
    w.line(3)["published"] = 5


def published_without_group(w: World) -> None:
    w.line(5)["group"] = None


def suppressed_with_group(w: World) -> None:
    w.line(6)["group"] = 1


def suppressed_but_shown(w: World) -> None:
    w.append({}, outcome="suppressed", group=None)


def extra_column(w: World) -> None:
    for row in w.published:
        row["note"] = "x"


def subject_column(w: World) -> None:
    for i, row in enumerate(w.published):
        row["person"] = f"p{i}"


def time_column(w: World) -> None:
    for row in w.published:
        row["at"] = 1.0


def subject_in_disguise(w: World) -> None:
    for line in w.trace:
        if line["seq"] is not None:
            w.published[line["seq"]]["visits"] = line["subject"]
    for row in w.original:
        row["visits"] = row["person"]


def missing_kept_column(w: World) -> None:
    for row in w.published:
        del row["visits"]


def columns_in_another_order(w: World) -> None:
    w.published = [{"city": row["city"], **row} for row in w.published]


BREAKS: list[tuple[Callable[[World], None], set[str]]] = [
    (a_subject_counted_twice, {K, L}),
    (a_small_group_in_a_large_box, {K, L}),
    (a_small_box, {K, L}),
    (all_values_alike, {L}),
    (values_are_null, {L}),
    (late_by_a_row, {"delay"}),
    (late_by_a_second, {"delay"}),
    (held_for_too_many_rows, {"delay"}),
    (held_for_too_many_seconds, {"delay"}),
    (decided_before_it_came, {"delay", "order"}),
    (decided_before_its_time, {"delay"}),
    (no_moment, {"delay"}),
    (wrong_arrival, {"conservation"}),
    (quarantined_but_arrived, {"conservation"}),
    (two_rows_in_one_place, {"conservation"}),
    (a_place_of_nobody, {"conservation"}),
    (a_line_without_a_row, {"conservation"}),
    (doubled_in_the_output, {"conservation"}),
    (published_twice, {"conservation", "order"}),
    (published_in_two_boxes, {"conservation", "cover"}),
    (lost_from_the_output, {"conservation"}),
    (lost_from_the_trace, {"conservation"}),
    (lost_at_the_end, {"conservation"}),
    (called_published_but_absent, {"conservation"}),
    (unknown_outcome, {"conservation"}),
    (quarantined_in_the_output, {"conservation"}),
    (other_quarantine, {"conservation"}),
    (a_number_outside_its_box, {"cover"}),
    (a_category_outside_its_box, {"cover"}),
    (an_original_that_is_missing, {"cover"}),
    (another_sensitive_value, {"cover"}),
    (another_kept_value, {"cover"}),
    (another_subject, {"cover"}),
    (reuse_in_another_box, {"grouping"}),
    (reuse_of_no_group, {"grouping"}),
    (reuse_before_its_group, {"grouping"}),
    (a_group_with_two_boxes, {"grouping", "order"}),
    (a_group_in_two_parts, {"grouping"}),
    (published_without_group, {"grouping"}),
    (suppressed_with_group, {"grouping"}),
    (suppressed_but_shown, {"suppression"}),
    (extra_column, {"secrecy"}),
    (subject_column, {"secrecy"}),
    (time_column, {"secrecy"}),
    (subject_in_disguise, {"secrecy"}),
    (missing_kept_column, {"shape"}),
    (columns_in_another_order, {"shape"}),
]


@pytest.mark.parametrize(("change", "expected"), BREAKS, ids=[b[0].__name__ for b in BREAKS])
def test_each_break_is_found_and_nothing_else(
    world: World, change: Callable[[World], None], expected: set[str]
) -> None:
    change(world)
    assert world.broken() == expected
    assert world.report().exit_code == 1


# -- nothing of a person in what the audit says ----------------------------------------------------

CANARIES = {"ann", "bob", "flu", "cold", "Oslo", "Turku", "North", "[20, 30]", "zoe", "gout"}
ALL_CRITERIA: list[Criterion] = [
    KAnonymity(3),
    DistinctLDiversity(3),
    EntropyLDiversity(3),
    RecursiveLDiversity(2, c=0.5),
]


@pytest.mark.parametrize("change", [b[0] for b in BREAKS], ids=[b[0].__name__ for b in BREAKS])
def test_no_value_of_a_person_is_ever_shown(world: World, change: Callable[[World], None]) -> None:
    change(world)
    world.criteria = ALL_CRITERIA
    report = world.report()
    text = str(report) + repr(report) + json.dumps(report.as_dict(), allow_nan=False)
    assert not [canary for canary in CANARIES if canary in text]


@pytest.mark.parametrize("column", ["age", "city", "disease", "visits", "person"])
def test_what_cannot_be_read_is_not_shown_either(world: World, column: str) -> None:
    for table in (world.published, world.original):
        for row in table:
            if column in row:
                row[column] = "CANARY"
    report = world.report()
    assert "CANARY" not in str(report) + repr(report)
