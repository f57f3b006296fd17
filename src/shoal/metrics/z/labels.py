"""Read the values of cells as codes of labels, from fine to coarse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow.columns import as_numbers, dictionary_indices, label_text, leaf_codes, plain
from shoal.arrow.columns import is_missing as missing_cells
from shoal.engine.kernels.arrays import Bools, Ints
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Grid, level_labels, n_levels
from shoal.spec.schema import Quasi

__all__ = ["LabelCodes", "label_codes"]


class LabelCodes(NamedTuple):
    """The value of each row, -1 where there is none, and for each value the codes of its labels."""

    value: Ints
    labels: Ints


def label_codes(quasi: Quasi, table: pa.Table) -> LabelCodes:
    """Number the labels of an attribute: equal ones have one code, at any level.

    >>> from shoal.spec.ladder import Path
    >>> table = pa.table({"area": ["it*to", "it*mi", "it", None]})
    >>> found = label_codes(Quasi("area", Path("*", levels=2)), table)
    >>> found.value, found.labels.tolist()
    (array([ 0,  1,  2, -1]), [[0, 1], [2, 1], [1, 1]])
    """
    columns = [_column(table, name) for name in quasi.columns]
    missing = np.any([missing_cells(column) for column in columns], axis=0)
    domain = quasi.domain
    values: Iterable[Any]
    if isinstance(domain, Range | Grid):
        numbers = np.stack([_numbers(column) for column in columns], axis=1)
        good = np.isfinite(numbers).all(axis=1) & ~missing
        different, which = np.unique(numbers[good], axis=0, return_inverse=True)
        value = np.full(table.num_rows, -1, np.int64)
        value[good] = which.reshape(-1)
        is_grid = isinstance(domain, Grid)
        values = [tuple(row) if is_grid else row[0] for row in different.tolist()]
    elif isinstance(domain, Hierarchy):
        value = np.where(missing, -1, leaf_codes(columns[0], domain))
        values = domain.leaves
    else:
        text = label_text(columns[0])
        encoded = plain(text).dictionary_encode()
        missing = missing | np.asarray(text.is_null())
        value = np.where(missing, -1, dictionary_indices(encoded))
        values = encoded.dictionary.to_pylist()
    codes: dict[str, int] = {}
    labels = [
        [codes.setdefault(label, len(codes)) for label in level_labels(domain, one)]
        for one in values
    ]
    return LabelCodes(value, np.array(labels, np.int64).reshape(len(labels), n_levels(domain)))


def _numbers(column: Any) -> Any:
    return as_numbers(column, "", np.zeros(len(column), np.bool_), _ignore)


def _ignore(rows: Bools, reason: str) -> None:
    """Ignore what isn't a number: the run has quarantined it."""


def _column(table: pa.Table, name: str) -> Any:
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
