"""Local files of a table, synced to the disk before a snapshot names them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from shoal.io.files.atomic import sync_folder

__all__ = ["SyncedFileIO"]


class SyncedFileIO(PyArrowFileIO):
    """Writes files as `PyArrowFileIO` does, and syncs each one when it is closed.

    Without that, a loss of power could leave a catalog that names files without their content.
    """

    def new_output(self, location: str) -> PyArrowFile:
        """Return a file that is synced when it is closed, if it is a local one."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        if scheme != "file":
            return super().new_output(location)
        return _SyncedFile(
            fs=self.fs_by_scheme(scheme, netloc), location=location, path=path, buffer_size=1 << 20
        )


class _SyncedFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> Any:
        """Create the file and its folders."""
        path = Path(self._path)
        new = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in new:
            sync_folder(folder.parent)
        return _SyncedOutput(path, "wb" if overwrite else "xb")


class _SyncedOutput(io.FileIO):
    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._folder = path.parent

    def write(self, data: Any) -> int:
        """Write all of it."""
        view = memoryview(data).cast("B")
        while view.nbytes:
            view = view[super().write(view) or 0 :]
        return memoryview(data).nbytes

    def close(self) -> None:
        """Sync the file and the name of it."""
        if not self.closed:
            os.fsync(self.fileno())
            super().close()
            sync_folder(self._folder)
