"""Print messages and progress to stderr, and results to stdout."""

from __future__ import annotations

import errno
import os
import sys
import time
from types import TracebackType
from typing import Any, Self, TextIO

from shoal.errors import ReaderGoneError, ResourceError
from shoal.metrics import Summary

__all__ = ["Progress", "print_message", "print_result"]

#: The seconds between two updates of the progress line.
EVERY = 0.1


def print_message(text: str) -> None:
    """Print a message to stderr; failures are ignored."""
    # If stderr was closed before the start there is none, and print would use stdout.
    stderr: Any = sys.stderr
    if stderr is None:
        return
    try:
        print(text, file=stderr, flush=True)
    except OSError:
        _silence(stderr)


def print_result(text: str) -> None:
    """Print a result to stdout; a closed pipe ends the command."""
    try:
        print(text, flush=True)
    except OSError as error:
        _silence(sys.stdout)
        if error.errno == errno.EPIPE:
            raise ReaderGoneError("standard output: the reader went away.") from None
        reason = os.strerror(error.errno or 0).lower()
        raise ResourceError(f"standard output: can't be written: {reason}.") from None


def _silence(stream: TextIO) -> None:
    """Redirect to /dev/null: at exit the interpreter would write again, and fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Progress:
    """A line with the progress of a run; on a terminal only."""

    def __init__(self, *, quiet: bool) -> None:
        stderr: Any = sys.stderr
        self._on = stderr is not None and stderr.isatty() and not quiet
        self._status: Any = None
        self._begin = time.perf_counter()
        self._drawn = 0.0

    def __enter__(self) -> Self:
        if self._on:
            from rich.console import Console
            from rich.status import Status

            self._status = Status("starting …", console=Console(stderr=True))
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the line."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def note(self, text: str) -> None:
        """Show a text in the line until the first figures."""
        if self._status is not None:
            self._status.update(text)

    def print_message(self, text: str) -> None:
        """Print a message above the line."""
        if self._status is not None:
            self._status.console.print(text, highlight=False, markup=False)
        else:
            print_message(text)

    def show(self, summary: Summary) -> None:
        """Update the line, if it is time."""
        now = time.perf_counter()
        if self._status is None or now - self._drawn < EVERY:
            return
        self._drawn = now
        rate = summary.n_in / max(now - self._begin, 1e-9)
        loss = summary.loss.published
        self._status.update(
            f"{summary.n_in:,} rows in, {summary.n_published:,} published, "
            f"{summary.n_held:,} held, {rate:,.0f} rows/s"
            + ("" if loss is None else f", loss {loss:.3f}")
        )
