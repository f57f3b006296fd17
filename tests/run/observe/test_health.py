from __future__ import annotations

import json

import pytest

from shoal.run.observe import Health
from shoal.run.observe.health import PATIENCE, Watch
from shoal.testing.clocks import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def watch(clock: ManualClock) -> Watch:
    return Watch(clock=clock)


def test_before_the_first_turn_it_is_starting(watch: Watch, clock: ManualClock) -> None:
    clock.advance(500)
    verdict = watch.verdict()
    assert (verdict.status, verdict.ok) == ("starting", False)
    assert verdict.reasons == ("the run has not begun to read",)
    assert verdict.as_dict()["loop_age_seconds"] is None


def test_a_loop_that_turns_is_well_with_or_without_rows(watch: Watch, clock: ManualClock) -> None:
    for _ in range(10):
        watch.report(Health())
        assert watch.verdict().ok
        clock.advance(PATIENCE)
        assert watch.verdict().ok


def test_a_loop_that_hangs_is_not_well(watch: Watch, clock: ManualClock) -> None:
    watch.report(Health())
    clock.advance(PATIENCE + 1)
    verdict = watch.verdict()
    assert verdict.status == "failing"
    assert verdict.reasons == ("the loop of the run has not turned over for 31 s",)
    watch.report(Health())
    assert watch.verdict().ok


def test_a_checkpoint_may_be_missed_but_not_thrice(watch: Watch, clock: ManualClock) -> None:
    watch.report(Health(checkpoint_age=0.0, checkpoint_every=5.0))
    clock.advance(15)
    assert watch.verdict().ok
    clock.advance(1)  # the loop hangs, so that nobody reports that it grows old
    assert watch.verdict().reasons == ("the last checkpoint is 16 s old; one is due every 5 s",)
    watch.report(Health(checkpoint_age=1.0, checkpoint_every=5.0))
    assert watch.verdict().ok


def test_without_checkpoints_none_is_missed(watch: Watch) -> None:
    watch.report(Health(checkpoint_age=None, checkpoint_every=10.0))
    assert watch.verdict().checkpoint_age is None
    watch.report(Health(checkpoint_age=1e6))
    assert watch.verdict().ok


def test_a_writer_that_is_stuck(watch: Watch, clock: ManualClock) -> None:
    for n_waiting in (0, 1, 2, 3, 3):
        assert watch.verdict().status in ("starting", "ok")
        watch.report(Health(n_waiting=n_waiting, n_written=7))
        clock.advance(PATIENCE / 3)
    assert watch.verdict().reasons == ("nothing was written for 40 s, though something waits",)
    watch.report(Health(n_waiting=3, n_written=8))
    assert watch.verdict().ok


def test_a_writer_with_nothing_to_do_is_not_stuck(watch: Watch, clock: ManualClock) -> None:
    for _ in range(9):
        watch.report(Health(n_waiting=0, n_written=7))
        clock.advance(PATIENCE / 2)
        assert watch.verdict().ok
    watch.report(Health(n_waiting=1, n_written=7))
    assert watch.verdict().ok


def test_a_broker_that_went_away(watch: Watch) -> None:
    watch.report(Health(connected=False))
    assert watch.verdict().reasons == ("the source or the sink is not reached",)


def test_a_failed_run_tells_the_type_alone(watch: Watch) -> None:
    watch.report(Health())
    watch.fail(ValueError("CANARY"))
    found = json.dumps(watch.verdict().as_dict())
    assert json.loads(found)["reasons"] == ["the run has failed with ValueError"]
    assert "CANARY" not in found


def test_a_run_that_fails_at_the_start_is_not_starting(watch: Watch) -> None:
    watch.fail(ValueError("CANARY"))
    assert watch.verdict().status == "failing"


def test_all_reasons_at_once_and_whole_seconds(watch: Watch, clock: ManualClock) -> None:
    watch.report(Health(checkpoint_age=0.75, checkpoint_every=1.0, connected=False, n_waiting=1))
    clock.advance(99.5)
    verdict = watch.verdict()
    assert len(verdict.reasons) == 4
    assert verdict.as_dict() == {
        "status": "failing",
        "reasons": list(verdict.reasons),
        "loop_age_seconds": 99,
        "checkpoint_age_seconds": 100,
    }
