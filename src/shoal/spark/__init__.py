"""The same job on Apache Spark's Structured Streaming, for those who outgrow one machine.

`publish` takes a streaming DataFrame and a job. A micro-batch goes through these files, in this
order: `ends` (where rows come from), `driver` (what is done with a batch), `places` and
`routing` (which shard a row belongs to), `shard` (what a shard does with its rows), `ends` again
(where rows go). What survives a crash is in `ledger`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.spark.query import Publishing as Publishing
    from shoal.spark.query import publish as publish

__all__ = ["Publishing", "publish"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("shoal.spark.query"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
