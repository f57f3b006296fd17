"""Small runs to report on, in plain Python: admissions in groups, and purchases under z."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from shoal.attacks import Run
from shoal.job.attacking import rerun_of
from shoal.job.file import Job
from shoal.job.reporting import report
from shoal.report.build import ReleaseReport
from shoal.report.release import Audience

#: Values that only the original has.
CANARIES = ("canary-subject", "Canarytown", "77.123", "canarywort", "canary-phone")

GROUPS: dict[str, Any] = {
    "schema": {
        "subject": "name",
        "quasi": {
            "age": {"range": [0, 120], "step": 5},
            "weight": {"range": [0, 200], "step": 10},
            "town": {"values": ["Aosta", "Asti", "Turin"]},
        },
        "sensitive": {"illness": {}},
        "keep": {"columns": ["ward"]},
    },
    "policy": {"k": 5, "l": 2, "delay": {"rows": 60}},
    "algorithm": {"name": "castle"},
    "run": {"seed": 987654321},
}
CELLS: dict[str, Any] = {
    "schema": {
        "subject": "name",
        "quasi": {"article": {}, "town": {"values": ["Aosta", "Asti", "Turin"]}},
    },
    "policy": {"z": 4, "window": {"rows": 60}},
    "algorithm": {"name": "z-anonymity"},
}


def people(n: int = 150, seed: int = 3) -> pa.Table:
    """Return admissions of returning people; the last three rows hold the canaries."""
    draw = random.Random(seed)
    rows = [
        {
            "name": f"person-{draw.randrange(n // 2)}",
            "age": str(draw.randrange(18, 90)),
            "weight": str(draw.randrange(50, 120)),
            "town": draw.choice(["Aosta", "Asti", "Turin"]),
            "illness": draw.choice(["flu", "cold", "gout", "mumps"]),
            "ward": draw.choice(["north", "south"]),
            "phone": f"555-{draw.randrange(10_000)}",
            "article": draw.choice(["bread", "rye", "apple", "pear"]),
        }
        for _ in range(n)
    ]
    # One row that is published in a group, one with a bad category, one with a bad subject.
    rows.append(rows[0] | {"name": "canary-subject", "weight": "77.123", "phone": "canary-phone"})
    rows.append(rows[1] | {"town": "Canarytown", "name": "canary-subject-2"})
    rows.append(rows[2] | {"article": "canarywort", "age": "canarywort"})
    return pa.Table.from_pylist(rows)


def released(job: dict[str, Any], rows: pa.Table) -> Run:
    return rerun_of(Job.from_dict(job))(rows, 1)


def reported(
    job: dict[str, Any], rows: pa.Table, run: Run, audience: Audience = "internal", **more: Any
) -> ReleaseReport:
    return report(job, run.published, original=rows, trace=run.trace, audience=audience, **more)
