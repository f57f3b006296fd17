"""Original quasi values as coordinates: numbers, or the codes of leaves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.audit.columns import Array, encoded, numbers
from shoal.audit.times import seconds
from shoal.spec.hierarchy import Domain, Range

__all__ = ["coordinates"]


def coordinates(array: Array, domain: Domain, *, is_time: bool = False) -> NDArray[np.float64]:
    """Return values as numbers or codes of leaves; NaN where there is none.

    >>> from shoal.spec.hierarchy import Hierarchy
    >>> coordinates(pa.array([" b", "x", None, "a"]), Hierarchy.flat(["a", "b"])).tolist()
    [1.0, nan, nan, 0.0]
    """
    if isinstance(domain, Range):
        return seconds(array) if is_time else numbers(array)
    texts = pc.utf8_trim_whitespace(array.cast(pa.large_string()))
    indices, labels = encoded(texts)
    found = [None if label is None else domain.code(label) for label in labels]
    code = np.array([np.nan if leaf is None else leaf for leaf in found], dtype=np.float64)
    return code[indices]
