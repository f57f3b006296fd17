"""Calls into the client that mustn't be trusted to return.

Some calls of librdkafka wait for a broker that the client has given up meanwhile, whatever time
they were given (its issue 5511). They are made in a thread of their own, which can be left behind.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Calls", "HungError"]


class HungError(Exception):
    """A call hasn't returned in time; it may still have an effect."""


class Calls:
    """A thread that makes calls, one after the other.

    >>> Calls().make(lambda: 6 * 7, seconds=10)
    42
    """

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="shoal-kafka-calls", daemon=True).start()

    def make(self, call: Callable[[], Any], seconds: float) -> Any:
        """Give what a call gives, or raise what it raises.

        Raises
        ------
        HungError
            If it hasn't returned within so many seconds. Then nothing more can be asked here.
        """
        self._asked.put(call)
        try:
            answer, error = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.end()
            raise HungError from None
        if error is not None:
            raise error
        return answer

    def end(self) -> None:
        """Let the thread end, when it can."""
        self._asked.put(None)

    def _work(self) -> None:
        while (call := self._asked.get()) is not None:
            try:
                self._answers.put((call(), None))
            except BaseException as error:
                self._answers.put((None, error))
            # What a call refers to (a client) mustn't live until the next one.
            del call
