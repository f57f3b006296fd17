"""Handle Ctrl-C and SIGTERM: the first stops a run in good order, the second at once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["stopped_by_signals"]


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Call ``stop`` at the first signal; a second ends the process. Yield the signals caught."""
    caught: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if caught:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        caught.append(number)
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
