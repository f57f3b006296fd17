"""Turn values into the levels of their ladders: keys to count by, and labels to publish.

All spellings of a value have one key and one label. A key is a keyed hash of the label, its
attribute and its level, so that no dictionary grows with the stream.
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
from shoal.spec.ladder import DEGREE, Cell, Grid, Open, Path, interval, n_levels, nodes_up
from shoal.spec.schema import Quasi, Schema

__all__ = ["Ladders", "LevelLabels", "level_column"]

#: The largest latitude and longitude, in degrees.
FARTHEST = {"latitude": 90.0, "longitude": 180.0}


class LevelLabels(NamedTuple):
    """The labels of a column at one level: the different ones, and the index of each row's."""

    places: Ints
    labels: Any

    def __repr__(self) -> str:
        return f"LevelLabels({len(self.places)} rows)"


def level_column(attribute: str, level: int) -> str:
    """Return the name of the payload column of a level. No column of a user can have it."""
    return f"\0{attribute}\0{level}"


class Ladders:
    """Turn the quasi attributes of batches into keys of levels, and their labels.

    Parameters
    ----------
    schema
        The attributes and their domains.
    key
        The secret under which labels are hashed.

    >>> schema = Schema("user", [Quasi("site", Path("/", levels=2)), Quasi("shop", Open())])
    >>> ladders = Ladders(schema, bytes(8))
    >>> batch = pa.record_batch({"site": ["news/sport", "news/chess"], "shop": ["7", " 7"]})
    >>> keys, labels = ladders.encode(batch, False, lambda rows, reason: None)
    >>> keys[0] == keys[1]
    array([False,  True,  True])
    >>> [column.to_pylist() for column in labels.values()]
    [['news/sport', 'news/chess'], ['news', 'news'], ['7', '7']]
    """

    def __init__(self, schema: Schema, key: bytes) -> None:
        self._quasi = schema.quasi
        # The levels of the leaves of each hierarchy, which are the same in every batch.
        self._trees = {
            quasi.name: _Tree.of(quasi.domain)
            for quasi in schema.quasi
            if isinstance(quasi.domain, Hierarchy)
        }
        self._keys = {
            level_column(quasi.name, level): _derived(key, number, level)
            for number, quasi in enumerate(self._quasi)
            for level in range(n_levels(quasi.domain))
        }
        self._tree_hashes = {
            level_column(name, level): text_hashes(
                self._keys[level_column(name, level)], tree.labels
            )
            for name, tree in self._trees.items()
            for level in range(tree.up.shape[1])
        }

    def encode(
        self, batch: pa.RecordBatch, with_gaps: bool, complain: Complain
    ) -> tuple[Ints, dict[str, Any]]:
        """Return the keys of a batch, 0 where a value is missing, and the labels by column."""
        keys: list[Ints] = []
        labels: dict[str, Any] = {}
        for quasi in self._quasi:
            columns = [_spelled(batch.column(name), quasi) for name in quasi.columns]
            missing = is_missing(columns[0])
            for column in columns[1:]:
                missing |= is_missing(column)
            if not with_gaps:
                complain(missing, f"{quasi.name} is missing")
            levels = self._levels(quasi, columns, missing, complain)
            above = np.zeros(batch.num_rows, np.int64)
            of_quasi: list[Ints] = []
            of_levels: dict[str, Any] = {}
            # From coarse to fine: the key of a label depends on all labels above it.
            for level in range(len(levels) - 1, -1, -1):
                labelled, name = levels[level], level_column(quasi.name, level)
                hashes = self._tree_hashes.get(name)
                if hashes is None:
                    hashes = text_hashes(self._keys[name], labelled.labels)
                above = _chained(hashes[labelled.places] if len(hashes) else above, above)
                of_quasi.insert(0, np.where(missing, 0, above))
                places = pa.array(labelled.places.astype(np.int32), mask=missing)
                of_levels[name] = pa.DictionaryArray.from_arrays(places, labelled.labels)
            keys += of_quasi
            labels |= dict(reversed(of_levels.items()))
        return np.ascontiguousarray(np.column_stack(keys)), labels

    def _levels(
        self, quasi: Quasi, columns: list[Any], missing: Bools, complain: Complain
    ) -> list[LevelLabels]:
        domain = quasi.domain
        if isinstance(domain, Hierarchy):
            codes = leaf_codes(columns[0], domain)
            unknown = (codes < 0) & ~missing
            complain(unknown, f"{quasi.name} has a category that its hierarchy lacks")
            return self._trees[quasi.name].levels(codes)
        if isinstance(domain, Range):
            return [_steps(columns[0], quasi.name, domain, missing, complain)]
        if isinstance(domain, Grid):
            return _grid_levels(columns, domain, missing, complain)
        text = columns[0]
        if not pa.types.is_dictionary(text.type):
            text = text.dictionary_encode()
        whole = LevelLabels(dictionary_indices(text), text.dictionary.cast(pa.string()))
        return _prefixes(whole, domain) if isinstance(domain, Path) else [whole]


