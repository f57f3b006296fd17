from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ParameterError
from shoal.metrics.pollution import Pollution

masks = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20)


@given(masks)
def test_gaps_that_stay_gaps_pollute_nothing(gaps: list[int]) -> None:
    pollution = Pollution(63)
    pollution.add(np.array(gaps), np.array(gaps))
    assert pollution.rate == 0
    assert pollution.as_dict()["before"] == pytest.approx(
        sum(mask.bit_count() for mask in gaps) / (63 * len(gaps))
    )


@given(masks, st.integers(0, 2**63 - 1))
def test_a_root_in_place_of_a_value_pollutes(gaps: list[int], box_gaps: int) -> None:
    pollution = Pollution(63)
    pollution.add(np.array(gaps), np.array(gaps) | box_gaps)
    spoilt = sum((box_gaps & ~mask).bit_count() for mask in gaps)
    assert pollution.rate == pytest.approx(spoilt / (63 * len(gaps)))


def test_one_gap_spoils_a_group() -> None:
    # One of three rows in a group lacks one of four values; the other two lose theirs.
    pollution = Pollution(4)
    pollution.add(np.array([0b0010, 0, 0]), np.array([0b0010] * 3))
    assert pollution.as_dict() == {"before": 1 / 12, "after": 3 / 12, "rate": 2 / 12}


def test_nothing_yet() -> None:
    pollution = Pollution(4)
    pollution.add(np.empty(0, np.int64), np.empty(0, np.int64))
    assert pollution.as_dict() == {"before": None, "after": None, "rate": None}


def test_a_restored_one_continues() -> None:
    straight, restored = Pollution(4), Pollution(4)
    straight.add(np.array([1, 2]), np.array([3, 2]))
    restored.restore(json.loads(json.dumps(straight.state())))
    for pollution in (straight, restored):
        pollution.add(np.array([0]), np.array([8]))
    assert (
        restored.as_dict()
        == straight.as_dict()
        == {"before": 2 / 12, "after": 4 / 12, "rate": 2 / 12}
    )


@pytest.mark.parametrize("n_quasi", [0, 64])
def test_a_mask_has_63_bits(n_quasi: int) -> None:
    with pytest.raises(ParameterError, match="from 1 to 63"):
        Pollution(n_quasi)
