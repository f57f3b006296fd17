"""Verdicts, risk and exit codes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shoal.attacks import AttackReport, AttackResult, Share
from shoal.attacks.result import table

HIGH = AttackResult("linking", "all", Share(500, 1000), bound=0.1, bound_from="1/k")
LOW = AttackResult("linking", "all", Share(100, 1000), bound=0.1)
FREE = AttackResult("edges", "boxes", Share(10, 10))
OPEN = AttackResult("linking", "-", unverifiable="no trace")
NONE = AttackResult("inference", "-", notes=("nothing",))


@pytest.mark.parametrize(
    ("result", "verdict"),
    [(HIGH, "exceeded"), (LOW, "within"), (FREE, "unbounded"), (OPEN, "unverifiable"),
     (NONE, "skipped"), (AttackResult("x", "y", Share(0, 0), bound=0.0), "skipped")],
)  # fmt: skip
def test_verdicts(result, verdict):
    assert result.verdict == verdict


def test_what_no_promise_bounds_is_said_at_once():
    explained = AttackResult("suppression", "boxes", Share(9, 10), baseline=0.9)
    first, second, *_ = str(AttackReport([LOW, explained, FREE], n_rows=7)).splitlines()
    assert "none exceeded it" in first
    assert second.startswith(
        "no promise bounds edges (boxes): it succeeds for 100.0 % of 10 people"
    )
    assert AttackReport([LOW, explained], n_rows=7).beyond_promise() == ""


def test_above_the_bound_by_chance_is_not_exceeded():
    assert AttackResult("linking", "all", Share(12, 100), bound=0.1).verdict == "within"


def test_an_exact_success_has_no_chance_to_hide_behind():
    assert (
        AttackResult("linking", "all", Share(12, 100, exact=True), bound=0.1).verdict == "exceeded"
    )
    third = Share(sum([1 / 3] * 99), 99, exact=True)
    assert AttackResult("linking", "all", third, bound=1 / 3 - 1e-12).verdict == "within"


@pytest.mark.parametrize(
    ("results", "code"),
    [([HIGH, OPEN, LOW], 1), ([OPEN, LOW], 6), ([LOW, FREE, NONE], 0), ([FREE], 0), ([NONE], 6)],
)
def test_exit_codes(results, code):
    assert AttackReport(results, 7).exit_code == code


def test_risk_is_what_taking_part_adds():
    result = AttackResult("inference", "all", Share(60, 100), control=Share(20, 100))
    assert result.risk == pytest.approx(0.5)
    assert LOW.risk is None
    assert AttackResult("x", "y", Share(1, 2), control=Share(2, 2)).risk is None


def test_the_report_as_text_and_as_json():
    report = AttackReport([HIGH, OPEN, NONE], 7)
    text = str(report)
    assert text.startswith("1 of 3 attacks succeeded more often than the policy promises")
    assert "50.0 %" in text
    assert "linking: no trace" in text
    found = json.loads(json.dumps(report.as_dict()))
    assert found["exit_code"] == 1
    assert found["attacks"][0]["success"]["attempts"] == 1000
    assert [each["verdict"] for each in found["attacks"]] == ["exceeded", "unverifiable", "skipped"]


def test_a_table_has_columns_for_a_control_only_if_there_is_one():
    plain = AttackResult("linking", "all", Share(1, 10), bound=0.1)
    assert "control" not in table([plain])[0]
    controlled = replace(plain, control=Share(0, 10))
    head, first, second = table([controlled, plain])
    assert head.split()[-5:] == ["baseline", "control", "risk", "bound", "verdict"]
    assert "0.100" in first
    assert "0.100" not in second