class _Tree(NamedTuple):
    """A hierarchy: the nodes from each leaf up, by code and level, and the labels of all nodes."""

    up: Ints
    labels: Any

    @classmethod
    def of(cls, tree: Hierarchy) -> _Tree:
        up = np.array([nodes_up(tree, leaf) for leaf in tree.leaves], np.int64)
        return cls(up, pa.array(tree.labels, pa.string()))

    def levels(self, codes: Ints) -> list[LevelLabels]:
        """Return the levels of leaves; an unknown code (-1) is taken for the first leaf."""
        known = np.maximum(codes, 0)
        return [
            LevelLabels(self.up[known, level], self.labels) for level in range(self.up.shape[1])
        ]


def _chained(hashes: Ints, above: Ints) -> Ints:
    """Combine hashes with the keys above them; never 0, which stands for a missing value."""
    joined = above.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + hashes.astype(np.uint64)
    keys = scattered(joined).astype(np.int64)
    return np.where(keys == 0, 1, keys)


def _derived(key: bytes, number: int, level: int) -> Ints:
    digest = hashlib.blake2b(
        b"%d %d" % (number, level), digest_size=8, key=key, person=b"shoal-rung"
    )
    return np.frombuffer(digest.digest(), "<u4").astype(np.int64)


def _spelled(column: Any, quasi: Quasi) -> Any:
    """Return values of open domains as text, each in one spelling.

    Values without text (NaN, only invisible characters) are missing.
    """
    if not isinstance(quasi.domain, Open | Path):
        return column
    return label_text(column)


def _prefixes(whole: LevelLabels, domain: Path) -> list[LevelLabels]:
    ladders = [domain.level_labels(text or "") for text in whole.labels.to_pylist()]
    levels = [whole]
    for level in range(1, domain.levels):
        labels = pa.array([ladder[level] for ladder in ladders], pa.string()).dictionary_encode()
        places = dictionary_indices(labels)
        levels.append(
            LevelLabels(places[whole.places] if len(places) else whole.places, labels.dictionary)
        )
    return levels


def _steps(
    column: Any, name: str, domain: Range, missing: Bools, complain: Complain
) -> LevelLabels:
    numbers = as_numbers(column, name, missing, complain)
    complain((numbers < domain.lo) | (numbers > domain.hi), f"{name} is out of its range")
    assert domain.step is not None
    with_numbers = np.where(np.isfinite(numbers), np.clip(numbers, domain.lo, domain.hi), domain.lo)
    # Each different number is labelled on its own, since `interval` corrects rounding errors.
    distinct, places = np.unique(with_numbers, return_inverse=True)
    labels = pa.array([interval(domain, x) for x in distinct.tolist()], pa.string())
    encoded = labels.dictionary_encode()
    return LevelLabels(dictionary_indices(encoded)[places.reshape(-1)], encoded.dictionary)


def _grid_levels(
    columns: list[Any], grid: Grid, missing: Bools, complain: Complain
) -> list[LevelLabels]:
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


def _squares(rows: Ints, columns: Ints, scale: Floats, times: int, side: int) -> LevelLabels:
    """Return the grid cells of one side length, each labelled once."""
    rows, columns = rows // times, columns // times
    # Row and column fit in one number: there are fewer than 2**32 of each.
    _, first, places = np.unique(rows << 32 | columns, return_index=True, return_inverse=True)
    labels = [
        Cell(int(rows[i]), int(columns[i]), side, float(scale[i])).label for i in first.tolist()
    ]
    return LevelLabels(places.reshape(-1), pa.array(labels, pa.string()))


def _degrees(column: Any, name: str, most: float, missing: Bools, complain: Complain) -> Floats:
    degrees = as_numbers(column, name, missing, complain)
    complain(np.abs(degrees) > most, f"{name} isn't within {most:g} degrees")
    return np.where(np.isfinite(degrees), np.clip(degrees, -most, most), 0.0)
