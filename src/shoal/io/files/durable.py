"""Open outputs that a run can resume after a stop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import JobError, Problem
from shoal.io.base import CommitMark, DurableSink
from shoal.io.files.append import AppendSink, has_rows_already
from shoal.io.files.folder import files_in
from shoal.io.files.part_files import PartFilesSink
from shoal.io.formats import FileType, file_type
from shoal.io.streams import STDIO, is_directory

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_new", "check_resumable", "has_bytes", "is_folder", "open_durable"]


def open_durable(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    mark: CommitMark | None,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    private: bool = False,
    part_rows: int | None = None,
    part_seconds: float | None = None,
) -> DurableSink:
    """Open an output that takes no row twice, or resume one.

    Parameters
    ----------
    path
        An uncompressed text file, which is appended to; or a folder of complete files: one that
        exists, or a name that ends with ``/``.
    schema
        The columns and their types as they are written, without dictionaries.
    mark
        What `DurableSink.commit` returned: rows are written again from there on. An empty one is
        the very beginning, and rows of a killed run may exist. None is a new output: there must be
        no rows.
    format
        As for `open_source`; the default of a folder is CSV.
    private
        Whether only the owner may read what is written.
    part_rows, part_seconds
        When a part file of a folder is finished, besides at each commit.

    Raises
    ------
    JobError
        If the output can't be resumed, or has rows where the job is new.
    CheckpointError
        If the output doesn't fit the mark.
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
    kind = check_resumable(path, format)
    if kind is None:
        return PartFilesSink(
            path, schema, format or "csv", mark,
            private=private, part_rows=part_rows, part_seconds=part_seconds,
        )  # fmt: skip
    return AppendSink(path, schema, kind.format, mark, private=private)


def check_new(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the word users know
    *,
    key: str | None = None,
) -> None:
    """Raise `JobError` if an output can't be resumed after a stop, or has rows already.

    ``key`` is the key of the job, or the option, that names the output.
    """
    kind = check_resumable(path, format, key=key)
    there = Path(path)
    if (there.is_dir() and files_in(there)) if kind is None else has_bytes(path):
        raise has_rows_already(os.fspath(path), key)


def has_bytes(path: str | os.PathLike[str]) -> bool:
    """Return whether a file exists and isn't empty, or a folder has files."""
    there = Path(path)
    return bool(files_in(there)) if there.is_dir() else there.exists() and there.stat().st_size > 0


def check_resumable(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the word users know
    *,
    key: str | None = None,
) -> FileType | None:
    """Raise `JobError` if an output can't be resumed; return a file's type, None for a folder.

    ``key`` is the key of the job, or the option, that names the output.
    """
    if is_folder(path):
        file_type(path, format or "csv")
        return None
    name = os.fspath(path)
    kind = file_type(path, format)
    is_file = name != STDIO and (Path(path).is_file() or not Path(path).exists())
    if not is_file or not kind.is_plain_text:
        shown, what = "standard output" if name == STDIO else name, "can't be resumed after a stop"
        raise JobError(
            Problem(
                shown if key is None else key,
                what if key is None else f"{shown} {what}",
                None,
                "Write to a folder (a name that ends with /) or to plain CSV or JSON lines",
            )
        )
    return kind


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a name means a folder: one that exists, or a name that ends with a slash.

    >>> is_folder("out/"), is_folder("out.csv")
    (True, False)
    """
    return os.fspath(path).endswith("/") or is_directory(path)
