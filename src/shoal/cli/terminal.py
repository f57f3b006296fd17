"""Words and progress for people, on stderr; results alone go to stdout."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, Self, TextIO

from shoal.errors import ResourceError
from shoal.metrics import Summary

__all__ = ["Progress", "say", "tell"]

#: How often the line of progress is drawn anew, in seconds.
EVERY = 0.1


def say(text: str) -> None:
    """Say something to the user. Nobody listening is no reason to fail."""
    # Where stderr was closed before the start there is none, and print would take stdout.
    listener: Any = sys.stderr
    if listener is None:
        return
    try:
        print(text, file=listener, flush=True)
    except OSError:
        _silence(listener)


def tell(text: str) -> None:
    """Give a result on stdout; a reader that went away ends the command."""
    try:
        print(text, flush=True)
    except OSError as error:
        _silence(sys.stdout)
        reason = os.strerror(error.errno or 0).lower()
        raise ResourceError(f"standard output: can't be written: {reason}.") from None


def _silence(stream: TextIO) -> None:
    """Send the rest to nowhere: the interpreter would try again, and complain, when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Progress:
    """A line that tells how a run stands; on a terminal only."""

    def __init__(self, *, quiet: bool) -> None:
        listener: Any = sys.stderr
        self._on = listener is not None and listener.isatty() and not quiet
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
        """Take the line away."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def note(self, text: str) -> None:
        """Show a text until there is something to tell."""
        if self._status is not None:
            self._status.update(text)

    def say(self, text: str) -> None:
        """Tell something that stays, above the line."""
        if self._status is not None:
            self._status.console.print(text, highlight=False, markup=False)
        else:
            say(text)

    def show(self, summary: Summary) -> None:
        """Draw the line anew, if it is time."""
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
