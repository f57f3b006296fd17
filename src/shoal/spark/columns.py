"""The columns that Shoal adds to rows on their way through Spark."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.errors import ParameterError

__all__ = ["CORRUPT", "PREFIX", "ROW", "SHARD", "TICK", "order_column", "refuse_clashes"]

#: No column of a user may have this prefix.
PREFIX = "__shoal_"
#: The shard that a row belongs to.
SHARD = f"{PREFIX}shard"
#: Set in ticks: rows that carry no values, but let time pass or name a shard.
TICK = f"{PREFIX}tick"
#: The text of a line that can't be read as a row.
CORRUPT = f"{PREFIX}corrupt"
#: The position of a row in the whole input, where a trace is written.
ROW = f"{PREFIX}row"


def order_column(i: int) -> str:
    """The name of the i-th column that the rows of a batch are sorted by."""
    return f"{PREFIX}order_{i}"


def refuse_clashes(names: Iterable[str]) -> None:
    """Refuse columns of a user whose names are reserved."""
    if clash := [name for name in names if name.startswith(PREFIX)]:
        raise ParameterError(
            "stream_df",
            f"has columns whose names begin with {PREFIX}: {', '.join(clash)}",
            fix="Rename them",
        )
