"""Which format and compression a name stands for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePath

from shoal.errors import ParameterError, did_you_mean

__all__ = ["FORMATS", "STDIO", "Format", "tell_format"]

#: The name that stands for standard input or output.
STDIO = "-"

#: The formats, and the endings each one is known by.
FORMATS: dict[str, tuple[str, ...]] = {
    "csv": ("csv",),
    "tsv": ("tsv",),
    "jsonl": ("jsonl", "ndjson", "json"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "arrows", "ipc"),
}
_BY_ENDING = {ending: name for name, endings in FORMATS.items() for ending in endings}
_COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files, and how they are compressed around it (None: not at all)."""

    name: str
    compression: str | None = None


def tell_format(path: str | os.PathLike[str], format: str | None = None) -> Format:  # noqa: A002
    """Tell the format from the ending of a name, or from a format's own name.

    Standard input and output are CSV unless told otherwise.

    >>> tell_format("people.jsonl.gz")
    Format(name='jsonl', compression='gzip')
    >>> tell_format("-", "csv.zst")
    Format(name='csv', compression='zstd')
    >>> tell_format("-")
    Format(name='csv', compression=None)
    """
    given = format is not None
    if format is None:
        text = os.fspath(path)
        format = "csv" if text == STDIO else PurePath(text).name.partition(".")[2]  # noqa: A001
    endings = format.lower().lstrip(".").split(".")
    compression = _COMPRESSIONS.get(endings[-1])
    if compression is not None:
        endings.pop()
    name = _BY_ENDING.get(endings[-1]) if endings else None
    if name is None:
        raise ParameterError(
            "format" if given else os.fspath(path),
            "isn't a known format" if given else "has an ending that stands for no known format",
            got=repr(format) if given else None,
            fix=did_you_mean(endings[-1] if endings and given else "", list(_BY_ENDING)),
        )
    return Format(name, compression)
