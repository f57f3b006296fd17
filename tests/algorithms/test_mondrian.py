"""Mondrian for whole tables, under each criterion that its variants enforce."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from shoal import (
    BasicLikeness,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    Policy,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
)
from shoal.algorithms import DMondrian, LMondrian, Mondrian, TMondrian, check_support, find
from shoal.engine.base import Outcome
from shoal.errors import ParameterError, UnsupportedError
from shoal.spec.criteria import BetaLikeness, Criterion
from shoal.spec.hierarchy import Hierarchy, Range
from tests.algorithms.tables import MIXED, SQUARE, groups, keeps_promises, mixed, publish
from tests.engine.kernels.tables import Table

WIDEST: dict[str, Any] = {"side": "widest", "cut": "hierarchy", "retry": False}
test_drawn_tables_keep_the_promise_of_mondrian = keeps_promises(Mondrian)
test_drawn_tables_keep_the_promise_of_the_widest = keeps_promises(partial(TMondrian, **WIDEST))
test_drawn_tables_keep_the_promise_of_t_mondrian = keeps_promises(TMondrian)
test_drawn_tables_keep_the_promise_of_l_mondrian = keeps_promises(LMondrian)
test_drawn_tables_keep_the_promise_of_d_mondrian = keeps_promises(DMondrian)


def test_the_wide_side_is_cut_where_people_are_all_that_counts() -> None:
    assert mixed(Mondrian(), KAnonymity(2)) == [[0, 1], [2, 3]]


def test_diversity_is_a_condition_of_a_cut() -> None:
    assert mixed(Mondrian(), DistinctLDiversity(2, "ill")) == [[0, 2], [1, 3]]


def test_the_loss_is_what_is_cut_by() -> None:
    # Two leaves of ten lose 0.2 by one measure and 1/9 by the other; the number loses 0.15.
    ten = Hierarchy.from_dict({"*": {"a": list("bc"), "d": list("efghijkl")}})
    rows = [
        ((x, leaf), n, 0, 1.0)
        for n, (x, leaf) in enumerate([(0.0, 0.0), (15.0, 0.0), (0.0, 1.0), (15.0, 1.0)])
    ]
    table = Table([Range(0, 100), ten], [KAnonymity(2)], rows)
    assert groups(publish(Mondrian(), table)) == [[0, 1], [2, 3]]
    assert groups(publish(Mondrian(loss="lm"), table)) == [[0, 2], [1, 3]]


def test_a_table_that_can_not_leave_is_suppressed() -> None:
    decided = publish(Mondrian(), Table(SQUARE, [KAnonymity(5)], MIXED))
    assert set(decided.outcomes) == {Outcome.suppressed}


def test_an_empty_table_is_no_groups() -> None:
    assert len(publish(Mondrian(), Table(SQUARE, [KAnonymity(2)], [])).rows) == 0


def test_a_gap_is_published_as_the_whole_domain() -> None:
    rows = [((x,), n, 0, 1.0) for n, x in enumerate([0.0, 10.0, np.nan, 100.0])]
    table = Table([Range(0, 100)], [KAnonymity(2)], rows, missing="extended")
    decided = publish(Mondrian(), table)
    assert decided.lo.tolist() == [[0], [0]]
    assert decided.hi.tolist() == [[10], [100]]
    assert decided.box_gaps.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy(KAnonymity(2), TCloseness(0.2), window="all"), "can't enforce t-closeness"),
        (Policy(KAnonymity(2), delay=Delay(rows=10)), "publishes a whole table at once"),
        (Policy(KAnonymity(2), window="all", missing="maybe"), 'missing values that are "maybe"'),
    ],
)
def test_what_it_can_not_keep_is_refused(policy: Policy, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        Mondrian().check(policy)


# -- variants with a criterion of their own --------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "criterion"),
    [
        (TMondrian(), TCloseness(0.2, attribute="ill")),
        (LMondrian(), BasicLikeness(0.9, attribute="ill")),
        (DMondrian(), DeltaDisclosure(5.0, attribute="ill")),
    ],
)
def test_a_cut_that_discloses_too_much_isnt_made(variant: Mondrian, criterion: Criterion) -> None:
    assert mixed(variant, KAnonymity(2), criterion) == [[0, 2], [1, 3]]


@pytest.mark.parametrize(
    ("variant", "criterion"),
    [
        (TMondrian(), TCloseness(0.25, attribute="ill")),
        (LMondrian(), BasicLikeness(1.0, attribute="ill")),
        (DMondrian(), DeltaDisclosure(5.0, attribute="pay")),
    ],
)
def test_a_promise_that_is_easily_kept_changes_nothing(
    variant: Mondrian, criterion: Criterion
) -> None:
    assert mixed(variant, KAnonymity(2), criterion) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("criterion", "cuts"),
    [
        # A half with one of two illnesses is at 1/2, √½ and √0.3113 from the table.
        (VariationalCloseness(0.5, attribute="ill"), [[0, 1], [2, 3]]),
        (VariationalCloseness(0.49, attribute="ill"), [[0, 2], [1, 3]]),
        (EuclideanCloseness(0.708, attribute="ill"), [[0, 1], [2, 3]]),
        (EuclideanCloseness(0.707, attribute="ill"), [[0, 2], [1, 3]]),
        (JensenShannonCloseness(0.558, attribute="ill"), [[0, 1], [2, 3]]),
        (JensenShannonCloseness(0.557, attribute="ill"), [[0, 2], [1, 3]]),
    ],
)
def test_all_forms_of_closeness_are_kept(criterion: Criterion, cuts: list[list[int]]) -> None:
    assert mixed(TMondrian(), KAnonymity(2), criterion) == cuts


@pytest.mark.parametrize("sabre", ["sabre-ak", "sabre-knn", "sabre-w"])
@pytest.mark.parametrize(
    "criterion", [EuclideanCloseness(0.2), VariationalCloseness(0.2), JensenShannonCloseness(0.2)]
)
def test_sabre_whose_buckets_are_of_one_distance_refuses_the_others(
    sabre: str, criterion: Criterion
) -> None:
    with pytest.raises(UnsupportedError, match=f"can't enforce {criterion.name}") as refused:
        check_support(find(sabre)(), Policy(criterion, window="all"))
    assert "t-mondrian" in str(refused.value)


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"side": "longest"}, "side: must be one of loss, widest"),
        ({"cut": "tree"}, "cut: must be one of code, hierarchy"),
        ({"retry": 1}, "retry: must be true or false"),
    ],
)
def test_a_wrong_knob_is_refused(knobs: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Mondrian(**knobs)


def test_knobs_choose_among_the_cuts() -> None:
    criteria = KAnonymity(2), TCloseness(0.2, attribute="ill")
    assert mixed(TMondrian(), *criteria) == [[0, 2], [1, 3]]
    assert mixed(TMondrian(retry=False), *criteria) == [[0, 1, 2, 3]]


@pytest.mark.parametrize("variant", [TMondrian(), LMondrian(), DMondrian()])
def test_without_its_criterion_a_variant_is_mondrian(variant: Mondrian) -> None:
    assert mixed(variant, KAnonymity(2)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("variant", "criterion"),
    [
        (TMondrian(), DeltaDisclosure(1.0)),
        (LMondrian(), TCloseness(0.2)),
        (DMondrian(), TCloseness(0.2)),
    ],
)
def test_the_criterion_of_another_variant_is_refused(
    variant: Mondrian, criterion: Criterion
) -> None:
    with pytest.raises(UnsupportedError, match=f"can't enforce {criterion.name}"):
        variant.check(Policy(criterion, window="all"))


@pytest.mark.parametrize(
    ("criterion", "cuts"),
    [
        # Of two illnesses with a share of one half each, none may have more than 0.85 of a group.
        (EnhancedLikeness(1.0, attribute="ill"), [[0, 2], [1, 3]]),
        (SemanticLikeness(1.0, attribute="ill"), [[0, 2], [1, 3]]),
        # All have the same pay, which is known already.
        (RangeLikeness(1.0, attribute="pay", epsilon=1.0), [[0, 1], [2, 3]]),
    ],
)
def test_all_forms_of_likeness_are_kept(criterion: BetaLikeness, cuts: list[list[int]]) -> None:
    assert mixed(LMondrian(), KAnonymity(2), criterion) == cuts
