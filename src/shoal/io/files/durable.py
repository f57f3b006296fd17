"""Open outputs that survive the end of their process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import JobError, Problem
from shoal.io.base import Durable, Mark
from shoal.io.files.append import AppendSink, has_rows_already
from shoal.io.files.folder import files_in
from shoal.io.files.parts import PartsSink
from shoal.io.files.replay import is_plain_text
from shoal.io.formats.names import STDIO, Format, tell_format

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_continuable", "check_new", "has_bytes", "is_folder", "open_durable"]


def open_durable(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    mark: Mark | None,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    private: bool = False,
    part_rows: int | None = None,
    part_seconds: float | None = None,
) -> Durable:
    """Open an output that takes no row twice, or go on with one.

    Parameters
    ----------
    path
        A file of CSV, TSV or JSON lines, uncompressed, which is written on; or a folder of
        complete files: one that is there, or a name that ends with ``/``.
    schema
        The columns and their types as they are written, without dictionaries.
    mark
        What `Durable.commit` gave: rows are given again from there on. An empty one is the very
        beginning, and rows may be there, of a run that was killed. None starts anew: there must
        be no rows.
    format
        As for `open_source`; a folder's parts are CSV unless told otherwise.
    private
        Whether only the owner may read what is written.
    part_rows, part_seconds
        When a folder's part is finished, besides at each commit.

    Raises
    ------
    JobError
        If the output can't be continued, or has rows where the job starts anew.
    CheckpointError
        If the output isn't what the mark says.
    ResourceError
        If it can't be written.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"age": pa.array(["[30, 40)", "[30, 40)"])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = open_durable(f"{folder}/out/", batch.schema, None)
    ...     sink.write(batch)
    ...     mark = sink.commit()
    ...     sink.close()
    ...     print(mark, [file.name for file in Path(f"{folder}/out").iterdir()])
    {'seq': 2} ['rows-000000000000-000000000002.csv']
    """
    kind = check_continuable(path, format)
    if kind is None:
        return PartsSink(
            path, schema, format or "csv", mark,
            private=private, part_rows=part_rows, part_seconds=part_seconds,
        )  # fmt: skip
    return AppendSink(path, schema, kind.name, mark, private=private)


def check_new(path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
    """Refuse an output that can't be continued after a stop, or that has rows already."""
    kind = check_continuable(path, format)
    there = Path(path)
    if (there.is_dir() and files_in(there)) if kind is None else has_bytes(path):
        raise has_rows_already(os.fspath(path))


def has_bytes(path: str | os.PathLike[str]) -> bool:
    """Whether a file is there and isn't empty, or a folder has files."""
    there = Path(path)
    return bool(files_in(there)) if there.is_dir() else there.exists() and there.stat().st_size > 0


def check_continuable(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the word users know
) -> Format | None:
    """Refuse an output that can't be continued; give the format of a file, None for a folder."""
    if is_folder(path):
        tell_format(path, format or "csv")
        return None
    name = os.fspath(path)
    kind = tell_format(path, format)
    is_file = name != STDIO and (Path(path).is_file() or not Path(path).exists())
    if not is_file or not is_plain_text(kind):
        raise JobError(
            Problem(
                "standard output" if name == STDIO else name,
                "can't be continued after a stop",
                None,
                "Write to a folder (-o out/) or to plain CSV or JSON lines",
            )
        )
    return kind


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a name stands for a folder: one that is there, or that ends with a slash.

    >>> is_folder("out/"), is_folder("out.csv")
    (True, False)
    """
    return os.fspath(path).endswith("/") or Path(path).is_dir()
