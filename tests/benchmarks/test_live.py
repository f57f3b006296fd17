"""The live benchmarks: their parts, and each of them from beginning to end, tiny."""

from __future__ import annotations

import contextlib
import doctest
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.live import a_broker, main
from benchmarks.live_costs import LiveSizes, checkpoints_text, throughput_text
from benchmarks.live_runs import RARELY, Taken
from benchmarks.machine_use import Use
from benchmarks.soak import BROKER
from benchmarks.soak_check import Ledger, rows_of
from benchmarks.soak_job import Messages, SoakJob, write_job
from benchmarks.soak_judge import Moment, judge, summary_text
from benchmarks.soak_plot import draw

from benchmarks import live_costs, machine_use, soak_check
from shoal.datasets import census
from shoal.job import Job
from shoal.testing.broker import ENVIRONMENT, NoBrokerError, create_topics, find_broker

# -- what others do meanwhile ----------------------------------------------------------------------


def test_examples():
    failed, tried = doctest.testmod(soak_check)
    assert tried > 0
    assert failed == 0


def test_own_work_is_not_that_of_others():
    use = Use.now()
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    spent = use.since()
    assert spent.own >= 0.3
    assert 0 <= spent.others <= 1


def test_a_helper_is_not_one_of_the_others(monkeypatch):
    busy, helper = iter([10.0, 16.0]), iter([1.0, 5.0])
    monkeypatch.setattr(machine_use, "_busy", lambda: next(busy))
    monkeypatch.setattr(machine_use, "_seconds_of", lambda pid: next(helper))
    monkeypatch.setattr(machine_use, "_with_us", set())
    machine_use.set_apart(None)
    machine_use.set_apart(os.getpid())
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    before = replace(Use.now(), at=time.perf_counter() - 4.0)
    # Six seconds of work in four seconds, of which four were the helper's and none ours.
    assert before.since().others == pytest.approx(0.5, abs=0.05)


def test_rounds_that_others_disturb_are_made_again():
    shares = iter([0.5, 0.0, 0.02, 0.3])

    def action() -> Taken:
        share = next(shares)
        return Taken(100, 1.0 + share, 0.5, share)

    used, n_rounds = live_costs._rounds(2, action)
    assert n_rounds == 3
    assert [one.others for [one] in used] == [0.0, 0.02]
    shares = iter([0.5, 0.2, 0.9, 0.3])
    used, n_rounds = live_costs._rounds(2, action)
    assert n_rounds == 4
    assert [one.others for [one] in used] == [0.2, 0.3]


# -- telling ---------------------------------------------------------------------------------------

SAMPLE = {"median": 2000.0, "least": 1000.0, "most": 3000.0}


def test_a_target_that_is_missed_is_said_so():
    ratio = {"median": 0.4, "least": 0.3, "most": 0.6}
    both = {"pass-through": SAMPLE, "castle": SAMPLE}
    found = {
        "form": "json", "message_rows": 1000, "n_rows": 5000, "k": 5, "delay": 50,
        "rows_per_second": both, "own_seconds": both, "ratio": ratio, "target": 0.5, "met": False,
        "others": [0.03, 0.041], "n_rounds": {"used": 2, "all": 3},
    }  # fmt: skip
    text = throughput_text([found])
    assert "**not met**" in text
    assert "0.40 (0.30 to 0.60)" in text
    assert "the 2 least disturbed of 3 rounds" in text
    assert "up to 4 %" in text


def test_what_a_checkpoint_takes_is_reported():
    share = {"median": 1.0, "least": 0.9, "most": 1.1}
    way = {
        "every": RARELY, "sealed": False, "n_checkpoints": [0, 0], "rows_per_second": SAMPLE,
        "share": share, "own_share": share, "bytes": None, "save_seconds": None,
        "stop_seconds": None, "roll_seconds": None,
    }  # fmt: skip
    took = {"median": 0.02, "least": 0.01, "most": 0.03}
    sealed = way | {
        "every": 1.0, "sealed": True, "n_checkpoints": [4, 5, 5], "save_seconds": took,
        "stop_seconds": took, "roll_seconds": took, "bytes": {n: 1e8 * v for n, v in took.items()},
    }  # fmt: skip
    text = checkpoints_text(
        {"n_rows": 10, "k": 5, "delay": 50, "ways": [way, sealed], "others": [0.0],
         "seal_seconds": took, "n_rounds": {"used": 1, "all": 1}}
    )  # fmt: skip
    never, often = text.splitlines()[4:6]
    assert never.startswith("| never ")
    assert "–" in never
    assert often.startswith("| every 1 s, sealed |")
    assert "2.0 (1.0 to 3.0)" in often
    assert "20.0 (10.0 to 30.0)" in often
    assert "Every 1 s, sealed: deciding stops for 2.00 (1.00 to 3.00) % of the time" in text
    assert "sealing takes 20 (10 to 30) ms" in text


