"""The figures and the speed of the R-tree family: data, judge, words, and all of it, tiny."""

from __future__ import annotations

import doctest
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.figures.model import Reading
from benchmarks.figures.trees import judge as judging
from benchmarks.figures.trees import trial, words
from benchmarks.figures.trees.data import MOST_ROWS, NEEDS, QUASI, employees, schema_of, stream
from benchmarks.figures.trees.judge import SPAN, Promise, judge
from benchmarks.figures.trees.settings import TreeSizes, axes
from benchmarks.figures.trees.trial import ALGORITHMS, Setting, Trials, ran
from benchmarks.figures.trees.words import about, far_below, joint, linear, slower_growth, stable
from benchmarks.trees_runs import employees_file
from benchmarks.trees_twins import alike
from benchmarks.workloads import ADULT

from benchmarks import trees
from shoal.algorithms import find
from shoal.engine.space import Codes
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema
from tests.benchmarks.test_commands import run
from tests.naive.castle import Decision

needs_employees = pytest.mark.skipif(
    not all(path.exists() for path in NEEDS),
    reason="../shared/data has no acs_gov_employees_2018 or its hierarchies",
)
needs_adult = pytest.mark.skipif(not ADULT.exists(), reason="../shared/data/adult.csv isn't there")
CUBE = Setting("uniform", 90, 3, 3, 0.001, 20, 50, 30)


def readings(*values):
    return [Reading((value,)) for value in values]


# -- data ------------------------------------------------------------------------------------------


@needs_employees
def test_rows_that_are_equal_in_all_seven_attributes_are_one_person():
    whole = employees(5_000, 7, seed=1)[1]
    few = employees(5_000, 3, seed=1)[1]
    assert np.array_equal(few.values, whole.values[:, :3])
    assert np.array_equal(few.subjects, whole.subjects)
    people = {}
    for values, subject in zip(map(tuple, whole.values.tolist()), whole.subjects, strict=True):
        assert people.setdefault(values, subject) == subject
    assert len(set(people.values())) == len(people) < 5_000


@needs_employees
def test_samples_differ_with_the_seed_and_have_the_order_of_the_paper():
    schema, codes = employees(200, 4, seed=1)
    assert tuple(quasi.name for quasi in schema.quasi) == QUASI[:4]
    assert np.array_equal(codes.values, employees(200, 4, seed=1)[1].values)
    assert not np.array_equal(codes.values, employees(200, 4, seed=2)[1].values)


@needs_employees
def test_one_row_of_each_person():
    codes = employees(100_000, 7, seed=0, distinct=True)[1]
    assert len(set(codes.subjects.tolist())) == 100_000
    with pytest.raises(ValueError, match="rows and 7 quasi attributes, not 200,000 and 7"):
        employees(200_000, 7, seed=0, distinct=True)
    with pytest.raises(ValueError, match="204,309 rows and 7 quasi attributes, not 10 and 8"):
        employees(10, 8, seed=0)
    assert len(employees(MOST_ROWS, 1, seed=0)[1].subjects) == MOST_ROWS


@needs_employees
def test_occupations_are_major_groups():
    domain = schema_of().quasi[QUASI.index("occupation")].domain
    assert len(domain) == 23
    assert domain.label(0, 1) == "Management, business, science and arts"
    assert domain.label(22, 22) == "55"
    assert domain.label(0, 22) == "*"


@pytest.mark.parametrize("data", ["uniform", "gaussian"])
def test_points_in_a_cube(data):
    schema, codes = stream(data, 300, 3, seed=1)
    assert len(schema.quasi) == 3
    assert codes.values.shape == (300, 3)
    assert codes.values.min() >= 0
    assert codes.values.max() <= 10
    assert len(set(codes.subjects.tolist())) == 300
    assert not np.array_equal(codes.values, stream(data, 300, 3, seed=2)[1].values)


@needs_employees
def test_a_longer_file_begins_as_a_shorter_one(tmp_path):
    short, long = (employees_file(rows, tmp_path) for rows in (40, 90))
    tables = [pq.read_table(one.path) for one in (short, long)]
    assert tables[0].num_rows == short.n_rows == 40
    assert tables[1].slice(0, 40).equals(tables[0])
    assert short.schema.subject is None
    made = short.path.stat().st_mtime_ns
    assert employees_file(40, tmp_path).path.stat().st_mtime_ns == made


# -- the judge -------------------------------------------------------------------------------------


