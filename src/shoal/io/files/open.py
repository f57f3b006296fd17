"""Open sources and sinks by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.io.base import BATCH_ROWS, Sink, Source
from shoal.io.files.folder import FolderSource
from shoal.io.formats import FileType, file_type
from shoal.io.streams import Output, compressed, is_directory, open_output, refuse_address
from shoal.io.text.dialect import Dialect

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["make_sink", "open_sink", "open_source"]


def open_source(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    dialect: Dialect | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Source:
    """Open an input for reading.

    Parameters
    ----------
    path
        A file; ``-`` is standard input; of a folder all files, in the order of their names.
    columns
        The columns to read, in this order; None for all.
    format
        The name of a format, maybe with a compression, as in ``csv.gz``. Without it the ending of
        the name decides; standard input is then CSV.
    dialect
        How a CSV file is written; None for commas, quotes and UTF-8.
    batch_rows
        The maximum number of rows in a chunk; not for a folder, whose chunks are some megabytes.

    Raises
    ------
    JobError
        If a column isn't there, or the format isn't known.
    ResourceError
        If the input can't be read.
    """
    refuse_address(path)
    if is_directory(path):
        return FolderSource(path, columns, format=format, dialect=dialect)
    kind = file_type(path, format, dialect)
    source = kind.open(path)
    try:
        return kind.format.source(source, columns, batch_rows=batch_rows)
    except BaseException:
        source.close()
        raise


def open_sink(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
) -> Sink:
    """Create an output, or empty an existing one.

    Parameters
    ----------
    path
        A file; ``-`` is standard output.
    schema
        The columns and their types as they are written, without dictionaries.
    format
        As for `open_source`.

    Raises
    ------
    JobError
        If the format isn't known, or can't carry a column.
    ResourceError
        If the output can't be written.
    """
    kind = file_type(path, format)
    output = open_output(path)
    try:
        return make_sink(output, schema, kind)
    except BaseException:
        output.close()
        raise


def make_sink(output: Output, schema: pa.Schema, kind: FileType) -> Sink:
    """Return a sink that writes a format, maybe compressed, to an output."""
    return kind.format.sink(compressed(output, kind.compression), schema)
