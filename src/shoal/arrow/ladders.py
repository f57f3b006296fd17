"""From the values of a column to the rungs of their ladders: keys to count by, labels to publish.

What is one value has one key and one label, however it is written. A key is a keyed hash of the
label, its attribute and its level, so that no dictionary grows with the stream.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrow.columns import (
    Complain,
    as_numbers,
    dictionary_indices,
    is_missing,
    label_text,
    leaf_codes,
    text_hashes,
)
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.hashing import scattered
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import DEGREE, Cell, Grid, Open, Path, interval, n_rungs, nodes_up
from shoal.spec.schema import Quasi, Schema

__all__ = ["Ladders", "Rung", "rung_column"]

#: How many degrees there are on each side of the equator and of Greenwich.
FARTHEST = {"latitude": 90.0, "longitude": 180.0}


class Rung(NamedTuple):
    """The labels of a column at one level: those that there are, and which one each row has."""

    places: Ints
    labels: Any

    def __repr__(self) -> str:
        return f"Rung({len(self.places)} rows)"


def rung_column(attribute: str, level: int) -> str:
    """The name under which labels are carried along. No column of a user can have such a name."""
    return f"\0{attribute}\0{level}"


class Ladders:
    """Turn the quasi attributes of batches into cells: keys of rungs, and their labels.

    Parameters
    ----------
    schema
        The attributes and their domains.
    key
        A secret under which labels are hashed.

    >>> schema = Schema("user", [Quasi("site", Path("/", levels=2)), Quasi("shop", Open())])
    >>> ladders = Ladders(schema, bytes(8))
    >>> batch = pa.record_batch({"site": ["news/sport", "news/chess"], "shop": ["7", " 7"]})
    >>> cells, labels = ladders.encode(batch, False, lambda rows, reason: None)
    >>> cells[0] == cells[1]
    array([False,  True,  True])
    >>> [column.to_pylist() for column in labels.values()]
    [['news/sport', 'news/chess'], ['news', 'news'], ['7', '7']]
    """

    def __init__(self, schema: Schema, key: bytes) -> None:
        self._quasi = schema.quasi
        #: The rungs of the leaves of each hierarchy, which are the same in every batch.
        self._trees = {
            quasi.name: _Tree.of(quasi.domain)
            for quasi in schema.quasi
            if isinstance(quasi.domain, Hierarchy)
        }
        self.restore(key)

    def restore(self, key: bytes) -> None:
        """Go on with another key."""
        self._keys = {
            rung_column(quasi.name, level): _derived(key, number, level)
            for number, quasi in enumerate(self._quasi)
            for level in range(n_rungs(quasi.domain))
        }
        self._tree_hashes = {
            rung_column(name, level): text_hashes(self._keys[rung_column(name, level)], tree.labels)
            for name, tree in self._trees.items()
            for level in range(tree.up.shape[1])
        }

    def encode(
        self, batch: pa.RecordBatch, with_gaps: bool, complain: Complain
    ) -> tuple[Ints, dict[str, Any]]:
        """The cells of a batch, 0 where a value is missing, and the labels by name of column."""
        cells: list[Ints] = []
        labels: dict[str, Any] = {}
        for quasi in self._quasi:
            columns = [_spelled(batch.column(name), quasi) for name in quasi.columns]
            missing = is_missing(columns[0])
            for column in columns[1:]:
                missing |= is_missing(column)
            if not with_gaps:
                complain(missing, f"{quasi.name} is missing")
            rungs = self._rungs(quasi, columns, missing, complain)
            keys = np.zeros(batch.num_rows, np.int64)
            of_quasi: list[Ints] = []
            told: dict[str, Any] = {}
            # From coarse to fine: a key is that of a label under all that is above it.
            for level in range(len(rungs) - 1, -1, -1):
                rung, name = rungs[level], rung_column(quasi.name, level)
                hashes = self._tree_hashes.get(name)
                if hashes is None:
                    hashes = text_hashes(self._keys[name], rung.labels)
                keys = _chained(hashes[rung.places] if len(hashes) else keys, keys)
                of_quasi.insert(0, np.where(missing, 0, keys))
                places = pa.array(rung.places.astype(np.int32), mask=missing)
                told[name] = pa.DictionaryArray.from_arrays(places, rung.labels)
            cells += of_quasi
            labels |= dict(reversed(told.items()))
        return np.ascontiguousarray(np.column_stack(cells)), labels

    def _rungs(
        self, quasi: Quasi, columns: list[Any], missing: Bools, complain: Complain
    ) -> list[Rung]:
        domain = quasi.domain
        if isinstance(domain, Hierarchy):
            codes = leaf_codes(columns[0], domain)
            unknown = (codes < 0) & ~missing
            complain(unknown, f"{quasi.name} has a category that its hierarchy lacks")
            return self._trees[quasi.name].rungs(codes)
        if isinstance(domain, Range):
            return [_steps(columns[0], quasi.name, domain, missing, complain)]
        if isinstance(domain, Grid):
            return _cells(columns, domain, missing, complain)
        text = columns[0]
        if not pa.types.is_dictionary(text.type):
            text = text.dictionary_encode()
        whole = Rung(dictionary_indices(text), text.dictionary.cast(pa.string()))
        return _prefixes(whole, domain) if isinstance(domain, Path) else [whole]


class _Tree(NamedTuple):
    """A hierarchy: the nodes from each leaf up, by code and level, and the labels of all nodes."""

    up: Ints
    labels: Any

    @classmethod
    def of(cls, tree: Hierarchy) -> _Tree:
        up = np.array([nodes_up(tree, leaf) for leaf in tree.leaves], np.int64)
        return cls(up, pa.array(tree.labels, pa.string()))

    def rungs(self, codes: Ints) -> list[Rung]:
        """The rungs of leaves; what is no leaf is taken for the first one."""
        known = np.maximum(codes, 0)
        return [Rung(self.up[known, level], self.labels) for level in range(self.up.shape[1])]


def _chained(hashes: Ints, above: Ints) -> Ints:
    """The keys of labels under others; 0 is none, for it stands for what is missing."""
    joined = above.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + hashes.astype(np.uint64)
    keys = scattered(joined).astype(np.int64)
    return np.where(keys == 0, 1, keys)


def _derived(key: bytes, number: int, level: int) -> Ints:
    told = hashlib.blake2b(b"%d %d" % (number, level), digest_size=8, key=key, person=b"shoal-rung")
    return np.frombuffer(told.digest(), "<u4").astype(np.int64)


def _spelled(column: Any, quasi: Quasi) -> Any:
    """Values that are told apart by their text as text, each in one spelling.

    What is nothing by then (a fraction that is no number, invisible characters) is missing.
    """
    if not isinstance(quasi.domain, Open | Path):
        return column
    return label_text(column)


def _prefixes(whole: Rung, domain: Path) -> list[Rung]:
    ladders = [domain.rungs(text or "") for text in whole.labels.to_pylist()]
    rungs = [whole]
    for level in range(1, domain.levels):
        labels = pa.array([ladder[level] for ladder in ladders], pa.string()).dictionary_encode()
        places = dictionary_indices(labels)
        rungs.append(Rung(places[whole.places] if len(places) else whole.places, labels.dictionary))
    return rungs


def _steps(column: Any, name: str, domain: Range, missing: Bools, complain: Complain) -> Rung:
    numbers = as_numbers(column, name, missing, complain)
    complain((numbers < domain.lo) | (numbers > domain.hi), f"{name} is out of its range")
    assert domain.step is not None
    with_numbers = np.where(np.isfinite(numbers), np.clip(numbers, domain.lo, domain.hi), domain.lo)
    # What is rounded here is put right by `interval`, so each number is looked at by itself.
    distinct, places = np.unique(with_numbers, return_inverse=True)
    labels = pa.array([interval(domain, x) for x in distinct.tolist()], pa.string())
    encoded = labels.dictionary_encode()
    return Rung(dictionary_indices(encoded)[places.reshape(-1)], encoded.dictionary)


def _cells(columns: list[Any], grid: Grid, missing: Bools, complain: Complain) -> list[Rung]:
    latitude, longitude = (
        _degrees(column, name, FARTHEST[kind], missing, complain)
        for column, name, kind in zip(
            columns, (grid.latitude, grid.longitude), FARTHEST, strict=True
        )
    )
    finest, coarsest = grid.cells[0], grid.cells[-1]
    rows = np.floor((latitude + 90) * DEGREE / finest).astype(np.int64)
    bands, band = np.unique(rows // (coarsest // finest), return_inverse=True)
    scales = np.array([grid.scale(int(number)) for number in bands])
    scale = scales[band.reshape(-1)] if len(scales) else np.empty(0)
    wide = np.floor((longitude + 180) * scale / finest).astype(np.int64)
    return [_squares(rows, wide, scale, side // finest, side) for side in grid.cells]


def _squares(rows: Ints, columns: Ints, scale: Floats, times: int, side: int) -> Rung:
    """The cells of one side, each labelled once."""
    rows, columns = rows // times, columns // times
    # Both numbers fit in one: there are fewer than 2**32 of either.
    _, first, places = np.unique(rows << 32 | columns, return_index=True, return_inverse=True)
    labels = [
        Cell(int(rows[i]), int(columns[i]), side, float(scale[i])).label for i in first.tolist()
    ]
    return Rung(places.reshape(-1), pa.array(labels, pa.string()))


def _degrees(column: Any, name: str, most: float, missing: Bools, complain: Complain) -> Floats:
    degrees = as_numbers(column, name, missing, complain)
    complain(np.abs(degrees) > most, f"{name} isn't within {most:g} degrees")
    return np.where(np.isfinite(degrees), np.clip(degrees, -most, most), 0.0)
