"""Turn boxes into published columns: labels of nodes, and ranges, bounds or midpoints."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.engine.kernels.arrays import Bools, Floats, Ints, power_of_two
from shoal.engine.kernels.columns import Domains, distinct_pairs, published_sides
from shoal.errors import JobError, Problem
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.schema import Schema

__all__ = ["Labels", "Numeric", "whole"]

Numeric: TypeAlias = Literal["range", "bounds", "midpoint"]

#: Numbers between these that aren't whole are written by Arrow as by Python; others aren't always.
ORDINARY = (1e-4, 1e9)


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
        self._domains = _domains(schema)
        self._nodes = {
            quasi.name: pa.array(quasi.sided.labels, pa.string())
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
        shape = (len(self._quasi), len(lo))
        nodes, low, high = np.empty(shape, np.int32), np.empty(shape), np.empty(shape)
        published_sides(self._domains, lo, hi, nodes, low, high)
        for d, quasi in enumerate(self._quasi):
            nulls = None if gaps is None else (gaps >> d) & 1 == 1
            if isinstance(quasi.sided, Hierarchy):
                columns.append(_dictionary(nodes[d], boxes, self._nodes[quasi.name], nulls))
            elif self._numeric == "range":
                columns.append(_ranges(quasi.sided, low[d], high[d], boxes, nulls))
            elif self._numeric == "midpoint":
                columns.append(pa.array(((low[d] + high[d]) / 2)[boxes], mask=nulls))
            else:
                sides = (low[d], high[d])
                columns += [_numbers(quasi.sided, side[boxes], nulls) for side in sides]
        return columns


def _domains(schema: Schema) -> Domains:
    trees = [quasi.sided for quasi in schema.quasi if isinstance(quasi.sided, Hierarchy)]
    ends = np.array([whole(quasi.sided) for quasi in schema.quasi]).reshape(-1, 2)
    is_tree = np.array([isinstance(quasi.sided, Hierarchy) for quasi in schema.quasi], np.bool_)
    firsts = np.full((2, len(schema.quasi)), -1, np.int64)
    for row, sizes in enumerate(([len(t) for t in trees], [len(t.parents) for t in trees])):
        firsts[row, is_tree] = np.cumsum([0, *sizes])[:-1]
    tables = [
        np.array([one for tree in trees for one in getattr(tree, name)], np.int64)
        for name in ("leaf_nodes", "highs", "parents")
    ]
    low, high = np.ascontiguousarray(ends.T)
    return Domains(low, high, firsts[0], firsts[1], *tables)


def whole(domain: Domain) -> tuple[float, float]:
    """Return the least and the largest code of a domain."""
    if isinstance(domain, Hierarchy):
        return 0.0, float(len(domain) - 1)
    return domain.lo, domain.hi


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
    # As Python writes them, whole ones without a point: Arrow writes 1e+10 for 10000000000.
    size = np.abs(numbers)
    is_int = (numbers == np.floor(numbers)) & (size < 1e15)
    texts = pa.array(np.where(is_int, numbers, 0.0).astype(np.int64)).cast(pa.string())
    texts = pc.if_else(pa.array(is_int), texts, pa.array(numbers).cast(pa.string()))
    odd = ~is_int & ((size < ORDINARY[0]) | (size >= ORDINARY[1]))
    if odd.any():
        written = pa.array([repr(number) for number in numbers[odd].tolist()], pa.string())
        texts = pc.replace_with_mask(texts, pa.array(odd), written)
    return texts


def _dictionary(places: NDArray[np.int32], boxes: Ints, labels: Any, nulls: Bools | None) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(places[boxes], mask=nulls), labels)


def _ranges(domain: Range, low: Floats, high: Floats, boxes: Ints, nulls: Bools | None) -> Any:
    # Boxes may be many, as when every row has its own, and few of them differ on one side.
    n = len(low)
    places, found = np.empty(n, np.int32), np.empty(n, np.int64)
    room = np.empty(power_of_two(2 * n + 1), np.int64)
    n_found = distinct_pairs(low.view(np.int64), high.view(np.int64), room, places, found)
    low, high = low[found[:n_found]], high[found[:n_found]]
    inside = pc.binary_join_element_wise(_texts(domain, low), _texts(domain, high), ", ")
    return _dictionary(places, boxes, pc.binary_join_element_wise("[", inside, "]", ""), nulls)
