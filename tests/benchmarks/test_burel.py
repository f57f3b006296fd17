"""The figures of BUREL: how groups are judged, how searches go, and the page from end to end."""

from __future__ import annotations

import doctest
import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.figures.burel import judge, privacy, settings, trial
from benchmarks.figures.burel.judge import judged, largest_delta
from benchmarks.figures.burel.settings import hardly_changes, marginal, wavers
from benchmarks.figures.burel.trial import Setting, Trials, decided, promise_of, table
from benchmarks.figures.model import Reading
from benchmarks.figures.salaries import NEEDS

from shoal.spec.hierarchy import Range
from shoal.spec.policy import (
    BasicLikeness,
    DeltaDisclosure,
    EnhancedLikeness,
    RangeLikeness,
    TCloseness,
)
from tests.benchmarks.test_commands import run

needs_salaries = pytest.mark.skipif(
    not all(path.exists() for path in NEEDS), reason="../shared/data has no salaries"
)
CLASSES = Range(0, 9, step=1)


def codes(*numbers):
    return np.array(numbers, np.float64).view(np.int64)


def broken(groups, values, promise):
    """How many groups of a table break a promise."""
    return judged(np.array(groups), codes(*values), codes(*values), CLASSES, promise).n_broken


@pytest.mark.parametrize("module", [judge, settings])
def test_examples(module):
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


# Of eight rows in two groups, each value is a quarter, and half of its group.
GROUPS, VALUES = [0] * 4 + [1] * 4, [1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("kept", "other"),
    [
        (EnhancedLikeness(1.0), EnhancedLikeness(0.99)),
        (DeltaDisclosure(1e9), None),
        (TCloseness(1 / 3), TCloseness(0.33)),
        (RangeLikeness(1.0, epsilon=0.5), RangeLikeness(1.0, epsilon=1)),
    ],
)
def test_a_group_is_judged_by_the_definitions(kept, other):
    if isinstance(kept, DeltaDisclosure):
        # Each group lacks two values, so no delta is large enough.
        assert broken(GROUPS, VALUES, kept) == 2
        assert broken([0, 1, 0, 1], [1, 1, 2, 2], kept) == 0
        return
    assert broken(GROUPS, VALUES, kept) == 0
    assert broken(GROUPS, VALUES, other) == 2


def test_a_frequent_value_may_gain_less_than_beta():
    # p = 3/4, so at most (1 - ln 3/4) 3/4 = 0.97 of a group: less than all of it.
    groups, values = [0] * 6 + [1] * 2, [1] * 6 + [2] * 2
    assert broken(groups, values, EnhancedLikeness(0.3)) == 2
    assert broken(groups, values, EnhancedLikeness(9.0)) == 2
    assert broken([0] * 8, values, EnhancedLikeness(0.01)) == 0


def test_what_is_not_judged_is_refused():
    with pytest.raises(TypeError, match="basic"):
        broken(GROUPS, VALUES, BasicLikeness(1.0))


def test_delta_keeps_likeness_of_values_and_of_runs():
    values = codes(*[1] * 4 + [2] * 2 + [9] * 2)
    assert largest_delta(values, 4.0) == pytest.approx(math.log(1 - math.log(0.5)))
    assert largest_delta(values, 0.5) == pytest.approx(math.log(1.5))
    assert largest_delta(values, 4.0, epsilon=1) == pytest.approx(math.log(1 - math.log(0.75)))


def readings(*values, spread=0.0):
    return [Reading((value - spread, value + spread)) for value in values]


def test_verdicts():
    assert hardly_changes(readings(1.0, 1.5, spread=0.3))[0] == "holds"
    assert marginal(readings(1.0, 1.0, 2.0), readings(1.0, 1.0, 1.0))[0] == "holds in general"
    assert marginal(readings(2.0), readings(1.0)) == ("doesn't hold", "100.0 % to 100.0 % more")
    assert wavers(readings(1.0, 2.0, 3.0)) == ("doesn't hold", "2 steps up, 0 down")
    assert wavers(readings(1.0, 2.0, 1.9, spread=0.2))[0] == "inconclusive"


def test_a_search_halves_towards_the_bad_end():
    tried = []

    def attempt(value):
        tried.append(value)
        return value

    assert privacy.halved(attempt, lambda value: value <= 5, 0.0, 8.0, 3) == 5.0
    assert tried == [0.0, 4.0, 6.0, 5.0]
    assert privacy.halved(attempt, lambda value: False, 0.0, 8.0, 2) == 0.0


@needs_salaries
def test_a_run_reports_its_decisions():
    setting = Setting(300, 2, beta=3.0)
    trials = Trials(seeds=2)
    found = trials.found(setting, "l-mondrian")
    decisions = decided(replace(setting, seed=1), "l-mondrian")
    assert found.runs[1].lost.published == pytest.approx(decisions.losses.mean())
    assert found.runs[1].exposure.n_groups == len(decisions.groups)
    assert found.loss.mean == pytest.approx(np.mean([ran.lost.published for ran in found.runs]))
    assert found.runs[0].seconds > 0
    n_groups = sum(ran.exposure.n_groups for ran in found.runs)
    trials.found(setting, "l-mondrian")  # again, and not counted again
    assert str(trials) == f"Judged: 2 runs with {n_groups:,} groups; none breaks its promise."


@needs_salaries
def test_who_is_asked_for_what():
    setting = Setting(300, 2, beta=3.0)
    assert promise_of(setting, "burel") == EnhancedLikeness(3.0)
    ranged = replace(setting, epsilon=2.0)
    assert promise_of(ranged, "l-mondrian") == RangeLikeness(3.0, epsilon=2.0)
    assert promise_of(replace(setting, t=0.2), "sabre-ak") == TCloseness(0.2)
    shares = np.unique(table(300, 2, 0)[1].sensitive, return_counts=True)[1] / 300
    delta = math.log(1 + min(3.0, -math.log(shares.max())))
    assert promise_of(setting, "d-mondrian").delta == pytest.approx(delta)
    assert promise_of(ranged, "d-mondrian").delta < delta


@needs_salaries
def test_a_broken_promise_ends_everything(monkeypatch):
    # What the engine is asked for isn't what it is judged by.
    monkeypatch.setattr(judge, "TOLERANCE", -0.99)
    with pytest.raises(SystemExit, match=r"l-mondrian: [\d,]+ of [\d,]+ groups break enhanced"):
        trial.Trials(1).run(Setting(310, 2), "l-mondrian")


@needs_salaries
def test_the_page(tmp_path):
    done = run("benchmarks.figures", "burel", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "burel.md").read_text()
    for name in ("4.4", "4.5", "4.6", "4.7", "4.8", "4.9"):
        section = page.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
        picture = f"burel-{name.replace('.', '-')}.svg"
        assert section.lstrip().startswith(f"## Figure {name}: ")
        assert f"({picture})" in section
        assert "groups; none breaks its promise." in section
        assert "| the thesis " in section
        assert "<svg" in (tmp_path / picture).read_text()
