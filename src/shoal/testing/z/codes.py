"""Encode values as cells and back, as a codec does for z-anonymity, without Arrow or a secret.

A cell is the keys of the levels of a value. Here a key is a hash of the labels from its level up to
the coarsest, so that one label under two parents has two keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from shoal.engine.kernels.arrays import Floats, Ints
from shoal.engine.space import Codes
from shoal.spec.ladder import level_labels, n_levels
from shoal.spec.schema import Schema

__all__ = ["Keys", "Value", "cell_codes", "cells_of", "keys_of"]

#: A value of an attribute, or None where it is missing.
Value: TypeAlias = str | float | tuple[float, float] | None
#: The keys of a cell from fine to coarse, or None where its value is missing.
Keys: TypeAlias = tuple[int, ...] | None


def keys_of(attribute: int, labels: Sequence[str]) -> tuple[int, ...]:
    """Return the keys of a ladder of labels from fine to coarse; none is 0.

    >>> one, other = keys_of(0, ["Springfield", "Ohio"]), keys_of(0, ["Springfield", "Utah"])
    >>> len(set(one + other))
    4
    """
    keys = []
    for level in range(len(labels)):
        text = repr((attribute, level, *labels[level:])).encode()
        digest = hashlib.blake2b(text, digest_size=8).digest()
        keys.append(int.from_bytes(digest, "big", signed=True) or 1)
    return tuple(keys)


def cell_codes(
    schema: Schema, rows: Sequence[Sequence[Value]], subjects: Ints, times: Floats
) -> Codes:
    """Return a batch of cells from the values of each row.

    >>> from shoal import Quasi
    >>> from shoal.spec.ladder import Open
    >>> schema = Schema("user", [Quasi("site", Open())])
    >>> users, times = np.array([1, 2, 3]), np.zeros(3)
    >>> batch = cell_codes(schema, [["news"], ["news"], [None]], users, times)
    >>> batch.keys[0] == batch.keys[1], batch.keys[2]
    (array([ True]), array([0]))
    """
    domains = [quasi.domain for quasi in schema.quasi]
    n, width = len(rows), sum(map(n_levels, domains))
    cells = np.zeros((n, width), np.int64)
    for row, values in zip(cells, rows, strict=True):
        begin = 0
        for number, (domain, value) in enumerate(zip(domains, values, strict=True)):
            end = begin + n_levels(domain)
            if value is not None:
                row[begin:end] = keys_of(number, level_labels(domain, value))
            begin = end
    return Codes(np.empty((n, 0)), subjects, np.empty((n, 0), np.int64), times, cells)


def cells_of(schema: Schema, codes: Codes) -> list[list[Keys]]:
    """Return for each row of a batch the keys of each attribute.

    >>> from shoal import Quasi
    >>> from shoal.spec.ladder import Open, Path
    >>> schema = Schema("user", [Quasi("site", Path("/", levels=2)), Quasi("shop", Open())])
    >>> batch = Codes.empty(0, 0)._replace(keys=np.array([[5, 7, 0]]))
    >>> cells_of(schema, batch)
    [[(5, 7), None]]
    """
    ends = list(accumulate(n_levels(quasi.domain) for quasi in schema.quasi))
    spans = list(zip([0, *ends], ends, strict=False))
    return [
        [tuple(row[begin:end]) if row[begin] else None for begin, end in spans]
        for row in codes.keys.tolist()
    ]
