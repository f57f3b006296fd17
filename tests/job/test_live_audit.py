"""``[audit] sample``: groups are audited while a job runs, and a broken promise ends it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.algorithms.castle import Castle
from shoal.engine.base import Decisions
from shoal.errors import BrokenPromiseError, JobError
from shoal.job import Job
from shoal.job import live_audit as module
from shoal.job.live_audit import LiveAudit, live_audit_of
from shoal.spec.policy import KAnonymity, Policy, Window, ZAnonymity
from tests.world import people, write, write_job
from tests.world import shoal as run_shoal

pytestmark = pytest.mark.filterwarnings("ignore:run.seed makes")

K = 5
_start = Castle.start
POLICY = f"k = {K}\nl = 2\ndelay = {{ rows = 30 }}"


class Lying:
    """An engine of a weaker promise, which calls its groups as large as the job demands."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _lie(self, decisions: Decisions) -> Decisions:
        n_subjects = np.where(decisions.n_rows > 0, np.maximum(decisions.n_subjects, K), 0)
        return decisions._replace(n_subjects=n_subjects)

    def push(self, codes: Any) -> Decisions:
        return self._lie(self._engine.push(codes))

    def advance(self, now: float) -> Decisions:
        return self._lie(self._engine.advance(now))

    def flush(self) -> Decisions:
        return self._lie(self._engine.flush())


@dataclasses.dataclass(frozen=True)
class FewPeople(Castle):
    """Castle that forgets most of k: the guard of the run believes what it says."""

    def start(self, schema: Any, policy: Policy, *, seed: bytes) -> Any:
        others = [each for each in policy.criteria if not isinstance(each, KAnonymity)]
        weaker = Policy(KAnonymity(2), *others, delay=policy.delay)
        return Lying(_start(self, schema, weaker, seed=seed))


@dataclasses.dataclass(frozen=True)
class OneValue(Castle):
    """Castle that forgets l, which the guard of the run doesn't look at."""

    def start(self, schema: Any, policy: Policy, *, seed: bytes) -> Any:
        return _start(self, schema, Policy(KAnonymity(policy.k), delay=policy.delay), seed=seed)


def a_job(folder: Path, sample: float, *, run: str = "seed = 7", more: str = "") -> Path:
    path = write_job(folder, policy=POLICY, run=run)
    path.write_text(path.read_text() + f"\n[audit]\nsample = {sample}\n{more}")
    return path


def n_published(path: Path) -> int:
    """How many rows an output has, below the names of its columns."""
    return max(0, len(path.read_text().splitlines()) - 1)