def decided(k=2, capacity=6):
    """A short stream of four people, and what became of it."""
    schema = Schema("person", [Quasi("age", Range(0, 100)), Quasi("height", Range(0, 10))])
    draw = np.random.default_rng(7)
    values = draw.integers(0, 10, (40, 2)).astype(float)
    people = draw.integers(0, 4, 40)
    codes = Codes(values, people, np.empty((40, 0), np.int64), np.full(40, np.nan))
    anonymizer = find("tree-basic")(capacity=capacity, loss="uncertainty")
    engine = anonymizer.start(schema, Policy(KAnonymity(k)), seed=b"judge")
    return schema, codes, (engine.push(codes), engine.flush())


def test_what_is_judged():
    schema, codes, decisions = decided()
    found = judge(schema, codes, Promise(2, 6, 0, 0.001), decisions)
    assert found.n_rows == 40
    assert found.n_groups == sum(len(some.groups) for some in decisions)
    n_suppressed = sum(int((some.boxes < 0).sum()) for some in decisions)
    assert found.n_suppressed == n_suppressed
    losses = np.concatenate([some.losses[some.boxes >= 0] for some in decisions])
    assert found.penalty == pytest.approx(2 * losses.mean())
    waits = np.concatenate(
        [(some.published - some.rows)[some.boxes >= 0] for some in decisions]
    )  # fmt: skip
    assert found.delay == pytest.approx(waits.mean())
    assert found.cost == pytest.approx((2 * losses * 1.001**waits).mean())
    assert judge(schema, codes, Promise(2, 6, 0, 0.0), decisions).cost == pytest.approx(
        found.penalty
    )


def test_rows_that_come_when_the_capacity_is_used_up_are_counted():
    schema, codes, decisions = decided()
    held, n_full, gone = 0, 0, np.concatenate([some.published for some in decisions])
    for row in range(40):
        n_full += held == 6
        held = row + 1 - int((gone <= row).sum())
    assert judge(schema, codes, Promise(2, 6, 0, 0.001), decisions).n_full == n_full > 0


def test_a_broken_promise_is_found():
    schema, codes, decisions = decided()
    first, last = decisions
    promise = Promise(2, 6, 0, 0.001)

    def changed(some, **fields):
        return some._replace(**fields), last

    most = max(int(some.n_subjects.max()) for some in decisions if len(some.groups))
    with pytest.raises(RuntimeError, match=r"a group has \d people"):
        judge(schema, codes, promise._replace(k=most + 1), decisions)
    with pytest.raises(RuntimeError, match="not every row was decided once"):
        judge(schema, codes, promise, (first,) * 2)
    with pytest.raises(RuntimeError, match="a box doesn't cover its rows"):
        judge(schema, codes, promise, changed(first, lo=first.lo + 20))
    with pytest.raises(RuntimeError, match="loses something else than the engine says"):
        judge(schema, codes, promise, changed(first, losses=first.losses + 0.01))
    with pytest.raises(RuntimeError, match=r"\d rows were held"):
        judge(schema, codes, promise._replace(capacity=3), decisions)
    late = changed(first, published=first.published + SPAN * 6 + 1)
    with pytest.raises(RuntimeError, match="a row waited for"):
        judge(schema, codes, promise, late)
    with pytest.raises(RuntimeError, match="a row waited for"):
        judge(schema, codes, promise._replace(capacity=0, delay=1), decisions)
    # A table may hold everything.
    judge(schema, codes, promise._replace(capacity=0), late)


def test_groups_that_leave_for_the_delay_of_a_row_are_counted():
    schema, codes, decisions = decided()
    waits = {}
    for some in decisions:
        for row, box, published in zip(some.rows, some.boxes, some.published, strict=True):
            if box >= 0:
                waits.setdefault(some.groups[box], []).append(published - row)
    longest = max(max(some) for some in waits.values())
    found = judge(schema, codes, Promise(2, 0, int(longest), 0.001), decisions)
    assert found.n_due == sum(max(some) == longest for some in waits.values()) > 0
    assert found.n_full == 0


# -- runs and words --------------------------------------------------------------------------------


def test_a_run_is_run_once_and_differs_with_the_seed():
    trials = Trials(2)
    found = trials.found(CUBE, "tree-density")
    assert found.runs[0] is ran(CUBE, "tree-density")
    assert found.runs[0].judged != found.runs[1].judged
    assert found.cost.mean > found.penalty.mean > 0
    assert found.delay.mean > 0
    assert found.seconds.least > 0
    reported = str(trials)
    n_groups = sum(one.judged.n_groups for one in found.runs)
    assert reported.startswith(
        f"2 seeds. Judged: 2 runs with {n_groups} groups; none breaks its promise."
    )


