"""What a run does with rows that are posted, without a run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from shoal.io.base import Chunk
from shoal.io.http.source import HttpSource


@contextlib.contextmanager
def running(
    source: HttpSource, before: Callable[[Chunk], None] = lambda chunk: None
) -> Iterator[list[Chunk]]:
    """Iterate a source in a thread and acknowledge each chunk, after ``before`` was called."""
    chunks: list[Chunk] = []

    def run() -> None:
        for chunk in source:
            before(chunk)
            chunks.append(chunk)
            assert chunk.position is not None
            source.acknowledge(chunk.position)

    thread = threading.Thread(target=run)
    thread.start()
    while not source.has_begun:
        pass
    try:
        yield chunks
    finally:
        source.stop()
        source.close()
        thread.join(60)
        assert not thread.is_alive()
