"""Times in whatever form they come."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.audit.times import seconds


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (pa.array([1, 2]), [1.0, 2.0]),
        (pa.array(["1.5", "2"]), [1.5, 2.0]),
        (pa.array(["1970-01-02", " 1970-01-01T00:00:01.5Z"]), [86400.0, 1.5]),
        (pa.array([1_500_000_000], pa.timestamp("ns")), [1.5]),
        (pa.array([datetime.date(1970, 1, 2)]), [86400.0]),
        (pa.array([2], pa.timestamp("s", "Europe/Rome")), [2.0]),
    ],
)
def test_times(array: Any, found: list[float]) -> None:
    assert seconds(array).tolist() == found


def test_what_is_no_time_is_nan() -> None:
    assert np.isnan(seconds(pa.array(["soon", None, "5"]))).tolist() == [True, True, False]
