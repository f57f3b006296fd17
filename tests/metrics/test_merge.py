"""Figures of several runs of one anonymizer come together as those of one."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engine.decisions import ESTIMATE
from shoal.errors import ParameterError
from shoal.metrics import Cost, Summary, summarize
from shoal.metrics.histogram import Histogram
from shoal.metrics.z.counts import ZCounts
from tests.metrics.test_summary import a_summary, a_trace, batches

N_QUASI, N_LEVELS, Z = 3, [3, 1], 4


def new_summary() -> Summary:
    return Summary(N_QUASI, ZCounts(N_LEVELS, Z))


@st.composite
def additions(draw: st.DrawFn) -> dict[str, Any]:
    """What one batch of a stream adds to the figures of the run that decides it."""
    n = draw(st.integers(0, 5))
    masks = st.lists(st.integers(0, 2**N_QUASI - 1), min_size=n, max_size=n)
    levels = [st.lists(st.integers(-2, top - 1), min_size=n, max_size=n) for top in N_LEVELS]
    counts = draw(st.tuples(*[st.integers(0, 10**9)] * 4))
    return {
        "counts": dict(zip(("n_in", "n_quarantined", "n_held", "n_late"), counts, strict=True)),
        "batch": draw(batches()),
        "gaps": np.array(draw(masks), np.int64),
        "missing": np.array(draw(masks), np.int64),
        "levels": np.array([draw(column) for column in levels], np.int64).T,
    }


@st.composite
def looks(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Looks at the people of all runs, one after another."""
    found = draw(st.lists(st.tuples(st.integers(Z, 99), st.integers(0, 999), st.floats(0, 1))))
    before = [Z, *(z for z, _, _ in found)]
    return np.array(
        [(i, 1.0 * i, before[i], z, n, share, 2.0) for i, (z, n, share) in enumerate(found)],
        ESTIMATE,
    )


def add(summary: Summary, addition: dict[str, Any]) -> None:
    for name, n in addition["counts"].items():
        setattr(summary, name, getattr(summary, name) + n)
    summary.add(**addition["batch"])
    assert summary.pollution is not None
    assert summary.cells is not None
    summary.pollution.add(addition["gaps"], addition["missing"])
    summary.cells.add(addition["levels"])


def flat(figures: Any, name: str = "") -> dict[str, Any]:
    """Nested figures by their paths, NaN for None: so they can be compared within rounding."""
    if isinstance(figures, dict):
        return {
            path: value
            for key in figures
            for path, value in flat(figures[key], f"{name}/{key}").items()
        }
    if isinstance(figures, list):
        return flat(dict(enumerate(figures)), name)
    return {name: float("nan") if figures is None else figures}


def close(figures: dict[str, object]) -> Any:
    return pytest.approx(flat(figures), rel=1e-9, abs=1e-12, nan_ok=True)


@given(st.lists(st.tuples(st.integers(0, 3), additions()), max_size=8), looks(), st.data())
def test_a_stream_dealt_to_several_runs_has_the_figures_of_one(
    dealt: list[tuple[int, dict[str, Any]]], seen: np.ndarray[Any, Any], data: st.DataObject
) -> None:
    one, several = new_summary(), [new_summary() for _ in range(4)]
    for place, addition in dealt:
        add(one, addition)
        add(several[place], addition)
    assert one.cells is not None
    one.cells.look(seen)
    # Each look is broadcast; a run may have ended before the last ones, but not all of them.
    drawn = data.draw(
        st.permutations([len(seen), *data.draw(st.tuples(*[st.integers(0, len(seen))] * 3))])
    )
    for summary, n in zip(several, drawn, strict=True):
        assert summary.cells is not None
        summary.cells.look(seen[:n])
    merged = several[0]
    for summary in several[1:]:
        before = copy.deepcopy(summary.state())
        merged.merge(summary)
        assert summary.state() == before, "what is merged in stays as it is"
    assert flat(merged.as_dict()) == close(one.as_dict())
    exact = ("rows", "reuse", "suppression", "missing", "values")
    for key in exact:
        assert merged.as_dict()[key] == one.as_dict()[key]
    again = new_summary()
    again.restore(json.loads(json.dumps(merged.state())))
    assert again.as_dict() == merged.as_dict()


