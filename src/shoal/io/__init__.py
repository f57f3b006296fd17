"""Sources and sinks: where rows come from and go to.

`open_source` and `open_sink` choose the format by the ending of the name; the classes behind them
are exported for explicit use. `open_replayable` and `open_durable` open files that a job can resume
after a stop. Arrow isn't imported before it is used.

The layers: `base` (the contract) and `connector` (what a connector registers), `streams` (bytes),
`typed` and `text` (columns and lines), `format` and `formats` (one module for each file format),
`files`, `kafka` and further connectors, `registry` (finds connectors).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.io.base import (
        BadRow,
        Chunk,
        CommitMark,
        DurableSink,
        Position,
        ReplayableSource,
        Sink,
        Source,
        Span,
    )
    from shoal.io.files.detect import detect_dialect
    from shoal.io.files.durable import open_durable
    from shoal.io.files.open import open_sink, open_source
    from shoal.io.files.private import QuarantineWriter, open_private
    from shoal.io.files.replayable import open_replayable
    from shoal.io.format import Format
    from shoal.io.formats.arrow import ArrowSink, ArrowSource
    from shoal.io.formats.csv import CsvSink, CsvSource
    from shoal.io.formats.jsonl import JsonSink, JsonSource
    from shoal.io.formats.parquet import ParquetSink, ParquetSource
    from shoal.io.text.dialect import Dialect

__all__ = [
    "ArrowSink",
    "ArrowSource",
    "BadRow",
    "Chunk",
    "CommitMark",
    "CsvSink",
    "CsvSource",
    "Dialect",
    "DurableSink",
    "Format",
    "JsonSink",
    "JsonSource",
    "ParquetSink",
    "ParquetSource",
    "Position",
    "QuarantineWriter",
    "ReplayableSource",
    "Sink",
    "Source",
    "Span",
    "detect_dialect",
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
        "CommitMark",
        "DurableSink",
        "Position",
        "ReplayableSource",
        "Sink",
        "Source",
        "Span",
    ),
    "formats.csv": ("CsvSink", "CsvSource"),
    "files.detect": ("detect_dialect",),
    "files.durable": ("open_durable",),
    "files.open": ("open_sink", "open_source"),
    "format": ("Format",),
    "formats.arrow": ("ArrowSink", "ArrowSource"),
    "formats.jsonl": ("JsonSink", "JsonSource"),
    "formats.parquet": ("ParquetSink", "ParquetSource"),
    "text.dialect": ("Dialect",),
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
