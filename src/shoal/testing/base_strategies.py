"""Hypothesis strategies for the parts of any stream: domains, times, ticks, and cuts."""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st

from shoal.engine.kernels.arrays import Any1
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.testing.streams import Tick

__all__ = ["GAPS_IN_TIME", "batch_cuts", "clock_ticks", "hierarchies", "ranges", "row_lists"]

T = TypeVar("T")

#: How much later than the row before it a row is.
GAPS_IN_TIME: st.SearchStrategy[float] = st.sampled_from([0.0, 0.5, 3.0, -1.0])


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    """Draw a range of numbers, with a step or without."""
    lo = draw(st.sampled_from([0, -7, 17.5]))
    length = draw(st.sampled_from([10, 1, 73, 1000.25]))
    step = draw(st.sampled_from([None, 1, 5, 0.3, length]))
    return Range(lo, lo + length, step=None if step is None or step > length else step)


_trees: st.SearchStrategy[Any] = st.recursive(
    st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=10
)


def hierarchies() -> st.SearchStrategy[Hierarchy]:
    """Draw a tree: flat, nested or ragged, with single children and single roots."""
    flat = st.integers(1, 8).map(lambda n: [None] * n)
    return (flat | _trees).map(lambda tree: Hierarchy.from_rows(_paths(tree, ("any",))))


def _paths(tree: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if tree is None:
        return [path]
    return [
        leaf
        for number, below in enumerate(tree)
        for leaf in _paths(below, (f"{path[0]}.{number}", *path))
    ]


@st.composite
def row_lists(draw: st.DrawFn, row: st.SearchStrategy[T], max_rows: int) -> list[T]:
    """Draw rows: none, some, or as many as allowed."""
    # Drawn lists are mostly short. A minimum makes long streams common, and shrinks away.
    at_least = draw(st.sampled_from([0, max_rows // 2, max_rows]))
    return draw(st.lists(row, min_size=at_least, max_size=max_rows))


@st.composite
def clock_ticks(draw: st.DrawFn, times: Any1) -> tuple[Tick, ...]:
    """Draw up to three ticks, each at the time of the row before it or somewhat later."""
    n = len(times)
    where = st.lists(st.tuples(st.integers(0, n), st.sampled_from([0.0, 1.0, 4.0])), max_size=3)
    return tuple(
        Tick(position, (float(times[position - 1]) if position else 0.0) + later)
        for position, later in sorted(draw(where))
    )


def batch_cuts(n: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw where n rows are cut into batches, some of them empty."""
    return st.lists(st.integers(0, n), max_size=4).map(lambda cuts: tuple(sorted(cuts)))
