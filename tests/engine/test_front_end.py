"""What the front end leaves out changes neither the types of a kernel nor its results."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from shoal.engine.jit import kernel

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="nothing is compiled in plain Python"
)

RECORD = np.array([(3, 0.5)], np.dtype([("n", np.int8), ("x", np.float32)]))[0]


@kernel
def numbers(i, f, small, is_on):
    """Asks for the same operator with other types, and with constants."""
    sums = i + i, i + f, i + is_on, i + small, small + small, f + is_on, i + 1, i + True, i + 1.0
    return sums, i < f, i < i, -small, -f, min(i, 2), min(i, f)


@kernel
def lists(n, record):
    """Has a closure, a list, and a field that is found by its name."""

    def twice(x):
        return 2 * x

    return twice(n), [1, n][1], record["n"], record["x"]


@pytest.mark.parametrize(
    ("ours", "args"),
    [(numbers, (5, 1.5, np.uint8(200), True)), (lists, (4, RECORD))],
    ids=["numbers", "lists"],
)
def test_a_kernel_is_what_numba_makes_of_it(ours: Any, args: tuple[Any, ...]) -> None:
    theirs = numba.njit(ours.py_func)
    np.testing.assert_equal(ours(*args), theirs(*args))
    assert ours.nopython_signatures == theirs.nopython_signatures
