"""Handle Ctrl-C and SIGTERM: the first stops a run in good order, the second at once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["removed_at_the_end", "stopped_by_signals"]

#: What is still to be removed if a signal ends the process at once.
_left: list[Callable[[], None]] = []


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Call ``stop`` at the first signal; a second ends the process. Yield the signals caught."""
    caught: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if caught:
            _end(number)
        caught.append(number)
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def removed_at_the_end(remove: Callable[[], None]) -> Iterator[None]:
    """Call ``remove`` at the end, also if SIGINT, SIGTERM or SIGHUP comes first.

    The first SIGINT or SIGTERM ends the block by an exception, so that others inside it can tidy
    up, too. SIGHUP and a second signal end the process at once. A signal that the process was
    started to ignore, as under nohup, stays ignored.
    """
    ending = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal ending
        if ending or number == signal.SIGHUP:
            _end(number)
        ending = True
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    _left.append(remove)
    before = {
        number: signal.signal(number, handle)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        # From here on a signal doesn't interrupt: it removes by itself.
        ending = True
        remove()
        _left.remove(remove)
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int) -> None:
    """Remove what must not stay, and end the process by a signal."""
    for remove in _left:
        remove()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
