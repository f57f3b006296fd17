"""Make calls to the client that may never return.

Some calls of librdkafka wait for a broker that the client has given up meanwhile, despite their
timeout (issue 5511 of librdkafka). They are made in a separate thread, which can be abandoned.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["CallThread", "HungError"]


class HungError(Exception):
    """A call hasn't returned in time; it may still have an effect."""


class CallThread:
    """A thread that makes calls, one after the other.

    >>> CallThread().make(lambda: 6 * 7, seconds=10)
    42
    """

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="shoal-kafka-calls", daemon=True).start()

    def make(self, call: Callable[[], Any], seconds: float) -> Any:
        """Return what a call returns, or raise what it raises.

        Raises
        ------
        HungError
            If it hasn't returned within ``seconds``. Then no more calls can be made here.
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
        """Let the thread end as soon as it can."""
        self._asked.put(None)

    def _work(self) -> None:
        while (call := self._asked.get()) is not None:
            try:
                self._answers.put((call(), None))
            except BaseException as error:
                self._answers.put((None, error))
            # What a call refers to (a client) must not stay alive until the next one.
            del call
