"""How kernels are compiled: each once, called by name, and with pointers to named tuples."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.caching import NullCache
from numba.core.runtime import _nrt_python, rtsys

from shoal.engine.jit import inlined, kernel, specialized
from tests.engine.test_cache import python

compiled_only = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="nothing is compiled in plain Python"
)


class Part(NamedTuple):
    values: np.ndarray
    n: int
    is_on: bool


class Whole(NamedTuple):
    values: np.ndarray
    part: Part
    other: np.ndarray


class Two(NamedTuple):
    one: np.ndarray
    two: np.ndarray


def whole() -> Whole:
    return Whole(np.arange(5.0), Part(np.arange(4.0), 7, True), np.zeros(3))


@kernel
def small(values, i):
    return values[i] + 1.0


@inlined
def copied(values, i):
    return 2.0 * values[i]


@kernel
def large(w, i):
    """Has many instructions, and changes arrays of a named tuple while it reads them."""
    total = 0.0
    for j in range(20):
        if w.part.is_on:
            total += w.part.values[j % len(w.part.values)] * w.values[i]
        total += copied(w.values, i) + small(w.other, 0)
    for j in range(len(w.other)):
        w.other[j] += j
        for k in range(j):
            total += w.other[k] + w.part.n
    while total > 1000.0:
        total = total / 2.0 - w.values[len(w.values) - 1]
    for j in range(len(w.values) - 1):
        w.values[j], w.values[j + 1] = w.values[j + 1], w.values[j]
        if w.values[j] > 3.0:
            w.values[j] -= 1.0
    return total


@kernel
def chosen(two, is_first):
    """Return a view of one of two arrays."""
    values = two.one if is_first else two.two
    view = values[1:]
    view[0] += 9.0
    return view


@kernel
def caller(w, two):
    part = w.part
    own = Whole(w.values, part, np.ones(4))
    total = large(own, 1) + large(w, 0)
    return total + chosen(two, total > 0.0).sum() + chosen(Two(w.values, own.other), False).sum()


def test_compiled_and_plain_decide_alike_about_named_tuples() -> None:
    def results(function) -> list[float]:
        w, two = whole(), Two(np.zeros(3), np.ones(3))
        return [*(function(w, two) for _ in range(3)), *w.values, *w.other, *two.one, *two.two]

    code = (
        "from tests.engine.test_linking import *\n"
        "w, two = whole(), Two(np.zeros(3), np.ones(3))\n"
        "found = [*(caller(w, two) for _ in range(3)), *w.values, *w.other, *two.one, *two.two]\n"
        "print([float(one) for one in found])"
    )
    plain = python(code, NUMBA_DISABLE_JIT="1", SHOAL_CACHE_DIR=os.devnull)
    assert plain == str([float(one) for one in results(caller)])


@compiled_only
def test_what_is_allocated_is_freed_and_nothing_twice() -> None:
    w, two = whole(), Two(np.zeros(3), np.ones(3))
    caller(w, two)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(100):
            caller(w, two)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    view = chosen(two, True)
    kept = view.copy()
    del two
    np.testing.assert_array_equal(view, kept)


@compiled_only
def test_a_large_callee_is_called_by_name_and_a_small_one_is_copied() -> None:
    caller(whole(), Two(np.zeros(3), np.ones(3)))
    [form] = caller.overloads.values()
    assert "large" in {need.name for need in form.library.needs.values()}
    [form] = large.overloads.values()
    assert {need.name for need in form.library.needs.values()} <= {"large"}


class Pair(NamedTuple):
    one: Two
    two: Two


@kernel
def first_of(two):
    return two.one[0]


@kernel
def swapped(pair, n):
    x, y = pair.one, pair.two
    total = 0.0
    for _ in range(n):
        x, y = y, x
        total = total * 10 + first_of(x)
    return total


@kernel
def one_behind(pair, n):
    x, y = pair.one, pair.two
    total = 0.0
    for _ in range(n):
        old = x
        x = y
        y = old
        total = total * 10 + first_of(old)
    return total


def test_a_variable_that_changes_in_a_loop_is_passed_as_it_was() -> None:
    pair = Pair(Two(np.array([1.0]), np.zeros(1)), Two(np.array([3.0]), np.zeros(1)))
    assert swapped(pair, 4) == 3131
    assert one_behind(pair, 4) == 1313


@compiled_only
def test_a_constant_argument_makes_no_form_of_its_own() -> None:
    @kernel
    def both(values):
        return small(values, 0) + small(values, 1)

    # From the cache it would come without the forms that it was compiled with.
    both._cache = NullCache()
    assert both(np.arange(2.0)) == 3.0
    assert len([args for args in small.overloads if args[0].layout == "C"]) == 1


@compiled_only
def test_but_it_does_where_a_kernel_asks_for_it() -> None:
    @specialized
    def shifted(values, offset):
        return values[offset]

    @kernel
    def both(values):
        return shifted(values, 0) + shifted(values, 1)

    both._cache = NullCache()
    assert both(np.arange(2.0)) == 1.0
    assert len(shifted.overloads) == 2


@compiled_only
def test_python_can_call_what_only_a_kernel_has_called() -> None:
    @kernel
    def inner(x):
        return x + 1

    @kernel
    def outer(x):
        return inner(x) * 2

    assert outer(1) == 4
    assert inner(1) == 2
    assert outer(2) == 6


@compiled_only
def test_a_named_tuple_is_not_passed_to_a_function_that_is_no_kernel() -> None:
    @numba.njit
    def foreign(two):
        return two.one[0]

    @kernel
    def calls(two):
        return foreign(two)

    with pytest.raises(numba.core.errors.UnsupportedError, match="to a @kernel only"):
        calls(Two(np.zeros(3), np.ones(3)))


CALL = (
    "from tests.engine.test_linking import *\n"
    "total = caller(whole(), Two(np.zeros(3), np.ones(3)))\n"
    "print(total, [sum(k.stats.cache_hits.values()) for k in (caller, large)])"
)


@pytest.mark.nightly
def test_a_caller_from_the_cache_loads_what_it_calls(tmp_path: Path) -> None:
    def call() -> str:
        return python(CALL, SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0")

    first = call()
    assert first.endswith("[0, 0]")
    total = first.partition(" ")[0]
    assert call() == f"{total} [1, 1]"
    for path in tmp_path.rglob("large-*.nb?"):
        path.unlink()
    # The callee is compiled again, under the same name.
    assert call() == f"{total} [1, 0]"
    assert call() == f"{total} [1, 1]"


@kernel
def doubled(values):
    """Return a new array; large enough to be called by name."""
    out = np.empty(len(values))
    for i in range(len(values)):
        out[i] = 2.0 * values[i]
        for j in range(i):
            if out[j] > out[i]:
                out[j], out[i] = out[i], out[j]
            elif out[j] < 0.0:
                out[j] = -out[j]
    return out


@kernel
def summed(values):
    total = 0.0
    for value in doubled(values):
        total += value
    return total


@pytest.mark.nightly
def test_a_kernel_may_be_loaded_for_python_after_another_process_compiled_it(tmp_path: Path):
    """Here it was compiled for another kernel first, there it was called from Python."""
    there = (
        "import numpy as np; from tests.engine.test_linking import doubled; doubled(np.arange(4.))"
    )
    here = f"""
import subprocess, sys
import numpy as np
from tests.engine.test_linking import doubled, summed
print(summed(np.arange(4.0)))
subprocess.run([sys.executable, "-c", {there!r}], check=True)
print(doubled(np.arange(4.0)).tolist(), summed(np.arange(4.0)))
"""
    out = python(here, SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0")
    assert out.splitlines() == ["12.0", "[0.0, 2.0, 4.0, 6.0] 12.0"]
