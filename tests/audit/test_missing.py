"""What became of missing values: each meaning of them, and each way to break it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from shoal.audit.columns import is_missing
from shoal.audit.labels import read_side
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Quasi
from tests.audit.world import EACH_ROW, World, world

K = "k-anonymity"
L = "distinct l-diversity of disease"


def lack(w: World, row: int, *names: str) -> None:
    """A row of the input lacks something."""
    for name in names:
        w.original[row][name] = None


@pytest.fixture
def maybe() -> World:
    """One of group 0 lacks its city, one of group 1 its age, a reuse both, group 2 all cities."""
    w = world()
    w.missing = "maybe"
    gaps = {1: ["city"], 4: ["age"], 5: ["age", "city"], 9: ["city"], 10: ["city"]}
    for row, names in gaps.items():
        lack(w, row, *names)
        w.shown(row).update(dict.fromkeys(names))
    return w


@pytest.fixture
def extended() -> World:
    """One of group 0 lacks its city, so that all of the group are at the root; so does a reuse."""
    w = world()
    w.missing = "extended"
    lack(w, 1, "city")
    lack(w, 5, "city")
    for row in (0, 1, 2, 5):
        w.shown(row)["city"] = "Any"
    return w


def verdicts(w: World, **given: bool) -> dict[str, str]:
    return {v.name: v.verdict for v in w.report(**given).verdicts}


def test_both_are_kept(maybe: World, extended: World) -> None:
    for w, n in ((maybe, 6), (extended, 2)):
        report = w.report()
        assert report.verdict == "kept", str(report)
        assert report["missing"].figures["n_missing"] == n


def test_quarantine_leaves_it_to_cover() -> None:
    w = world()
    assert "missing" not in verdicts(w)
    for nothing in (None, "", "  "):
        for name in ("age", "city"):
            w = world()
            w.original[5][name] = nothing
            assert w.broken() == {"cover"}


# -- maybe -----------------------------------------------------------------------------------------


def a_gap_is_filled(w: World) -> None:
    w.shown(4)["age"] = "[40, 50]"


def a_gap_of_a_reuse_is_filled(w: World) -> None:
    w.shown(5)["city"] = "North"


def a_value_is_lost(w: World) -> None:
    w.shown(0)["age"] = None


def a_group_has_two_labels(w: World) -> None:
    w.shown(0)["city"] = "Oslo"


def a_reuse_has_another_label(w: World) -> None:
    w.original[5]["age"] = "22"
    w.shown(5)["age"] = "[20, 25]"


def a_reuse_has_what_its_group_lacks(w: World) -> None:
    w.append({"age": "[40, 50]", "city": "Rome"}, group=2, outcome="reuse")
    w.original[-1].update(age="44", city="Rome")
    w.delay = None


def a_value_outside_its_box(w: World) -> None:
    w.original[1]["age"] = "31"


def a_group_of_one_subject(w: World) -> None:
    """It maybe-matches many rows of others, but they left at other times."""
    w.line(10)["subject"] = w.original[10]["person"] = "ida"


def a_group_of_one_value(w: World) -> None:
    w.shown(9)["disease"] = w.original[9]["disease"] = "flu"


def test_one_row_shows_what_its_group_lacks_in_whatever_place(maybe: World) -> None:
    """Of group 0 only row 1 is in the output, as its first row; it lacks its city."""
    for row in (0, 2):
        maybe.line(row)["seq"] = None
    maybe.shown(5)["city"] = "North"
    words = "1 reuses have a label where the group they join has none"
    assert maybe.report()["grouping"].detail == words


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (a_gap_is_filled, {"missing"}),
        (a_gap_of_a_reuse_is_filled, {"missing"}),
        (a_value_is_lost, {"missing"}),
        (a_group_has_two_labels, {"grouping"}),
        (a_reuse_has_another_label, {"grouping"}),
        (a_reuse_has_what_its_group_lacks, {"grouping"}),
        (a_value_outside_its_box, {"cover"}),
        (a_group_of_one_subject, {K, L}),
        (a_group_of_one_value, {L}),
    ],
)
def test_maybe_is_broken(maybe: World, change: Callable[[World], None], expected: set[str]) -> None:
    change(maybe)
    assert maybe.broken() == expected


def test_a_missing_original_is_reported_in_words(maybe: World) -> None:
    maybe.shown(4)["age"] = "[40, 50]"
    maybe.shown(0)["age"] = None
    assert maybe.report()["missing"].detail == (
        "in 1 rows column age has a label, and the original no value; "
        "in 1 rows column age has no label, and the original a value"
    )


def test_suppressed_rows_at_the_root_have_no_gaps(maybe: World) -> None:
    maybe.options["suppressed"] = "root"
    lack(maybe, 6, "age")
    root = {"age": "[0, 99]", "city": "Any", "disease": None, "visits": None}
    maybe.line(6)["seq"] = len(maybe.published)
    maybe.published.append(root)
    assert maybe.report().verdict == "kept"
    root["age"] = None
    assert maybe.broken() == {"suppression"}


def test_without_a_trace_groups_are_unknown(maybe: World) -> None:
    for schema in (maybe.schema, EACH_ROW):
        maybe.schema = schema
        found = verdicts(maybe, trace=False)
        assert {found[name] for name in (K, L, "missing")} == {"unverifiable"}
    k = maybe.report(trace=False)[K]
    assert k.detail.startswith("every row matches at least 2 rows, but which rows are a group")
    assert k.figures["fewest_matching_rows"] == 4
    assert not maybe.report(trace=False)[L].detail.startswith("the rows of every box")


@pytest.mark.parametrize(("name", "row"), [("age", 4), ("city", 1)])
def test_gaps_in_one_column_are_enough_for_boxes_not_to_be_groups(name: str, row: int) -> None:
    w = world()
    w.missing, w.schema = "maybe", EACH_ROW
    w.shown(row)[name] = None
    assert verdicts(w, trace=False)[K] == "unverifiable"


def test_without_gaps_in_the_output_boxes_are_groups_again() -> None:
    w = world()
    w.missing, w.schema = "maybe", EACH_ROW
    assert verdicts(w, trace=False)[K] == "kept"


def test_a_row_that_too_few_match_is_in_no_group(maybe: World) -> None:
    maybe.shown(5)["age"] = "[20, 30]"
    maybe.shown(3)["age"] = "[40, 45]"
    assert K not in maybe.broken(trace=False)
    maybe.shown(3)["city"] = "Bari"
    assert K in maybe.broken(trace=False)


def test_a_trace_that_doesnt_fit_proves_nothing(maybe: World) -> None:
    maybe.trace.remove(maybe.line(0))
    found = verdicts(maybe)
    assert found["missing"] == found[K] == "unverifiable"
    maybe.shown(4)["age"] = "[40, 50]"
    assert verdicts(maybe)["missing"] == "broken"


def test_what_is_missing_needs_trace_and_original(maybe: World, extended: World) -> None:
    for w in (maybe, extended):
        for given in ({"trace": False}, {"original": False}):
            assert verdicts(w, **given)["missing"] == "unverifiable"


# -- extended --------------------------------------------------------------------------------------


def nobody_is_at_the_root(w: World) -> None:
    for row in (0, 1, 2, 5):
        w.shown(row)["city"] = "North"


def only_who_lacks_it_is_at_the_root(w: World) -> None:
    for row in (0, 2):
        w.shown(row)["city"] = "North"


def one_who_reuses_is_not_at_the_root(w: World) -> None:
    w.shown(5)["city"] = "North"


def a_cell_is_null(w: World) -> None:
    w.shown(1)["city"] = None


def another_value_is_outside_its_box(w: World) -> None:
    w.original[1]["age"] = "31"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (nobody_is_at_the_root, {"missing"}),
        (only_who_lacks_it_is_at_the_root, {"missing", "grouping", L}),
        (one_who_reuses_is_not_at_the_root, {"missing", "grouping", K, L}),
        (a_cell_is_null, {"missing", "grouping", "shape", K, L}),
        (another_value_is_outside_its_box, {"cover"}),
    ],
)
def test_extended_is_broken(
    extended: World, change: Callable[[World], None], expected: set[str]
) -> None:
    change(extended)
    assert extended.broken() == expected


def test_nulls_are_found_without_a_trace(extended: World) -> None:
    extended.shown(1)["city"] = ""
    verdict = extended.report(trace=False, original=False)["missing"]
    assert verdict.verdict == "broken"
    assert verdict.detail == "column city has no label in 1 rows"


def test_whole_groups_are_counted(extended: World) -> None:
    only_who_lacks_it_is_at_the_root(extended)
    detail = extended.report()["missing"].detail
    assert detail == "in 1 groups column city isn't at its root, though a member lacks it"


def test_a_column_that_is_not_there_is_a_matter_of_shape(extended: World) -> None:
    for row in extended.published:
        del row["city"]
    assert "missing" not in extended.broken()
    assert "shape" in extended.broken()


# -- labels ----------------------------------------------------------------------------------------

AGE = Quasi("age", Range(0, 99, step=5))


@pytest.mark.parametrize(
    ("numeric", "columns", "gaps"),
    [
        ("range", {"age": ["[0, 5]", None, ""]}, [False, True, True]),
        ("bounds", {"age_min": [0, None], "age_max": [5, None]}, [False, True]),
        ("bounds", {"age_min": ["0", ""], "age_max": ["5", ""]}, [False, True]),
        ("midpoint", {"age": [2.5, None]}, [False, True]),
        ("range", {"age": pa.nulls(2)}, [True, True]),
        ("bounds", {"age_min": pa.nulls(2), "age_max": pa.nulls(2)}, [True, True]),
        ("midpoint", {"age": pa.nulls(2)}, [True, True]),
    ],
)
def test_a_label_may_be_missing(numeric: Any, columns: dict[str, Any], gaps: list[bool]) -> None:
    side = read_side(pa.table(columns), AGE, numeric, with_gaps=True)
    assert side is not None
    assert (side.gap.tolist(), side.flaws) == (gaps, [])
    strict = read_side(pa.table(columns), AGE, numeric)
    assert strict is not None
    assert strict.flaws
    assert not strict.gap.any()


def test_half_of_the_bounds_is_no_gap() -> None:
    table = pa.table({"age_min": [0, None], "age_max": [5, 5]})
    side = read_side(table, AGE, "bounds", with_gaps=True)
    assert side is not None
    assert side.flaws == ["column age has no bounds in 1 rows"]


def test_what_counts_as_missing() -> None:
    assert is_missing(pa.array([1.0, None, float("nan")])).tolist() == [False, True, False]
    assert is_missing(pa.array([b"x", b"", None])).tolist() == [False, True, True]
