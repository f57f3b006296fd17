from __future__ import annotations

import json

import pytest

from shoal.run.observe import Health
from shoal.run.observe.health import PATIENCE, HealthMonitor
from shoal.testing.clocks import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def monitor(clock: ManualClock) -> HealthMonitor:
    return HealthMonitor(clock=clock)


def test_before_the_first_turn_it_is_starting(monitor: HealthMonitor, clock: ManualClock) -> None:
    clock.advance(500)
    verdict = monitor.verdict()
    assert (verdict.status, verdict.ok) == ("starting", False)
    assert verdict.reasons == ("the run has not begun to read",)
    assert verdict.as_dict()["loop_age_seconds"] is None


def test_a_loop_that_turns_is_well_with_or_without_rows(
    monitor: HealthMonitor, clock: ManualClock
) -> None:
    for _ in range(10):
        monitor.report(Health())
        assert monitor.verdict().ok
        clock.advance(PATIENCE)
        assert monitor.verdict().ok


def test_a_loop_that_hangs_is_not_well(monitor: HealthMonitor, clock: ManualClock) -> None:
    monitor.report(Health())
    clock.advance(PATIENCE + 1)
    verdict = monitor.verdict()
    assert verdict.status == "failing"
    assert verdict.reasons == ("the main loop of the run has not advanced for 31 s",)
    monitor.report(Health())
    assert monitor.verdict().ok


def test_a_checkpoint_may_be_missed_but_not_thrice(
    monitor: HealthMonitor, clock: ManualClock
) -> None:
    monitor.report(Health(checkpoint_age=0.0, checkpoint_every=5.0))
    clock.advance(15)
    assert monitor.verdict().ok
    clock.advance(1)  # the loop hangs, so that nobody reports that it grows old
    assert monitor.verdict().reasons == ("the last checkpoint is 16 s old; one is due every 5 s",)
    monitor.report(Health(checkpoint_age=1.0, checkpoint_every=5.0))
    assert monitor.verdict().ok


def test_without_checkpoints_none_is_missed(monitor: HealthMonitor) -> None:
    monitor.report(Health(checkpoint_age=None, checkpoint_every=10.0))
    assert monitor.verdict().checkpoint_age is None
    monitor.report(Health(checkpoint_age=1e6))
    assert monitor.verdict().ok


def test_a_writer_that_is_stuck(monitor: HealthMonitor, clock: ManualClock) -> None:
    for n_waiting in (0, 1, 2, 3, 3):
        assert monitor.verdict().status in ("starting", "ok")
        monitor.report(Health(n_waiting=n_waiting, n_written=7))
        clock.advance(PATIENCE / 3)
    assert monitor.verdict().reasons == ("nothing was written for 40 s, although rows are waiting",)
    monitor.report(Health(n_waiting=3, n_written=8))
    assert monitor.verdict().ok


def test_a_writer_with_nothing_to_do_is_not_stuck(
    monitor: HealthMonitor, clock: ManualClock
) -> None:
    for _ in range(9):
        monitor.report(Health(n_waiting=0, n_written=7))
        clock.advance(PATIENCE / 2)
        assert monitor.verdict().ok
    monitor.report(Health(n_waiting=1, n_written=7))
    assert monitor.verdict().ok


def test_a_broker_that_went_away(monitor: HealthMonitor) -> None:
    monitor.report(Health(connected=False))
    assert monitor.verdict().reasons == ("the source or the sink is unreachable",)


def test_a_failed_run_shows_the_type_alone(monitor: HealthMonitor) -> None:
    monitor.report(Health())
    monitor.fail(ValueError("CANARY"))
    found = json.dumps(monitor.verdict().as_dict())
    assert json.loads(found)["reasons"] == ["the run has failed with ValueError"]
    assert "CANARY" not in found


def test_a_run_that_fails_at_the_start_is_not_starting(monitor: HealthMonitor) -> None:
    monitor.fail(ValueError("CANARY"))
    assert monitor.verdict().status == "failing"


def test_all_reasons_at_once_and_whole_seconds(monitor: HealthMonitor, clock: ManualClock) -> None:
    monitor.report(Health(checkpoint_age=0.75, checkpoint_every=1.0, connected=False, n_waiting=1))
    clock.advance(99.5)
    verdict = monitor.verdict()
    assert len(verdict.reasons) == 4
    assert verdict.as_dict() == {
        "status": "failing",
        "reasons": list(verdict.reasons),
        "loop_age_seconds": 99,
        "checkpoint_age_seconds": 100,
    }
