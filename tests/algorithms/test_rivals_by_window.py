"""tMondrian_W and tIncognito_W, the rivals of SABRE_W: they differ only in their boxes."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import Delay, KAnonymity, Policy, Range, TCloseness, Window
from shoal.algorithms import TIncognitoW, TMondrianW
from shoal.engine.base import Anonymizer
from shoal.errors import UnsupportedError
from shoal.testing.streams import batch
from tests.algorithms.tables import MIXED, SQUARE, groups, keeps_promises, publish, stream
from tests.engine.kernels.tables import Table

WINDOWS = [Window(rows=4, advance=2), Window(rows=9, advance=3), Window(rows=40, advance=40)]
BOTH = pytest.mark.parametrize("anonymizer", [TMondrianW(), TIncognitoW()], ids=lambda r: r.name)
test_drawn_streams_keep_the_promise_of_t_mondrian_w = keeps_promises(TMondrianW, WINDOWS)
test_drawn_streams_keep_the_promise_of_t_incognito_w = keeps_promises(TIncognitoW, WINDOWS)


@pytest.mark.parametrize(
    ("anonymizer", "box"), [(TMondrianW(), ([[1]], [[2]])), (TIncognitoW(), ([[0]], [[12.5]]))]
)
def test_what_expires_leaves_with_others_of_its_window(
    anonymizer: Anonymizer, box: tuple[list[list[float]], list[list[float]]]
) -> None:
    rows = [((float(x),), n, n % 2, 1.0) for n, x in enumerate([1, 2, 51, 52, 3, 53])]
    table = Table([Range(0, 100)], [KAnonymity(2), TCloseness(0.2)], rows, window=Window(4, 2))
    engine = stream(table).start(anonymizer)
    codes = stream(table).codes
    before, after = engine.push(batch(codes, 0, 5)), engine.push(batch(codes, 5, 6))
    assert len(before.rows) == 0
    assert sorted(after.rows.tolist()) == [0, 1]
    assert (after.lo.tolist(), after.hi.tolist()) == box
    assert after.windows.tolist() == [4]
    # The others have been a group for two rows, but a new one is formed of what is there now.
    rest = engine.flush()
    assert sorted(rest.rows.tolist()) == [2, 3, 4, 5]
    assert set(rest.windows) == {6}


@BOTH
def test_a_table_that_fits_a_window_is_published_as_one(anonymizer: Anonymizer) -> None:
    promise = [KAnonymity(2), TCloseness(0.2, attribute="ill")]
    table = Table(SQUARE, promise, MIXED, window=Window(4, 4))
    assert groups(publish(anonymizer, table)) == [[0, 2], [1, 3]]


@BOTH
def test_a_delay_in_seconds_advances_early(anonymizer: Anonymizer) -> None:
    table = Table([Range(0, 100)], [TCloseness(0.5)], [((1.0,), 0, 0, 1.0), ((2.0,), 1, 0, 1.0)])
    policy = Policy(TCloseness(0.5), window=Window(4, 2), delay=Delay(seconds=5))
    engine = anonymizer.start(table.schema, policy)
    engine.push(stream(table).codes._replace(times=np.array([0.0, 1.0])))
    assert len(engine.advance(4.9).rows) == 0
    assert sorted(engine.advance(5.0).rows.tolist()) == [0, 1]


@BOTH
@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy(TCloseness(0.2), window="all"), "never knows all of its rows"),
        (Policy(TCloseness(0.2), window=Window(4)), "by how much a window advances"),
        (Policy(TCloseness(0.2), window=Window(4, 2), delay=Delay(rows=5)), "Lemma 6.1"),
    ],
)
def test_what_it_can_not_keep_is_refused(anonymizer: Anonymizer, policy: Policy, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        anonymizer.check(policy)
