"""Values of a wrong form: a message says what is allowed."""

from __future__ import annotations

import tomllib
from datetime import date

import pytest

from shoal.errors import JobError
from shoal.job import Job
from shoal.job.toml import inline

JOB = """
[schema]
subject = "person"
[schema.quasi]
age = { range = [0, 120] }
[policy]
k = 3
delay = { rows = 20 }
[algorithm]
name = "castle"
"""


def problem(old: str, new: str) -> str:
    with pytest.raises(JobError) as caught:
        Job.parse(JOB.replace(old, new) if old else JOB + new)
    (found,) = caught.value.problems
    return str(found)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rows = 20", 'seconds = "2s"', "policy.delay.seconds: must be a number; got '2s'"),
        ("k = 3", 'k = 3\nlateness = "1h"', "policy.lateness: must be a number; got '1h'"),
        ("rows = 20", 'rows = "20"', "policy.delay.rows: must be a whole number; got '20'"),
        ("k = 3", "k = 3.5", "policy.k: must be a whole number; got 3.5"),
        ("k = 3", 'k = 3\nl = "2"', "policy.l: must be a whole number or a table; got '2'"),
        ("", "[input]\nfollow = 1", "input.follow: must be true or false; got 1"),
        ("", "[publish]\norder = 1", "publish.order: must be text; got 1"),
        ("", '[bad_rows]\nlimit = "5 %"', "bad_rows.limit: must be a number; got '5 %'"),
    ],
)
def test_what_is_allowed_is_said(old: str, new: str, says: str) -> None:
    assert problem(old, new).startswith(f"{says}.")


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("rows = 20", 'seconds = "2s"', "seconds = 2"),
        ("rows = 20", 'seconds = "1.5 min"', "seconds = 90"),
        ("rows = 20", 'seconds = "soon"', "seconds = 30"),
        ("k = 3", 'k = 3\nlateness = "1h"', "lateness = 3600"),
        ("k = 3", 'k = 3\nahead = "1 day"', "ahead = 86400"),
        ("", '[run]\ncheckpoint = { folder = "state", every = "10s" }', "every = 10"),
        ("", '[publish]\ntime = "1 day"', "time = 86400"),
        ("", '[output]\npath = "out/"\nseconds = "500ms"', "seconds = 0.5"),
        ("", '[spark]\ninterval = "1s"', "interval = 1"),
    ],
)
def test_a_duration_with_a_unit_is_answered_in_seconds(old: str, new: str, fix: str) -> None:
    assert problem(old, new).endswith(f". Seconds, without a unit: {fix}.")


@pytest.mark.parametrize("limit", ["-0.1", "5", "nan"])
def test_a_limit_is_a_share(limit: str) -> None:
    says = problem("", f"[bad_rows]\nlimit = {limit}")
    assert says.startswith("bad_rows.limit: must be a share of all rows, from 0 to 1; got ")


@pytest.mark.parametrize(("limit", "meant"), [("0", 0.0), ("1", 1.0), ("0.25", 0.25)])
def test_limits_that_are_shares(limit: str, meant: float) -> None:
    assert Job.parse(f"{JOB}[bad_rows]\nlimit = {limit}").bad_rows.limit == meant
    assert Job.parse(JOB).bad_rows.limit == 0.05


@pytest.mark.parametrize(
    ("run", "where", "file"),
    [
        ("", None, "job.quarantine.jsonl"),
        ("", "jobs/patients.toml", "patients.quarantine.jsonl"),
        ('name = "visits"', "jobs/patients.toml", "visits.quarantine.jsonl"),
    ],
)
def test_the_quarantine_has_the_name_of_the_job(run: str, where: str | None, file: str) -> None:
    job = Job.parse(f"{JOB}[run]\n{run}", where=where)
    assert job.bad_rows.file.name == file


@pytest.mark.parametrize(
    ("promise", "is_warned"),
    [("k = 1", True), ("k = 2", False), ("k = 1\nl = 2", False), ("l = 3", False)],
)
def test_k_of_1_is_warned_about(promise: str, is_warned: bool) -> None:
    text = JOB.replace("k = 3", promise).replace(
        "[policy]", "[schema.sensitive]\nill = {}\n[policy]"
    )
    warnings = Job.parse(text).warnings
    assert any("policy.k = 1 doesn't hide whose" in text for text in warnings) == is_warned


def test_no_k_at_all_is_warned_about() -> None:
    text = JOB.replace("k = 3", 't = 0.2\nwindow = "all"').replace("delay = { rows = 20 }", "")
    text = text.replace("[policy]", "[schema.sensitive]\nill = { range = [0, 9] }\n[policy]")
    job = Job.parse(text.replace("castle", "sabre-ak"))
    assert any("policy.k is missing" in text for text in job.warnings)


@pytest.mark.parametrize(
    "value",
    [True, 3, -0.5, 1e300, float("inf"), 'say "hi"\n\x7f', [], {}, ["a", [1]], date(2026, 3, 1)],
)
def test_a_value_in_one_line_is_toml(value: object) -> None:
    for given in (value, {"key": value, "not plain": {"deep": [value]}}):
        assert tomllib.loads(f"value = {inline(given)}") == {"value": given}
