"""Every example runs on its own and does what it says."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from shoal import Delay, KAnonymity, Policy, attack, run
from shoal.algorithms.castle import Castle
from shoal.attacks.shares import Share
from shoal.errors import UnsupportedError
from shoal.metrics import Summary, base
from shoal.testing.checks import (
    CHECKS,
    FIXED_CHECKS,
    check_jit_equals_python,
    check_promise,
    run_check,
)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A copy of the examples, so that the tests leave nothing in the original."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


def shoal(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from shoal.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def test_the_csv_is_anonymized_and_the_audit_agrees(here: Path) -> None:
    folder = here / "anonymize_a_csv"
    done = shoal(
        folder, "run", "job.toml", "-i", "people.csv", "-o", "published.csv",
        "--trace", "trace.parquet", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert (rows["in"], rows["quarantined"], rows["held"]) == (500, 3, 0)
    assert rows["suppressed"] <= 10
    header = (folder / "published.csv").read_text().partition("\n")[0]
    assert header == "age,sex,postcode,profession,diagnosis"
    judged = shoal(
        folder, "audit", "job.toml", "published.csv",
        "--original", "people.csv", "--trace", "trace.parquet",
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout


@pytest.mark.filterwarnings("ignore:run.seed")
def test_a_kept_ward_would_undo_the_promise_of_the_csv(here: Path) -> None:
    """As docs/attacks.md says: why the example keeps no column."""
    folder = here / "anonymize_a_csv"
    text = (folder / "job.toml").read_text()
    job = folder / "keeping.toml"
    job.write_text(text + '[schema.keep]\ncolumns = ["ward"]\n[run]\nseed = 7\n')
    people, trace = folder / "people.csv", folder / "keeping.parquet"
    with pytest.warns(UserWarning, match="schema.keep publishes ward unchanged"):
        done = run(job, input=people, trace=trace)
    report = attack(job, done.frame, original=people, trace=trace, attacks=["homogeneity"])
    page = (ROOT / "docs" / "attacks.md").read_text()
    for line in str(report).splitlines():
        if line.startswith(("homogeneity", "  homogeneity")):
            assert f"{line}\n" in page
    by_box, by_ward = report.of("homogeneity")
    assert by_box.verdict == "within"
    assert by_ward.success == Share(29, 201)
    assert "68 of 201 people" in by_ward.notes[0]


@pytest.mark.parametrize(
    ("example", "script", "data"),
    [
        ("anonymize_a_csv", "make_people.py", "people.csv"),
        ("publish_a_stream_with_gaps", "make_readings.py", "readings.csv"),
        ("publish_a_stream_with_closeness", "make_visits.py", "visits.csv"),
    ],
)
def test_the_data_are_those_of_the_script(here: Path, example: str, script: str, data: str) -> None:
    folder = here / example
    before = (folder / data).read_bytes()
    (folder / data).unlink()
    subprocess.run([sys.executable, script], cwd=folder, check=True, timeout=600)
    assert (folder / data).read_bytes() == before


def test_a_stream_with_gaps_is_published_and_the_audit_agrees(here: Path) -> None:
    folder = here / "publish_a_stream_with_gaps"
    done = shoal(
        folder, "run", "job.toml", "-i", "readings.csv", "-o", "published.csv",
        "--trace", "trace.parquet", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "can find them in their group" in done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert (rows["in"], rows["published"], rows["quarantined"]) == (600, 600, 0)
    judged = shoal(
        folder, "audit", "job.toml", "published.csv",
        "--original", "readings.csv", "--trace", "trace.parquet",
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout


def test_a_gap_that_stands_for_everything_costs_others_their_labels(
    load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "publish_a_stream_with_gaps"))
    found = load("maybe_or_extended").main()
    maybe, extended = found["maybe"], found["extended"]
    readings = (EXAMPLES / "publish_a_stream_with_gaps" / "readings.csv").read_text()
    n_gaps = sum(not value for line in readings.splitlines() for value in line.split(","))
    assert (maybe.missing, extended.missing) == (n_gaps, 0)
    assert maybe.loss < extended.loss
    # All gaps are everything now, and so is much of what was there.
    assert extended.empty_words > n_gaps + 5 * maybe.empty_words


def test_a_stream_is_close_to_its_windows_and_the_audit_agrees(here: Path) -> None:
    folder = here / "publish_a_stream_with_closeness"
    done = shoal(
        folder, "run", "job.toml", "-i", "visits.csv", "-o", "published.csv",
        "--trace", "trace.parquet", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert (rows["in"], rows["published"]) == (1500, 1500)
    windows = pq.read_table(folder / "trace.parquet")["window"].to_pylist()
    # The first, a few between, and what is left at the end.
    assert {400, 1500} < set(windows) <= set(range(400, 1501, 100))
    judged = shoal(
        folder, "audit", "job.toml", "published.csv",
        "--original", "visits.csv", "--trace", "trace.parquet", "--json",
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout
    verdicts = {one["name"]: one for one in json.loads(judged.stdout)["verdicts"]}
    figures = verdicts["t-closeness of diagnosis"]["figures"]
    assert figures["worst_group_closeness_by_rows"] <= 0.2


def test_a_table_whose_groups_tell_little(load) -> None:
    found = load("publish_a_table_with_closeness").main(rows=500)
    assert {one.verdict for one in found.values()} == {"kept"}
    loose = found["k = 5", "mondrian"]
    for (promised, _), one in found.items():
        if promised == "t = 0.2":
            assert one.closeness <= 0.2 < loose.closeness
        if promised == "beta = 2":
            assert one.gain <= 2 < loose.gain
        assert one.loss >= loose.loss


def test_the_job_of_the_page_is_that_of_the_example() -> None:
    """Comments may differ."""

    def bare(text: str) -> list[str]:
        lines = (line.partition("#")[0].rstrip() for line in text.splitlines())
        return [line for line in lines if line]

    page = (ROOT / "docs" / "job.md").read_text(encoding="utf-8")
    first = page.partition("```toml\n")[2].partition("```")[0]
    assert bare(first) == bare((EXAMPLES / "anonymize_a_csv" / "job.toml").read_text())


def test_a_shell_pipe(here: Path, tmp_path: Path) -> None:
    command = tmp_path / "shoal"
    command.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from shoal.cli import main; main()" "$@"\n'
    )
    command.chmod(0o755)
    done = subprocess.run(
        [here / "pipe_through_a_shell.sh"],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    counts = {line.split()[1]: int(line.split()[0]) for line in done.stdout.splitlines()}
    assert len(counts) == 10
    assert 487 <= sum(counts.values()) <= 497


def test_from_python(load, capsys: pytest.CaptureFixture[str]) -> None:
    summary, report = load("from_python").main(rows=600)
    assert report.verdict == "kept"
    assert summary.n_published + summary.suppression.count == 600
    assert "person_id" not in capsys.readouterr().out


def test_events_are_published_at_once(load, capsys: pytest.CaptureFixture[str]) -> None:
    example = load("publish_events_at_once")
    found = example.main(rows=1200)
    assert found.report.verdict == "kept"
    assert found.published.column_names == ["pseudonym", "article", "where", "at"]
    assert found.summary.n_published == found.published.num_rows
    assert found.summary.delay.rows.largest == 0
    # Values are published at every level of their ladders, and some are hidden.
    shown = found.published["article"].to_pylist()
    assert {label.count("/") for label in shown if label is not None} == {0, 1, 2}
    assert all(min(shares) > 0 for shares in found.exposure.levels.values())
    assert found.published["where"].null_count > 0
    # Each value is shared by many, all of them together by few.
    assert found.exposure.mean(found.exposure.k_anonymous) < 0.5
    subjects = set(example.purchases(1200)["customer"].to_pylist())
    assert subjects.isdisjoint(capsys.readouterr().out.replace(",", " ").split())


def test_a_larger_k_loses_more(load) -> None:
    losses = load("compare_loss_over_k").main(rows=600, ks=(2, 10, 40))
    assert losses[2] < losses[10] < losses[40]


def test_the_more_waiting_costs_the_shorter_a_wait_pays(load) -> None:
    free, dear = load("publish_when_waiting_costs").main(rows=400, alphas=(0.0, 0.02)).values()
    for found in (free, dear):
        assert found["min-delay"].wait == min(one.wait for one in found.values())
        assert found["min-delay"].loss == max(one.loss for one in found.values())
        assert found["tree-full"].loss < found["tree-basic"].loss
    assert all(one.cost == pytest.approx(one.loss) for one in free.values())
    assert all(one.cost > one.loss for one in dear.values())
    # A deadline that is best where waiting is free is the worst where it isn't.
    longest = "fads, 400 rows"
    assert free[longest].cost == min(one.cost for one in free.values())
    assert dear[longest].cost == max(one.cost for one in dear.values())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_algorithm_of_ones_own_keeps_the_contract(load, check) -> None:
    run_check(check, load("write_an_algorithm").FirstCome, examples=5)


@pytest.mark.parametrize("check", FIXED_CHECKS, ids=lambda check: check.__name__)
def test_an_algorithm_of_ones_own_keeps_the_fixed_checks(load, check) -> None:
    if check is check_jit_equals_python:
        pytest.skip("it has no kernels of its own to compare")
    check(load("write_an_algorithm").FirstCome())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_who_enforces_a_criterion_of_ones_own_keeps_the_contract(load, check) -> None:
    run_check(check, load("write_a_criterion").FairShare, examples=5)


def test_the_audit_judges_a_criterion_of_ones_own(load) -> None:
    example = load("write_a_criterion")
    reports = example.main(rows=200)
    assert reports["fair-share"].verdict == "kept"
    broken = reports["first-come"]["alpha-share of illness"]
    assert broken.verdict == "broken"
    assert broken.figures["worst_share"] > 0.6
    # Those who don't know the promise refuse it.
    policy = Policy(KAnonymity(2), example.AlphaShare(0.6), delay=Delay(rows=9))
    with pytest.raises(UnsupportedError, match="'castle' can't enforce alpha-share"):
        Castle().check(policy)


def test_the_contract_finds_one_who_breaks_a_criterion_of_ones_own(load) -> None:
    example = load("write_a_criterion")

    class Forgetful(example.FairShare):
        _start = example.FirstCome._start

    with pytest.raises(AssertionError, match="breaks alpha-share of illness"):
        run_check(check_promise, Forgetful, examples=5)


def test_a_metric_of_ones_own_is_in_the_summary(
    load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(base, "_METRICS", dict(base._METRICS))
    monkeypatch.delitem(sys.modules, "write_a_metric", raising=False)
    summary = load("write_a_metric").main(rows=300)
    assert summary.n_published == 300
    share = summary.as_dict()["sharpness"]["share"]
    assert 0 < share <= 1
    assert f"sharpness: {round(300 * share)} rows" in capsys.readouterr().out
    # It is merged and restored as the others are.
    total = Summary()
    total.restore(summary.state())
    total.merge(summary)
    assert total.as_dict()["sharpness"] == {"share": share}
    assert total.metrics["sharpness"].n_published == 600


def test_every_example_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    shown = [path for path in EXAMPLES.iterdir() if not path.name.startswith(("_", "."))]
    assert [path.name for path in shown if f"../examples/{path.name})" not in index] == []
