"""What can be told with less than everything, and what is told of people."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from shoal.audit import Verdict
from shoal.audit.criteria import moments
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.policy import (
    BasicLikeness,
    DeltaDisclosure,
    EnhancedLikeness,
    KAnonymity,
    Measured,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    Window,
)
from tests.audit.criteria.measured_world import (
    CANCER,
    DISEASES,
    FLU,
    NUMBERS,
    SARS,
    Row,
    run,
    table,
)

T = "t-closeness of disease"
BY_ROWS, BY_SUBJECTS = "worst_group_closeness_by_rows", "worst_group_closeness_by_subjects"
HALVES = [[SARS, CANCER], [CANCER, SARS]]


def judge(rows: list[Row], criterion: Measured | None = None, **options: Any) -> Verdict:
    criterion = criterion or TCloseness(0.0)
    return run(rows, criterion, **options)[f"{criterion.name} of disease"]


# -- without the original --------------------------------------------------------------------------


def test_without_the_original_the_output_gives_the_windows_if_it_has_every_row() -> None:
    assert judge(table(HALVES), original=False).verdict == "kept"
    verdict = judge(table([[SARS], [CANCER]]), original=False)
    assert verdict.verdict == "broken"
    assert verdict.detail.endswith("; closeness 0.5 at worst, by subjects 0.5")
    verdict = judge(table(HALVES, [SARS]), original=False)
    assert verdict.verdict == "unverifiable"
    assert "1 rows arrived and weren't published" in verdict.detail
    assert verdict.figures == {"t": 0.0}


def test_an_output_whose_end_is_missing_gives_no_window() -> None:
    report = run(table(HALVES), TCloseness(0.0), original=False, n_lost=1)
    assert report["conservation"].verdict == "broken"
    assert report[T].verdict == "unverifiable"
    assert "1 rows arrived and weren't published" in report[T].detail


@pytest.mark.parametrize(
    "row",
    [Row(None, 0, 5, 5, outcome="suppressed", root=True), Row(SARS, outcome="group")],
    ids=["suppressed", "without a place"],
)
def test_a_row_whose_value_was_not_published_gives_no_window(row: Row) -> None:
    """It is suppressed and shown as a row of roots, or the trace doesn't say where it is."""
    for criterion in (TCloseness(0.0), BasicLikeness(9.0)):
        verdict = judge([*table(HALVES), row], criterion, original=False, suppressed="root")
        assert verdict.verdict == "unverifiable"
        assert verdict.detail == (
            "what groups are measured against needs the original to be seen: "
            "1 rows arrived and weren't published"
        )


def test_an_original_that_lacks_rows_gives_no_window() -> None:
    verdict = judge(table(HALVES), original_rows=np.array([0, 1, 2, 9]))
    assert verdict.verdict == "unverifiable"
    assert "1 rows that arrived aren't in the original" in verdict.detail


def test_an_original_whose_values_have_no_place_gives_no_window() -> None:
    for value in ("unheard of", None):
        rows = table(HALVES, [value])
        verdict = judge(rows)
        assert verdict.verdict == "unverifiable"
        assert verdict.detail == "1 rows that arrived have no value of disease within its domain"
        assert judge(rows, EnhancedLikeness(9)).verdict == (
            "unverifiable" if value else "kept"  # a value that is missing is one of its own there
        )


def test_a_value_that_was_not_read_but_published_breaks_every_form() -> None:
    rows = table(HALVES)
    rows[0].shown = FLU
    for criterion in (TCloseness(1.0), EnhancedLikeness(9), DeltaDisclosure(9)):
        verdict = judge(rows, criterion)
        assert verdict.verdict == "broken"
        assert "a value that the window lacks: 1 of 2 groups (0)" in verdict.detail


def test_each_group_is_named_for_what_is_wrong_with_it() -> None:
    """Of three windows one lacks a value of its group, one is far from it, and one is like it."""
    rows = [Row(value, 0, 4, 4) for value in (1, 2, 1, 2)]
    rows += [Row(3, 1, 8, 8), Row(3, 1, 8, 8), Row(4, published=8), Row(4, published=8)]
    rows += [Row(value, 2, 12, 12) for value in (5, 6, 5, 6)]
    rows[0].shown = 9
    options: dict[str, Any] = {"window": Window(4, advance=4), "domain": NUMBERS}
    verdict = judge(rows, TCloseness(0.1), **options)
    assert verdict.detail == (
        "a value that the window lacks: 1 of 3 groups (0); "
        "farther than 0.1 from the window: 1 of 3 groups (1)"
    )
    assert verdict.figures["n_groups_beyond"] == 2
    assert verdict.figures["n_windows"] == 3


def test_groups_are_measured_in_another_order_than_their_windows() -> None:
    """Group 0 left last, and each is like the window of its own time only."""
    rows = [Row(value, 1, 4, 4) for value in (1, 2, 1, 2)]
    rows += [Row(value, 0, 8, 8) for value in (3, 3, 3, 4)]
    options: dict[str, Any] = {"window": Window(4, advance=4), "domain": NUMBERS}
    assert judge(rows, TCloseness(0.0), **options).verdict == "kept"


