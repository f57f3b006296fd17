"""Take a part of the rows that a comparison is made on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from shoal.compare.cells import Cell
from shoal.spec.schema import Schema

__all__ = ["about_tables", "drawn"]


def about_tables(cells: Sequence[Cell]) -> bool:
    """Return whether all cells publish whole tables, so that the order of rows means nothing."""
    return bool(cells) and all(cell.policy.window == "all" for cell in cells)


def drawn(table: pa.Table, schema: Schema, n_rows: int, seed: int) -> pa.Table:
    """Return people drawn at random, with all of their rows, in the order of the table.

    As many people as have at most ``n_rows`` rows together, and at least one.

    Parameters
    ----------
    table, schema
        The rows, and which column tells people apart.
    n_rows
        The most rows.
    seed
        For the choice.

    >>> from shoal.spec.schema import Quasi, Range
    >>> people = pa.table({"name": ["Ann", "Bob", "Ann", "Cem"], "age": [31, 33, 31, 64]})
    >>> schema = Schema("name", [Quasi("age", Range(0, 120))])
    >>> drawn(people, schema, 2, seed=1)["name"].to_pylist()
    ['Ann', 'Ann']
    """
    if table.num_rows <= n_rows:
        return table
    random = np.random.default_rng(seed)
    if schema.subject is None:
        rows = np.sort(random.choice(table.num_rows, n_rows, replace=False))
        return table.take(pa.array(rows))
    names = table[schema.subject].combine_chunks()
    codes = names.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    people, person = np.unique(codes, return_inverse=True)
    place = np.empty(len(people), np.int64)
    order = random.permutation(len(people))
    place[order] = np.arange(len(people))
    n_of_person = np.bincount(person.reshape(-1), minlength=len(people))
    n_fit = max(1, int(np.searchsorted(np.cumsum(n_of_person[order]), n_rows, side="right")))
    return table.filter(pa.array(place[person.reshape(-1)] < n_fit))