@given(st.lists(additions(), max_size=3))
def test_a_run_that_saw_nothing_changes_nothing(some: list[dict[str, Any]]) -> None:
    left, right = new_summary(), new_summary()
    for addition in some:
        add(left, addition)
        add(right, addition)
    expected = left.state()
    left.merge(new_summary())
    assert left.state() == expected
    empty = new_summary()
    empty.merge(right)
    assert empty.state() == expected


def test_what_is_merged_is_no_view() -> None:
    merged, part = Summary(), a_summary()
    merged.merge(part)
    text = json.dumps(merged.state())
    part.merge(a_summary())
    assert json.dumps(merged.state()) == text


def test_quantiles_of_what_was_merged() -> None:
    few, many = Histogram(), Histogram()
    few.add([1000.0, 7])
    many.add([3] * 98)
    few.merge(many)
    assert (few.count, few.least, few.largest) == (100, 3.0, 1000.0)
    assert few.mean == pytest.approx((1007 + 3 * 98) / 100)
    assert (few.quantile(0.98), few.quantile(0.99)) == (3.0, 7.0)
    assert few.fold([3, 7]) == (98, 99)


def test_the_latest_look_is_that_of_who_has_seen_the_most() -> None:
    looked = np.array([(5, 1.0, 4, 9, 40, 0.5, 2.0), (9, 2.0, 9, 6, 41, 0.75, 3.0)], ESTIMATE)
    ahead, behind = ZCounts(N_LEVELS, Z), ZCounts(N_LEVELS, Z)
    ahead.look(looked)
    behind.look(looked[:1])
    behind.merge(ahead)
    assert behind.state() == ahead.state()
    assert behind.as_dict()["z"] == {"now": 6, "least": 4, "most": 9, "changes": 2}
    ahead.merge(ZCounts(N_LEVELS, Z))
    assert ahead.state() == behind.state()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Summary(3), Summary()),
        (Summary(), Summary(3)),
        (Summary(3), Summary(4)),
        (Summary(None, ZCounts([1], 2)), Summary()),
        (Summary(), Summary(None, ZCounts([1], 2))),
        (Summary(None, ZCounts([1], 2)), Summary(None, ZCounts([2], 2))),
    ],
)
def test_runs_of_other_anonymizers_are_refused(one: Summary, other: Summary) -> None:
    with pytest.raises(ParameterError, match=r"other run|one of two runs"):
        one.merge(other)


# -- from the trace of several shards --------------------------------------------------------------


def shards() -> list[pa.Table]:
    """The traces of two shards, in which rows, places and groups are those of the whole run."""
    some, others = a_trace(), a_trace(loss=[0.2] * 4 + [1.0, 0.6, 1.0, 0.6, None, None])
    rows = np.arange(10)
    return [
        table.set_column(0, "row", pa.array(2 * rows + shard))
        .set_column(7, "group", pa.array([shard] * 4 + [None, 2 + shard] * 2 + [None] * 2))
        .append_column("shard", pa.array([shard] * 10))
        for shard, table in enumerate((some, others))
    ]


def test_the_trace_of_several_shards_gives_their_figures_together() -> None:
    parts = shards()
    found = summarize(pa.concat_tables(parts).sort_by("row"))
    merged = summarize(parts[0])
    merged.merge(summarize(parts[1]))
    assert flat(found.as_dict()) == close(merged.as_dict())
    assert (found.n_in, found.groups.count, found.n_held) == (20, 4, 2)


@pytest.mark.parametrize("unit", ["rows", "seconds"])
def test_the_cost_of_a_row_is_that_of_its_wait_in_its_shard(unit: Any) -> None:
    parts = shards()
    one, other = (Cost.from_trace(part, alpha=0.1, unit=unit).published for part in parts)
    found = Cost.from_trace(pa.concat_tables(parts), alpha=0.1, unit=unit).published
    assert one is not None
    assert other is not None
    assert one != pytest.approx(other)
    assert found == pytest.approx((one + other) / 2)
