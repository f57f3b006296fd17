"""z's oracle: invented people learn whether somebody real has a value."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa

from shoal.attacks import Setting
from shoal.attacks.oracle import Oracle
from shoal.job.attacking import rerun_of, setting_of
from shoal.job.file import Job
from tests.attacks.hand_made import groups, stream


def setting(rows: list[tuple[Any, str]], z: int, **publish: Any) -> Setting:
    job = Job.from_dict(
        {
            "schema": {"subject": "who", "quasi": {"page": {}}},
            "policy": {"z": z, "window": {"rows": 1000}},
            "algorithm": {"name": "z-anonymity"},
            "publish": publish,
        }
    )
    table = pa.table({"who": [row[0] for row in rows], "page": [row[1] for row in rows]})
    run = rerun_of(job)(table, 1)
    return setting_of(job, run.published, original=table, trace=run.trace)


def test_invented_people_find_who_has_a_rare_value() -> None:
    rows = [row for i in range(20) for row in ((i, "home"), (i, f"rare{i}"))]
    (found,) = Oracle().run(setting(rows, z=3))
    # Of the three who made "home" popular two are hidden, but only one is asked about.
    assert found.success.attempts >= 19
    assert found.success.rate > 0.9
    assert found.verdict == "unbounded"


def test_a_value_that_somebody_else_has_tells_nothing_of_the_victim() -> None:
    rows = [(f"p{i}{who}", f"page{i}") for who in "ab" for i in range(10)]
    asked = setting(rows, z=4)
    # Asked about the second of two: somebody has had the value before.
    among = [i >= 10 for i in range(20)]
    (found,) = Oracle().run(dataclasses.replace(asked, among=pa.array(among).to_numpy(False)))
    assert found.success.successes == 0
    assert found.baseline == 1


def test_where_everything_is_published_there_is_nothing_to_ask() -> None:
    (found,) = Oracle().run(setting([("ann", "home"), ("bob", "home")], z=1))
    assert found.verdict == "skipped"


def test_groups_are_no_oracle_of_values() -> None:
    assert "z-anonymity" in str(Oracle().misfit(stream(groups())))
