"""The twin of dynamicGroup: what each deviation from the paper fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from shoal.spec.criteria import Criterion, DistinctLDiversity, KAnonymity
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Policy
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.algorithms.world import groups
from tests.naive.dynamic_group import Deviations
from tests.naive.measured_twins import twin
from tests.naive.space import n_subjects
from tests.naive.whole_table import NaiveWholeTable

SHOAL = Deviations()


def condense(
    rows: Sequence[tuple[float, str, int]],
    criterion: Criterion,
    deviations: Deviations,
    **knobs: Any,
) -> tuple[NaiveWholeTable, dict[int, set[int]]]:
    """The groups of rows, written as value, subject and sensitive value."""
    schema = Schema("person", [Quasi("x", Range(0, 100))], [Sensitive("s")])
    run = twin("dynamic-group", schema, Policy(criterion), deviations=deviations, **knobs)
    for value, subject, secret in rows:
        run.push([value], subject, [secret])
    return run, groups(run.flush())


def people(run: NaiveWholeTable, found: dict[int, set[int]]) -> list[int]:
    """How many people each group has."""
    return [n_subjects([run.rows[n] for n in members]) for members in found.values()]


def test_dynamic_group_1_groups_count_people() -> None:
    rows = [(0, "a", 0), (1, "a", 0), (90, "b", 0), (91, "b", 0)]
    paper = replace(SHOAL, groups_count_people=False, failing_groups_merge=False)
    run, found = condense(rows, KAnonymity(2), paper)
    assert people(run, found) == [1, 1]
    run, found = condense(rows, KAnonymity(2), replace(paper, groups_count_people=True))
    assert people(run, found) == [2, 2]


def test_dynamic_group_1_cuts_count_people() -> None:
    rows = [(0, "a", 0), (1, "a", 0), (90, "b", 0), (91, "c", 0)]
    paper = replace(SHOAL, groups_count_people=False, failing_groups_merge=False)
    run, found = condense(rows, KAnonymity(2), paper, history=1)
    assert people(run, found) == [1, 2]
    run, found = condense(rows, KAnonymity(2), SHOAL, history=1)
    assert people(run, found) == [3]


@pytest.mark.parametrize("merge", [False, True])
def test_dynamic_group_2_cuts_know_the_rows(merge: bool) -> None:
    rows = [(0, "a", 0), (1, "b", 0), (2, "c", 0), (100, "d", 0)]
    paper = replace(SHOAL, cuts_know_the_rows=False, failing_groups_merge=merge)
    run, found = condense(rows, KAnonymity(2), paper, history=1)
    # Half of the rows should lie above the centroid of 25.75; one does, and drags all along if
    # groups that fail are merged.
    assert people(run, found) == ([4] if merge else [3, 1])
    run, found = condense(rows, KAnonymity(2), SHOAL, history=1)
    assert people(run, found) == [2, 2]


def test_dynamic_group_2_rows_that_are_all_equal_can_not_be_cut_by_statistics() -> None:
    rows = [(5, subject, 0) for subject in "abcd"]
    _, found = condense(rows, KAnonymity(2), replace(SHOAL, cuts_know_the_rows=False), history=1)
    assert found == {0: {0, 1, 2, 3}}
    assert condense(rows, KAnonymity(2), SHOAL, history=1)[1] == {0: {0, 1}, 1: {2, 3}}


def test_dynamic_group_3_failing_groups_merge() -> None:
    rows = [(0, "a", 0), (1, "b", 0), (90, "c", 1), (91, "d", 1)]
    paper = replace(SHOAL, failing_groups_merge=False)
    assert condense(rows, DistinctLDiversity(2), paper)[1] == {0: {0, 1}, 1: {2, 3}}
    assert condense(rows, DistinctLDiversity(2), SHOAL)[1] == {0: {0, 1, 2, 3}}
