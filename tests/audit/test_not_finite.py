"""Kept numbers that aren't finite, which text formats write in other ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal

JOB = """
[schema]
subject = "person"
quasi = { age = { range = [0, 100] } }
keep = { columns = ["weight"] }
[policy]
k = 2
delay = { rows = 10 }
[algorithm]
name = "castle"
"""


def verdict_of(report: Any) -> str:
    """What the audit says of the cover."""
    return str({found.name: found for found in report.verdicts}["cover"].verdict)


@pytest.mark.filterwarnings("ignore:schema.keep")
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_they_are_no_broken_promise_but_other_values_are(tmp_path: Path, ending: str) -> None:
    weights = [1.5, float("nan"), float("inf"), float("-inf"), None, 7.0] * 4
    people = [str(i) for i in range(len(weights))]
    table = pa.table(
        {"person": people, "age": [30 + i % 7 for i in range(len(weights))], "weight": weights}
    )
    given, out, trace = tmp_path / "in.parquet", tmp_path / f"out.{ending}", tmp_path / "t.parquet"
    job = tmp_path / "job.toml"
    pq.write_table(table, given)
    job.write_text(JOB)
    shoal.run(job, input=given, output=out, trace=trace)
    report = shoal.audit(job, out, original=given, trace=trace)
    assert verdict_of(report) == "kept"
    # The same output beside an original that has a number instead of NaN.
    wrong = table.set_column(2, "weight", pa.array([9.0 if w != w else w for w in weights]))
    pq.write_table(wrong, given)
    report = shoal.audit(job, out, original=given, trace=trace)
    assert verdict_of(report) == "broken"
