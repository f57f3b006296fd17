"""Missing values put into complete rows, as IDEA §5.1 does it."""

from __future__ import annotations

import numpy as np

from shoal.engine.kernels.arrays import Bools, Floats, Ints

__all__ = ["gap_masks", "insert_gaps", "missing_places"]


def missing_places(n_rows: int, n_quasi: int, most: int, draw: np.random.Generator) -> Bools:
    """Where values are missing: as many rows have 0, 1, …, ``most`` such places, at random.

    >>> places = missing_places(9, 4, 2, np.random.default_rng(0))
    >>> np.bincount(places.sum(axis=1)).tolist()
    [3, 3, 3]
    """
    n_missing = draw.permutation(np.arange(n_rows) % (most + 1))
    # The places of the attributes in a random order, another one for each row.
    order = draw.random((n_rows, n_quasi)).argsort(axis=1).argsort(axis=1)
    return order < n_missing[:, None]


def insert_gaps(values: Floats, most: int, seed: int) -> Floats:
    """A copy of which as many rows lack 0, 1, …, ``most`` values.

    >>> insert_gaps(np.array([[1.0, 2.0]]), most=0, seed=0).tolist()
    [[1.0, 2.0]]
    """
    places = missing_places(*values.shape, most, np.random.default_rng(seed))
    return np.where(places, np.nan, values)


def gap_masks(values: Floats) -> Ints:
    """Which values of each row are missing: bit d for attribute d.

    >>> gap_masks(np.array([[1.0, np.nan, np.nan], [1.0, 2.0, 3.0]])).tolist()
    [6, 0]
    """
    return np.isnan(values) @ (1 << np.arange(values.shape[1]))
