"""The lab: all attacks, the control, and what can't be judged."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pyarrow as pa
import pytest

import shoal
import shoal.attacks
from shoal.attacks import Attack, Run, attack, entries, find, names
from shoal.errors import ParameterError
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Schema
from tests.attacks.world import SCHEMA, crowd, rate, setting

ROWS = crowd(30, 3)


def test_every_attack_has_a_page_section_a_docstring_and_a_test():
    page = (Path(__file__).parents[2] / "docs" / "attacks.md").read_text(encoding="utf-8")
    tests = "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")
    )
    for entry in entries():
        text = entry.load().__doc__ or ""
        for part in ("**Knows**", "**Does**", "**Bound**", "**Baseline**"):
            assert part in text, entry.name
        assert re.search(rf"^###? {entry.name}$", page, re.MULTILINE), entry.name
        assert f'"{entry.name}"' in tests or f"{entry.class_name}()" in tests, entry.name


def test_every_attack_of_the_package_is_found():
    for path in Path(shoal.attacks.__file__).parent.glob("*.py"):
        importlib.import_module(f"shoal.attacks.{path.stem}")
    found, waiting = set(), [Attack]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if "name" in vars(kind) and kind.__module__.startswith("shoal.attacks."):
            found.add(kind)
    assert found == {entry.load() for entry in entries()}


def test_a_wrong_name_is_answered_by_the_right_one():
    with pytest.raises(ParameterError, match="Did you mean 'linking'"):
        find("linkng")
    with pytest.raises(ParameterError, match="Did you mean 'age'"):
        setting(ROWS, known=("agee",))


def test_one_name_may_be_a_text():
    given = setting(ROWS)
    assert attack(given, "linking").results == attack(given, ["linking"]).results


def test_without_a_trace_it_can_not_tell():
    report = attack(setting(ROWS, traced=False), ["linking", "inference"])
    assert report.of("linking")[0].verdict == "unverifiable"
    assert report.of("inference")[0].success is not None
    assert report.exit_code == 6


def test_the_same_seed_gives_the_same_figures_whatever_else_is_asked_for():
    given = setting(ROWS, n_targets=20, seed=5)
    alone = attack(given, ["inference"]).results
    assert attack(given, ["linking", "inference"]).of("inference") == alone
    other = attack(setting(ROWS, n_targets=20, seed=6), ["inference"]).results
    assert other != alone


def test_targets_are_people_and_no_more_than_asked_for():
    given = setting(ROWS, n_targets=20)
    rows = given.targets(given.random("x"))
    assert len(rows) == len(set(given.subjects[rows])) == 20


def rerun(rows: pa.Table, seed: int) -> Run:
    """Each person in a box of their own."""
    people = rows.to_pylist()
    boxes = [(f"[{each['age']}, {each['age']}]", each["city"]) for each in people]
    given = setting(
        [
            (p["person"], p["age"], p["city"], p["disease"], b)
            for p, b in zip(people, boxes, strict=True)
        ]
    )
    assert given.trace is not None
    return Run(given.published, given.trace)


def test_the_control_is_attacked_where_it_is_and_where_it_is_not():
    alone = [
        (p, age, city, disease, (f"[{age}, {age}]", city)) for p, age, city, disease, _ in ROWS
    ]
    report = attack(setting(alone, rerun=rerun), ["linking", "inference"], control=0.2)
    linking, inference = report.of("linking")[0], report.of("inference")[0]
    assert rate(linking) == rate(inference) == 1.0
    assert linking.success is not None
    assert linking.success.attempts == 18
    # Nobody who isn't in a release has a row in it, and no box covers them: the marginal is left.
    assert linking.control is not None
    assert linking.control.rate == 0.0
    assert linking.risk == pytest.approx(1.0)
    assert inference.control is not None
    assert inference.control.rate is not None
    assert inference.control.rate < 0.7


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0])
def test_a_control_must_be_a_share(share):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        attack(setting(ROWS, rerun=rerun), control=share)


def test_a_control_needs_a_job():
    with pytest.raises(ParameterError, match="run again"):
        attack(setting(ROWS), control=0.1)


def test_nothing_was_published():
    report = attack(setting([(*row[:4], None) for row in ROWS]))
    assert report.exit_code in (0, 6)
    assert rate(report.of("linking")[0]) == 0.0


def test_a_schema_without_secrets():
    schema = Schema("person", SCHEMA.quasi)
    report = attack(setting(ROWS, schema=schema), ["inference", "similarity", "linking"])
    assert [each.verdict for each in report.results] == ["skipped", "skipped", "within", "within"]


def test_boxes_are_not_looked_for_under_z():
    schema = Schema("person", SCHEMA.quasi)
    policy = Policy(ZAnonymity(2), window=Window(rows=100))
    report = attack(setting(ROWS, schema=schema, policy=policy), ["linking"])
    assert report.results[0].verdict == "skipped"


def test_no_value_of_a_person_is_shown():
    rows = [(f"CANARY-{i}", *row[1:]) for i, row in enumerate(ROWS)]
    report = attack(setting(rows))
    for value in ("CANARY", "Oslo", "flu", "cold"):
        assert value not in str(report)
        assert value not in repr(report)
    assert names()
