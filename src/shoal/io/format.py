"""What a module of `shoal.io.formats` registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from shoal.io.base import Sink, Source
from shoal.io.text.dialect import Dialect
from shoal.io.text.source import TextFormat

__all__ = ["Format"]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format, as its module registers it.

    Parameters
    ----------
    name
        The name that users give.
    endings
        The endings of file names that mean this format.
    source
        Opens a source: called with an `Input`, the columns to read (None for all) and
        ``batch_rows``. Of a typed format it returns a `TypedSource`.
    sink
        Opens a sink: called with an `Output` and the schema.
    text
        How rows are read from the middle of a file. Only such a format can be followed and appended
        to. None: the format is typed, and a file of it is read as a whole.
    spark, spark_options
        Spark's name of the format, and the options with which Spark reads it as we do; None: Spark
        doesn't read it.
    in_dialect
        Returns the format as a file in a dialect is read; None: there are no dialects.
    """

    name: str
    endings: tuple[str, ...]
    source: Callable[..., Source]
    sink: Callable[[Any, pa.Schema], Sink]
    text: TextFormat | None = None
    spark: str | None = None
    spark_options: Mapping[str, Any] = field(default_factory=dict)
    in_dialect: Callable[[Dialect], Format] | None = None
