"""Columns and their roles."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from shoal import Hierarchy, Quasi, Range, Schema, Sensitive
from shoal.errors import JobError
from shoal.spec.ladder import Grid, Open, Path

AGE = Quasi("age", Range(0, 100))
SEX = Quasi("sex", Hierarchy.flat(["F", "M"]))
CELL = Quasi("cell", Grid("lat", "lon", [500, 1000]))


def test_columns_come_once_and_in_a_fixed_order() -> None:
    when = Quasi("when", Range(0, 10))
    schema = Schema("person", [AGE, when], [Sensitive("illness")], ["ward"], time="when")
    assert schema.columns == ("person", "when", "age", "illness", "ward")
    assert schema.payload == ("illness", "ward")
    assert not schema.each_row


def test_without_a_subject_each_row_is_one() -> None:
    schema = Schema(None, [AGE])
    assert schema.each_row
    assert schema.columns == ("age",)


def test_a_schema_is_a_value() -> None:
    schema = Schema("person", [AGE, SEX])
    assert schema == Schema("person", (AGE, SEX))
    assert hash(schema) == hash(Schema("person", (AGE, SEX)))
    assert pickle.loads(pickle.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"subject": "p", "quasi": []}, "names no attribute"),
        ({"subject": "age", "quasi": [AGE]}, "subject and quasi. A subject is never published"),
        ({"subject": "p", "quasi": [AGE, AGE]}, "named as quasi twice"),
        ({"subject": "p", "quasi": [AGE], "keep": ["age"]}, "quasi and keep. Give each column"),
        ({"subject": "p", "quasi": [AGE], "keep": ["p"]}, "subject and keep"),
        ({"subject": "p", "quasi": [AGE], "keep": ["t"], "time": "t"}, "is the time column"),
        (
            {"subject": "p", "quasi": [AGE], "sensitive": [Sensitive("t")], "time": "t"},
            "schema.sensitive.t: is the time column",
        ),
        ({"subject": "p", "quasi": [AGE], "time": "p"}, "is the subject column too"),
        ({"subject": "p", "quasi": [Quasi("a", Range(0, 1), 0.0)]}, "finite number above 0"),
        ({"subject": "p", "quasi": [Quasi("a", Range(0, 1), float("inf"))]}, "finite number"),
        # A grid is published under a name of its own, and read from two columns.
        ({"subject": "lat", "quasi": [CELL]}, "subject and quasi"),
        ({"subject": "p", "quasi": [CELL], "keep": ["lon"]}, "quasi and keep"),
        ({"subject": "p", "quasi": [CELL, Quasi("lat", Open())]}, "named as quasi twice"),
        ({"subject": "p", "quasi": [CELL], "keep": ["cell"]}, "the name of another column"),
        ({"subject": "cell", "quasi": [CELL]}, "the name of another column"),
        ({"subject": "p", "quasi": [CELL], "time": "cell"}, "the name of another column"),
        ({"subject": "p", "quasi": [Quasi("lat", CELL.domain)]}, "the name of another column"),
        (
            {"subject": "p", "quasi": [CELL, Quasi("cell", Grid("y", "x", [10]))]},
            r"schema\.quasi\.cell: is published under the name of another column",
        ),
    ],
)
def test_what_is_wrong_is_said(schema: dict[str, object], says: str) -> None:
    with pytest.raises(JobError, match=says):
        Schema(**schema)  # type: ignore[arg-type]


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(JobError) as caught:
        Schema("age", [AGE, Quasi("x", Range(0, 1), -1.0)], keep=["x"], time="age")
    assert len(caught.value.problems) == 4


def test_a_grid_is_read_from_two_columns() -> None:
    schema = Schema("person", [CELL, SEX], time="at")
    assert schema.columns == ("person", "at", "lat", "lon", "sex")
    assert schema.payload == ()
    assert [quasi.has_sides for quasi in schema.quasi] == [False, True]
    assert Schema("p", [Quasi("x", Open()), Quasi("y", Path("/"))]).columns == ("p", "x", "y")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Quasi("age", (0, 100)), "Quasi.domain: .*; got a tuple. Write Range(0, 100)."),
        (lambda: Quasi("age", range(0, 100, 5)), "got a range. Write Range(0, 100, step=5)."),
        (lambda: Quasi("sex", ["F", "M"]), "got a list. Write Hierarchy.flat([...])."),
        (lambda: Quasi("sex", {"any": ["F"]}), "got a dict. Write Hierarchy.from_dict({...})."),
        (lambda: Quasi("age", Range), "got the class Range. Call it: Range()."),
        (lambda: Quasi("age", None), "got None. For example Range(0, 120)"),
        (lambda: Quasi(7, Range(0, 120)), "Quasi.name: must be the name of a column; got 7."),
        (lambda: Sensitive("pay", (0, 9)), "Sensitive.domain: .*; got a tuple. Write Range(0, 9)."),
        (lambda: Schema("p", ["age"]), "schema.quasi: must be a list of Quasi; got 'age'. "
         "Write [Quasi('age', Range(0, 120))]."),
        (lambda: Schema("p", AGE), "schema.quasi: .*; got a Quasi. Put it in a list."),
        (lambda: Schema("p", [AGE], ["ill"]), "got 'ill'. Write [Sensitive('ill')]."),
        (lambda: Schema("p", [AGE], keep="ward"), "schema.keep: .*; got 'ward'. Write ['ward']."),
        (lambda: Schema(["p"], [AGE]), "schema.subject: must be the name of a column, or None"),
        (lambda: Schema("p", [AGE], time=3), "schema.time: must be the name of a column, or None"),
        (lambda: Schema("p", [Quasi("a", Range(0, 1), "x")]), "weight: must be a finite number"),
    ],
)  # fmt: skip
def test_a_parameter_of_a_wrong_type_says_what_to_write(make: Any, says: str) -> None:
    with pytest.raises(JobError, match=re.escape(says).replace(r"\.\*", ".*")):
        make()


def test_all_wrong_parameters_of_a_schema_are_told_at_once() -> None:
    with pytest.raises(JobError) as raised:
        Schema(3, ["age"], keep="ward")
    keys = [problem.key for problem in raised.value.problems]
    assert keys == ["schema.subject", "schema.quasi", "schema.keep"]
