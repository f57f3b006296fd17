"""When a window is looked at."""

from __future__ import annotations

import pytest

from shoal.engine.z.window import ZWindow, slot_of


@pytest.mark.parametrize(
    ("clock", "slot"), [(0.0, -2), (9.9, -1), (10.0, 0), (14.9, 0), (15.0, 1), (1e300, 2**60)]
)
def test_slots_begin_when_a_whole_window_has_passed(clock: float, slot: int) -> None:
    assert slot_of(clock, 0.0, ZWindow(True, 10.0, 10.0, 5.0)) == slot


def test_without_a_step_there_is_none() -> None:
    assert slot_of(1e9, 0.0, ZWindow(True, 10.0, 10.0, 0.0)) == -1
