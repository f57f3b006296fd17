"""The same job on Apache Spark's Structured Streaming, for streams too large for one machine.

`publish` takes a streaming DataFrame and a job. A micro-batch goes through these modules, in this
order: `endpoints` (sources), `driver` (runs an epoch), `partition_map` and `routing` (the shard of
a row), `shard` (decides the rows of a shard), `endpoints` again (sinks). What survives a crash is
in `commits`. z-anonymity on several shards has tasks of its own, in `z`.
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
