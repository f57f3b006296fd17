"""What TIDE is measured on: three tables of people as streams, in several orders."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow.parquet as pq

from benchmarks.figures.salaries import MOST_ROWS, NEEDS, QUASI, salaries
from benchmarks.figures.streams import Stream
from benchmarks.incomplete import insert_gaps
from benchmarks.workloads import ADULT, acs_income
from shoal.datasets import adult, census
from shoal.datasets._adult_domains import TABLE_5_4
from shoal.engine.space import Codes
from shoal.metrics.reading import read_codes
from shoal.spec.schema import Schema

__all__ = ["names", "stream", "title_of", "with_gaps"]

#: This many rows of the survey are read, at most.
MOST = 240_000


TITLES = {"adult": "Adult", "acs-income": "ACS income", "gov-employees": "government employees"}


def title_of(name: str) -> str:
    """What a data set is called on a page."""
    return TITLES.get(name, name)


def names() -> list[str]:
    """The data sets that are there: the made-up census if none of the real ones is."""
    found = ["adult"] if ADULT.exists() else []
    found += ["acs-income"] if acs_income() is not None else []
    found += ["gov-employees"] if all(path.exists() for path in NEEDS) else []
    return found or ["census"]


@lru_cache(maxsize=2)
def _whole(name: str) -> Stream:
    if name == "adult":
        data = adult(ADULT, quasi=list(TABLE_5_4))
        schema, table = data.schema, data.table()
    elif name == "adult, occupation sensitive":
        quasi = [attribute for attribute in TABLE_5_4 if attribute != "occupation"]
        data = adult(ADULT, quasi=quasi, sensitive="occupation")
        schema, table = data.schema, data.table()
    elif name == "acs-income":
        workload = acs_income()
        assert workload is not None
        schema, table = workload.schema, pq.read_table(workload.path).slice(0, MOST)
    elif name == "gov-employees":
        return Stream(*salaries(MOST_ROWS, len(QUASI), seed=0))
    else:
        data = census(20_000, seed=1)
        schema, table = data.schema, data.table()
    schema = Schema(None, schema.quasi, schema.sensitive)
    return Stream(schema, read_codes(schema, table)[0])


def stream(name: str, rows: int, seed: int, *, sensitive: bool) -> Stream:
    """Rows of a data set in a random order, again and again if there are too few.

    Each row is a person of their own. UCI Adult has ten quasi attributes, or nine where one
    attribute has to be ``sensitive``.
    """
    if sensitive and name == "adult":
        name = "adult, occupation sensitive"
    schema, codes = _whole(name).schema, _whole(name).codes
    draw, n = np.random.default_rng(seed), len(codes.subjects)
    order = np.concatenate([draw.permutation(n) for _ in range(-(-rows // n))])[:rows]
    nothing = np.full(rows, np.nan)
    return Stream(
        schema, Codes(codes.values[order], np.arange(rows), codes.sensitive[order], nothing)
    )


def with_gaps(whole: Stream, most: int, seed: int) -> Stream:
    """The same rows, of which as many lack 0, 1, …, ``most`` values."""
    values = insert_gaps(whole.codes.values, most, seed)
    return Stream(whole.schema, whole.codes._replace(values=values))
