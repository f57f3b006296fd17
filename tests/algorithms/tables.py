"""What an algorithm makes of a table, and whether that keeps what was promised about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import TCloseness, Window
from shoal.engine import Codes, Decisions
from shoal.engine.base import Anonymizer
from shoal.spec.criteria import Criterion, Measured
from shoal.spec.hierarchy import Range
from shoal.testing.streams import Stream, play
from tests.engine.kernels.tables import Table, tables
from tests.examples import examples
from tests.naive.space import covers

EXAMPLES = examples(6 if numba.config.DISABLE_JIT else 150)
#: Along the wider of two numbers all of one illness are on one side, along the other they mix.
MIXED = [
    ((0.0, 0.0), 0, 0, 1.0),
    ((1.0, 10.0), 1, 0, 1.0),
    ((90.0, 0.0), 2, 1, 1.0),
    ((91.0, 10.0), 3, 1, 1.0),
]
SQUARE = [Range(0, 100), Range(0, 100)]


def stream(table: Table) -> Stream:
    """The table as an engine takes it."""
    n = len(table.rows)
    codes = Codes(
        np.array([row[0] for row in table.rows], float).reshape(n, len(table.domains)),
        np.array([row[1] for row in table.rows], np.int64),
        np.array(table.codes(), np.int64).reshape(n, 2),
        np.full(n, np.nan),
    )
    return Stream(table.schema, table.policy, codes)


def publish(anonymizer: Anonymizer, table: Table) -> Decisions:
    """All that is decided about a table."""
    return play(anonymizer, stream(table))


def groups(decided: Decisions) -> list[list[int]]:
    """The rows of each group."""
    return [sorted(decided.rows[decided.boxes == box].tolist()) for box in range(len(decided.lo))]


def mixed(anonymizer: Anonymizer, *criteria: Criterion, **options: Any) -> list[list[int]]:
    """The groups of the table in which illnesses mix along the narrow side."""
    return groups(publish(anonymizer, Table(SQUARE, criteria, MIXED, **options)))


def check(decided: Decisions, table: Table) -> None:
    """Every row is decided once, in a box that covers it and a group that keeps the promise."""
    assert sorted(decided.rows.tolist()) == list(range(len(table.rows)))
    every, _ = table.naively()
    for members, lo, hi, end in zip(
        groups(decided), decided.lo.tolist(), decided.hi.tolist(), decided.windows, strict=True
    ):
        width = table.window.rows if isinstance(table.window, Window) else len(every)
        window = every[max(0, end - width) : end] if end >= 0 else every
        if isinstance(table.window, Window):
            assert 0 < end <= len(every)
        group = [every[i] for i in members]
        assert table.promises.hold(group, window)
        box: Any = tuple(zip(lo, hi, strict=True))
        assert all(covers(box, row.box) for row in group)


def keeps_promises(
    make: Callable[[], Anonymizer], windows: Sequence[Window] = ()
) -> Callable[[], None]:
    """A test that the promise is kept on drawn tables, by windows if some are given."""
    enforces = make().enforces

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
    @given(tables(), st.sampled_from(windows or ["all"]))
    def keeps(table: Table, window: Any) -> None:
        criteria = [each for each in table.criteria if isinstance(each, enforces)]
        if windows and not any(isinstance(each, Measured) for each in criteria):
            criteria.append(TCloseness(0.3))
        asked = dataclasses.replace(table, criteria=criteria, n_pool=None, window=window)
        check(publish(make(), asked), asked)

    return keeps
