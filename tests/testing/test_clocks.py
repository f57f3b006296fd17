"""The clock that moves only when it is told to."""

from __future__ import annotations

import pytest

from shoal.errors import ParameterError
from shoal.testing.clocks import ManualClock


def test_it_stands_still_and_can_go_back() -> None:
    clock = ManualClock()
    assert clock() == clock() == 0.0
    clock.advance(3)
    assert clock() == 3.0
    clock.set(1)
    assert clock() == 1.0
    assert repr(clock) == "ManualClock(1)"


@pytest.mark.parametrize("now", [float("nan"), float("inf")])
def test_it_is_never_out_of_time(now: float) -> None:
    with pytest.raises(ParameterError, match="finite number of seconds"):
        ManualClock(now)
