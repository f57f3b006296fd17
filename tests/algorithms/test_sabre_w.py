"""SABRE_W as an engine: Example 6.1, its three cases, the end of a stream, traps and refusals.

That windows slide as they should is in `tests/engine/test_by_window.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, Policy
from shoal.algorithms import find
from shoal.errors import JobError, ParameterError, UnsupportedError
from shoal.spec.criteria import DistinctLDiversity, EnhancedLikeness, KAnonymity, TCloseness
from shoal.spec.policy import Delay, Window
from shoal.testing.streams import batch, joined
from tests.algorithms.rows import outcomes
from tests.examples import examples
from tests.naive.emd import emd
from tests.naive.measured import Promises
from tests.naive.papers.test_by_window import EXAMPLE_6_1
from tests.naive.papers.test_emd import DISEASES, RAGGED
from tests.tables import SALARY, codes, drifting, naive, schema, spread, start, windowed

AB = Hierarchy.flat([*"ab"])
SMALL = Window(rows=4, advance=2)


# -- Example 6.1 -----------------------------------------------------------------------------------

ROWS = codes([(x, n, value) for n, (x, value) in enumerate(EXAMPLE_6_1)], [AB])


def test_example_6_1() -> None:
    # Windows of 8 rows that move by 2; with this seed groups are formed around the rows that the
    # example tells of.
    engine = start(
        "sabre-w", KAnonymity(2), TCloseness(0.2),
        domains=[AB], window=Window(8, 2), look=1, seed=b"0",
    )  # fmt: skip
    left = {}
    for n in range(len(EXAMPLE_6_1)):
        decided = engine.push(batch(ROWS, n, n + 1))
        if len(decided.rows):
            left[n] = sorted(windowed(decided))
    assert left == {
        9: [([0, 2, 4], 8), ([1, 5], 8)],  # W1, DIRECT
        11: [([3, 8, 9], 10)],  # W2, DIRECT: what was left of W1 is parted again
        # W3 had nothing to do (case 1).
        15: [([6, 7], 10)],  # W4, INDIRECT: remembered since W2
        # W5 had nothing to do either: all of W2 has left.
        19: [([10, 14], 18), ([11, 15], 18)],  # W6, from scratch
    }


@pytest.mark.parametrize("seed", [bytes([n]) for n in range(8)])
def test_example_6_1_whichever_groups_are_formed(seed: bytes) -> None:
    engine = start(
        "sabre-w", KAnonymity(2), TCloseness(0.2), domains=[AB], window=Window(8, 2), seed=seed
    )
    decided = joined([engine.push(ROWS), engine.flush()])
    assert set(outcomes(decided)) == set(range(20))
    values = ROWS.sensitive[:, 0].tolist()
    for group, end in windowed(decided):
        distance = emd(AB, [values[row] for row in group], values[max(0, end - 8) : end])
        assert distance is not None
        assert distance <= 0.2
        assert len(group) >= 2


# -- three cases -----------------------------------------------------------------------------------


def test_rows_left_of_a_window_use_up_a_part_of_t() -> None:
    # DIRECT: groups are as far from the window as from what is left of it, and that from it.
    window, criteria = Window(12, 3), [KAnonymity(2), TCloseness(0.3)]
    engine = start("sabre-w", *criteria, domains=[RAGGED], window=window)
    data = codes(drifting(11, 90), [RAGGED])
    decided = joined([engine.push(data), engine.flush()])
    promises, rows = Promises.of(schema([RAGGED]), Policy(*criteria, window=window)), naive(data)
    found = windowed(decided)
    assert len(found) > 10
    for group, end in found:
        assert promises.hold([rows[n] for n in group], rows[max(0, end - 12) : end])


def test_a_window_is_left_as_it_was_formed() -> None:
    # Two of each value, then one value only: what was formed leaves under the window of then.
    points = [(0, 0, 0), (90, 1, 0), (0, 2, 1), (90, 3, 1)] + [(50, 4 + n, 0) for n in range(6)]
    engine = start("sabre-w", KAnonymity(2), TCloseness(0.1), domains=[AB], window=Window(4, 1))
    decided = engine.push(codes(points, [AB]))
    found = windowed(decided)
    assert found[0][1] == 4
    assert all(end <= 4 for group, end in found if max(group) < 4)


def test_without_a_group_what_expires_is_suppressed_and_nothing_else() -> None:
    # Rows of one person: as long as nobody else comes there is no group.
    engine = start("sabre-w", KAnonymity(2), TCloseness(0.5), domains=[AB], window=SMALL)
    decided = engine.push(codes([(n, 0, n % 2) for n in range(8)], [AB]))
    assert outcomes(decided) == dict.fromkeys(range(4), "suppressed")
    assert engine.n_held == 4
    # The end keeps the promise as well.
    assert outcomes(engine.flush()) == dict.fromkeys(range(4, 8), "suppressed")


# -- the end ---------------------------------------------------------------------------------------


@settings(max_examples=examples(25), deadline=None, derandomize=True, database=None)
@given(n_rows=st.integers(0, 20), seed=st.integers(0, 99), k=st.integers(1, 3))
def test_the_remainder_keeps_the_promise(n_rows: int, seed: int, k: int) -> None:
    criteria = [KAnonymity(k), TCloseness(0.2), DistinctLDiversity(2)]
    engine = start("sabre-w", *criteria, domains=[RAGGED], window=Window(6, 3))
    data = codes(drifting(seed, n_rows), [RAGGED])
    engine.push(data)
    decided, rows = engine.flush(), naive(data)
    promises = Promises.of(schema([RAGGED]), Policy(*criteria, window=Window(6, 3)))
    for group, end in windowed(decided):
        assert promises.hold([rows[n] for n in group], rows[max(0, end - 6) : end])
    assert engine.n_held == 0
    assert len(engine.flush().rows) == 0


def test_a_stream_continues_after_its_end() -> None:
    engine = start("sabre-w", KAnonymity(1), TCloseness(1.0), domains=[AB], window=SMALL)
    engine.push(codes(spread([2, 1]), [AB]))
    assert {end for _, end in windowed(engine.flush())} == {3}
    decided = engine.push(codes(spread([3, 3]), [AB]))
    assert sorted(decided.rows.tolist()) == [3, 4]
    # Its window begins where the end came.
    assert {end for _, end in windowed(decided)} == {7}


@pytest.mark.parametrize(("k", "outcome"), [(1, "group"), (2, "suppressed")])
def test_a_single_row(k: int, outcome: str) -> None:
    engine = start("sabre-w", KAnonymity(k), TCloseness(0.0), domains=[AB], window=SMALL)
    assert len(engine.push(codes([(5, 0, 0)], [AB])).rows) == 0
    assert outcomes(engine.flush()) == {0: outcome}


# -- traps -----------------------------------------------------------------------------------------


def test_at_t_0_rows_that_are_as_their_window_leave() -> None:
    # The thesis asks for less than t, and would never be satisfied.
    engine = start("sabre-w", TCloseness(0.0), domains=[AB], window=SMALL)
    points = [(n, n, n % 2) for n in range(12)]
    decided = joined([engine.push(codes(points, [AB])), engine.flush()])
    assert set(outcomes(decided).values()) == {"group"}
    values = [value for *_, value in points]
    for group, end in windowed(decided):
        distance = emd(AB, [values[n] for n in group], values[max(0, end - 4) : end])
        assert distance == 0


@pytest.mark.parametrize("t", [1.0, 7.0])
def test_from_t_1_on_every_row_may_leave_alone(t: float) -> None:
    engine = start("sabre-w", TCloseness(t), domains=[AB], window=SMALL)
    decided = joined([engine.push(codes(spread([5, 5]), [AB])), engine.flush()])
    assert [len(group) for group, _ in windowed(decided)] == [1] * 10


def test_one_value_only() -> None:
    engine = start("sabre-w", KAnonymity(2), TCloseness(0.0), domains=[SALARY], window=SMALL)
    points = [(n, n, 3.0) for n in range(11)]
    decided = joined([engine.push(codes(points, [SALARY])), engine.flush()])
    assert set(outcomes(decided).values()) == {"group"}


def test_a_value_seen_once_leaves_with_a_window_that_has_it() -> None:
    points = [(n, n, float(n == 5)) for n in range(24)]
    engine = start("sabre-w", KAnonymity(2), TCloseness(0.5), domains=[SALARY], window=Window(6, 3))
    decided = joined([engine.push(codes(points, [SALARY])), engine.flush()])
    assert outcomes(decided)[5] == "group"
    (end,) = [end for group, end in windowed(decided) if 5 in group]
    assert end - 6 <= 5 < end


def test_several_attributes() -> None:
    points = [(n % 7, n, n % 3, float(n % 4)) for n in range(40)]
    criteria = [KAnonymity(2), TCloseness(0.3)]
    engine = start("sabre-w", *criteria, domains=[DISEASES, SALARY], window=Window(12, 4))
    data = codes(points, [DISEASES, SALARY])
    decided = joined([engine.push(data), engine.flush()])
    policy = Policy(*criteria, window=Window(12, 4))
    promises, rows = Promises.of(schema([DISEASES, SALARY]), policy), naive(data)
    assert set(outcomes(decided).values()) == {"group"}
    for group, end in windowed(decided):
        assert promises.hold([rows[n] for n in group], rows[max(0, end - 12) : end])


def test_seconds_let_rows_leave_before_the_window_is_full() -> None:
    points = [(n, n, n % 2) for n in range(6)]
    engine = start(
        "sabre-w", KAnonymity(2), TCloseness(0.2),
        domains=[AB], window=Window(100, 50), seconds=5.0,
    )  # fmt: skip
    assert engine.next_deadline is None
    assert len(engine.advance(1.0).rows) == 0
    engine.push(codes(points, [AB], [10.0 + n / 10 for n in range(6)]))
    assert engine.next_deadline == 15.0
    decided = engine.advance(15.0)
    assert set(outcomes(decided).values()) == {"group"}
    assert {end for _, end in windowed(decided)} == {6}
    assert set(decided.published_s.tolist()) == {15.0}
    assert engine.next_deadline is None


def test_rows_without_time_and_a_delay_in_seconds_do_not_go_together() -> None:
    engine = start("sabre-w", TCloseness(0.2), domains=[AB], window=SMALL, seconds=5.0)
    with pytest.raises(ParameterError, match="must be finite, since the delay is in seconds"):
        engine.push(codes(spread([1]), [AB]))
    with pytest.raises(ParameterError, match="finite number of seconds"):
        engine.advance(np.inf)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Policy(EnhancedLikeness(1.0), window=SMALL), "can't enforce enhanced beta-likeness"),
        (Policy(TCloseness(0.2), window="all"), "publishes a stream and never knows all"),
        (Policy(TCloseness(0.2), window=Window(4)), "by how much a window advances"),
        (Policy(KAnonymity(2), delay=Delay(rows=9)), "measured against windows, and nothing is"),
        (
            Policy(TCloseness(0.2), window=SMALL, delay=Delay(rows=5)),
            r"window \+ advance = 6 rows and the delay is 5 \(thesis, Lemma 6.1\)",
        ),
        (
            Policy(TCloseness(0.2), window=SMALL, missing="maybe"),
            'doesn\'t know missing values that are "maybe"',
        ),
    ],
)
def test_what_it_cannot_keep_is_refused(policy: Policy, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        find("sabre-w")().start(schema([DISEASES]), policy)


def test_a_delay_of_just_window_and_advance_is_kept() -> None:
    policy = Policy(KAnonymity(2), TCloseness(0.3), window=SMALL, delay=Delay(rows=6))
    engine = find("sabre-w")().start(schema([RAGGED]), policy, seed=b"1")
    decided = engine.push(codes(drifting(5, 60), [RAGGED]))
    assert (decided.published - decided.rows).max() <= 5


def test_a_domain_that_is_open_is_refused() -> None:
    with pytest.raises(JobError, match="its domain is open"):
        find("sabre-w")().start(schema([None]), Policy(TCloseness(0.2), window=SMALL))


def test_a_look_at_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"SabreW\.look"):
        find("sabre-w")(look=0)
