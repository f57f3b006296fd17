"""The job file of z-anonymity: every key, and all problems at once."""

from __future__ import annotations

import re

import pytest

from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.errors import JobError
from shoal.job import Job
from shoal.spec.ladder import Grid, Open, Path
from shoal.spec.policy import Policy, Window, ZAnonymity

GROUPS = """\
[schema]
subject = "who"
[schema.quasi]
age = { range = [0, 120], step = 1 }
[policy]
k = 3
delay = { rows = 20 }
[algorithm]
name = "castle"
"""
EVENTS = """\
[schema]
subject = "who"
time = "at"
[schema.quasi]
page = {}
area = { path = "*", levels = 3 }
cell = { grid = ["lat", "lon", 500, 1000] }
[policy]
z = 20
window = { seconds = 3600 }
lateness = 60
missing = "maybe"
[algorithm]
name = "z-anonymity"
probability = 0.9
k = 3
estimates = 4
[publish]
time = 60
suppressed = "root"
pseudonym = { rotate = 600 }
"""


def events(old: str, new: str) -> str:
    assert old in EVENTS
    return EVENTS.replace(old, new)


def problems_of(text: str) -> dict[str, str]:
    with pytest.raises(JobError) as raised:
        Job.parse(text)
    return {problem.key: str(problem) for problem in raised.value.problems}


def test_every_key_of_z():
    job = Job.parse(EVENTS)
    assert [quasi.domain for quasi in job.schema.quasi] == [
        Open(), Path("*", levels=3), Grid("lat", "lon", [500, 1000]),
    ]  # fmt: skip
    assert job.policy == Policy(
        ZAnonymity(20), window=Window(seconds=3600), lateness=60, missing="maybe"
    )
    assert job.anonymizer == ZAnonymizer(probability=0.9, k=3, estimates=4)
    assert job.publish == Publish(suppressed="root", time=60, pseudonym=Pseudonym(600))
    assert job.warnings == ()
    by_rows = Job.parse(events("{ seconds = 3600 }", "{ rows = 500000 }"))
    assert by_rows.policy.window == Window(rows=500_000)


SECONDS = "window = { seconds = 3600 }"
# What is changed, into what, the keys of the problems, and a part of what is said.
WRONG_EVENTS = [
    ("z = 20", "z = 0", {"policy.z"}, "at least 1; got 0"),
    ("z = 20", "z = 20\nk = 3", {"policy.z"}, "goes with no other promise"),
    ("z = 20", "z = '20'", {"policy.z"}, "must be a whole number"),
    (SECONDS, "", {"policy.window"}, "{ seconds = 3600 }, or { rows = 500000 }"),
    (SECONDS, "window = {}", {"policy.window.rows"}, "for z-anonymity seconds = 3600"),
    (SECONDS, "window = 'all'", {"policy.window"}, "never ends"),
    (SECONDS, "window = { seconds = 0 }", {"policy.window.seconds"}, "above 0"),
    (SECONDS, "window = { seconds = 9, rows = 9 }", {"policy.window.seconds"}, "Keep one"),
    (SECONDS, "window = { rows = 9, advance = 3 }", {"policy.window.advance"}, "isn't used"),
    (SECONDS, SECONDS + "\ndelay = { rows = 5 }", {"policy.delay"}, "no row is held"),
    ('missing = "maybe"', 'missing = "extended"', {"algorithm"}, "maybe"),
    ('time = "at"\n', "", {"policy.lateness", "policy.window.seconds", "publish.time"}, "time"),
    ("page = {}", "page = { range = [0, 9] }", {"schema.quasi.page"}, "needs a step"),
    ("page = {}", "page = { weight = 2 }", {"schema.quasi.page.weight"}, "isn't used"),
    ("page = {}", "page = { path = '' }", {"schema.quasi.page.path"}, "between two parts"),
    ("levels = 3", "levels = 99", {"schema.quasi.area.levels"}, "from 1 to 20"),
    ("500, 1000", "500, 700", {"schema.quasi.cell.grid"}, "each a multiple"),
    ("cell = {", "at = {", {"schema.quasi.at"}, "name of its own"),
    ('subject = "who"', "subject = { each_row = true }", {"schema.subject"}, "counts people"),
    ("[policy]", "[schema.sensitive]\nill = {}\n[policy]", {"schema.sensitive.ill"}, "a group"),
    ("probability = 0.9", "probability = 2", {"algorithm.probability"}, "1"),
    ("k = 3", "k = 3\ncount = 'plain'", {"algorithm.probability"}, '"residual" only'),
    ("estimates = 4", "estimate = 4", {"algorithm.estimate"}, "Did you mean 'estimates'?"),
    ("rotate = 600", "rotate = 0", {"publish.pseudonym.rotate"}, "above 0; got 0"),
    ("{ rotate = 600 }", "{}", {"publish.pseudonym.rotate"}, "For example rotate = 3600"),
    ("{ rotate = 600 }", "{ every = 3, rotate = 600 }", {"publish.pseudonym.every"}, "unknown"),
    ("{ rotate = 600 }", "3600", {"publish.pseudonym"}, "pseudonym = { rotate = 3600 }"),
    ("time = 60", "time = -1", {"publish.time"}, "at least 0; got -1"),
    ("time = 60", "numeric = 'bounds'", {"publish.numeric"}, "isn't used by z-anonymity"),
    ("time = 60", "order = 'arrival'", {"publish.order"}, "isn't used by z-anonymity"),
]


@pytest.mark.parametrize(("old", "new", "keys", "said"), WRONG_EVENTS)
def test_a_wrong_job_of_z_names_its_keys_and_how_to_fix_them(old, new, keys, said):
    found = problems_of(events(old, new))
    assert set(found) == keys
    assert said in "\n".join(found.values())


@pytest.mark.parametrize("name", ["castle", "mondrian", "sabre-w"])
def test_others_dont_promise_z_and_say_who_does(name):
    knobs = "probability = 0.9\nk = 3\nestimates = 4\n"
    found = problems_of(events(knobs, "").replace('"z-anonymity"', f'"{name}"'))
    assert "z-anonymity" in "\n".join(found.values())


def test_groups_have_no_pseudonyms_and_no_times():
    found = problems_of(GROUPS + "[publish]\ntime = 0\npseudonym = { rotate = 5 }\n")
    assert set(found) == {"publish.pseudonym", "publish.time"}
    assert "which boxes belong to one person" in found["publish.pseudonym"]
    assert "hides when they came" in found["publish.time"]


@pytest.mark.parametrize("key", ["time = 30", "rotate = 700", "z = 21", "levels = 4"])
def test_what_a_checkpoint_depends_on_has_other_digests(key):
    name = key.split(" ")[0]
    old = next(part for part in re.findall(r"[a-z]+ = [0-9]+", EVENTS) if part.startswith(name))
    assert Job.parse(events(old, key)).digests != Job.parse(EVENTS).digests
