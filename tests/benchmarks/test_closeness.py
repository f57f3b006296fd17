"""The figures on t-closeness: their data, and the judge that every run has to pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.figures.model import Claim, Reading
from benchmarks.figures.sabre.trial import Trial, found, judge, ran, simulated
from benchmarks.figures.sabre.words import flat, not_uniform, promise_text, times_as_fast, widens
from benchmarks.figures.salaries import (
    N_CLASSES,
    NEEDS,
    QUASI,
    classes,
    salaries,
    thesis_shares,
)
from benchmarks.figures.variants import VARIANTS, told

from shoal.spec.policy import Window

needs_salaries = pytest.mark.skipif(
    not all(path.exists() for path in NEEDS),
    reason="../shared/data has no acs_gov_employees_2018 or its hierarchies",
)

TABLE = Trial("sabre-ak", 90, 3, 3, 0.4)
STREAM = Trial("sabre-w", 90, 3, 3, 0.45, Window(rows=40, advance=20))


def readings(*values):
    return [Reading((value,)) for value in values]


def test_classes_are_near_equal_and_keep_equal_numbers_together():
    rng = np.random.default_rng(5)
    numbers = rng.integers(0, 400, 5_000)
    of = classes(numbers, 20)
    counts = np.bincount(of)
    assert len(counts) == 20
    assert counts.min() > 225
    assert counts.max() < 275
    order = np.argsort(numbers, kind="stable")
    assert (np.diff(of[order]) >= 0).all()
    assert all(len(set(of[numbers == number])) == 1 for number in set(numbers.tolist()))


def test_as_many_classes_as_numbers_and_no_more():
    assert classes(np.array([3, 1, 1, 1, 2]), 3).tolist() == [2, 0, 0, 0, 1]
    with pytest.raises(ValueError, match="3 different numbers don't make 4 classes"):
        classes(np.array([3, 1, 1, 1, 2]), 4)


def test_the_thesis_tells_the_most_and_the_least_frequent_class():
    shares = thesis_shares()
    assert len(shares) == N_CLASSES
    assert sum(shares) == pytest.approx(1.0)
    assert (shares.index(max(shares)), max(shares)) == (12, pytest.approx(0.048402))
    assert (shares.index(min(shares)), min(shares)) == (49, pytest.approx(0.002018))
    assert (np.diff(shares[:13]) > 0).all()
    assert (np.diff(shares[12:]) < 0).all()


def test_classes_take_the_shares_that_they_are_given():
    numbers = np.random.default_rng(5).permutation(10_000)
    found = np.bincount(classes(numbers, N_CLASSES, thesis_shares())) / len(numbers)
    assert found == pytest.approx(thesis_shares(), abs=2e-4)


def test_what_depends_on_the_variant_is_counted():
    verdicts = ("holds", "holds in general", "doesn't hold", "inconclusive")
    text = told([Claim("", verdict, "") for verdict in verdicts])
    assert "in 2 of 4 cases, and doesn't hold in 1; 1 can't be decided" in text


@needs_salaries
def test_a_variant_of_mondrian_is_judged_like_the_others():
    usual = ran(replace(TABLE, algorithm="t-mondrian"))
    other = ran(replace(TABLE, algorithm="t-mondrian", knobs=VARIANTS["widest, code, once"]))
    assert other.judged.closeness <= TABLE.t
    assert other.judged.n_groups <= usual.judged.n_groups


@needs_salaries
def test_salaries_are_a_sample_by_seed():
    schema, codes = salaries(300, 4, seed=1)
    assert tuple(quasi.name for quasi in schema.quasi) == QUASI[:4]
    assert codes.values.shape == (300, 4)
    assert codes.subjects.tolist() == list(range(300))
    again, other = salaries(300, 4, seed=1)[1], salaries(300, 4, seed=2)[1]
    assert np.array_equal(codes.sensitive, again.sensitive)
    assert not np.array_equal(codes.values, other.values)
    assert np.array_equal(salaries(300, 2, seed=1)[1].values, codes.values[:, :2])
    class_of = codes.sensitive.view(np.float64)
    assert class_of.min() >= 0
    assert class_of.max() < N_CLASSES
    with pytest.raises(ValueError, match="7 quasi attributes, not 10 and 8"):
        salaries(10, 8, seed=1)


@pytest.mark.parametrize("fanout", [2, 3, 7, 25])
def test_simulated_trees_have_leaves_in_order_and_no_wider_nodes(fanout):
    tree = simulated(50, fanout)
    assert tree.leaves == tuple(map(str, range(50)))
    n_children = np.bincount(tree.parents[1:])
    assert n_children.max() <= fanout
    assert (n_children[n_children > 0] >= 2).all()


@needs_salaries
def test_a_tree_has_the_same_classes():
    _, codes = TABLE.data()
    schema, leaves = replace(TABLE, fanout=5).data()
    assert schema.sensitive[0].domain.leaves[0] == "0"
    assert np.array_equal(leaves.sensitive, codes.sensitive.view(np.float64))


@needs_salaries
def test_shuffled_salaries_are_those_of_other_rows():
    _, codes = TABLE.data()
    _, mixed = replace(TABLE, shuffled=True).data()
    assert np.array_equal(np.sort(mixed.sensitive, axis=0), np.sort(codes.sensitive, axis=0))
    assert not np.array_equal(mixed.sensitive, codes.sensitive)
    assert np.array_equal(mixed.values, codes.values)


@needs_salaries
@pytest.mark.parametrize("trial", [TABLE, STREAM, replace(TABLE, fanout=5, t=0.6)], ids=str)
def test_a_run_is_judged(trial):
    run = ran(trial)
    assert run.judged.n_groups == sum(len(some.groups) for some in run.decisions)
    assert 0 < run.judged.closeness <= trial.t
    assert 0 < run.lost.published <= run.lost.with_suppressed <= 1
    assert run.compared().n_rows == trial.rows


@needs_salaries
@pytest.mark.parametrize("trial", [TABLE, STREAM], ids=str)
def test_a_broken_promise_is_found(trial):
    run = ran(trial)
    schema, codes = trial.data()
    least = min(int(some.n_rows.min()) for some in run.decisions if len(some.n_rows))
    with pytest.raises(RuntimeError, match=f"a group has {least} subjects"):
        judge(replace(trial, k=least + 1), schema, codes, run.decisions)
    strict = replace(trial, t=run.judged.closeness - 1e-6)
    with pytest.raises(RuntimeError, match="a group is at a distance of"):
        judge(strict, schema, codes, run.decisions)
    with pytest.raises(RuntimeError, match="not every row was decided once"):
        judge(replace(trial, rows=trial.rows + 1), schema, codes, run.decisions)


@needs_salaries
def test_groups_are_measured_against_their_own_window():
    run = ran(STREAM)
    schema, codes = STREAM.data()
    before, after = run.decisions
    moved = after._replace(windows=np.full_like(after.windows, 40))
    assert len(set(after.windows.tolist()) - {40}) > 0
    with pytest.raises(RuntimeError, match="a group is at a distance of inf"):
        judge(STREAM, schema, codes, (before, moved))


@needs_salaries
def test_seeds_are_other_rows_and_judged_once_each():
    trial = replace(TABLE, rows=40)
    cells = found(trial, 2)
    first, second = cells.runs
    assert first.trial.seed == 0
    assert second.trial.seed == 1
    assert first.lost != second.lost
    n_groups = first.judged.n_groups + second.judged.n_groups
    assert promise_text([cells, cells]).startswith(f"All {n_groups} groups of the 2 runs")


def test_verdicts():
    assert flat(readings(0.5, 0.54))[0] == "holds"
    assert flat(readings(0.5, 0.56))[0] == "doesn't hold"
    assert widens(readings(0.1, 0.1), readings(0.2, 0.3))[0] == "holds"
    assert widens(readings(0.1, 0.3), readings(0.2, 0.3))[0] == "doesn't hold"
    assert not_uniform(readings(0.1, 0.3, 0.2))[0] == "holds"
    assert not_uniform(readings(0.3, 0.2, 0.1))[0] == "doesn't hold"
    quick, slow = readings(1.0, 1.0, 1.0), readings(100.0, 100.0, 99.0)
    assert times_as_fast(quick, slow, 99)[0] == "holds"
    assert times_as_fast(quick, slow, 100)[0] == "holds in general"
    assert times_as_fast(quick, slow, 101) == ("doesn't hold", "99 to 100 times")
