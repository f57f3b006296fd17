"""Sources and sinks: CSV, JSON lines, Parquet and Arrow, from and to files, pipes and stdio.

`open_source` and `open_sink` choose by the ending of the name; the classes behind them are here
for those who want to be explicit. `open_replayable` and `open_durable` are for what must survive
the end of its process. Nothing of Arrow is imported before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.io.base import BadRow, Chunk, Durable, Mark, Position, Replayable, Sink, Source, Span
    from shoal.io.files.durable import open_durable
    from shoal.io.files.open import open_sink, open_source
    from shoal.io.files.private import QuarantineWriter, open_private
    from shoal.io.files.replayable import open_replayable
    from shoal.io.formats.arrow import ArrowSink, ArrowSource
    from shoal.io.formats.csv import CsvSink, CsvSource
    from shoal.io.formats.jsonl import JsonSink, JsonSource
    from shoal.io.formats.names import FORMATS, Format
    from shoal.io.formats.parquet import ParquetSink, ParquetSource

__all__ = [
    "FORMATS",
    "ArrowSink",
    "ArrowSource",
    "BadRow",
    "Chunk",
    "CsvSink",
    "CsvSource",
    "Durable",
    "Format",
    "JsonSink",
    "JsonSource",
    "Mark",
    "ParquetSink",
    "ParquetSource",
    "Position",
    "QuarantineWriter",
    "Replayable",
    "Sink",
    "Source",
    "Span",
    "open_durable",
    "open_private",
    "open_replayable",
    "open_sink",
    "open_source",
]

_HOMES = {
    "files.replayable": ("open_replayable",),
    "base": (
        "BadRow",
        "Chunk",
        "Durable",
        "Mark",
        "Position",
        "Replayable",
        "Sink",
        "Source",
        "Span",
    ),
    "formats.csv": ("CsvSink", "CsvSource"),
    "files.durable": ("open_durable",),
    "files.open": ("open_sink", "open_source"),
    "formats.names": ("FORMATS", "Format"),
    "formats.arrow": ("ArrowSink", "ArrowSource"),
    "formats.jsonl": ("JsonSink", "JsonSource"),
    "formats.parquet": ("ParquetSink", "ParquetSource"),
    "files.private": ("QuarantineWriter", "open_private"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
