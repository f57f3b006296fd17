"""Find out how a CSV file is written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from shoal.io.files.folder import files_in
from shoal.io.formats import file_type
from shoal.io.streams import is_directory, open_input, refuse_address
from shoal.io.text.detect import LOOK_BYTES, likely_dialect
from shoal.io.text.dialect import Dialect

__all__ = ["detect_dialect"]


def detect_dialect(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the word users know
) -> Dialect | None:
    r"""Return the dialect in which a CSV file is most likely written.

    Only its first 256 KiB are looked at; of a folder, those of its first file. None for other
    formats, and for a pipe, which can be read only once.

    Raises
    ------
    JobError
        If the format isn't known.
    ResourceError
        If the file can't be read.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".csv") as file:
    ...     _ = file.write("Größe;Alter\n1,75;41\n1,62;?\n".encode("utf-16"))
    ...     file.flush()
    ...     detect_dialect(file.name).as_keys()
    {'delimiter': ';', 'encoding': 'utf-16', 'decimal': ',', 'null': '?'}
    """
    refuse_address(path)
    if is_directory(path):
        first = next(iter(files_in(Path(path))), None)
        return None if first is None else detect_dialect(Path(path) / first, format=format)
    kind = file_type(path, format)
    if kind.format.in_dialect is None or (Path(path).exists() and not Path(path).is_file()):
        return None
    source = open_input(path, kind.compression)
    try:
        data = b""
        while len(data) < LOOK_BYTES and (new := source.read(LOOK_BYTES - len(data))):
            data += new
    finally:
        source.close()
    own = "," if kind.format.text is None else (kind.format.text.delimiter or b",").decode()
    found = likely_dialect(data, own)
    return replace(found, delimiter=None) if found.delimiter == own else found
