"""Which runs nothing beats, and which one is recommended, on figures that are made up."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.algorithms import find
from shoal.compare.cells import Cell
from shoal.compare.choice import GridRun, pareto_front, recommend
from shoal.compare.measure import Figures
from shoal.compare.pool import Outcome
from shoal.spec.policy import Delay, DistinctLDiversity, KAnonymity, Policy, TCloseness, Window


def figures(loss: float | None, risk: float | None, **others: Any) -> Figures:
    made = {
        "n_rows": 100, "n_published": 100, "n_suppressed": 0, "n_quarantined": 0, "loss": loss,
        "loss_with_suppressed": loss, "loss_by_attribute": {"age": loss}, "query_error": 0.5,
        "suppression": 0.0, "delay_unit": "rows", "delay_mean": 5.0, "delay_median": 5.0,
        "delay_p99": 9.0, "delay_most": 9.0, "waits": (50, 100), "wait_bounds": (5.0, 10.0),
        "n_groups": 10, "smallest_group": 5, "risk": risk, "attack_success": risk,
        "attack_low": 0.0, "attack_high": 1.0, "attack_bound": 0.2, "attack_verdict": "within",
        "rows_per_s": 1000.0, "audit": "kept", "audit_detail": "",
    }  # fmt: skip
    return Figures(**made | others)


def policy(k: int, l: int = 1, rows: int = 100) -> Policy:  # noqa: E741
    diversity = [DistinctLDiversity(l)] if l > 1 else []
    return Policy(KAnonymity(k), *diversity, delay=Delay(rows=rows))


def run(
    name: str, promised: Policy, loss: float | None, risk: float | None, **others: Any
) -> GridRun:
    found = figures(loss, risk, **others)
    return GridRun(Cell(find(name)(), promised), Outcome("done", found))


def not_run(name: str, promised: Policy) -> GridRun:
    return GridRun(Cell(find(name)(), promised), Outcome("unsupported", reason="can't"))


def test_the_front_has_the_runs_that_nothing_beats_in_loss_and_risk():
    runs = [
        run("castle", policy(5), 0.30, 0.20),
        run("tide", policy(5), 0.20, 0.20),
        run("castle", policy(10), 0.40, 0.10),
        run("fads", policy(10), 0.45, 0.10),
        not_run("mondrian", policy(5)),
    ]
    assert pareto_front(runs) == {1, 2}


def test_equal_runs_are_both_on_the_front():
    assert pareto_front([run(name, policy(5), 0.3, 0.2) for name in ("castle", "tide")]) == {0, 1}


def test_runs_under_other_promises_dont_beat_each_other():
    runs = [
        run("castle", policy(5), 0.2, 0.2),
        run("castle", policy(5, l=3), 0.3, 0.2),
        run("castle", policy(5, rows=10), 0.4, 0.2),
    ]
    assert pareto_front(runs) == {0, 1, 2}


def test_a_broken_promise_and_a_run_without_figures_are_never_on_the_front():
    runs = [
        run("castle", policy(5), 0.1, 0.1, audit="broken"),
        run("tide", policy(5), None, None),
        run("fads", policy(5), 0.3, 0.2),
    ]
    assert pareto_front(runs) == {2}


def test_the_jobs_own_promise_is_recommended_with_what_others_would_cost():
    runs = [
        run("castle", policy(5), 0.30, 0.20),
        run("tide", policy(5), 0.20, 0.20),
        run("tide", policy(10), 0.35, 0.10),
    ]
    found = recommend(runs, own=policy(5))
    assert found is not None
    assert found.place == 1
    assert " ".join(found.reason) == (
        "tide with k = 5, delay = 100 rows: that is what the job promises. It loses least of 2 "
        "algorithms that kept it: 0.200, before castle with 0.300. Instead, k = 10 would lose "
        "0.350 (tide)."
    )


def test_else_the_strictest_promise_that_is_kept_is_recommended():
    runs = [
        run("castle", policy(5), 0.10, 0.2),
        run("castle", policy(10), 0.30, 0.1),
        run("castle", policy(10, l=2), 0.40, 0.1),
        run("castle", policy(20, l=2), 0.90, 0.1, audit="broken"),
    ]
    found = recommend(runs, own=policy(7))
    assert found is not None
    assert found.place == 2
    assert "the strictest promise of the grid that was kept" in found.reason[0]


def test_a_smaller_t_is_stricter():
    window = Window(rows=100, advance=50)
    policies = [
        Policy(KAnonymity(5), TCloseness(t), window=window, delay=Delay(rows=200))
        for t in (0.3, 0.1, 0.2)
    ]
    found = recommend([run("castle", each, 0.3, 0.1) for each in policies])
    assert found is not None
    assert found.place == 1


@pytest.mark.parametrize(
    "flaw",
    [
        {"audit": "broken"},
        {"audit": "unverifiable"},
        {"attack_verdict": "exceeded"},
        {"n_published": 0},
    ],
)
def test_what_isnt_kept_is_never_recommended(flaw):
    bad = run("tide", policy(5), 0.1, 0.2, **flaw)
    good = run("castle", policy(5), 0.5, 0.2)
    found = recommend([bad, good])
    assert found is not None
    assert found.place == 1
    assert recommend([bad]) is None


def test_of_nearly_equal_losses_the_smaller_query_error_decides():
    runs = [
        run("tide", policy(5), 0.300, 0.2, query_error=0.5),
        run("castle", policy(5), 0.302, 0.2, query_error=0.4),
    ]
    found = recommend(runs)
    assert found is not None
    assert found.place == 1
    assert "nearly as little as tide (0.300)" in found.reason[1]