# -- every row once --------------------------------------------------------------------------------


def test_a_ledger_follows_an_endless_stream():
    ledger = Ledger(patience=100)
    draw_ = np.random.default_rng(3)
    numbers = np.arange(5000)
    for begin in range(0, 5000, 50):
        # Within a batch in any order.
        ledger.add(draw_.permutation(numbers[begin : begin + 50]), 0)
    ledger.close(5000)
    assert ledger.is_right
    assert (ledger.n_rows, ledger.n_missing, ledger.n_doubled) == (5000, 0, 0)


@pytest.mark.parametrize("again", [4990, 4000, 0])
def test_a_row_that_comes_twice_is_noticed_however_late(again):
    ledger = Ledger(patience=100)
    ledger.add(np.arange(5000), 0)
    ledger.add(np.array([again]), 0)
    ledger.close(5000)
    assert ledger.n_doubled == 1
    assert not ledger.is_right


def test_what_is_missing_must_have_been_suppressed():
    for n_suppressed, is_right in ((2, True), (1, False)):
        ledger = Ledger(patience=100)
        ledger.add(np.delete(np.arange(1000), [3, 998]), n_suppressed)
        ledger.close(1000)
        assert ledger.n_missing == 2
        assert ledger.is_right is is_right


def test_a_row_that_was_suppressed_has_no_number():
    values = [b'{"message": 3, "line": 1}\n{"message": null, "line": null}', b'{"line": null}']
    numbers, n_suppressed = rows_of(values, 10)
    assert numbers.tolist() == [31]
    assert n_suppressed == 2


# -- the job and its messages ----------------------------------------------------------------------


