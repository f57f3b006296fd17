"""Make the releases of z-anonymity: each value is published at a level of its ladder or hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrow.columns import dictionary_indices
from shoal.arrow.ladders import level_column
from shoal.arrow.order import Departures
from shoal.arrow.pseudonyms import COLUMN
from shoal.arrow.release import Publish, Release
from shoal.engine.base import Outcome
from shoal.engine.kernels.arrays import Bools, Ints
from shoal.spec.ladder import n_levels
from shoal.spec.schema import Schema

__all__ = ["ZPublisher"]


class ZPublisher:
    """Make releases: labels of levels, null for hidden and missing values, payload as it is.

    Parameters
    ----------
    schema
        The columns and their roles.
    publish
        How a release looks.
    payload
        The Arrow schema of the columns that are published as they are, the time among them.
    first
        The place in the output of the first row to release.
    """

    def __init__(
        self, schema: Schema, publish: Publish, payload: pa.Schema, *, first: int = 0
    ) -> None:
        self._root = publish.suppressed == "root"
        self._n_levels = {quasi.name: n_levels(quasi.domain) for quasi in schema.quasi}
        self._pseudonym = [] if publish.pseudonym is None else [COLUMN]
        self._payload = payload
        self._next = first
        #: The columns of the output, with labels as plain text; releases have dictionaries.
        self.schema = pa.schema(
            [
                *((name, pa.string()) for name in self._pseudonym),
                *((name, pa.string()) for name in self._n_levels),
                *payload,
            ]
        )

    @property
    def upcoming(self) -> int:
        """The place in the output of the next row."""
        return self._next

    def release(self, departures: Departures) -> tuple[Release, Ints]:
        """Return a release, and the place of each row in the output (-1: not in it)."""
        is_out = departures.outcomes != Outcome.suppressed
        levels, payload = departures.levels, departures.payload
        n = len(is_out)
        seq = np.arange(self._next, self._next + n)
        rows: Any = None
        if not is_out.all():
            if self._root:
                # Nothing is public of these rows; a null index takes a null.
                rows = pa.array(np.arange(n), mask=~is_out)
            else:
                seq = np.where(is_out, self._next + np.cumsum(is_out) - 1, -1)
                rows = pa.array(np.flatnonzero(is_out))
                levels = levels[is_out]
                payload = payload.take(rows)
        kept = [
            payload.column(name).take(rows) if self._root and rows is not None
            else payload.column(name)
            for name in (*self._pseudonym, *self._payload.names)
        ]  # fmt: skip
        labels = [
            self._labels(payload, name, levels[:, j]) for j, name in enumerate(self._n_levels)
        ]
        n_first = len(self._pseudonym)
        batch = pa.record_batch(
            [*kept[:n_first], *labels, *kept[n_first:]], names=self.schema.names
        )
        release = Release(batch, self._next)
        self._next += release.n_rows
        return release, seq

    def _labels(self, payload: pa.RecordBatch, name: str, levels: Ints) -> Any:
        """Return the labels of one attribute, each at its level."""
        columns = [
            payload.column(level_column(name, level)) for level in range(self._n_levels[name])
        ]
        begins = np.cumsum([0, *(len(column.dictionary) for column in columns)])
        places = np.zeros(len(levels), np.int64)
        for level, column in enumerate(columns):
            here = levels == level
            if here.any():
                places[here] = begins[level] + dictionary_indices(column)[here]
        dictionaries = [column.dictionary for column in columns]
        labels = pa.concat_arrays(dictionaries) if len(dictionaries) > 1 else dictionaries[0]
        return _used(labels, places, levels < 0)


def _used(labels: Any, places: Ints, nulls: Bools) -> Any:
    """Return labels with a dictionary of the published ones only, in the order of the output.

    Hidden labels must not be in it, and its order must not show who came when.
    """
    chosen = pa.array(np.where(nulls, 0, places), mask=nulls).dictionary_encode()
    return pa.DictionaryArray.from_arrays(chosen.indices, labels.take(chosen.dictionary))
