"""The reading thread of a run: chunks of the source, encoded, ahead of the thread that decides."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

import pyarrow as pa

from shoal.errors import ShoalError
from shoal.io.base import ReplayableSource, Source, Span
from shoal.run.intake import EncodedChunk, Intake

__all__ = ["Reader"]

#: How many batches may wait to be decided.
QUEUE = 4
#: How often, in seconds, a waiting thread looks whether it should stop.
LOOK = 0.1


class Reader:
    """Read and encode in a thread of its own.

    Parameters
    ----------
    source, intake
        What is read, and what encodes it.
    clock
        Tells when a chunk arrived.
    """

    def __init__(self, source: Source, intake: Intake, clock: Callable[[], float]) -> None:
        self._source, self._intake, self._clock = source, intake, clock
        self._queue: queue.Queue[EncodedChunk | BaseException | None] = queue.Queue(QUEUE)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="shoal-reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; a source that can be told is told. May be called by a signal."""
        self._stopped.set()
        if isinstance(self._source, ReplayableSource):
            self._source.stop()

    def get(self, timeout: float) -> EncodedChunk | BaseException | None:
        """The next chunk; None at the end, or the error that reading ended with.

        Raises
        ------
        queue.Empty
            If there is none in time.
        """
        return self._queue.get(timeout=timeout)

    def again(self, source: ReplayableSource, spans: Sequence[Span], at: float) -> EncodedChunk:
        """Take once more what was taken before; before `start` only."""
        return self._intake.take(source.replay(spans), at)

    def resume(self, latest: float) -> None:
        """Go on after rows of which the latest had this time."""
        self._intake.latest = latest

    @property
    def source(self) -> Source:
        """What is read."""
        return self._source

    def _read(self) -> None:
        try:
            for chunk in self._source:
                if not self._offer(self._intake.take(chunk, self._clock())):
                    return
            self._offer(None)
        except pa.ArrowException as error:
            # Arrow's messages quote values.
            kind = type(error).__name__
            self._offer(ShoalError(f"{self._source.describe()}: a batch can't be used ({kind})"))
        except BaseException as error:
            self._offer(error)

    def _offer(self, item: EncodedChunk | BaseException | None) -> bool:
        """Put something in the queue unless the run is being stopped."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=LOOK)
                return True
            except queue.Full:
                continue
        return False
