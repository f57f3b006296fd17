"""Hypothesis strategies for anonymizers that publish cells: ladders of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from shoal.engine.base import Anonymizer
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import AnyDomain, Grid, Open, Path
from shoal.spec.policy import Missing, Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from shoal.testing.base_strategies import (
    GAPS_IN_TIME,
    batch_cuts,
    clock_ticks,
    hierarchies,
    ranges,
    row_lists,
)
from shoal.testing.streams import Stream
from shoal.testing.z.codes import cell_codes

__all__ = ["cell_policies", "cell_schemas", "cell_streams", "ladders"]

#: The parts of a path: they only have to be different.
PARTS = st.sampled_from("abc")


def ladders() -> st.SearchStrategy[AnyDomain]:
    """Draw a domain whose values have ladders, of one column."""
    return st.one_of(
        st.just(Open()),
        st.integers(1, 4).map(lambda levels: Path("*", levels=levels)),
        hierarchies(),
        ranges().filter(lambda domain: domain.step is not None),
    )


@st.composite
def cell_schemas(draw: st.DrawFn, *, timed: bool, max_quasi: int = 4) -> Schema:
    """Draw attributes with ladders; each may be a grid of two columns."""
    domains = draw(st.lists(ladders() | st.just(None), min_size=1, max_size=max_quasi))
    quasi = [
        Quasi(f"q{d}", domain or Grid(f"lat{d}", f"lon{d}", [500, 1000, 50_000]))
        for d, domain in enumerate(domains)
    ]
    return Schema("person", quasi, time="at" if timed else None)


@st.composite
def cell_policies(
    draw: st.DrawFn, *, n_subjects: int, n_rows: int, timed: bool, missing: Missing
) -> Policy:
    """Draw z from 1 to one more than there are subjects, and a window from one row to all."""
    z = draw(st.sampled_from([3, 1, 2, 4, 5, n_subjects + 1]))
    windows = st.integers(1, n_rows + 3).map(lambda rows: Window(rows=rows))
    if timed:
        seconds = st.sampled_from([2.5, 0.5, 20.0, 1e6])
        windows |= seconds.map(lambda length: Window(seconds=length))
    return Policy(ZAnonymity(z), window=draw(windows), missing=missing)


def _values(domain: AnyDomain) -> st.SearchStrategy[Any]:
    if isinstance(domain, Hierarchy):
        return st.sampled_from(domain.leaves)
    if isinstance(domain, Range):
        return st.floats(domain.lo, domain.hi, allow_subnormal=False)
    if isinstance(domain, Grid):
        # Near enough to each other to share the coarser cells.
        near = st.sampled_from([45.0, 45.002, 45.006, 45.3])
        return st.tuples(near, near)
    if isinstance(domain, Path):
        return st.lists(PARTS, min_size=1, max_size=domain.levels + 1).map(domain.separator.join)
    return PARTS


def _gappy(pool: list[Any]) -> list[list[Any]]:
    """Return a pool as it is, with some missing values, with many, and with nothing else."""
    return [pool, [*pool, None], [*pool, *[None] * 2 * len(pool)], [None]]


@st.composite
def cell_streams(draw: st.DrawFn, anonymizer: type[Anonymizer], *, max_rows: int) -> Stream:
    """Draw a schema, a policy, rows, ticks and cuts; each column has a pool of a few values."""
    timed = draw(st.booleans())
    schema = draw(cell_schemas(timed=timed))
    n_subjects = draw(st.sampled_from([6, 1, 2, 40]))
    missing = draw(st.sampled_from(anonymizer.missing))
    pools = [draw(st.lists(_values(a.domain), min_size=1, max_size=5)) for a in schema.quasi]
    if missing != "quarantine":
        pools = [draw(st.sampled_from(_gappy(pool))) for pool in pools]
    row = st.tuples(
        st.integers(0, n_subjects - 1),
        st.tuples(*(st.sampled_from(pool) for pool in pools)),
        GAPS_IN_TIME if timed else st.just(np.nan),
    )
    rows = draw(row_lists(row, max_rows))
    n = len(rows)
    policy = draw(cell_policies(n_subjects=n_subjects, n_rows=n, timed=timed, missing=missing))
    times = np.cumsum([gap for *_, gap in rows])
    codes = cell_codes(
        schema,
        [values for _, values, _ in rows],
        np.array([subject for subject, *_ in rows], np.int64),
        times,
    )
    ticks = draw(clock_ticks(times)) if timed else ()
    return Stream(schema, policy, codes, ticks, draw(batch_cuts(n)))
