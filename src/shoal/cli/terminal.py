"""Print messages and progress to stderr, and results to stdout."""

from __future__ import annotations

import errno
import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from shoal.errors import ReaderGoneError, ResourceError

if TYPE_CHECKING:
    from shoal.engine.compile_watch import CompileWatch
    from shoal.metrics import Summary

__all__ = [
    "COMPILING",
    "Progress",
    "compiling_bar",
    "output_failed",
    "print_message",
    "print_result",
]

#: The seconds between two updates of the progress line.
EVERY = 0.1
COMPILING = "compiling kernels, once for this machine"


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
        raise output_failed(error) from None


def output_failed(error: OSError) -> ResourceError:
    """Silence stdout after a failure; return the exception that tells of it."""
    _silence(sys.stdout)
    if error.errno == errno.EPIPE:
        return ReaderGoneError("standard output: the reader closed the pipe.")
    reason = os.strerror(error.errno or 0).lower()
    return ResourceError(f"standard output: can't be written: {reason}.")


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
        self._compiled = 0.0
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

    @property
    def is_shown(self) -> bool:
        """Whether there is a line."""
        return self._status is not None

    def compiling(self, watch: CompileWatch) -> None:
        """Show how many kernels have been compiled; their time isn't time of the run."""
        self._compiled = watch.seconds
        if self._status is not None:
            self._status.update(compiling_bar(watch.n_done, watch.n_expected))

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
        rate = summary.n_in / max(now - self._begin - self._compiled, 1e-9)
        loss = summary.loss.published
        self._status.update(
            f"{summary.n_in:,} rows in, {summary.n_published:,} published, "
            f"{summary.n_held:,} held, {rate:,.0f} rows/s"
            + ("" if loss is None else f", loss {loss:.3f}")
        )


def compiling_bar(n_done: int, n_expected: int, of: str | None = None) -> Any:
    """Return a line for a terminal that shows how far the compiler is, and of what."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    line = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(n_expected, 1), completed=n_done, width=24)
    head = "" if of is None else f"{of}: "
    line.add_row(f"{head}{COMPILING} ({n_done} of {n_expected})", bar)
    return line
