"""Record what a process does to a folder, and rebuild what a loss of power at any moment leaves.

After a crash of the process alone, the disk has all that was written. After a loss of power it has
what was synced, and any part of the rest: a file whose data wasn't synced may be as it was, may end
in the middle of a write, or may have holes of zeros; a name that was made, renamed or removed may
be as before until its folder is synced. `Recording` keeps the calls in their order, and
`Recording.left` rebuilds a folder after the first n of them.
"""

from __future__ import annotations

import fcntl
import functools
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

__all__ = ["LOSSES", "Loss", "Recording", "recorded"]

#: What is left of what wasn't synced. ``dropped``: nothing. ``torn``: half of the writes, the last
#: of them in part. ``holes``: the last write, with zeros for those before it. ``named``: names, but
#: no data. ``kept``: everything, as when only the process dies.
Loss = Literal["dropped", "torn", "holes", "named", "kept"]
LOSSES: tuple[Loss, ...] = get_args(Loss)


@dataclass
class _File:
    """The content of a file: what is on the disk for sure, and what was done to it since."""

    durable: bytes = b""
    #: A write (where, and what) or a new length.
    since: list[tuple[int, bytes] | int] = field(default_factory=list)

    def content(self, loss: Loss = "kept") -> bytes:
        """Return what it has after a loss of power, or now."""
        data = bytearray(self.durable)
        n_all = {"kept": len(self.since), "torn": (len(self.since) + 1) // 2}.get(loss, 0)
        for i, change in enumerate(self.since[:n_all]):
            is_last = loss == "torn" and i == n_all - 1
            _apply(data, change, half=is_last)
        if loss == "holes" and self.since and not isinstance(self.since[-1], int):
            _apply(data, self.since[-1], half=False)
        return bytes(data)

    def sync(self) -> None:
        self.durable, self.since = self.content(), []


def _apply(data: bytearray, change: tuple[int, bytes] | int, *, half: bool) -> None:
    if isinstance(change, int):
        del data[change:]
        data.extend(bytes(change - len(data)))
        return
    at, new = change
    new = new[: len(new) // 2] if half else new
    data.extend(bytes(max(0, at - len(data))))
    data[at : at + len(new)] = new


class _Disk:
    """The files below a folder, as a list of calls has made them."""

    def __init__(self, before: dict[str, bytes], folders: list[str]) -> None:
        self.files = {i: _File(data) for i, data in enumerate(before.values())}
        self.names = dict(zip(before, self.files, strict=True))
        self.folders = set(folders)
        # What the disk has for sure.
        self.durable_names, self.durable_folders = dict(self.names), set(folders)

    def do(self, call: tuple[Any, ...]) -> None:
        """Carry out a call."""
        match call:
            case ("create", str(path), int(file)):
                self.files[file], self.names[path] = _File(), file
            case ("write", int(file), int(at), bytes(data)):
                self.files[file].since.append((at, data))
            case ("truncate", int(file), int(length)):
                self.files[file].since.append(length)
            case ("sync", int(file)):
                self.files[file].sync()
            case ("rename", str(path), str(target)):
                self.names[target] = self.names.pop(path)
            case ("unlink", str(path)):
                self.names.pop(path, None)
            case ("mkdir", str(path)):
                self.folders.add(path)
            case ("syncdir", str(path)):
                self._sync_folder(path)

    def _sync_folder(self, folder: str) -> None:
        kept = {path: file for path, file in self.durable_names.items() if _above(path) != folder}
        now = {path: file for path, file in self.names.items() if _above(path) == folder}
        self.durable_names = kept | now
        kept_folders = {path for path in self.durable_folders if _above(path) != folder}
        self.durable_folders = kept_folders | {p for p in self.folders if _above(p) == folder}

    def write(self, target: Path, loss: Loss) -> None:
        """Write what a loss of power leaves to a folder."""
        is_named = loss in ("named", "kept")
        names = self.names if is_named else self.durable_names
        for folder in sorted(self.folders if is_named else self.durable_folders):
            (target / folder).mkdir(parents=True, exist_ok=True)
        for path, file in names.items():
            place = target / path
            # A file in a folder that is gone is gone.
            if place.parent.is_dir():
                place.write_bytes(self.files[file].content(loss))


def _above(path: str) -> str:
    """Return the folder that a path is in; the root is in none."""
    return path.rpartition("/")[0] if path else "/"


class Recording:
    """What was done to a folder, call by call.

    Parameters
    ----------
    root
        The folder. What is in it when the recording begins is on the disk.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lock = threading.RLock()
        found = sorted(self._root.rglob("*"))
        self._before = {self._place(p): p.read_bytes() for p in found if p.is_file()}
        self._folders = ["", *(self._place(p) for p in found if p.is_dir())]
        #: The calls, in their order.
        self.calls: list[tuple[Any, ...]] = []
        self._files = {path: number for number, path in enumerate(self._before)}
        self._n_files = len(self._files)
        self._open: dict[int, tuple[str, int | None]] = {}

    def __repr__(self) -> str:
        return f"Recording({len(self.calls)} calls)"

    def left(self, n_calls: int, loss: Loss, target: Path) -> None:
        """Write to an empty folder what a loss of power after ``n_calls`` calls leaves."""
        target.mkdir(parents=True, exist_ok=True)
        self._disk(n_calls).write(target, loss)

    def seen(self, n_calls: int, path: str) -> bytes:
        """Return what a reader had seen of a file after ``n_calls`` calls, synced or not."""
        disk = self._disk(n_calls)
        return disk.files[disk.names[path]].content() if path in disk.names else b""

    def _disk(self, n_calls: int) -> _Disk:
        disk = _Disk(self._before, self._folders)
        for call in self.calls[:n_calls]:
            disk.do(call)
        return disk

    # -- recording -------------------------------------------------------------------------------

    def _place(self, path: Any) -> str:
        """Return a path below the root; of any other a path that is absolute."""
        whole = Path(os.path.abspath(os.fspath(path)))  # noqa: PTH100 - names, not links
        return str(whole.relative_to(self._root)) if whole.is_relative_to(self._root) else "/"

    def call(self, name: str, real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Carry out a call, and note it if it is about the folder."""
        with self._lock:
            at = self._at(args[0]) if name == "write" else 0
            existed = name == "open" and os.path.lexists(args[0])
            result = real(*args, **options)
            self._note(name, args, at, result, existed=existed)
            return result

    def _note(
        self, name: str, args: tuple[Any, ...], at: int, result: Any, *, existed: bool
    ) -> None:
        if name == "open":
            self._opened(args, result, existed=existed)
        elif name in ("write", "fsync", "fdatasync", "ftruncate"):
            self.on_file(name, args[0], at, args[1] if len(args) > 1 else None, result)
        elif name in ("rename", "replace"):
            path, target = self._place(args[0]), self._place(args[1])
            if path in self._files:
                self._files[target] = self._files.pop(path)
                self.calls.append(("rename", path, target))
        elif name in ("unlink", "remove"):
            if self._files.pop(path := self._place(args[0]), None) is not None:
                self.calls.append(("unlink", path))
        elif name == "mkdir" and (path := self._place(args[0])) != "/":
            self.calls.append(("mkdir", path))

    def _opened(self, args: tuple[Any, ...], number: int, *, existed: bool) -> None:
        path, flags = self._place(args[0]), args[1]
        self._open.pop(number, None)
        if path == "/":
            return
        if Path(args[0]).is_dir():
            self._open[number] = ("" if path == "." else path, None)
            return
        if not existed:
            self._files[path] = self._n_files
            self.calls.append(("create", path, self._n_files))
            self._n_files += 1
        file = self._files[path]
        self._open[number] = (path, file)
        if existed and flags & os.O_TRUNC:
            self.calls.append(("truncate", file, 0))

    def on_file(self, name: str, number: int, at: int, given: Any, result: Any) -> None:
        """Note a call about an open file."""
        path, file = self._open.get(number, ("", None))
        if number not in self._open:
            return
        if file is None:
            if name in ("fsync", "fdatasync"):
                self.calls.append(("syncdir", path))
        elif name == "write":
            self.calls.append(("write", file, at, bytes(memoryview(given).cast("B")[:result])))
        elif name == "ftruncate":
            self.calls.append(("truncate", file, int(given)))
        else:
            self.calls.append(("sync", file))

    @staticmethod
    def _at(number: int) -> int:
        """Return where the next write goes."""
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_APPEND:
            return os.fstat(number).st_size
        try:
            return os.lseek(number, 0, os.SEEK_CUR)
        except OSError:
            return 0

    def file_class(self) -> type[io.FileIO]:
        """Return a class of files whose writes are noted."""
        recording = self

        class File(io.FileIO):
            def write(self, data: Any, /) -> int:
                with recording._lock:
                    at = recording._at(self.fileno())
                    written: int = super().write(data)
                    recording.on_file("write", self.fileno(), at, data, written)
                    return written

            def truncate(self, size: int | None = None, /) -> int:
                with recording._lock:
                    length = super().truncate(size)
                    recording.on_file("ftruncate", self.fileno(), 0, length, None)
                    return length

        return File


_CALLS = (
    "open", "write", "fsync", "fdatasync", "replace", "rename", "unlink", "remove", "ftruncate",
    "mkdir",
)  # fmt: skip


@contextmanager
def recorded(root: Path) -> Iterator[Recording]:
    """Record what this process does to a folder, in all its threads.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     with recorded(Path(name)) as recording:
    ...         number = os.open(f"{name}/a", os.O_WRONLY | os.O_CREAT)
    ...         _ = os.write(number, b"one")
    ...         os.fsync(number)
    ...         os.close(number)
    >>> [call[0] for call in recording.calls]
    ['create', 'write', 'sync']
    """
    recording = Recording(root)
    before = {name: getattr(os, name) for name in _CALLS if hasattr(os, name)}
    file_before = io.FileIO
    try:
        for name, function in before.items():
            setattr(os, name, functools.partial(recording.call, name, function))
        io.FileIO = recording.file_class()  # type: ignore[misc]
        yield recording
    finally:
        for name, function in before.items():
            setattr(os, name, function)
        io.FileIO = file_before  # type: ignore[misc]
