"""BUREL_W as an engine: gains that don't add up, windows, traps and refusals.

That windows slide as they should is in `tests/engine/test_by_window.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Policy
from shoal.algorithms import find
from shoal.engine.buckets import burel_parts
from shoal.engine.kernels.rng import seeded
from shoal.engine.kernels.window_counts import window_counts_of
from shoal.errors import JobError, ParameterError, UnsupportedError
from shoal.spec.criteria import (
    BasicLikeness,
    Criterion,
    EnhancedLikeness,
    KAnonymity,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
)
from shoal.spec.policy import Delay, Window
from shoal.testing.streams import joined
from tests.algorithms.rows import outcomes
from tests.engine.kernels.test_parts import members
from tests.engine.test_buckets import some
from tests.examples import examples
from tests.naive.measured import Promises
from tests.naive.papers.test_emd import RAGGED
from tests.tables import SALARY, Table, codes, drifting, naive, schema, spread, start, windowed

SMALL = Window(rows=4, advance=2)
SETTINGS = settings(max_examples=examples(25), deadline=None, derandomize=True, database=None)


# -- gains compose ---------------------------------------------------------------------------------


def test_gains_do_not_add_up() -> None:
    # What is left has a value twice as often as its window, and a group twice as often as that:
    # fair to the rows left, and four times too much for the window.
    table = Table(spread([2, 6, 8]), EnhancedLikeness(1.0), domains=[RAGGED])
    left = [0, 1, 2, 3, 4, 13, 14, 15]
    assert table.keeps(left)
    pool = some(table.rows, left)
    fair = {}
    for measured_against in ("window", "rows left"):
        limits = table.limits
        if measured_against == "rows left":
            limits = limits._replace(window=window_counts_of(pool.sensitive))
        parts = burel_parts(table.space.sides, limits, pool, seeded(b"1", "test"), 8)
        groups = [[left[i] for i in group] for group in members(parts)]
        fair[measured_against] = all(table.keeps(group) for group in groups)
    assert fair == {"window": True, "rows left": False}


FORMS: list[tuple[list[Criterion], object]] = [
    ([BasicLikeness(0.5)], None),
    ([EnhancedLikeness(0.5)], None),
    ([EnhancedLikeness(2.0)], None),
    ([SemanticLikeness(0.8, level=1)], RAGGED),
    ([RangeLikeness(0.8, epsilon=1.0)], SALARY),
    ([RangeLikeness(0.8, epsilon=1.0), BasicLikeness(0.6)], SALARY),
]


@SETTINGS
@given(
    seed=st.integers(0, 999), n_rows=st.integers(1, 60), k=st.integers(1, 3),
    form=st.sampled_from(FORMS), advance=st.integers(1, 4), times=st.integers(1, 4),
)  # fmt: skip
def test_every_group_is_like_its_window(
    seed: int, n_rows: int, k: int, form: tuple[list[Criterion], object], advance: int, times: int
) -> None:
    criteria, domain = [KAnonymity(k), *form[0]], form[1]
    window = Window(advance * times, advance)
    engine = start("burel-w", *criteria, domains=[domain], window=window)  # type: ignore[list-item]
    data = codes(drifting(seed, n_rows), [domain])  # type: ignore[list-item]
    decided = joined([engine.push(data), engine.flush()])
    assert sorted(decided.rows.tolist()) == list(range(n_rows))
    promises = Promises.of(schema([domain]), Policy(*criteria, window=window))  # type: ignore[list-item]
    rows = naive(data)
    for group, end in windowed(decided):
        against = rows[max(0, end - window.rows) : end]
        assert set(group) <= {row.number for row in against}
        assert promises.hold([rows[n] for n in group], against)


# -- traps -----------------------------------------------------------------------------------------


def test_one_value_only() -> None:
    # p = 1: no gain is allowed, and none is needed.
    engine = start("burel-w", EnhancedLikeness(0.1), domains=[RAGGED], window=SMALL)
    decided = joined([engine.push(codes(spread([9]), [RAGGED])), engine.flush()])
    assert [len(group) for group, _ in windowed(decided)] == [1] * 9


def test_a_value_that_becomes_rare_is_not_published_as_if_it_were_frequent() -> None:
    # Four of the first value, then one of it in the next windows.
    values = [0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    data = codes([(n, n, value) for n, value in enumerate(values)], [None])
    engine = start("burel-w", EnhancedLikeness(0.5), domains=[None], window=Window(4, 4))
    decided = joined([engine.push(data), engine.flush()])
    (group,) = [group for group, _ in windowed(decided) if 7 in group]
    assert group == [4, 5, 6, 7]


def test_rows_of_one_person_are_suppressed() -> None:
    engine = start("burel-w", KAnonymity(2), EnhancedLikeness(9.0), domains=[None], window=SMALL)
    data = codes([(n, 0, n % 2) for n in range(9)], [None])
    decided = joined([engine.push(data), engine.flush()])
    assert outcomes(decided) == dict.fromkeys(range(9), "suppressed")
    assert set(decided.windows.tolist()) == set()
    assert (decided.boxes == -1).all()


@pytest.mark.parametrize(("k", "outcome"), [(1, "group"), (2, "suppressed")])
def test_a_single_row_and_nothing_at_all(k: int, outcome: str) -> None:
    engine = start("burel-w", KAnonymity(k), EnhancedLikeness(1.0), domains=[None], window=SMALL)
    assert len(engine.flush().rows) == 0
    assert len(engine.advance(5.0).rows) == 0
    engine.push(codes([(5, 0, 0)], [None]))
    assert outcomes(engine.flush()) == {0: outcome}
    assert len(engine.flush().rows) == 0


def test_only_k_is_promised_of_values_that_are_not_measured() -> None:
    # Two attributes, one of which may be as it likes.
    points = [(n, n, n % 2, n) for n in range(12)]
    engine = start(
        "burel-w", KAnonymity(2), EnhancedLikeness(0.5, attribute="s0"),
        domains=[RAGGED, None], window=Window(8, 4),
    )  # fmt: skip
    decided = joined([engine.push(codes(points, [RAGGED, None])), engine.flush()])
    assert set(outcomes(decided).values()) == {"group"}
    assert all(len(group) == 2 for group, _ in windowed(decided))


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Policy(TCloseness(0.2), window=SMALL), "'burel-w' can't enforce t-closeness"),
        (Policy(EnhancedLikeness(1.0), window="all"), "publishes a stream and never knows all"),
        (Policy(EnhancedLikeness(1.0), window=Window(4)), "by how much a window advances"),
        (
            Policy(EnhancedLikeness(1.0), window=SMALL, delay=Delay(rows=5)),
            r"window \+ advance = 6 rows and the delay is 5",
        ),
    ],
)
def test_what_it_cannot_keep_is_refused(policy: Policy, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        find("burel-w")().start(schema([RAGGED]), policy)


def test_a_domain_that_does_not_do_is_refused() -> None:
    for criterion in (SemanticLikeness(1.0), RangeLikeness(1.0)):
        with pytest.raises(JobError, match=r"policy\.beta: "):
            find("burel-w")().start(schema([None]), Policy(criterion, window=SMALL))


def test_a_look_at_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"BurelW\.look"):
        find("burel-w")(look=np.int64(0))
