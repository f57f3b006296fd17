"""Watch kernels being compiled: how many are done, how many are expected, how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from shoal.engine.jit import IS_PLAIN

if not IS_PLAIN:
    from numba.core import event

    from shoal.engine import cache
    from shoal.engine.call_graph import kernels_of

__all__ = ["CompileWatch", "is_cold"]


def is_cold(module: str) -> bool:
    """Return whether the kernels that a module uses will have to be compiled first."""
    return not IS_PLAIN and cache.is_cold(module)


class CompileWatch:
    """Count the kernels that are compiled, and the seconds that this takes.

    Parameters
    ----------
    anonymizer
        The class of the algorithm that will run.
    show
        Called when a kernel begins to be compiled, and when one is done.
    """

    def __init__(self, anonymizer: type, show: Callable[[CompileWatch], None]) -> None:
        self._show = show
        self._expected = set[tuple[str, str]]()
        if not IS_PLAIN:
            self._expected = {key for key in kernels_of(anonymizer) if not cache.is_kept(*key)}
        self._done = set[tuple[str, str]]()
        self._depth, self._since, self._seconds = 0, 0.0, 0.0

    @property
    def n_done(self) -> int:
        """The number of kernels that have been compiled."""
        return len(self._done)

    @property
    def n_expected(self) -> int:
        """The number of kernels that will have been compiled in the end, or a few more."""
        return len(self._expected | self._done)

    @property
    def is_compiling(self) -> bool:
        """Whether a kernel is being compiled now."""
        return self._depth > 0

    @property
    def seconds(self) -> float:
        """The seconds that compiling has taken up to now."""
        return self._seconds + (time.perf_counter() - self._since if self._depth else 0.0)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what is compiled in this process until the block ends."""
        if IS_PLAIN:
            yield
            return
        watch = self

        class Listener(event.Listener):  # type: ignore[misc]
            def on_start(self, event: Any) -> None:
                watch.on_start()

            def on_end(self, event: Any) -> None:
                watch.on_end(event.data["dispatcher"].py_func)

        with event.install_listener("numba:compile", Listener()):
            yield

    def on_start(self) -> None:
        """Take note that a function begins to be compiled; it may be one inside another."""
        if self._depth == 0:
            self._since = time.perf_counter()
        self._depth += 1
        if not self._done:
            self._show(self)

    def on_end(self, function: Callable[..., Any]) -> None:
        """Take note that a function has been compiled."""
        self._depth -= 1
        if self._depth == 0:
            self._seconds += time.perf_counter() - self._since
        key = (function.__module__, function.__qualname__)
        if key in self._expected or key[0].startswith("shoal."):
            self._done.add(key)
            self._show(self)
