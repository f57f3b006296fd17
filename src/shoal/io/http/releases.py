"""Read published rows again, by their number in the output."""

from __future__ import annotations

import os
import re
import threading
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from shoal.errors import ShoalError
from shoal.io.connector import OutputEndpoint
from shoal.io.files.connector import FileOutput
from shoal.io.files.durable import is_folder
from shoal.io.formats import file_type

__all__ = ["GoneError", "Page", "Releases", "releases_of"]

#: The number of places in a file that are remembered.
MOST_PLACES = 4096
#: The most bytes of a page.
MOST_PAGE = 8 << 20
_BLOCK = 1 << 20
_PART = re.compile(r"rows-(\d{12,})-(\d{12,})\..+")


class GoneError(ShoalError):
    """Rows that were published and have been removed."""


class Page(NamedTuple):
    """Some rows as JSON lines, and the number of the row after them."""

    lines: bytes
    next: int


class Releases:
    """The rows of an output of JSON lines: one file, or a folder of part files.

    A row has the same number after any restart: a resumed run writes the same rows again, and none
    between them. A line that isn't complete yet isn't given out.

    Parameters
    ----------
    path
        The file or the folder; it need not exist yet.
    in_parts
        Whether it is a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "out.jsonl").write_text('{"age": 1}\\n{"age": 2}\\n{"age')
    ...     Releases(f"{folder}/out.jsonl").read(1, 10)
    Page(lines=b'{"age": 2}\\n', next=2)
    """

    def __init__(self, path: str, *, in_parts: bool = False) -> None:
        self._path = Path(path)
        self._in_parts = in_parts
        self._lock = threading.Lock()
        self._file = _Lines(self._path)

    def read(self, first: int, limit: int) -> Page:
        """Return at most ``limit`` rows from the row ``first`` on; none beyond the end.

        Raises
        ------
        GoneError
            If the part file that had the first one was removed.
        """
        with self._lock:
            if not self._in_parts:
                return self._file.read(first, limit)
            return self._read_parts(first, limit)

    def _read_parts(self, first: int, limit: int) -> Page:
        parts = sorted(
            (int(found[1]), int(found[2]), file)
            for file in (self._path.iterdir() if self._path.is_dir() else ())
            if (found := _PART.fullmatch(file.name))
        )
        place = bisect_right(parts, first, key=lambda part: part[0]) - 1
        if place < 0 or parts[place][1] <= first:
            if parts and first < parts[-1][1]:
                raise GoneError(f"row {first:,} was removed from the output")
            return Page(b"", first)
        begin, end, file = parts[place]
        page = _Lines(file).read(first - begin, min(limit, end - first))
        return Page(page.lines, begin + page.next)


def releases_of(output: OutputEndpoint) -> Releases | None:
    """Return the rows of an output, or None if it isn't a file or folder of plain JSON lines."""
    if not isinstance(output, FileOutput):
        return None
    in_parts = is_folder(output.path)
    kind = file_type(output.path, output.format or ("csv" if in_parts else None))
    if kind.name != "jsonl" or not kind.is_plain_text:
        return None
    return Releases(output.path, in_parts=in_parts)


class _Lines:
    """The lines of a file that grows, by number; some places are remembered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Each ``step``-th line begins at the place of that index.
        self._places, self._step = [0], 1024

    def read(self, first: int, limit: int) -> Page:
        try:
            with self._path.open("rb", buffering=0) as file:
                start = self._find(file.fileno(), first)
                return (
                    Page(b"", first)
                    if start is None
                    else self._page(file.fileno(), start, first, limit)
                )
        except FileNotFoundError:
            # A sink is opened with the first row.
            return Page(b"", first)

    def _find(self, file: int, wanted: int) -> int | None:
        """Return where a line begins; None if the file has fewer complete lines before it."""
        known = min(wanted // self._step, len(self._places) - 1)
        number, at = known * self._step, self._places[known]
        while number < wanted:
            block = os.pread(file, _BLOCK, at)
            if not block:
                return None
            begin = 0
            while number < wanted:
                end = block.find(b"\n", begin) + 1
                if not end:
                    break
                number, begin = number + 1, end
                self._remember(number, at + begin)
            if not begin:
                if len(block) < _BLOCK:
                    return None
                # A line that is longer than a block.
                begin = len(block)
            at += begin
        return at

    def _remember(self, number: int, at: int) -> None:
        if number == len(self._places) * self._step:
            self._places.append(at)
            if len(self._places) > MOST_PLACES:
                self._places, self._step = self._places[::2], 2 * self._step

    def _page(self, file: int, at: int, first: int, limit: int) -> Page:
        data = bytearray()
        end = n_rows = 0
        while n_rows < limit:
            block = os.pread(file, _BLOCK, at + len(data))
            data += block
            while n_rows < limit and (found := data.find(b"\n", end) + 1):
                if found > MOST_PAGE and n_rows:
                    return Page(bytes(data[:end]), first + n_rows)
                n_rows, end = n_rows + 1, found
            if len(block) < _BLOCK:
                break
        return Page(bytes(data[:end]), first + n_rows)
