"""Write the compiled forms of a kernel to files, and read back only what was written whole.

After a power loss a file may be empty, cut short, or lack a part in the middle. What it holds is
code that will be run, so each file begins with a digest of the rest.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile, _CacheLocator

__all__ = ["FormFiles", "Locator"]

#: How many folders of former sources are kept for each module, so that versions can alternate.
FORMER_KEPT = 4
DIGEST_SIZE = 16


class Locator(_CacheLocator):  # type: ignore[misc]
    """Tell Numba the folder, which names the sources, so they needn't be compared again."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._folder = folder
        self._line = function.__code__.co_firstlineno
        # Numba's warnings name it.
        self._py_file = function.__code__.co_filename

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return the digest of the sources."""
        return self._folder.name

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make the folder, and remove the oldest ones of former sources."""
        if self._folder.is_dir():
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        former = sorted(
            (path for path in self._folder.parent.iterdir() if path != self._folder),
            key=lambda path: path.stat().st_mtime,
        )
        for path in former[: max(0, len(former) - FORMER_KEPT)]:
            shutil.rmtree(path, ignore_errors=True)


class FormFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index of the compiled forms, and a file for each, which names the form in it.

    Numba numbers the files by what the index holds. Two processes can take the same number, if the
    file system has no locks, so the index alone doesn't tell which form a file holds.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write a form, and then the index: a form that couldn't be written isn't in it."""
        index = self._load_index()
        names = map(self._data_name, itertools.count(1))
        taken = set(index.values())
        name = index.get(key) or next(name for name in names if name not in taken)
        self._save_data(name, (key, data))
        if key not in index:
            self._save_index({**index, key: name})

    def load(self, key: Any) -> Any:
        """Return a form, or None if there is none, or another one in its place."""
        held, data = super().load(key) or (None, None)
        return data if held == key else None

    def _load_index(self) -> dict[Any, str]:
        """Return the names of the files, by form."""
        stamp, index = self._read(self._index_path) or (None, {})
        return index if stamp == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, ((self._version, self._source_stamp), overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(_digest(data) + data)

    def _read(self, path: str) -> Any:
        """Return what was written; None if it isn't there, or not as it was written."""
        try:
            found = Path(path).read_bytes()
        except OSError:
            return None
        digest, data = found[:DIGEST_SIZE], found[DIGEST_SIZE:]
        return pickle.loads(data) if digest == _digest(data) else None


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_SIZE).digest()
