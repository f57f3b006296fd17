"""What is measured of a run of the figures, against the engine itself and against slow counting."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.figures.fast.alive import n_alive, n_to_choose_from
from benchmarks.figures.fast.data import Repeated
from benchmarks.figures.idea.data import TREES, Incomplete
from benchmarks.figures.streams import ADULT
from benchmarks.figures.trial import Ran, Trial, found, ran

from shoal.algorithms import find
from shoal.engine.base import Outcome
from shoal.engine.space import Codes
from shoal.spec.policy import Delay, KAnonymity, Policy

pytestmark = pytest.mark.skipif(
    not (ADULT.exists() and TREES.exists()), reason="../shared/data has no adult.csv or hierarchies"
)

KNOBS = {"age": 40, "kept": 12, "loss": "lm", "reuse": "random"}


@pytest.mark.parametrize("algorithm", ["fads", "fast"])
def test_kept_groups_are_counted_as_the_engine_has_them(algorithm):
    renewed = algorithm == "fast"
    knobs = KNOBS | ({"workers": 2, "block": 4, "reuse": "best"} if renewed else {})
    trial = Trial(Repeated(300), algorithm, 3, 20, tuple(knobs.items()))
    whole = ran(trial)
    stream = trial.stream.stream()
    policy = Policy(KAnonymity(3), delay=Delay(rows=20))
    engine = find(algorithm)(**knobs).start(stream.schema, policy, seed=trial.seed())
    n_rows = len(stream.codes.subjects)
    counts = []
    for i in range(n_rows):
        engine.push(Codes(*(array[i : i + 1] for array in stream.codes)))
        kept = engine.state.kept
        since = kept.groups["since"][: kept.marks["n_kept"][0]]
        counts.append(int(np.count_nonzero(i - since <= KNOBS["age"])))
    counted = n_alive(whole, age=40, kept=12, at=np.arange(n_rows), renewed=renewed)
    assert counted.tolist() == counts
    assert max(counts) > 5
    assert np.count_nonzero(whole.outcomes == Outcome.reuse) > 5


def test_kept_groups_are_counted_by_rounds_as_the_engine_has_them():
    knobs = KNOBS | {"workers": 2, "capacity": 19, "reuse": "best", "age": 4, "age_unit": "rounds"}
    trial = Trial(Repeated(300), "fast", 3, None, tuple(knobs.items()))
    whole = ran(trial).in_rounds()
    stream = trial.stream.stream()
    engine = find("fast")(**knobs).start(stream.schema, Policy(KAnonymity(3)), seed=trial.seed())
    counts = []
    for i in range(len(stream.codes.subjects)):
        decided = engine.push(Codes(*(array[i : i + 1] for array in stream.codes)))
        if len(decided.rows):
            kept = engine.state.kept
            since = kept.groups["since"][: kept.marks["n_kept"][0]]
            counts.append(int(np.count_nonzero(len(counts) - since <= knobs["age"])))
    counted = n_alive(whole, age=4, kept=12, at=np.arange(len(counts)), renewed=True)
    assert counted.tolist() == counts
    assert max(counts) > 5


def a_run(*decided):
    """Rows as (outcome, published, group)."""
    outcomes, published, groups = map(np.array, zip(*decided, strict=True))
    n = len(outcomes)
    return Ran(
        np.arange(n), outcomes, published, np.zeros(n), groups, np.zeros(0), 0.0, 0.0, 0.0,
    )  # fmt: skip


def test_a_group_counts_until_it_is_old_or_dropped():
    run = a_run((0, 10, 0), (0, 10, 0), (0, 12, 1), (1, 13, 0), (0, 20, 2))
    at = np.arange(9, 24)

    def counted(**knobs):
        return n_alive(run, at=at, **knobs).tolist()

    #                                         10          13          16              20
    assert counted(age=3, kept=9, renewed=False) == [0, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]
    assert counted(age=3, kept=9, renewed=True) == [0, 1, 1, 2, 2, 2, 2, 1, 0, 0, 0, 1, 1, 1, 1]
    assert counted(age=3, kept=1, renewed=False) == [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]


def test_what_a_row_can_join_was_there_before_it():
    run = a_run((0, 10, 0), (0, 12, 1), (1, 13, 0), (2, 14, -1), (2, 16, -1), (2, 17, -1))
    counted = n_to_choose_from(run, age=3, kept=9, renewed=False)
    assert counted.tolist() == [0, 1, 2, 1, 0, 0]
    counted = n_to_choose_from(run, age=3, kept=9, renewed=True)
    assert counted.tolist() == [0, 1, 2, 2, 1, 0]


def test_all_figures_of_a_run():
    knobs = (("loss", "lm"), ("reuse", "best"))
    trial = Trial(Incomplete("adult", 400, 3), "fads", 4, 30, knobs, "maybe")
    run = ran(trial)
    assert sorted(run.rows.tolist()) == list(range(400))
    assert run.waited.min() >= 0
    assert run.waited.max() <= 30
    assert run.pollution == 0
    assert run.lost.published == pytest.approx(run.losses[run.is_published].mean())
    assert len(run.new_groups) == len(set(run.groups[run.outcomes == Outcome.group].tolist()))
    assert run.wall > 0


def test_gaps_as_roots_pollute():
    trial = Trial(Incomplete("adult", 400, 3), "fads", 4, 30, missing="extended")
    stream = trial.stream.stream()
    run = ran(trial)
    is_gap = np.isnan(stream.codes.values)
    members: dict[int, list[int]] = {}
    for row, group, outcome in zip(run.rows, run.groups, run.outcomes, strict=True):
        if outcome == Outcome.group:
            members.setdefault(int(group), []).append(int(row))
    spoilt = sum(
        int((is_gap[members[int(group)]].any(axis=0) & ~is_gap[row]).sum())
        for row, group in zip(run.rows[run.is_published], run.groups[run.is_published], strict=True)
    )
    assert run.pollution == pytest.approx(spoilt / (run.is_published.sum() * 10))
    assert run.pollution > 0.1


def test_seeds_are_other_gaps_and_runs_are_made_once():
    trial = Trial(Incomplete("adult", 200, 3), "fads", 4, 30, missing="maybe")
    runs = found(trial, 2)
    assert found(trial, 2) is runs
    assert runs.loss.least < runs.loss.most
    assert runs.loss.runs[1] == ran(trial.with_seed(1)).lost
