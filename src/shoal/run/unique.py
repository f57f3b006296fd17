"""Find columns that are published as they are and may identify people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from shoal.spec.schema import Schema

__all__ = ["UNIQUE_ROWS", "unique_columns"]

#: The least rows of a chunk, and the share of different values from which a kept column is warned
#: about.
UNIQUE_ROWS, UNIQUE_SHARE = 100, 0.9


def unique_columns(schema: Schema, payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each kept column with a different value in nearly every row."""
    for name in schema.keep:
        different, n = pc.count_distinct(payload[name]).as_py(), len(payload[name])
        if n >= UNIQUE_ROWS and different > UNIQUE_SHARE * n:
            yield (
                f"schema.keep: column {name} has {different:,} different values in "
                f"{n:,} rows and is published as it is: it may identify people"
            )
