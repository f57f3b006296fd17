"""Singling out and edges: predicates that one person fulfils."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.attacks import Setting, Share
from shoal.attacks.predicates import isolates
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema
from tests.attacks.world import SCHEMA, crowd, made, rate, setting


def test_groups_of_one_are_singled_out():
    boxes, secrets = made("singling-out", setting(crowd(40, 1), KAnonymity(2)))
    assert rate(boxes) == 1.0
    assert boxes.verdict == "exceeded"
    assert rate(secrets) == 1.0


def test_boxes_of_k_people_single_nobody_out_but_a_lone_value_does():
    given = setting(crowd(20, 4, ["flu", "cold", "rash", "acne"]), KAnonymity(4))
    boxes, secrets = made("singling-out", given)
    assert rate(boxes) == 0.0
    assert boxes.verdict == "within"
    assert rate(secrets) == 1.0
    assert secrets.verdict == "unbounded"


def test_groups_that_agree_single_nobody_out():
    _, secrets = made("singling-out", setting(crowd(20, 4, ["flu"])))
    assert rate(secrets) == 0.0


def test_several_rows_of_one_person_are_one_person():
    rows = [("ann", 20 + i, "Oslo", "flu", ("[20, 24]", "North")) for i in range(3)]
    rows += [("bob", 60, "Oslo", "flu", ("[60, 61]", "North"))]
    rows += [("cid", 61, "Oslo", "flu", ("[60, 61]", "North"))]
    given = setting(rows)
    lo, hi = np.array([[20.0, 0.0], [60.0, 0.0], [90.0, 0.0]]), np.array([[24.0, 1.0]] * 3)
    hi[1:, 0] = 61, 99
    assert isolates(given, lo, hi).tolist() == [True, False, False]


def test_edges_are_the_values_of_people():
    # Twenty years between people: a value inside of a box is nobody's.
    result = made("edges", setting(crowd(3, 3, spread=11)))[0]
    assert rate(result) == 1.0
    assert result.baseline is not None
    assert result.baseline < 1


def test_a_coarse_step_hides_who_is_at_the_edge():
    schema = Schema("person", [Quasi("age", Range(0, 100, step=10)), SCHEMA.quasi[1]],
                    SCHEMA.sensitive)  # fmt: skip
    rows = [(f"p{i}", i, "Oslo", "flu", ("[0, 100]", "North")) for i in range(100)]
    assert rate(made("edges", setting(rows, schema=schema))[0]) == 0.0


def test_a_number_without_a_step_is_told():
    schema = Schema("person", [Quasi("age", Range(0, 100)), SCHEMA.quasi[1]], SCHEMA.sensitive)
    result = made("edges", setting(crowd(3, 3, spread=11), schema=schema))[0]
    assert rate(result) == 1.0
    assert result.baseline == pytest.approx(0)
    assert "no step" in result.notes[0]


def lacking(missing: str, label: str | None) -> Setting:
    """One person without an age, alone in a box of that label; and two of another box."""
    schema = Schema("person", [Quasi(name, Range(0, 120, step=1)) for name in ("age", "height")])
    return Setting(
        schema,
        Policy(KAnonymity(2), delay=Delay(rows=10), missing=missing),
        pa.table(
            {"age": [label, "[30, 31]", "[30, 31]"], "height": ["[5, 5]", "[50, 51]", "[50, 51]"]}
        ),
        pa.table({"person": ["a", "b", "c"], "age": [None, 30, 31], "height": [5, 50, 51]}),
    )


@pytest.mark.parametrize(
    ("missing", "label"),
    [("maybe", None), ("maybe", "[30, 30]"), ("extended", None), ("extended", "[0, 120]")],
)
def test_a_box_of_one_person_who_lacks_a_value_singles_them_out(missing, label):
    boxes = made("singling-out", lacking(missing, label))[0]
    assert boxes.success == Share(1, 2)
    assert boxes.verdict == "exceeded"


def test_who_lacks_a_value_is_one_of_those_a_side_may_mean():
    lo, hi = np.array([[30.0, 5.0]]), np.array([[31.0, 51.0]])
    # Two have such an age; the third may have it where a missing value matches all.
    assert isolates(lacking("maybe", None), lo, hi - [1, 1]).tolist() == [False]
    assert isolates(lacking("extended", None), lo, hi - [1, 1]).tolist() == [True]
    assert isolates(lacking("maybe", None), lo, hi - [1, 1], valued=0).tolist() == [True]