def test_how_often_the_capacity_was_used_up_is_reported():
    trials = Trials(1)
    trials.along([CUBE], ("min-delay", "mondrian"))
    assert str(trials).startswith("1 seed. ")
    assert str(trials).endswith("when a row came: Min-delay 0.0 % of the rows.")
    tight = Setting("uniform", 90, 3, 3, 0.001, 20, 50, capacity=6)
    full = trials.found(tight, "tree-basic").runs[0].judged.n_full / 90
    reported = f"Min-delay 0.0 %, Basic {100 * full:.1f} % of the rows."
    assert full > 0
    assert str(trials).endswith(reported)
    judged = trials.found(replace(tight, capacity=0, delay=8), "tree-full").runs[0].judged
    due = judged.n_due / judged.n_groups
    assert due > 0
    assert str(trials).endswith(
        f"{reported} Groups left for the delay of a row: Full {100 * due:.1f} % of the groups."
    )


def test_knobs_are_given_to_those_who_have_them():
    assert CUBE.anonymizer("mondrian") == find("mondrian")(loss="uncertainty")
    assert CUBE.anonymizer("min-delay") == find("min-delay")(loss="uncertainty", capacity=30)
    full = CUBE.anonymizer("tree-full")
    assert (full.alpha, full.samples, full.sampled, full.capacity) == (0.001, 20, 50, 30)
    assert CUBE.policy("mondrian") == Policy(KAnonymity(3), window="all")
    assert CUBE.policy("tree-full") == Policy(KAnonymity(3))
    assert full.due == "current"
    assert replace(CUBE, due="drawn").anonymizer("tree-basic").due == "drawn"
    in_time = replace(CUBE, capacity=0, delay=9)
    assert in_time.policy("tree-full") == Policy(KAnonymity(3), delay=Delay(rows=9))
    assert in_time.promise("tree-full") == Promise(3, 0, 9, 0.001)
    assert in_time.promise("mondrian") == Promise(3, 0, 0, 0.001)


def test_each_experiment_varies_one_parameter():
    sizes = TreeSizes()
    usual = sizes.usual()
    for key, axis in axes(sizes).items():
        for x, setting in zip(axis.xs, axis.settings, strict=True):
            varied = key.removeprefix("some_")
            assert getattr(setting, varied) == x
            usual_rows = varied != "rows" or x == sizes.rows
            assert key == "alpha" or (setting.rows == sizes.rows) == usual_rows
            assert (setting.data, setting.capacity, setting.delay) == (usual.data, 5_000, 0)
    assert sizes.usual("gaussian").n_quasi == 3
    tight = sizes.usual(bound=sizes.tight)
    assert (tight.capacity, tight.delay) == (0, 1_000)
    assert (tight.due, usual.due) == ("current", "drawn")
    assert list(map(str, (*sizes.bounds, sizes.wide))) == [
        "due times drawn once, at most 5,000 rows held", "a delay of 1,000 rows",
        "at most 5,000 rows held",
    ]  # fmt: skip


@pytest.mark.parametrize("module", [words, judging, trial])
def test_examples(module):
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


def test_words():
    xs = [1, 2, 3, 4]
    assert linear(xs, readings(4.0, 3.0, 2.0, 1.0))[0] == "doesn't hold"
    noisy = [Reading((0.0, 2.0)), Reading((1.0, 4.0)), Reading((0.5, 3.5)), Reading((3.0, 5.0))]
    assert linear(xs, noisy)[0] == "inconclusive"
    assert about(readings(7, 7, 30), readings(1, 1, 1), 7)[0] == "holds in general"
    assert about(readings(0.6), readings(1.0), 1.0)[0] == "holds"
    assert far_below(readings(0.5, 0.5, 0.99), readings(1, 1, 1))[0] == "holds in general"
    assert slower_growth(readings(1, 1.5, 2, 3, 4), 2)[0] == "doesn't hold"
    assert stable(readings(1.0, 1.2))[0] == "doesn't hold"
    assert words.alike([Reading((1.0, 3.0))], [Reading((2.5, 4.5))])[0] == "holds"  # the spreads
    assert words.alike(readings(1, 1, 9), readings(1, 1, 1))[0] == "holds in general"


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "holds in general", "doesn't hold"], "holds in general"),
        (["holds", "inconclusive"], "inconclusive"),
        (["doesn't hold", "doesn't hold", "holds"], "doesn't hold"),
        (["inconclusive"], "inconclusive"),
    ],
)
def test_one_verdict_on_several_methods(verdicts, together):
    assert joint({str(i): (verdict, "") for i, verdict in enumerate(verdicts)})[0] == together


