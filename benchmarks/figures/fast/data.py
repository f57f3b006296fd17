"""Adult as FAST measures on it: ten quasi attributes, and some people who come twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from benchmarks.figures.streams import ADULT, Stream, encoded
from shoal.datasets import Dataset, adult
from shoal.spec.schema import Schema

__all__ = ["QUASI", "Repeated"]

#: Six numbers and four categories, in the order of the paper (§5).
QUASI = (
    "age",
    "final_weight",
    "education_num",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "education",
    "marital_status",
    "workclass",
    "native_country",
)
#: One in this many rows comes again.
ONE_IN = 10


@dataclass(frozen=True)
class Repeated:
    """The first complete rows of Adult; a tenth of them is put back in at random places."""

    rows: int
    quasi: tuple[str, ...] = QUASI
    seed: int = 0

    def stream(self) -> Stream:
        return _repeated(self.rows, self.seed).with_quasi(self.quasi)


@lru_cache(maxsize=4)
def _repeated(rows: int, seed: int) -> Stream:
    data = adult(ADULT, quasi=QUASI, sensitive="occupation")
    table = data.table().slice(0, rows)
    order = _with_repeats(table.num_rows, seed)
    schema = Schema(subject="person", quasi=data.schema.quasi, sensitive=data.schema.sensitive)
    table = table.append_column("person", pa.array(np.arange(table.num_rows))).take(order)
    return encoded(Dataset.from_table(table, schema, name="adult"))


def _with_repeats(n: int, seed: int) -> np.ndarray:
    """The rows in their order, with a tenth of them, each once, put in at random places."""
    rng = np.random.default_rng(seed)
    again = rng.choice(n, n // ONE_IN, replace=False)
    return np.insert(np.arange(n), rng.integers(0, n + 1, len(again)), again)