@pytest.mark.parametrize("cells", [1, 5, 10, 100])
def test_groups_are_named_however_many_are_measured_at_a_time(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments, "_CELLS", cells)
    rows = table([*HALVES, [SARS, SARS], *HALVES, [CANCER, CANCER]])
    assert judge(rows).detail.startswith("farther than 0 from the window: 2 of 6 groups (2, 5)")
    rows[8].shown = FLU
    rows[9].shown = FLU
    assert judge(rows).detail.startswith("a value that the window lacks: 1 of 6 groups (4); ")


def test_where_nothing_arrived_a_group_shows_what_its_window_lacks() -> None:
    """A forged trace: rows were published that never arrived, and measured against nothing."""
    rows = [Row(SARS, 0, 0, 0, never_arrived=True), Row(CANCER, 0, 0, 0, never_arrived=True)]
    for criterion in (TCloseness(1.0), BasicLikeness(9.0), DeltaDisclosure(9.0)):
        verdict = judge(rows, criterion)
        assert verdict.verdict == "broken"
        assert verdict.detail == "a value that the window lacks: 1 of 1 group (0)"
        assert verdict.figures["n_windows"] == 1


def test_a_trace_that_does_not_fit_is_no_evidence() -> None:
    rows = table(HALVES)
    rows[0].seq = 77
    verdict = judge(rows)
    assert verdict.verdict == "unverifiable"
    assert "doesn't fit" in verdict.detail


def test_a_trace_without_the_order_of_arrival_is_no_evidence() -> None:
    rows = table(HALVES)
    rows[0].arrived = 1
    verdict = judge(rows)
    assert verdict.verdict == "unverifiable"
    assert "in which order rows arrived" in verdict.detail


def test_several_shards_have_no_window_in_common() -> None:
    rows = table(HALVES)
    for row in rows:
        row.shard = 0
    assert judge(rows).verdict == "kept", "one shard is a run on its own"
    rows[3].shard = 1
    for criterion in (TCloseness(0.0), BasicLikeness(1.0), DeltaDisclosure(1.0)):
        verdict = judge(rows, criterion)
        assert verdict.verdict == "unverifiable"
        assert "decided in several shards" in verdict.detail


def test_a_column_that_is_not_published_cannot_be_judged() -> None:
    verdict = judge(table(HALVES), drop=("disease",))
    assert verdict.verdict == "unverifiable"
    assert "column disease isn't in the output" in verdict.detail


# -- without a trace -------------------------------------------------------------------------------


def test_a_stream_cant_be_audited_without_a_trace() -> None:
    verdict = judge(table(HALVES), window=Window(4), trace=False)
    assert verdict.verdict == "unverifiable"
    assert "without a trace" in verdict.detail


@pytest.mark.parametrize("each_row", [True, False])
def test_of_a_table_boxes_are_enough_if_every_row_was_published(each_row: bool) -> None:
    """Rows are counted, so it doesn't matter whose they are."""
    verdict = judge(table(HALVES), trace=False, each_row=each_row)
    assert verdict.verdict == "kept"
    assert verdict.figures["n_boxes"] == 2
    assert verdict.figures["worst_box_closeness_by_rows"] == 0.0
    assert verdict.figures["worst_box_closeness_by_subjects"] == (0.0 if each_row else None)
    assert judge(table([[SARS], [CANCER]]), trace=False).verdict == "broken"


def test_groups_that_look_alike_are_one_for_an_outsider() -> None:
    rows = table([[SARS], [CANCER]])
    rows[0].place = rows[1].place = 3
    assert judge(rows).verdict == "broken"
    assert judge(rows, trace=False).verdict == "kept"


def test_without_a_trace_rows_may_have_been_suppressed_unseen() -> None:
    for options in ({}, {"original": False}):
        verdict = judge(table(HALVES, [SARS]), trace=False, **options)
        assert verdict.verdict == "unverifiable"
        assert "nothing is wrong with 2 boxes" in verdict.detail
        assert "which rows were suppressed can't be told" in verdict.detail
        assert verdict.figures["worst_box_closeness_by_rows"] == 0.0
    verdict = judge(table([[SARS], [CANCER]]), trace=False, original=False)
    assert verdict.verdict == "unverifiable"
    assert "farther than 0 from the window: 2 of 2 boxes" in verdict.detail


def test_where_suppressed_rows_are_shown_it_is_seen_that_there_are_none() -> None:
    options = {"trace": False, "original": False, "suppressed": "root"}
    assert judge(table(HALVES), **options).verdict == "kept"
    rows = table(HALVES)
    rows.append(Row(None, 0, 5, 5, root=True))
    assert judge(rows, **options).verdict == "unverifiable"


def test_an_original_of_as_many_rows_is_what_boxes_are_measured_against() -> None:
    rows = table([[SARS, CANCER], [SARS, FLU]])
    rows[3].shown = CANCER
    verdict = judge(rows, TCloseness(0.1), trace=False)
    assert verdict.verdict == "broken"
    assert judge(rows, TCloseness(0.1), trace=False, original=False).verdict == "unverifiable"


