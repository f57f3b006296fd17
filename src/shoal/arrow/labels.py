"""From boxes to what an outsider reads: labels of nodes, and ranges, bounds or midpoints."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.boxes import nodes_of
from shoal.errors import JobError, Problem
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.schema import Schema

__all__ = ["Labels", "Numeric", "whole"]

Numeric: TypeAlias = Literal["range", "bounds", "midpoint"]

#: From so many boxes on it pays to write each different label only once.
MANY = 2048


class Tree(NamedTuple):
    """A hierarchy as arrays, made once."""

    labels: Any
    leaf_nodes: Ints
    highs: Ints
    parents: Ints

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> Tree:
        """The arrays of a hierarchy."""
        return cls(
            pa.array(hierarchy.labels, pa.string()),
            np.array(hierarchy.leaf_nodes, np.int64),
            np.array(hierarchy.highs, np.int64),
            np.array(hierarchy.parents, np.int64),
        )


class Labels:
    """Write boxes as columns.

    Parameters
    ----------
    schema
        The quasi attributes.
    numeric
        How a side of numbers is published: ``"range"`` as the text ``[25, 30]``, ``"bounds"`` as
        two columns ``age_min`` and ``age_max``, ``"midpoint"`` as one number.

    >>> from shoal.spec.schema import Quasi
    >>> schema = Schema(subject=None, quasi=[Quasi("age", Range(0, 120, step=1))])
    >>> labels = Labels(schema, "range")
    >>> columns = labels.columns(np.array([[25.0]]), np.array([[30.0]]), np.array([0, 0]))
    >>> [str(text) for text in columns[0]]
    ['[25, 30]', '[25, 30]']
    """

    def __init__(self, schema: Schema, numeric: Numeric = "range") -> None:
        self._quasi = schema.quasi
        self._numeric = numeric
        self._trees = {
            quasi.name: Tree.of(quasi.sided)
            for quasi in schema.quasi
            if isinstance(quasi.sided, Hierarchy)
        }
        fields = []
        for quasi in schema.quasi:
            if isinstance(quasi.sided, Hierarchy) or numeric == "range":
                fields.append((quasi.name, pa.string()))
            elif numeric == "midpoint":
                fields.append((quasi.name, pa.float64()))
            else:
                number = pa.int64() if quasi.sided.is_whole else pa.float64()
                fields += [(f"{quasi.name}_min", number), (f"{quasi.name}_max", number)]
        self.schema = pa.schema(fields)
        _refuse_clashes([name for name, _ in fields], schema)

    def columns(self, lo: Floats, hi: Floats, boxes: Ints, gaps: Ints | None = None) -> list[Any]:
        """The columns of rows that lie in boxes; text comes as dictionaries.

        Bit d of ``gaps`` says that a row has null in attribute d, whatever its box says there.
        """
        columns: list[Any] = []
        for d, quasi in enumerate(self._quasi):
            low, high = _sides(quasi.sided, lo[:, d], hi[:, d])
            nulls = None if gaps is None else (gaps >> d) & 1 == 1
            if isinstance(quasi.sided, Hierarchy):
                tree = self._trees[quasi.name]
                nodes = nodes_of(tree.leaf_nodes, tree.highs, tree.parents, low, high)
                columns.append(_dictionary(nodes[boxes], tree.labels, nulls))
            elif self._numeric == "range":
                columns.append(_ranges(quasi.sided, low, high, boxes, nulls))
            elif self._numeric == "midpoint":
                columns.append(pa.array(((low + high) / 2)[boxes], mask=nulls))
            else:
                columns += [_numbers(quasi.sided, side[boxes], nulls) for side in (low, high)]
        return columns


def whole(domain: Domain) -> tuple[float, float]:
    """The codes that a whole domain goes from and to."""
    if isinstance(domain, Hierarchy):
        return 0.0, float(len(domain) - 1)
    return domain.lo, domain.hi


def _sides(domain: Domain, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The sides, with those that nobody has a value for as the whole domain.

    Whoever lies in such a box has null there; and if not, nothing is told.
    """
    empty = low > high
    if not empty.any():
        return low, high
    lowest, highest = whole(domain)
    return np.where(empty, lowest, low), np.where(empty, highest, high)


def _refuse_clashes(names: list[str], schema: Schema) -> None:
    problems = [
        Problem(
            f"schema.{name}",
            "is also the name of a published bound",
            None,
            'Rename the column, or publish numbers as a "range"',
        )
        for name in schema.payload
        if name in names
    ]
    if problems or len(set(names)) < len(names):
        raise JobError(problems or [Problem("publish.numeric", "gives two columns the same name")])


def _numbers(domain: Range, numbers: Floats, nulls: Bools | None = None) -> Any:
    return pa.array(numbers.astype(np.int64) if domain.is_whole else numbers, mask=nulls)


def _texts(domain: Range, numbers: Floats) -> Any:
    if domain.is_whole:
        return _numbers(domain, numbers).cast(pa.string())
    # As Python writes them, whole ones without a point: Arrow has 1e+10 for 10000000000.
    return pa.array([_text(number) for number in numbers.tolist()], pa.string())


def _text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _dictionary(indices: Ints, dictionary: Any, nulls: Bools | None) -> Any:
    places = pa.array(indices.astype(np.int32), mask=nulls)
    return pa.DictionaryArray.from_arrays(places, dictionary)


def _ranges(domain: Range, low: Floats, high: Floats, boxes: Ints, nulls: Bools | None) -> Any:
    if len(low) > MANY:
        # One box for each row, as when everything is published at once: few are different.
        lows, highs = pa.array(low).dictionary_encode(), pa.array(high).dictionary_encode()
        pairs = np.asarray(lows.indices).astype(np.int64) * len(highs.dictionary)
        pairs += np.asarray(highs.indices)
        encoded = pa.array(pairs).dictionary_encode()
        different = np.asarray(encoded.dictionary)
        low = np.asarray(lows.dictionary)[different // len(highs.dictionary)]
        high = np.asarray(highs.dictionary)[different % len(highs.dictionary)]
        boxes = np.asarray(encoded.indices)[boxes]
    inside = pc.binary_join_element_wise(_texts(domain, low), _texts(domain, high), ", ")
    return _dictionary(boxes, pc.binary_join_element_wise("[", inside, "]", ""), nulls)
