"""The stand-ins for the thesis' CENSUS: government employees with their salary in 50 classes.

There are two more, to see what depends on the data: the same with classes as frequent as those of
the thesis; and people with the thesis' quasi attributes, whose sensitive one is the occupation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.workloads import SHARED, acs_income
from shoal.engine.kernels.arrays import Ints
from shoal.engine.space import Codes
from shoal.metrics.reading import read_codes
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = [
    "MOST_ROWS", "NEEDS", "N_CLASSES", "QUASI", "Sample", "classes", "salaries", "thesis_shares",
]  # fmt: skip

_NAME = "acs_gov_employees_2018"
_FILE, _TREES = SHARED / f"{_NAME}.parquet", SHARED / "hierarchies" / _NAME
_PEOPLE = "acs_income_2018"
_PEOPLE_FILE, _PEOPLE_TREES = SHARED / f"{_PEOPLE}.parquet", SHARED / "hierarchies" / _PEOPLE
#: What has to be there.
NEEDS = (_FILE, _TREES, _PEOPLE_FILE, _PEOPLE_TREES)
#: Salaries in classes of near equal frequency; in classes as frequent as the thesis'; and people
#: with the thesis' quasi attributes.
Sample = Literal["equal", "frequencies", "attributes"]
#: In the order of the thesis' Table 3.4, as far as there is a counterpart.
QUASI = ("age", "sex", "education_level", "marital", "race", "nativity", "economic_region")
_NUMBERS = {"age": Range(19, 64, step=1), "education_level": Range(1, 24, step=1)}
#: The thesis' Table 3.4. Here there are 2 marital statuses in place of 6, 5 races in place of 9, 8
#: work classes in place of 10, 225 birth places in place of 83.
_PEOPLE_QUASI = ("age", "sex", "education", "marital", "race", "workclass", "birthplace")
MOST_ROWS = 204_309
N_CLASSES = 50
#: The most frequent class of the thesis' salaries, its share in percent, and that of the last
#: class, which is the least frequent (§3.5).
MODE, MOST, LEAST = 12, 4.8402, 0.2018


def salaries(rows: int, n_quasi: int, seed: int, sample: Sample = "equal") -> tuple[Schema, Codes]:
    """A random sample of the table, each row a subject, with its first quasi attributes.

    The sensitive attribute is a class, from 0 to 49. Classes are those of the whole table, so that
    every sample has the same domain.
    """
    if not 1 <= rows <= MOST_ROWS or not 1 <= n_quasi <= len(QUASI):
        raise ValueError(
            f"there are {MOST_ROWS:,} rows and {len(QUASI)} quasi attributes, not {rows:,} and "
            f"{n_quasi}"
        )
    schema, codes = _whole(sample)
    chosen = np.random.default_rng(seed).permutation(len(codes.subjects))[:rows]
    some = Codes(
        np.ascontiguousarray(codes.values[chosen, :n_quasi]),
        np.arange(rows),
        codes.sensitive[chosen],
        codes.times[chosen],
    )
    return Schema(None, schema.quasi[:n_quasi], schema.sensitive), some


@lru_cache(maxsize=3)
def _whole(sample: Sample) -> tuple[Schema, Codes]:
    table, quasi = _people() if sample == "attributes" else _employees()
    shares = None if sample == "equal" else thesis_shares()
    of = classes(np.asarray(table.column("salary")), N_CLASSES, shares)
    table = table.set_column(table.column_names.index("salary"), "salary", pa.array(of))
    schema = Schema(None, quasi, [Sensitive("salary", Range(0, N_CLASSES - 1, step=1))])
    return schema, read_codes(schema, table)[0]


def _employees() -> tuple[pa.Table, list[Quasi]]:
    table = pq.read_table(_FILE, columns=[*QUASI, "salary"])
    quasi = [
        Quasi(name, _NUMBERS.get(name) or Hierarchy.from_csv(_TREES / f"{name}.csv"))
        for name in QUASI
    ]
    return table.rename_columns([*QUASI, "salary"]), quasi


def _people() -> tuple[pa.Table, list[Quasi]]:
    """The first rows, which are a random sample; years of education are numbers, as in the thesis.

    Occupations are in the order of their codes.
    """
    found = acs_income()
    assert found is not None  # else the page lacks what it needs
    table = pq.read_table(found.path, columns=[*_PEOPLE_QUASI, "occupation"]).slice(0, MOST_ROWS)
    known = {quasi.name: quasi.domain for quasi in found.schema.quasi}
    education = known["education"]
    assert isinstance(education, Hierarchy)
    grade = {label: float(number) for number, label in enumerate(education.leaves)}
    known["education"] = Range(0, len(grade) - 1, step=1)
    columns = {name: table.column(name).to_pylist() for name in _PEOPLE_QUASI}
    columns["education"] = [grade[label] for label in columns["education"]]
    columns["salary"] = [int(code) for code in table.column("occupation").to_pylist()]
    return pa.table(columns), [Quasi(name, known[name]) for name in _PEOPLE_QUASI]


def thesis_shares() -> list[float]:
    """The shares of 50 classes that have what the thesis tells of its salaries.

    It tells the largest share, which class 12 has, and the least, which class 49 has. From the one
    to the other shares fall by the same factor from class to class; up to class 12 they rise
    by equal steps, so that all of them add up to 1.

    >>> shares = thesis_shares()
    >>> round(sum(shares), 12), round(100 * max(shares), 4), round(100 * min(shares), 4)
    (1.0, 4.8402, 0.2018)
    >>> shares.index(max(shares)), shares.index(min(shares))
    (12, 49)
    """
    n_after = N_CLASSES - 1 - MODE
    after = [MOST * (LEAST / MOST) ** (i / n_after) for i in range(n_after + 1)]
    # Of n steps from first to MOST the n first values have the mean (first + MOST - step) / 2.
    rest = (100.0 - sum(after)) / MODE
    step = 2 * (MOST - rest) / (MODE + 1)
    before = [MOST - step * (MODE - i) for i in range(MODE)]
    return [share / 100.0 for share in (*before, *after)]


def classes(numbers: np.ndarray, n: int, shares: Sequence[float] | None = None) -> Ints:
    """Cut numbers into n classes with these shares, or equal ones; equal numbers share a class.

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
        if shares is not None:
            share = left * shares[class_] / sum(shares[class_:])
        # Each of the classes that follow has to get a number, too.
        most = len(counts) - (n - class_ - 1)
        sums = np.cumsum(counts[begin:most])
        n_taken = int(np.argmin(np.abs(sums - share))) + 1 if class_ < n - 1 else len(sums)
        of[begin : begin + n_taken] = class_
        begin += n_taken
        left -= int(sums[n_taken - 1])
    return of[place]
