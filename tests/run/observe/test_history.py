"""The history of figures: bounded, with rates, and saved with checkpoints."""

from __future__ import annotations

import dataclasses
import json
import logging

import pytest

from shoal.run.observe.figures import Buckets, Figures
from shoal.run.observe.history import RANGES, History
from tests.run.observe.figures import some_figures

START = 1_700_000_000.0


def filled(n: int, step: float = 10.0) -> History:
    history = History(10.0)
    base = some_figures()
    for i in range(n):
        figures = dataclasses.replace(
            base, n_in=100 * i, n_published=80 * i, n_held=i, loss_sum=8.0 * i, lag=None
        )
        history.add(figures, START + step * i)
    return history


def test_rates_are_those_since_the_sample_before():
    series = filled(3).series("recent")
    assert series["t"] == [START, START + 10, START + 20]
    assert series["in"] == [None, 10.0, 10.0]
    assert series["out"] == [None, 8.0, 8.0]
    assert series["loss"] == [None, 0.1, 0.1]
    assert series["held"] == [0, 1, 2]
    assert series["lag"] == [None] * 3
    assert series["late"] == [None, 0.0, 0.0]


def test_memory_is_bounded_and_the_ranges_reach_as_far_as_they_say():
    history = filled(10_000)
    for name, kept in RANGES.items():
        times = history.series(name)["t"]
        assert len(times) == kept.n_samples
        assert times[-1] - times[0] == (kept.n_samples - 1) * kept.every * 10
    assert len(json.dumps(history.state())) < 100_000


def test_a_gap_and_a_fallen_counter_have_no_rate():
    history = filled(3)
    later = dataclasses.replace(some_figures(), n_in=1000, n_published=800, loss_sum=80.0)
    history.add(later, START + 3600)
    series = history.series("recent")
    # No line is drawn over the gap: in the middle of it nothing is known.
    assert series["t"][2:] == [START + 20, START + 1810, START + 3600]
    for name, values in series.items():
        assert name == "t" or values[-2] is None
    assert series["held"][-1] == later.n_held
    assert series["in"][-1] is None
    fallen = dataclasses.replace(later, n_in=900, n_published=810, loss_sum=90.0)
    history.add(fallen, START + 3610)
    series = history.series("recent")
    assert series["in"][-1] is None
    assert series["out"][-1] == 1.0
    assert series["loss"][-1] == 1.0


@pytest.mark.parametrize(("missing", "is_gap"), [(1, False), (2, True), (3, True)])
def test_missing_samples_are_a_gap(missing, is_gap):
    for name, kept in RANGES.items():
        step = 10.0 * kept.every
        history = filled(3, step)
        later = START + (3 + missing) * step
        history.add(dataclasses.replace(some_figures(), n_in=1000), later)
        series = history.series(name)
        middle = [(START + 2 * step + later) / 2] if is_gap else []
        assert series["t"][2:] == [START + 2 * step, *middle, later]
        assert series["held"][3:-1] == [None] * len(middle)
        assert (series["in"][-1] is None) == is_gap


def test_no_rate_and_no_line_goes_over_a_restart():
    """Also over a short one: a run that went back to its checkpoint counts rows again."""
    before, after = filled(50), History(10.0)
    for n_runs in (1, 2):
        after.restore(json.loads(json.dumps(before.state())))
        for name, kept in RANGES.items():
            assert after.series(name) == before.series(name)
            last = after.series(name)["t"][-1]
            assert last is not None
            at = last + 10 * kept.every
            figures = dataclasses.replace(some_figures(), n_in=9000 + n_runs, n_published=9000)
            after.add(figures, at)
            after.add(dataclasses.replace(figures, n_in=9100 + n_runs), at + 10 * kept.every)
            series = after.series(name)
            assert series["t"][-3:] == [(last + at) / 2, at, at + 10 * kept.every]
            assert series["held"][-3:] == [None, figures.n_held, figures.n_held]
            assert series["in"][-3:] == [None, None, round(10.0 / kept.every, 3)]
        before, after = after, History(10.0)