def test_where_what_is_missing_matches_anything_boxes_are_no_groups() -> None:
    rows = table(HALVES)
    rows[0].gap = True
    verdict = judge(rows, trace=False, missing="maybe")
    assert verdict.verdict == "unverifiable"
    assert "which rows are a group can't be told" in verdict.detail
    assert judge(rows, missing="maybe").verdict == "kept"


def test_a_table_whose_values_have_no_place_cannot_be_measured() -> None:
    verdict = judge(table([[SARS, "?"]]), trace=False)
    assert verdict.verdict == "unverifiable"
    assert "no value of disease within its domain" in verdict.detail


def test_an_empty_output_breaks_nothing() -> None:
    verdict = judge(table([], [SARS, CANCER]))
    assert verdict.verdict == "kept"
    assert verdict.figures["n_groups"] == 0
    assert verdict.figures[BY_ROWS] is None


# -- people ----------------------------------------------------------------------------------------


def test_the_repetitions_of_one_person_count_once_beside() -> None:
    """Three rows of one person with SARS: by rows 3 to 1 in group and table, by people 1 to 1."""
    rows = table([[SARS, SARS, SARS, CANCER]], [SARS, CANCER])
    for row in rows[:3]:
        row.subject = "one"
    verdict = judge(rows, TCloseness(1.0), each_row=False)
    assert verdict.figures[BY_ROWS] == pytest.approx(3 / 4 - 4 / 6)
    assert verdict.figures[BY_SUBJECTS] == 0.0
    assert "closeness 0.08333 at worst, by subjects 0" in verdict.detail
    each = judge(rows, TCloseness(1.0))
    assert each.figures[BY_SUBJECTS] == each.figures[BY_ROWS]


def test_figures_by_people_are_no_verdict() -> None:
    rows = table([[SARS, SARS, CANCER, CANCER], [SARS, CANCER]])
    rows[0].subject = rows[1].subject = "one"
    verdict = judge(rows, each_row=False)
    assert verdict.verdict == "kept"
    by_people = verdict.figures[BY_SUBJECTS]
    assert by_people is not None
    assert by_people > 0


def test_people_are_counted_once_in_each_window() -> None:
    """The person of rows 0 and 2 counts in the second window again, for row 0 has gone."""
    rows = [Row(1, 0, 2, 2), Row(2, 0, 2, 2), Row(1, 1, 4, 4), Row(2, 1, 4, 4)]
    rows[0].subject = rows[2].subject = "one"
    verdict = judge(rows, window=Window(2), domain=NUMBERS, each_row=False)
    assert verdict.figures[BY_SUBJECTS] == 0.0


# -- all together ----------------------------------------------------------------------------------


def test_each_attribute_has_its_own_verdict() -> None:
    rows = table(HALVES)
    for row, other in zip(rows, (1, 1, 2, 2), strict=True):
        row.second = other
    report = run(rows, TCloseness(0.4), second=NUMBERS)
    assert report[T].verdict == "kept"
    assert report["t-closeness of other"].verdict == "broken"
    report = run(rows, TCloseness(0.4, attribute="disease"), second=NUMBERS)
    with pytest.raises(KeyError):
        report["t-closeness of other"]


def test_several_criteria_have_a_verdict_each() -> None:
    rows = table(HALVES)
    report = run(rows, TCloseness(0.0), SemanticLikeness(1), DeltaDisclosure(0.1), KAnonymity(3))
    names = {v.name: v.verdict for v in report.verdicts}
    assert names[T] == names["semantic beta-likeness of disease"] == "kept"
    assert names["delta-disclosure of disease"] == "kept"
    assert names["k-anonymity"] == "broken"


def test_a_missing_value_is_a_value_where_values_are_only_distinguished() -> None:
    rows = table([[None, "x"], ["x", None]])
    for criterion in (BasicLikeness(0.1), EnhancedLikeness(0.1), DeltaDisclosure(0.1)):
        assert judge(rows, criterion, domain=None).verdict == "kept"
        assert judge(rows, criterion, domain=Hierarchy.flat(["x"])).verdict == "kept"
    rows = table([[None, "x"], ["x"]])
    assert judge(rows, BasicLikeness(0.1), domain=None).verdict == "broken"


def test_no_value_of_a_person_is_shown() -> None:
    rows = table([[SARS], [CANCER, FLU]], [None, "CANARY"])
    criteria = [TCloseness(0.1), SemanticLikeness(0.1), DeltaDisclosure(0.1), BasicLikeness(0.1)]
    given = [run(rows, *criteria), run(rows[:3], *criteria), run(rows[:3], *criteria, trace=False)]
    given.append(run(table([[123], [456]]), RangeLikeness(0.1, epsilon=5), domain=NUMBERS))
    text = "".join(str(r) + repr(r) + json.dumps(r.as_dict(), allow_nan=False) for r in given)
    assert not [c for c in (*DISEASES.leaves, "CANARY", "123", "456") if c in text]