def test_messages_are_numbered_and_their_people_never_come_back_after_a_turn():
    job = SoakJob(message_rows=5, n_templates=3)
    people: list[set[str]] = [set(), set()]
    for number, data in enumerate(Messages(job)):
        if number == 6:
            break
        rows = [json.loads(line) for line in data.splitlines()]
        assert [row["message"] for row in rows] == [number] * 5
        assert [row["line"] for row in rows] == list(range(5))
        people[number // 3] |= {row["person_id"] for row in rows}
    assert people[0]
    assert people[0].isdisjoint(people[1])
    assert len(people[0]) == len(people[1])


def test_the_job_has_the_domains_of_the_census(tmp_path):
    path = write_job(
        tmp_path, SoakJob(), address="localhost:9092", source="in", sink="out", name="soak"
    )
    job = Job.load(path)
    schema = census(1).schema
    assert [(q.name, q.domain) for q in job.schema.quasi] == [
        (q.name, q.domain) for q in schema.quasi
    ]
    assert job.schema.sensitive == schema.sensitive
    assert job.name == "soak"
    assert job.checkpoints is not None


# -- the verdict -----------------------------------------------------------------------------------


def moments(n: int = 100, **grown: int) -> list[Moment]:
    """Samples that stay as they are, but for what grows by so much each time."""
    flat = Moment(0.0, 300 << 20, 30, 4000, 0, 10_000_000, 5000)
    return [
        replace(
            flat,
            seconds=2.0 * i,
            n_out=1000 * i,
            **{name: getattr(flat, name) + i * by for name, by in grown.items()},
        )
        for i in range(n)
    ]


def right(n_rows: int = 99_000) -> Ledger:
    ledger = Ledger(patience=n_rows)
    ledger.add(np.arange(n_rows), 0)
    ledger.close(n_rows)
    return ledger


def test_what_stays_flat_is_kept():
    judgement = judge(moments(), right(), 99_000, 0)
    assert judgement.kept
    text = summary_text(moments(), judgement)
    assert "99,000 rows in 3 minutes" in text
    assert "not kept" not in text
    assert json.loads(json.dumps(judgement.as_dict()))["kept"]


@pytest.mark.parametrize(
    ("grown", "name"),
    [
        ({"resident": 1 << 20}, "memory"),
        ({"handles": 1}, "file handles"),
        ({"waiting": 50}, "lag"),
        ({"journal_bytes": 200_000}, "state on disk"),
    ],
)
def test_what_grows_is_not(grown, name):
    judgement = judge(moments(**grown), right(), 99_000, 0)
    assert [verdict.name for verdict in judgement.verdicts if not verdict.kept] == [name]
    assert "**not kept**" in summary_text(moments(), judgement)


@pytest.mark.parametrize(("n_fed", "exit_code"), [(99_001, 0), (99_000, 70)])
def test_a_row_that_is_lost_or_a_job_that_fails_is_not_kept(n_fed, exit_code):
    judgement = judge(moments(), right(), n_fed, exit_code)
    assert [verdict.kept for verdict in judgement.verdicts] == [False, True, True, True, True]


def test_the_same_moments_give_the_same_picture(tmp_path):
    for name in ("one.svg", "two.svg"):
        draw(moments(10), tmp_path / name)
    picture = (tmp_path / "one.svg").read_text()
    assert picture == (tmp_path / "two.svg").read_text()
    assert "file handles" in picture


# -- from beginning to end -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(find_broker())
        except NoBrokerError as error:
            pytest.skip(str(error))
        yield address


@pytest.fixture
def page(broker, monkeypatch, tmp_path):
    """A page to write to, with a broker to measure at."""
    monkeypatch.setenv(ENVIRONMENT, broker)
    path = tmp_path / "page.md"
    names = ("throughput", "checkpoints", "soak")
    path.write_text("".join(f"<!-- live-{n}:begin -->\n<!-- live-{n}:end -->\n" for n in names))
    return path


def test_a_broker_of_our_own_takes_settings_and_is_not_one_of_the_others(broker, monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setattr(machine_use, "_with_us", set())
    with a_broker(BROKER) as address:
        assert address != broker
        assert create_topics({"bootstrap.servers": address}, ["some"]) == ["some"]
        [pid] = machine_use._with_us
        assert machine_use._seconds_of(pid) > 0
    assert machine_use._seconds_of(pid) == 0


def test_throughput(page, tmp_path, capsys):
    values = tmp_path / "values.json"
    words = ["--data", str(tmp_path), "--json", str(values), "--write", str(page)]
    assert main(["throughput", "--quick", *words]) == 0
    found = json.loads(values.read_text())["throughput"]
    sizes = LiveSizes.quick()
    assert [one["n_rows"] for one in found] == [sizes.rows, sizes.rows, sizes.single_rows]
    for one in found:
        assert one["met"] == (one["ratio"]["median"] >= one["target"])
    assert capsys.readouterr().out.strip() in page.read_text()


def test_checkpoints(page, tmp_path, capsys):
    values = tmp_path / "values.json"
    words = ["--data", str(tmp_path), "--json", str(values), "--write", str(page)]
    assert main(["checkpoints", "--quick", "--rows", "400", *words]) == 0
    found = json.loads(values.read_text())["checkpoints"]
    never, seldom, often, sealed = found["ways"]
    assert never["n_checkpoints"] == seldom["n_checkpoints"] == [0]
    assert often["n_checkpoints"][0] > 0
    assert often["bytes"]["median"] > 0
    assert often["stop_seconds"]["median"] >= often["roll_seconds"]["median"] > 0
    assert sealed["sealed"]
    assert found["seal_seconds"]["median"] > 0
    assert capsys.readouterr().out.strip() in page.read_text()


def test_soak(page, tmp_path, capsys):
    values, figure = tmp_path / "values.json", tmp_path / "soak.svg"
    words = ["--json", str(values), "--figure", str(figure), "--write", str(page)]
    code = main(["soak", "--quick", "--minutes", "0.05", *words])
    found = json.loads(values.read_text())
    assert code == (0 if found["kept"] else 1)
    once = found["verdicts"][0]
    # The others are about a run of hours, and this one took seconds.
    assert once["kept"], once["told"]
    assert found["moments"][-1]["n_out"] > 0
    assert found["moments"][-1]["checkpoint_bytes"] > 0
    assert figure.read_text().startswith("<?xml")
    assert capsys.readouterr().out.strip() in page.read_text()