def test_a_restart_is_kept_where_the_clock_was_set_back():
    before, after = filled(50), History(10.0)
    after.restore(before.state())
    for i, at in enumerate((START + 105, START + 110, START + 120)):
        after.add(dataclasses.replace(some_figures(), n_in=9000 + 100 * i), at)
    series = after.series("recent")
    assert series["t"][-4:] == [START + 100, START + 105, START + 110, START + 120]
    assert series["in"][-4:] == [10.0, None, None, 10.0]


def test_a_restart_is_kept_where_the_clock_is_set_back_after_it():
    before, after = filled(50), History(10.0)
    after.restore(before.state())
    # The gap has its middle at 120 before the clock is set back, and at 117.5 afterwards.
    for i, at in enumerate((START + 130, START + 112, START + 125, START + 135)):
        after.add(dataclasses.replace(some_figures(), n_in=9000 + 100 * i), at)
    series = after.series("recent")
    assert series["t"][-4:] == [START + 110, START + 117.5, START + 125, START + 135]
    assert series["in"][-4:] == [10.0, None, None, 10.0]


def test_it_is_saved_and_restored():
    before, after = filled(50), History(10.0)
    after.restore(json.loads(json.dumps(before.state())))
    for name in RANGES:
        assert after.series(name) == before.series(name)
    assert after.series("recent")["t"]


@pytest.mark.parametrize(
    "state",
    [None, [], {}, {"samples": 3}, {"samples": {"recent": [[1, 2]]}},
     {"samples": {"recent": ["CANARY"], "long": {"x": 1}}},
     {"samples": {"recent": []}},
     {"samples": {"recent": [[1.0] * 10 + [float("nan")]], "long": []}},
     {"samples": {"recent": [[1.0] * 10 + [10**400]], "long": []}}],
)  # fmt: skip
def test_a_history_that_cant_be_read_is_left_out(state, caplog):
    history = filled(2)
    with caplog.at_level(logging.WARNING, "shoal"):
        history.restore(state)
    assert len(history.series("recent")["t"]) == 2
    assert [record.message for record in caplog.records] == ["history ignored"]


# The figures rise by as much as they can.
@pytest.mark.parametrize("step", [5e-324, 1e-9])
def test_samples_that_are_all_but_at_one_time_have_no_rates(step):
    history = History(10.0)
    recent = [[at, *[figure] * 10] for at, figure in ((0.0, 0), (step, 1e18), (1.0, 1e18))]
    history.restore({"samples": {"recent": recent, "long": []}})
    series = history.series("recent")
    assert series["in"] == [None, None, 0.0]
    assert series["loss"] == [None, None, None]
    json.dumps(series, allow_nan=False)


def figures_with(groups: Buckets, delay: Buckets, *n_in: int) -> Figures:
    """Figures with these buckets, and with as many rows in each shard."""
    return dataclasses.replace(
        some_figures(), group_subjects=groups, delay_rows=delay, delay_seconds=None,
        shards=tuple((n, 0, 0, 0) for n in n_in),
    )  # fmt: skip


def test_buckets_and_shards_are_of_the_last_hour_once_there_was_one():
    history = History(10.0)
    old = ((20, 5), (40, 9), (float("inf"), 10))
    new = ((20, 15), (40, 20), (float("inf"), 21))
    assert history.lately(figures_with(new, new, 7, 8)) == {
        "since": None, "groups": new, "delay": new, "shards": (7, 8),
    }  # fmt: skip
    for i in range(400):
        history.add(figures_with(old, old, 3, 8), START + 10 * i)
    lately = history.lately(figures_with(new, old, 7, 8))
    assert lately["since"] == START + 300
    assert lately["groups"] == ((20, 10), (40, 11), (float("inf"), 11))
    assert lately["delay"] == ((20, 0), (40, 0), (float("inf"), 0))
    assert lately["shards"] == (4, 0)
    # A run that went back to its checkpoint has counted fewer.
    assert history.lately(figures_with(((20, 1),), new))["groups"] == ((20, 1),)
    # There are other shards after a migration.
    for n_in in ((), (9,), (2, 8), (1, 2, 3)):
        assert history.lately(figures_with(new, new, *n_in))["shards"] == n_in
