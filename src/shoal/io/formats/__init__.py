"""File formats: one module for each, found by scanning this package.

A module lists what it defines in ``FORMATS``; nothing needs to list a format.

>>> file_type("people.jsonl.gz").name
'jsonl'
>>> "csv" in names()
True
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from pathlib import PurePath
from typing import NamedTuple

from shoal.errors import ParameterError, did_you_mean
from shoal.io.format import Format
from shoal.io.streams import COMPRESSIONS, STDIO, Input, open_input
from shoal.io.text.dialect import Dialect
from shoal.io.text.encoding import DecodedInput

__all__ = ["FileType", "Format", "file_type", "find", "names"]


class FileType(NamedTuple):
    """The format of a file, how it is compressed (None: not at all), and how text is encoded.

    The encoding is None where the bytes of the file are those that are parsed.
    """

    format: Format
    compression: str | None = None
    encoding: str | None = None

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.format.name

    @property
    def is_text(self) -> bool:
        """Whether the file has lines of text."""
        return self.format.text is not None

    @property
    def is_plain_text(self) -> bool:
        """Whether the file has the lines that are parsed, so that it can be followed."""
        return self.is_text and self.compression is None and self.encoding is None

    def open(self, path: str | os.PathLike[str]) -> Input:
        """Open a file of this type: its bytes without compression, its text as UTF-8."""
        source = open_input(path, self.compression)
        return source if self.encoding is None else DecodedInput(source, self.encoding)


def names() -> tuple[str, ...]:
    """Return the names of all formats, in alphabetical order."""
    return tuple(sorted({form.name for form in _by_ending(tuple(__path__)).values()}))


def find(name: str) -> Format:
    """Return the format of a name, without a compression."""
    return file_type("", name).format


def file_type(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    dialect: Dialect | None = None,
) -> FileType:
    """Return the type of a file from the ending of its name, or from the name of a format.

    Standard input and output, and devices, are CSV unless a format is given. The dialect is that of
    the file if it is CSV; other formats have none.

    >>> file_type("-", "csv.zst").compression, file_type("-").name, file_type("/dev/null").name
    ('zstd', 'csv', 'csv')
    """
    given = format is not None
    if format is None:
        text = os.fspath(path)
        ending = PurePath(text).name.partition(".")[2]
        no_file = text == STDIO or (text.startswith("/dev/") and not ending)
        format = "csv" if no_file else ending  # noqa: A001
    endings = format.lower().lstrip(".").split(".")
    compression = COMPRESSIONS.get(endings[-1])
    if compression is not None:
        endings.pop()
    known = _by_ending(tuple(__path__))
    found = known.get(endings[-1]) if endings else None
    if found is None:
        raise ParameterError(
            "format" if given else os.fspath(path),
            "isn't a known format" if given else "has an ending that stands for no known format",
            got=repr(format) if given else None,
            fix=did_you_mean(endings[-1] if endings and given else "", list(known)),
        )
    if dialect is None or found.in_dialect is None:
        return FileType(found, compression)
    encoding = None if dialect.is_utf8 else dialect.encoding
    return FileType(found.in_dialect(dialect), compression, encoding)


@functools.cache
def _by_ending(folders: tuple[str, ...]) -> dict[str, Format]:
    """Return the formats of all modules in the folders of this package, by ending."""
    modules = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(folders)
    ]
    return {
        ending: form for module in modules for form in module.FORMATS for ending in form.endings
    }
