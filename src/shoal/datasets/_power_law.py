"""Generate numbers that follow a power law, to measure the effect of skew."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from shoal.datasets._dataset import BATCH_ROWS, Dataset, at_least
from shoal.errors import ParameterError
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Quasi, Schema

__all__ = ["power_law"]


def power_law(
    rows: int,
    columns: int,
    *,
    alpha: float,
    largest: int,
    seed: int = 0,
    batch_rows: int = BATCH_ROWS,
) -> Dataset:
    """Generate independent columns of whole numbers v in 1…N with p(v) = c / v^α.

    These are the synthetic data of the thesis (section 5.7.1, there made by ``genzipf``): the
    larger α, the more values are close to 1. Each row is a different subject.

    Parameters
    ----------
    rows
        How many rows.
    columns
        How many quasi attributes; they are named ``a1``, ``a2``, …
    alpha
        The exponent; 0 is the uniform distribution.
    largest
        N, the largest value.
    seed
        The same seed returns the same rows.
    batch_rows
        How many rows a batch has; it doesn't change the rows.

    >>> data = power_law(1000, 2, alpha=1.5, largest=100)
    >>> data.table().column_names
    ['a1', 'a2']
    """
    at_least("power_law.rows", rows, 0)
    at_least("power_law.columns", columns, 1)
    at_least("power_law.largest", largest, 2)
    at_least("power_law.seed", seed, 0)
    if not (math.isfinite(alpha) and alpha >= 0):
        raise ParameterError("power_law.alpha", "must be a finite number of at least 0", got=alpha)
    names = [f"a{column}" for column in range(1, columns + 1)]
    schema = Schema(None, [Quasi(name, Range(1, largest, step=1)) for name in names])
    # Logarithms keep the smallest weights from underflowing before they are summed.
    weights = np.exp(-alpha * np.log(np.arange(1, largest + 1)))
    cumulative = np.cumsum(weights)
    cumulative /= cumulative[-1]

    def chunks() -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng(seed)
        start = 0
        while True:
            n = min(BATCH_ROWS, rows - start)
            values = 1 + np.searchsorted(cumulative, rng.random((columns, n)), side="right")
            yield pa.record_batch([pa.array(column) for column in values], names=names)
            start += n
            if start >= rows:
                return

    return Dataset(
        name="power-law",
        schema=schema,
        description=f"{columns} columns of 1…{largest} by a power law of exponent {alpha:g}",
        n_rows=rows,
        chunks=chunks,
        batch_rows=batch_rows,
    )
