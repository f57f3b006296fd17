"""Kill a process at its n-th call that changes the disk.

What a process leaves behind changes only when it calls the operating system. So killing it at
each of those calls, one after the other, tries every state that a crash can leave.
"""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["count_calls", "killed_at"]

_CALLS = (
    "open", "write", "fsync", "fdatasync", "replace", "rename", "unlink", "remove", "ftruncate",
    "truncate", "mkdir",
)  # fmt: skip
_BUG = 99


class _Disk:
    """Counts the calls that change the disk, and kills the process at one of them."""

    def __init__(self, at: int | None, *, is_torn: bool) -> None:
        self._at, self._is_torn = at, is_torn
        self.n_calls = 0

    def reached(self) -> bool:
        """Count a call, and return whether it is the chosen one."""
        self.n_calls += 1
        return self._at is not None and self.n_calls == self._at

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if function is _real_open and not args[1] & (os.O_CREAT | os.O_TRUNC):
            return function(*args, **options)
        if self.reached():
            if self._is_torn and function is _real_write:
                # As on a disk that got half of it: the first part is there, the rest isn't.
                function(args[0], bytes(args[1])[: len(args[1]) // 2])
            _die()
        return function(*args, **options)

    def file_class(self) -> type[io.FileIO]:
        disk = self

        class File(io.FileIO):
            def write(self, data: Any, /) -> int:
                view = memoryview(data).cast("B")
                if disk.reached():
                    if disk._is_torn:
                        super().write(view[: view.nbytes // 2])
                    _die()
                return super().write(view)

        return File


_real_open, _real_write = os.open, os.write


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def _watched(disk: _Disk) -> Iterator[None]:
    before = {name: getattr(os, name) for name in _CALLS}
    file_before = io.FileIO
    try:
        for name, function in before.items():
            setattr(os, name, functools.partial(disk.call, function))
        io.FileIO = disk.file_class()  # type: ignore[misc]
        yield
    finally:
        for name, function in before.items():
            setattr(os, name, function)
        io.FileIO = file_before  # type: ignore[misc]


def count_calls(action: Callable[[], object]) -> int:
    """Return how many calls of an action change the disk.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     count_calls(lambda: os.mkdir(pathlib.Path(folder) / "new"))
    1
    """
    disk = _Disk(None, is_torn=False)
    with _watched(disk):
        action()
    return disk.n_calls


def killed_at(call: int, action: Callable[[], object], *, is_torn: bool = False) -> bool:
    """Run an action in a child process that is killed (SIGKILL) at a call; return whether it was.

    Parameters
    ----------
    call
        At which of its calls to the disk, from 1. The call isn't carried out.
    action
        What the child does. It shares only files with this process.
    is_torn
        Whether half of a write is carried out.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            with _watched(_Disk(call, is_torn=is_torn)):
                action()
        except BaseException:
            traceback.print_exc()
            os._exit(_BUG)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status) != 0:
        raise AssertionError(f"the child ended with {os.WEXITSTATUS(status)} and not by the signal")
    return False