@pytest.mark.parametrize("sample", [0.2, 1])
def test_a_sound_engine_is_not_disturbed(tmp_path, sample):
    write(people(600, n_people=200), tmp_path / "in.csv")
    plain = write_job(tmp_path, policy=POLICY)
    before = shoal.run(plain, input=tmp_path / "in.csv", output=tmp_path / "one.csv")
    job = Job.load(a_job(tmp_path, sample))
    after = shoal.run(job, input=tmp_path / "in.csv", output=tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert after.summary.n_published == before.summary.n_published > 400


@pytest.mark.parametrize(
    ("engine", "promise"), [(FewPeople(), "k-anonymity"), (OneValue(), "distinct l-diversity")]
)
def test_a_broken_engine_is_stopped_before_it_publishes(tmp_path, engine, promise):
    table = people(600, n_people=200)
    if isinstance(engine, OneValue):
        # Nearly all have the same illness: groups without a second one are found soon.
        values = ["flu"] * (len(table) - 1) + ["gout"]
        table = table.set_column(table.schema.get_field_index("illness"), "illness", [values])
    write(table, tmp_path / "in.csv")
    job = dataclasses.replace(Job.load(a_job(tmp_path, 1)), anonymizer=engine)
    with pytest.raises(BrokenPromiseError, match=promise) as raised:
        shoal.run(job, input=tmp_path / "in.csv", output=tmp_path / "out.csv")
    assert raised.value.exit_code == 1
    assert "person-" not in str(raised.value)
    assert n_published(tmp_path / "out.csv") == 0
    # Without the audit nobody notices.
    unaware = dataclasses.replace(job, audit_sample=0.0)
    shoal.run(unaware, input=tmp_path / "in.csv", output=tmp_path / "all.csv")
    assert n_published(tmp_path / "all.csv") > 400


def test_a_sample_finds_it_after_a_while_and_again_after_a_restart(tmp_path, monkeypatch):
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    for i in range(5):
        # Each file is a batch of its own.
        write(people(300, seed=i), incoming / f"{i}.csv")
    state = "seed = 7\ncheckpoint = { folder = 'state', every = 0.1 }"
    path = a_job(tmp_path, 0.005, run=state)
    monkeypatch.setattr("shoal.algorithms.castle.Castle.start", FewPeople.start)
    words = ["run", path, "-i", incoming, "-o", tmp_path / "out.csv", "-q"]
    assert run_shoal(monkeypatch, *words) == 1
    n_out = n_published(tmp_path / "out.csv")
    assert 0 < n_out < 1200
    assert run_shoal(monkeypatch, *words) == 1
    assert n_published(tmp_path / "out.csv") == n_out


def test_a_sample_is_about_as_large_as_asked_for_and_always_the_same():
    groups = np.arange(100_000, dtype=np.int64)
    drawn = module._drawn(groups)
    for share in (0.01, 0.2):
        assert abs((drawn < share).mean() - share) < 0.003
    assert np.array_equal(drawn, module._drawn(groups))
    assert drawn.min() >= 0
    assert drawn.max() < 1


def test_what_cant_be_judged_by_groups_is_refused(tmp_path):
    base = a_job(tmp_path, 0.5).read_text()
    text = base.replace("[publish]", '[publish]\norder = "arrival"')
    arrival = Job.parse(text, folder=tmp_path)
    with pytest.raises(JobError, match=r"audit\.sample: judges whole groups, .* order of arrival"):
        live_audit_of(arrival)
    job = Job.load(a_job(tmp_path, 0.5))
    by_value = dataclasses.replace(job, policy=Policy(ZAnonymity(2), window=Window(rows=100)))
    with pytest.raises(JobError, match="z-anonymity publishes single values"):
        live_audit_of(by_value)
    assert live_audit_of(dataclasses.replace(job, audit_sample=0.0)) is None
    assert isinstance(live_audit_of(job), LiveAudit)


@pytest.mark.parametrize("sample", ["-0.1", "1.5", '"all"', "nan"])
def test_a_share_is_one(tmp_path, sample):
    path = a_job(tmp_path, 0.5)
    path.write_text(path.read_text().replace("sample = 0.5", f"sample = {sample}"))
    with pytest.raises(JobError, match=r"audit\.sample: must be"):
        Job.load(path)


def test_a_job_without_it_cant_resume_one_with_it(tmp_path, monkeypatch, capfd):
    """The rows that are held carry their subjects for the audit."""
    write(people(200), tmp_path / "in.csv")
    state = "seed = 7\ncheckpoint = { folder = 'state', every = 0.1 }"
    words = ["run", a_job(tmp_path, 0.5, run=state), "-i", tmp_path / "in.csv"]
    words += ["-o", tmp_path / "out.csv", "-q"]
    assert run_shoal(monkeypatch, *words) == 0
    write_job(tmp_path, policy=POLICY, run=state)
    assert run_shoal(monkeypatch, *words) == 5
    err = capfd.readouterr().err
    assert "audit.sample is not as it was" in err
    assert "audit.sample is above 0 in all runs of a job, or in none" in err


@pytest.mark.parametrize(
    "policy",
    [
        "k = 3\nt = { variation = 0.9 }\nwindow = 'all'",
        "k = 3\nt = { euclid = 0.9 }\nwindow = { rows = 500 }\ndelay = { rows = 30 }",
        "k = 3\nbeta = 20\nwindow = { rows = 500 }\ndelay = { rows = 30 }",
    ],
)
def test_what_is_measured_against_a_window_is_not_judged_by_a_sample(tmp_path, policy):
    """A first release that has all rows so far must not be taken for the whole stream."""
    name = "tide-table" if "'all'" in policy else "tide"
    path = write_job(tmp_path, policy=policy)
    text = path.read_text().replace("name = 'castle'", f"name = '{name}'")
    path.write_text(f"{text}\n[audit]\nsample = 1\n")
    found = shoal.run(Job.load(path), input=people(90, n_people=90))
    assert found.summary.n_published > 0