def test_a_different_decision_is_reported():
    decisions = list(decided()[2])
    reported = {}
    for some in decisions:
        for i, row in enumerate(some.rows.tolist()):
            box = some.boxes[i]
            group, name = (None, "suppressed") if box < 0 else (int(some.groups[box]), "group")
            reported[row] = (name, group, float(some.losses[i]))

    def twin(changed=None, loss=0.0):
        return [
            Decision(row, name, group, None, None, lost + loss * (row == changed), 0, 0, None)
            for row, (name, group, lost) in reported.items()
        ]

    assert alike(decisions, twin())
    assert not alike(decisions, twin(changed=3, loss=0.01))
    assert not alike(decisions, twin()[1:])
    other = twin()
    other[5] = Decision(other[5].row, "group", 99, None, None, other[5].loss, 0, 0, None)
    assert not alike(decisions, other)


# -- from end to end -------------------------------------------------------------------------------


@needs_employees
def test_the_page(tmp_path):
    done = run("benchmarks.figures", "trees", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "trees.md").read_text()
    for name in ("due", *range(3, 12)):
        section = page.partition(f"<!-- trees-{name}:begin -->")[2]
        section = section.partition(f"<!-- trees-{name}:end -->")[0]
        heading = "Due times: " if name == "due" else f"Figure {name}: "
        assert section.lstrip().startswith(f"## {heading}")
        assert f"(trees-{name}.svg)" in section
        assert "none breaks its promise" in section
        assert ("| the question " if name == "due" else "| the paper ") in section
        assert "<svg" in (tmp_path / f"trees-{name}.svg").read_text()


@needs_employees
@needs_adult
def test_trees(tmp_path):
    page, values = tmp_path / "page.md", tmp_path / "values.json"
    page.write_text("# Page\n<!-- trees:begin -->\n<!-- trees:end -->\nend\n")
    done = run("benchmarks.trees", "--quick", "--data", tmp_path, "--json", values, "--write", page)
    assert done.returncode == 0, done.stderr
    found = json.loads(values.read_text())
    assert [line["algorithm"] for line in found["files"]["algorithms"]] == list(ALGORITHMS)
    for line in found["files"]["algorithms"]:
        judged = line["algorithm"] == "tree-density"
        assert line["met"] == (line["ratio"]["median"] <= 5 if judged else None)
        assert 0 < line["loss"]["published"] < 1
    assert found["engines"]["met"] == (found["engines"]["ratio"]["median"] <= 7)
    assert [one["n_rows"] for one in found["lengths"]["runs"]] == [100, 200, 400]
    assert found["lengths"]["linear"] == (found["lengths"]["ratio"]["median"] <= 4 * 1.15)
    assert [one["algorithm"] for one in found["twins"]] == list(ALGORITHMS)
    assert all(one["alike"] for one in found["twins"])
    for one in found["memory"]:
        assert [each["n_rows"] for each in one["runs"]] == [20, 200]
    assert done.stdout.strip() in page.read_text()
    assert page.read_text().endswith("<!-- trees:end -->\nend\n")
    assert not list(tmp_path.glob("published-*"))


def test_what_is_not_there_is_left_out(tmp_path, monkeypatch, capsys):
    nothing = {name: (part, (tmp_path / "nothing",)) for name, (part, _) in trees.PARTS.items()}
    monkeypatch.setattr(trees, "PARTS", nothing)
    trees.main(["--quick", "--only", "files", "memory", "--data", str(tmp_path)])
    reported = capsys.readouterr()
    assert reported.err.count("left out, for ../shared/data has no nothing") == 2
    assert "###" not in reported.out


def test_a_part_is_written_alone(tmp_path, monkeypatch):
    title = "R-trees: the engines alone"
    monkeypatch.setattr(trees, "PARTS", {"engines": (lambda sizes, _: {}, ())})
    monkeypatch.setattr(trees, "parts", lambda results, sections: {title: "new"})
    page = tmp_path / "page.md"
    page.write_text(f"<!-- trees:begin -->\n### Other\n\n### {title}\n\nold\n<!-- trees:end -->\n")
    trees.main(["--quick", "--only", "engines", "--write", str(page)])
    assert page.read_text().split() == (
        f"<!-- trees:begin --> ### Other ### {title} new <!-- trees:end -->".split()
    )
