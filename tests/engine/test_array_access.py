"""Single items of arrays: the same numbers, compiled and in plain Python, however they lie."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pytest

from shoal.engine.jit import kernel
from tests.engine.test_cache import python
from tests.engine.test_linking import compiled_only

RECORD = np.dtype([("flag", "?"), ("number", "i8"), ("size", "f4"), ("share", "f8")])


class Arrays(NamedTuple):
    line: Any
    table: Any
    cube: Any
    flags: Any
    rows: Any
    sheet: Any


def arrays(seed: int = 0) -> Arrays:
    random = np.random.default_rng(seed)
    rows, sheet = np.zeros(6, RECORD), np.zeros((3, 4), RECORD)
    for name in ("number", "size", "share"):
        rows[name], sheet[name] = random.integers(-9, 9, 6), random.integers(-9, 9, (3, 4))
    rows["flag"] = rows["number"] > 0
    return Arrays(
        random.integers(-50, 50, 7),
        random.random((3, 5)),
        random.integers(0, 9, (2, 3, 4)).astype(np.int32),
        random.random(5) > 0.5,
        rows,
        sheet,
    )


def as_they_are(given: Arrays) -> Arrays:
    return given


def with_gaps(given: Arrays) -> Arrays:
    """Return arrays that aren't contiguous."""
    line, table, cube, flags, rows, sheet = given
    return Arrays(
        np.repeat(line, 2)[::2], np.repeat(table, 3, axis=1)[:, ::3], cube[:, ::-1],
        flags[::-1], rows[::-1], sheet[:, ::2],
    )  # fmt: skip


def by_columns(given: Arrays) -> Arrays:
    return given._replace(table=np.asfortranarray(given.table), cube=np.asfortranarray(given.cube))


LAYOUTS = [as_they_are, with_gaps, by_columns]


@kernel
def worked_on(all_, i, j, small):
    """Read and write items of all arrays, in many ways; return a sum."""
    line, table = all_.line, all_.table
    total = 0.0
    for a in range(len(all_.table)):
        for b in range(all_.table.shape[1]):
            total += table[a, b] * (a + 1) + all_.table[-1, b]
            table[a, b] = line[b] + 0.5
    for a in range(len(line)):
        line[a] = line[-a] + 1
        line[a] = line[a] * 1.75
        total += line[a]
    all_.cube[i, 0, j] = total
    all_.cube[1, small, -1] += 3
    total += all_.cube[i, small, 1] + all_.cube[-1, -1, -1]
    all_.flags[0] = all_.flags[i] and not all_.flags[-1]
    if all_.flags[0]:
        total += 0.125
    number, share = all_.rows["number"], all_.rows["share"]
    for a in range(len(all_.rows)):
        number[a] += a
        share[-1 - a] = number[a] / 4
        all_.rows["size"][a] = share[a] / 3
        all_.rows["flag"][a] = all_.rows["size"][a] > 0.5
        total += all_.rows["size"][a] + all_.rows[a]["number"]
    for a in range(2):
        all_.sheet["share"][a, i] = all_.sheet["number"][a, 1] + all_.sheet["size"][-1, -1]
        total += all_.sheet[a, 0]["share"] + len(all_.sheet["share"])
    own = np.zeros(3)
    own[j] += total
    own, other = np.ones(2), own
    return total + own[-1] + other[j] + len(other[1:])


def everything(given: Arrays, layout: Any) -> list[str]:
    """Return all numbers after some calls, to the last bit."""
    all_ = layout(given)
    sums = [worked_on(all_, i, j, np.uint8(2)) for i, j in ((0, 1), (1, 2), (1, -1))]
    return [repr(float(one)) for one in sums] + [part.tobytes().hex() for part in all_]


@compiled_only
@pytest.mark.parametrize("layout", LAYOUTS)
def test_items_are_the_same_compiled_and_in_plain_python(layout) -> None:
    code = (
        "from tests.engine.test_array_access import *\n"
        f"print(everything(arrays(), {layout.__name__}))"
    )
    plain = python(code, NUMBA_DISABLE_JIT="1", SHOAL_CACHE_DIR=os.devnull)
    assert plain == str(everything(arrays(), layout))
