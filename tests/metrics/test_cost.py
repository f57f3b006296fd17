from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import ParameterError
from shoal.metrics.cost import Cost
from tests.metrics.test_summary import a_trace


def test_the_cost_of_fast_and_of_zhou() -> None:
    loss, waited = np.array([0.1, 0.4]), np.array([3, 10])
    fast, zhou = Cost(alpha=0.02), Cost(alpha=0.02, scale=10)
    for cost in (fast, zhou):
        cost.add(loss, waited)
    expected = (0.1 * 1.02**3 + 0.4 * 1.02**10) / 2
    assert fast.published == fast.with_suppressed == pytest.approx(expected)
    # Their loss is the sum over ten attributes.
    assert zhou.published == pytest.approx(10 * expected)
    assert (fast.loss, zhou.loss) == pytest.approx((0.25, 2.5))


def test_without_alpha_it_is_the_loss() -> None:
    cost = Cost(alpha=0)
    cost.add(np.array([0.1, 0.3]), np.array([5, 50]), suppressed=np.array([7, 7]))
    assert cost.as_dict() == pytest.approx({"loss": 0.2, "published": 0.2, "with_suppressed": 0.6})


@pytest.mark.parametrize("unit", ["rows", "seconds"])
def test_from_a_trace(unit: str) -> None:
    cost = Cost.from_trace(a_trace(), alpha=0.5, unit=unit)
    if unit == "rows":
        waits, lost = [2, 1, 0, 4, 3, 1], [4, 2]
    else:
        waits, lost = [0.2, 0.1, 0.0, 0.4, 0.3, 0.1], [0.4, 0.2]
    losses = [0.1, 0.1, 0.1, 0.5, 0.3, 0.3]
    total = sum(loss * 1.5**wait for loss, wait in zip(losses, waits, strict=True))
    all_rows = total + sum(1.5**wait for wait in lost)
    assert cost.as_dict() == pytest.approx(
        {"loss": sum(losses) / 6, "published": total / 6, "with_suppressed": all_rows / 8}
    )


def test_a_trace_without_times_has_no_cost_in_seconds() -> None:
    nothing = pa.nulls(10, pa.float64())
    cost = Cost.from_trace(a_trace(arrived_s=nothing, published_s=nothing), unit="seconds")
    assert cost.as_dict() == {"loss": None, "published": None, "with_suppressed": None}


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(ParameterError, match="trace: lacks the columns outcome, loss"):
        Cost.from_trace(a_trace().drop_columns(["outcome", "loss"]))


def test_what_is_beyond_all_numbers_stays_a_number() -> None:
    cost = Cost(alpha=0.02)
    cost.add(np.array([0.5, 0.0]), np.array([10**6, 10**6]), suppressed=np.full(3, 10**9))
    assert json.loads(json.dumps(cost.as_dict(), allow_nan=False))["with_suppressed"] > 1e300
    nothing_lost = Cost(alpha=0.02)
    nothing_lost.add(np.zeros(1), np.array([10**6]))
    assert nothing_lost.published == 0


def test_a_restored_one_continues() -> None:
    straight, restored = Cost(alpha=0.1), Cost(alpha=0.1)
    straight.add(np.array([0.1, 0.7]), np.array([3, 9]), suppressed=np.array([2]))
    restored.restore(json.loads(json.dumps(straight.state())))
    for cost in (straight, restored):
        cost.add(np.array([0.2]), np.array([4]))
    assert restored.state() == straight.state()
    assert restored.as_dict() == straight.as_dict()


@pytest.mark.parametrize("knobs", [{"alpha": -0.1}, {"alpha": float("nan")}, {"scale": -1}])
def test_what_makes_no_sense_is_refused(knobs: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match="must be a finite number of at least 0"):
        Cost(**knobs)
