"""The data of §5: a stand-in for SAL, and points in a cube."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.figures.streams import encoded
from benchmarks.workloads import SHARED
from shoal.datasets import gaussian_points, uniform_points
from shoal.engine.space import Codes
from shoal.metrics.reading import read_codes
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.schema import Quasi, Schema

__all__ = ["MOST_ROWS", "NEEDS", "QUASI", "Data", "employees", "schema_of", "stream", "table"]

Data: TypeAlias = Literal["employees", "distinct", "uniform", "gaussian"]

_NAME = "acs_gov_employees_2018"
_FILE, _TREES = SHARED / f"{_NAME}.parquet", SHARED / "hierarchies" / _NAME
#: What has to be there.
NEEDS = (_FILE, _TREES)
#: In the order of the paper: age, gender, marital status, birth place, education, occupation, race.
QUASI = ("age", "sex", "marital", "economic_region", "education_level", "occupation", "race")
_NUMBERS = {"age": Range(19, 64, step=1), "education_level": Range(1, 24, step=1)}
#: The first major group of the Standard Occupational Classification in each of the six parts that
#: it is usually told in.
_PARTS = {
    11: "Management, business, science and arts",
    31: "Service",
    41: "Sales and office",
    45: "Resources, construction and maintenance",
    51: "Production and transport",
    55: "Military",
}
_MAJOR_GROUPS = range(11, 56, 2)
MOST_ROWS = 204_309


def stream(data: Data, rows: int, n_quasi: int, seed: int) -> tuple[Schema, Codes]:
    """This many rows, which differ with the seed."""
    if data in ("employees", "distinct"):
        return employees(rows, n_quasi, seed, distinct=data == "distinct")
    made = (uniform_points if data == "uniform" else gaussian_points)(rows, seed=seed)
    whole = encoded(made)
    return whole.schema, whole.codes


def employees(
    rows: int, n_quasi: int, seed: int, *, distinct: bool = False
) -> tuple[Schema, Codes]:
    """SAL(rows, n_quasi): a random sample of the table, with its first quasi attributes.

    As in the paper, rows that are equal in all seven attributes are those of one person. With
    ``distinct`` only one row of each person is left to draw from.
    """
    codes = _whole()
    choice = np.arange(len(codes.subjects))
    if distinct:
        choice = np.unique(codes.subjects, return_index=True)[1]
    if not 1 <= rows <= len(choice) or not 1 <= n_quasi <= len(QUASI):
        raise ValueError(
            f"there are {len(choice):,} rows and {len(QUASI)} quasi attributes, not {rows:,} and "
            f"{n_quasi}"
        )
    chosen = np.random.default_rng(seed).permutation(choice)[:rows]
    sample = Codes(
        np.ascontiguousarray(codes.values[chosen, :n_quasi]),
        codes.subjects[chosen],
        codes.sensitive[chosen],
        codes.times[chosen],
    )
    return schema_of(n_quasi), sample


@lru_cache(maxsize=8)
def schema_of(n_quasi: int = len(QUASI), subject: str | None = "person") -> Schema:
    """The first attributes and their domains."""
    return Schema(subject, [Quasi(name, _domain(name)) for name in QUASI[:n_quasi]])


def table() -> pa.Table:
    """The seven columns of the whole table; an occupation is given by its major group."""
    whole = pq.read_table(_FILE, columns=list(QUASI))
    place = QUASI.index("occupation")
    group = pc.utf8_slice_codeunits(whole.column(place).cast(pa.string()), 0, 2)
    return whole.set_column(place, "occupation", group)


@lru_cache(maxsize=1)
def _whole() -> Codes:
    codes, _ = read_codes(schema_of(subject=None), table())
    people = np.unique(codes.values, axis=0, return_inverse=True)[1]
    return codes._replace(subjects=people.astype(np.int64).reshape(-1))


def _domain(name: str) -> Hierarchy | Range:
    if name in _NUMBERS:
        return _NUMBERS[name]
    if name == "occupation":
        return Hierarchy.from_rows(
            [str(group), _PARTS[max(first for first in _PARTS if first <= group)], "*"]
            for group in _MAJOR_GROUPS
        )
    return Hierarchy.from_csv(_TREES / f"{name}.csv")
