"""The reading thread of a run: it reads and encodes chunks ahead of the deciding thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

import pyarrow as pa

from shoal.errors import ShoalError
from shoal.io.base import JournaledSource, ReplayableSource, Source, Span
from shoal.run.encoder import ChunkEncoder, EncodedChunk

__all__ = ["Reader"]

#: The most batches that wait to be decided.
QUEUE = 4
#: How often, in seconds, a waiting thread checks whether it should stop.
POLL = 0.1


class Reader:
    """Read and encode in a thread of its own.

    Parameters
    ----------
    source, encoder
        What is read, and what encodes it. The encoder belongs to the reader.
    clock
        Returns the arrival time of a chunk.
    """

    def __init__(self, source: Source, encoder: ChunkEncoder, clock: Callable[[], float]) -> None:
        self._source, self._encoder, self._clock = source, encoder, clock
        self._queue: queue.Queue[EncodedChunk | BaseException | None] = queue.Queue(QUEUE)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="shoal-reader", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and the source if it can be stopped. Safe in a signal handler."""
        self._stopped.set()
        if isinstance(self._source, ReplayableSource):
            self._source.stop()

    def get(self, timeout: float) -> EncodedChunk | BaseException | None:
        """Return the next chunk, None at the end, or the error that ended reading.

        Raises
        ------
        queue.Empty
            If none arrives in time.
        """
        return self._queue.get(timeout=timeout)

    def replay(
        self, source: ReplayableSource, spans: Sequence[Span], at: float, data: bytes
    ) -> EncodedChunk:
        """Read and encode again what was read before; only before `start`."""
        if isinstance(source, JournaledSource):
            return self._encoder.encode(source.replay_data(data), at)
        return self._encoder.encode(source.replay(spans), at)

    def resume(self, encoder: ChunkEncoder) -> None:
        """Continue with the encoder of a restored run; only before `start`."""
        self._encoder = encoder

    @property
    def types(self) -> pa.Schema:
        """The columns of the payload; text as long as no chunk was encoded."""
        return self._encoder.types

    @property
    def source(self) -> Source:
        """What is read."""
        return self._source

    def _read(self) -> None:
        try:
            for chunk in self._source:
                if not self._offer(self._encoder.encode(chunk, self._clock())):
                    return
            self._offer(None)
        except pa.ArrowException as error:
            # Arrow's messages quote values.
            kind = type(error).__name__
            self._offer(ShoalError(f"{self._source.describe()}: a batch can't be used ({kind})"))
        except BaseException as error:
            self._offer(error)

    def _offer(self, item: EncodedChunk | BaseException | None) -> bool:
        """Put an item in the queue; return False if the run is being stopped."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=POLL)
                return True
            except queue.Full:
                continue
        return False
