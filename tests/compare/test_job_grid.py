"""The grid of a job, and the job that is written for a cell of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.algorithms import Castle, Fads
from shoal.compare.best_job import best_job
from shoal.compare.job_grid import JobGrid, Values, grid_of, numbers_of
from shoal.errors import JobError
from shoal.job import Job
from shoal.job.toml import parse_toml
from tests.world import TOWNS

TEXT = """\
# Admissions, for the city.
[schema]
subject = "person"
[schema.quasi]
age = { range = [0, 120], step = 1 }  # in years
town = { hierarchy = "town.csv" }
[schema.sensitive]
illness = {}

[policy]  # the promise
k = 5     # people
l = { illness = { entropy = 3 } }   # agreed with the hospital
delay = { rows = 100, seconds = 30 }  # or sooner

[algorithm]
name = "castle"
clusters = 20
loss = "lm"
[publish]
suppressed = "root"
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "town.csv").write_text(TOWNS)
    return Job.parse(TEXT, folder=tmp_path)


def grid(job: Job, names: list[str], text: str = TEXT, **values: str) -> JobGrid:
    tried: Values = {key: numbers_of(key, value) for key, value in values.items()}
    return grid_of(job, parse_toml(text, None)["policy"], names, tried)


def test_what_isnt_named_stays_as_the_job_says(job):
    found = grid(job, ["castle", "fads"], k="5,10", l="2")
    assert [cell.anonymizer for cell in found.cells] == [
        Castle(clusters=20, loss="lm"), Castle(clusters=20, loss="lm"), Fads(loss="lm"),
        Fads(loss="lm"),
    ]  # fmt: skip
    assert [cell.promise for cell in found.cells[:2]] == [
        {"k": 5, "l": "entropy 2 of illness", "delay": 100},
        {"k": 10, "l": "entropy 2 of illness", "delay": 100},
    ]
    assert found.sections[found.cells[1].policy]["l"] == {"illness": {"entropy": 2}}


def test_seconds_of_the_wall_clock_are_left_out_with_a_warning(job):
    found = grid(job, ["castle"])
    (cell,) = found.cells
    assert found.own == cell.policy
    assert cell.policy.delay is not None
    assert (cell.policy.delay.rows, cell.policy.delay.seconds) == (100, None)
    assert "wall clock" in found.warnings[0]
    only = TEXT.replace("rows = 100, ", "")
    with pytest.raises(JobError, match="Give delays in rows"):
        grid(Job.parse(only.replace("town.csv", str(job.files[0]))), ["castle"], only)


def test_all_algorithms_are_tried_once(job):
    labels = [cell.anonymizer.name for cell in grid(job, ["all", "castle"]).cells]
    assert len(labels) == len(set(labels)) > 20


@pytest.mark.parametrize(
    ("names", "message"),
    [(["castel"], "--algorithms: .* got 'castel'. Did you mean 'castle'"), ([], "names none")],
)
def test_an_unknown_algorithm_is_refused_with_a_suggestion(job, names, message):
    with pytest.raises(JobError, match=message):
        grid(job, names)


@pytest.mark.parametrize(
    ("key", "text"), [("k", "5.5"), ("k", "0"), ("k", "five"), ("k", ""), ("t", "-1"), ("t", "inf"),
                      ("delay", "3.5"), ("delay", "30m"), ("l", "nan")],
)  # fmt: skip
def test_what_is_no_number_is_refused_with_an_example(key, text):
    with pytest.raises(JobError, match=f"--{key}: must be .*numbers above 0.*For example"):
        numbers_of(key, text)


def test_a_promise_that_makes_no_sense_is_refused(job):
    with pytest.raises(JobError, match="window"):
        grid(job, ["castle"], t="0.2")


# -- the job that is written ----------------------------------------------------------------------


def test_the_written_job_keeps_comments_and_other_settings(job, tmp_path):
    found = grid(job, ["fads"], k="10", l="2", delay="50")
    (cell,) = found.cells
    text = best_job(TEXT, job, cell, found.sections[cell.policy], ["It loses least."], tmp_path)
    expected = TEXT.replace("k = 5     #", "k = 10     #").replace("entropy = 3", "entropy = 2")
    expected = expected.replace("rows = 100", "rows = 50").replace('"castle"', '"fads"')
    expected = expected.replace("clusters = 20\n", "")
    assert text == f"# Recommended by `shoal compare`. It loses least.\n\n{expected}"
    assert Job.parse(text, folder=tmp_path).anonymizer == Fads(loss="lm")


def test_the_knobs_of_the_jobs_own_algorithm_stay(job, tmp_path):
    found = grid(job, ["castle"], k="10")
    (cell,) = found.cells
    text = best_job(TEXT, job, cell, found.sections[cell.policy], [], tmp_path)
    assert "clusters = 20" in text
    assert "k = 10" in text


def test_a_promise_that_the_job_hasnt_is_added(tmp_path, job):
    plain = TEXT.replace("l = { illness = { entropy = 3 } }   # agreed with the hospital\n", "")
    (tmp_path / "town.csv").write_text(TOWNS)
    found = grid(Job.parse(plain, folder=tmp_path), ["castle"], plain, l="3")
    (cell,) = found.cells
    text = best_job(plain, job, cell, found.sections[cell.policy], [], tmp_path)
    assert Job.parse(text, folder=tmp_path).policy.diversity[0].l == 3
