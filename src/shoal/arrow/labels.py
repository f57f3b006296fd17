"""Turn boxes into published columns: labels of nodes, and ranges, bounds or midpoints."""

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

#: The number of boxes from which it pays to write each different label only once.
MANY = 2048


class Tree(NamedTuple):
    """A hierarchy as arrays."""

    labels: Any
    leaf_nodes: Ints
    highs: Ints
    parents: Ints

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> Tree:
        """Return the arrays of a hierarchy."""
        return cls(
            pa.array(hierarchy.labels, pa.string()),
            np.array(hierarchy.leaf_nodes, np.int64),
            np.array(hierarchy.highs, np.int64),
            np.array(hierarchy.parents, np.int64),
        )


class Labels:
    """Turn boxes into columns.

    Parameters
    ----------
    schema
        The quasi attributes.
    numeric
        How a numeric side is published: ``"range"`` as the text ``[25, 30]``, ``"bounds"`` as
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
        """Return the columns of rows in boxes; text is dictionary-encoded.

        A row whose bit d of ``gaps`` is set has null in attribute d, whatever its box.
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
    """Return the least and the largest code of a domain."""
    if isinstance(domain, Hierarchy):
        return 0.0, float(len(domain) - 1)
    return domain.lo, domain.hi


def _sides(domain: Domain, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the sides, with empty ones widened to the whole domain.

    An empty side means that all rows of the box lack the value. They have null there, or the whole
    domain, which reveals nothing.
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
    # Written by Python, whole ones without a point: Arrow writes 1e+10 for 10000000000.
    return pa.array([_text(number) for number in numbers.tolist()], pa.string())


def _text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _dictionary(indices: Ints, dictionary: Any, nulls: Bools | None) -> Any:
    places = pa.array(indices.astype(np.int32), mask=nulls)
    return pa.DictionaryArray.from_arrays(places, dictionary)


def _ranges(domain: Range, low: Floats, high: Floats, boxes: Ints, nulls: Bools | None) -> Any:
    if len(low) > MANY:
        # Many boxes, as when every row has its own, and few of them are different.
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
