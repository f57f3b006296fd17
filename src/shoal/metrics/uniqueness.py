"""How many people can be told apart by what an outsider may know about them.

It is measured on the input, before anything is published: people who are alone with their quasi
values are those that a promise has to hide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.columns import is_missing, one_text
from shoal.engine.kernels.arrays import Bools, Ints
from shoal.errors import ParameterError, did_you_mean

__all__ = ["Uniqueness", "codes_of", "uniqueness"]


@dataclass(frozen=True, slots=True, repr=False)
class Uniqueness:
    """How many subjects share the quasi values of each subject.

    ``n_sharing`` has for each subject the number of subjects that have the same quasi values,
    itself included. For a subject with several rows it is the least over them: one row is enough to
    find somebody.
    """

    n_sharing: Ints

    def __repr__(self) -> str:
        return f"Uniqueness({self.n_unique} of {self.n_subjects} subjects)"

    @property
    def n_subjects(self) -> int:
        """The number of subjects."""
        return len(self.n_sharing)

    @property
    def n_unique(self) -> int:
        """The number of subjects with quasi values that nobody else has."""
        return self.n_below(2)

    @property
    def share(self) -> float | None:
        """The share of subjects that are unique; None if there are no subjects."""
        return self.n_unique / self.n_subjects if self.n_subjects else None

    def n_below(self, k: int) -> int:
        """Return how many subjects share some of their quasi values with fewer than k subjects.

        The subject itself counts: without any generalization these rows wouldn't be k-anonymous.
        """
        return int(np.count_nonzero(self.n_sharing < k))


def uniqueness(table: pa.Table, quasi: Sequence[str], subject: str | None = None) -> Uniqueness:
    """Count who is unique on a set of columns.

    Parameters
    ----------
    table
        Rows of the input, or a sample. In a sample more people are unique than among all.
    quasi
        The columns that an outsider may know. Values are compared exactly; a missing one is a value
        of its own.
    subject
        The column that identifies a person; rows without one aren't counted. None: each row is a
        person.

    >>> people = pa.table({"who": [1, 1, 2, 3], "age": [30, 31, 30, 40], "sex": list("ffff")})
    >>> uniqueness(people, ["age", "sex"], "who")
    Uniqueness(2 of 3 subjects)
    >>> uniqueness(people, ["sex"], "who").share
    0.0
    """
    for name in (*quasi, *([] if subject is None else [subject])):
        if name not in table.column_names:
            raise ParameterError(
                "table", f"lacks the column {name}", fix=did_you_mean(name, table.column_names)
            )
    rows = np.arange(table.num_rows)
    if subject is None:
        people = rows
    else:
        people, missing = codes_of(table[subject])
        rows = np.flatnonzero(~missing)
        people = np.unique(people[rows], return_inverse=True)[1]
    columns = [codes_of(table[name])[0][rows] for name in quasi]
    combined = reduce(_together, columns, np.zeros(len(rows), dtype=np.int64))
    width = int(people.max(initial=-1)) + 1
    combination, person = np.divmod(np.unique(combined * width + people), max(width, 1))
    n_people = np.bincount(combination, minlength=int(combined.max(initial=-1)) + 1)
    n_sharing = np.full(width, len(rows) + 1, dtype=np.int64)
    np.minimum.at(n_sharing, person, n_people[combination])
    return Uniqueness(n_sharing)


def _together(one: Ints, other: Ints) -> Ints:
    """Return a code for each pair of codes, from 0 without gaps, so that products stay small."""
    width = int(other.max(initial=0)) + 1
    codes: Ints = np.unique(one * width + other, return_inverse=True)[1]
    return codes


def codes_of(column: Any) -> tuple[Ints, Bools]:
    """Return a code for each value of a column, 0 where it is missing; and where that is."""
    plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(plain, pa.ChunkedArray):
        plain = pa.concat_arrays(plain.chunks)
    if pa.types.is_dictionary(plain.type):
        plain = plain.dictionary_decode()
    missing = is_missing(plain)
    encoded: Any = one_text(plain).dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return np.where(missing, 0, codes), missing
