"""The columns that rows have beside their own on their way through Spark."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.errors import ParameterError

__all__ = ["CORRUPT", "PREFIX", "ROW", "SHARD", "TICK", "order_column", "refuse_clashes"]

#: No column of a user may begin so.
PREFIX = "__shoal_"
#: The shard that a row belongs to.
SHARD = f"{PREFIX}shard"
#: Set in rows that carry nothing but time.
TICK = f"{PREFIX}tick"
#: The text of a line that can't be read as a row.
CORRUPT = f"{PREFIX}corrupt"
#: The position of a row in the whole input, where a trace is written.
ROW = f"{PREFIX}row"


def order_column(i: int) -> str:
    """The i-th of the columns by which the rows of a batch are put in order."""
    return f"{PREFIX}order_{i}"


def refuse_clashes(names: Iterable[str]) -> None:
    """Refuse columns that are called as ours are."""
    if clash := [name for name in names if name.startswith(PREFIX)]:
        raise ParameterError(
            "stream_df",
            f"has columns whose names begin with {PREFIX}: {', '.join(clash)}",
            fix="Rename them",
        )
