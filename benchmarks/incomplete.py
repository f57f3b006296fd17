"""Missing values put into complete rows, as IDEA §5.1 does it."""

from __future__ import annotations

import numpy as np

from shoal.kernels.arrays import Floats, Ints

__all__ = ["gap_masks", "insert_gaps"]


def insert_gaps(values: Floats, most: int, seed: int) -> Floats:
    """A copy with equally many rows of 0, 1, …, most missing values; which ones is random.

    >>> values = insert_gaps(np.zeros((9, 4)), most=2, seed=0)
    >>> np.bincount(np.isnan(values).sum(axis=1)).tolist()
    [3, 3, 3]
    """
    rng = np.random.default_rng(seed)
    n_rows, n_quasi = values.shape
    n_missing = rng.permutation(np.arange(n_rows) % (most + 1))
    # The places of the attributes in a random order, another one for each row.
    order = rng.random((n_rows, n_quasi)).argsort(axis=1).argsort(axis=1)
    return np.where(order < n_missing[:, None], np.nan, values)


def gap_masks(values: Floats) -> Ints:
    """Which values of each row are missing: bit d for attribute d.

    >>> gap_masks(np.array([[1.0, np.nan, np.nan], [1.0, 2.0, 3.0]])).tolist()
    [6, 0]
    """
    return np.isnan(values) @ (1 << np.arange(values.shape[1]))
