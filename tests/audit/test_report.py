from __future__ import annotations

import json

import pytest

from shoal.audit import Report, Verdict
from shoal.audit.report import Judgement


@pytest.mark.parametrize(
    ("found", "verdict", "exit_code"),
    [
        (["kept", "kept"], "kept", 0),
        (["kept", "unverifiable"], "unverifiable", 6),
        (["unverifiable", "broken", "kept"], "broken", 1),
    ],
)
def test_the_worst_verdict_decides(found: list[Judgement], verdict: str, exit_code: int) -> None:
    report = Report([Verdict(str(i), v, "so it is") for i, v in enumerate(found)], n_rows=3)
    assert (report.verdict, report.exit_code) == (verdict, exit_code)
    assert report.as_dict()["verdict"] == verdict


def test_subjects_that_are_rows_are_said() -> None:
    verdicts = [Verdict("k-anonymity", "kept", "all fine")]
    by_rows = Report(verdicts, n_rows=3, each_row=True)
    assert by_rows.as_dict()["each_row"] is True
    assert "note: subjects are counted by rows (schema.subject = { each_row" in str(by_rows)
    named = Report(verdicts, n_rows=3)
    assert "each_row" not in named.as_dict()
    assert "note" not in str(named)


def test_for_programs_and_for_people() -> None:
    report = Report([Verdict("delay", "kept", "no row was late", {"longest_rows": 3.0})], n_rows=3)
    assert json.loads(json.dumps(report.as_dict()))["verdicts"] == [
        {
            "name": "delay",
            "verdict": "kept",
            "detail": "no row was late",
            "figures": {"longest_rows": 3.0},
        }
    ]
    assert "delay: kept; no row was late" in str(report)
    with pytest.raises(KeyError):
        report["shape"]
