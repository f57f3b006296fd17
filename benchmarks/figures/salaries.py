"""The stand-in for the thesis' CENSUS: government employees with their salary in 50 classes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.workloads import SHARED
from shoal.engine.kernels.arrays import Ints
from shoal.engine.space import Codes
from shoal.metrics.reading import read_codes
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["MOST_ROWS", "NEEDS", "N_CLASSES", "QUASI", "classes", "salaries"]

_NAME = "acs_gov_employees_2018"
_FILE, _TREES = SHARED / f"{_NAME}.parquet", SHARED / "hierarchies" / _NAME
#: What has to be there.
NEEDS = (_FILE, _TREES)
#: In the order of the thesis' Table 3.4, as far as there is a counterpart.
QUASI = ("age", "sex", "education_level", "marital", "race", "nativity", "economic_region")
_NUMBERS = {"age": Range(19, 64, step=1), "education_level": Range(1, 24, step=1)}
MOST_ROWS = 204_309
N_CLASSES = 50


def salaries(rows: int, n_quasi: int, seed: int) -> tuple[Schema, Codes]:
    """A random sample of the table, each row a subject, with its first quasi attributes.

    The sensitive attribute is the class of the salary, from 0 to 49. Classes are those of the whole
    table, so that every sample has the same domain.
    """
    if not 1 <= rows <= MOST_ROWS or not 1 <= n_quasi <= len(QUASI):
        raise ValueError(
            f"there are {MOST_ROWS:,} rows and {len(QUASI)} quasi attributes, not {rows:,} and "
            f"{n_quasi}"
        )
    schema, codes = _whole()
    chosen = np.random.default_rng(seed).permutation(len(codes.subjects))[:rows]
    sample = Codes(
        np.ascontiguousarray(codes.values[chosen, :n_quasi]),
        np.arange(rows),
        codes.sensitive[chosen],
        codes.times[chosen],
    )
    return Schema(None, schema.quasi[:n_quasi], schema.sensitive), sample


@lru_cache(maxsize=1)
def _whole() -> tuple[Schema, Codes]:
    table = pq.read_table(_FILE, columns=[*QUASI, "salary"])
    salary = pa.array(classes(np.asarray(table.column("salary")), N_CLASSES))
    table = table.set_column(len(QUASI), "salary", salary)
    quasi = [
        Quasi(name, _NUMBERS.get(name) or Hierarchy.from_csv(_TREES / f"{name}.csv"))
        for name in QUASI
    ]
    schema = Schema(None, quasi, [Sensitive("salary", Range(0, N_CLASSES - 1, step=1))])
    return schema, read_codes(schema, table)[0]


def classes(numbers: np.ndarray, n: int) -> Ints:
    """Cut numbers into n classes of near equal frequency; equal numbers share a class.

    A class takes the next number as long as that brings it nearer to its share of what is left.

    >>> classes(np.array([5, 1, 1, 1, 7, 9]), 3).tolist()
    [1, 0, 0, 0, 2, 2]
    """
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    if len(counts) < n:
        raise ValueError(f"{len(counts)} different numbers don't make {n} classes")
    of = np.empty(len(counts), np.int64)
    begin, left = 0, int(counts.sum())
    for class_ in range(n):
        share = left / (n - class_)
        # Each of the classes that follow has to get a number, too.
        most = len(counts) - (n - class_ - 1)
        sums = np.cumsum(counts[begin:most])
        n_taken = int(np.argmin(np.abs(sums - share))) + 1 if class_ < n - 1 else len(sums)
        of[begin : begin + n_taken] = class_
        begin += n_taken
        left -= int(sums[n_taken - 1])
    return of[place]
