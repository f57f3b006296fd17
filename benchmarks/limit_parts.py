"""Where the time of a pass-through goes: the parts of a run, one after the other in one thread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.passthrough import PassThrough, row_by_row
from benchmarks.workloads import Workload
from shoal.arrow.codec import Codec
from shoal.arrow.hold import Hold
from shoal.arrow.publishing import make_publisher
from shoal.arrow.release import Publish
from shoal.engine import base
from shoal.io import open_sink, open_source
from shoal.run.core import RunCore

__all__ = ["PARTS", "processor_seconds"]

#: The parts, in the order in which a row goes through them.
PARTS = (
    "reading", "subject hashing", "encoding", "hold", "engine", "shuffling", "checks and figures",
    "labels", "writing",
)  # fmt: skip


class _Watch:
    """Processor seconds of this thread by part; a part inside of another isn't counted there."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self._lap()
        self._open.append(name)
        try:
            yield
        finally:
            self._lap()
            self._open.pop()

    def _lap(self) -> None:
        now = time.thread_time()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, counted as a part."""

        def call(*arguments: Any, **named: Any) -> Any:
            with self.part(name):
                return function(*arguments, **named)

        return call


def processor_seconds(workload: Workload, output: Path) -> dict[str, float]:
    """Send a file through a pass-through in one thread; give the processor seconds of each part."""
    watch, looks = _Watch(), Publish()
    inner = [
        ("subject hashing", Codec, "_subjects"), ("hold", Hold, "put"), ("hold", Hold, "take"),
        ("shuffling", base, "shuffle_groups"),
    ]  # fmt: skip
    core = RunCore(
        workload.schema, row_by_row(workload.missing), PassThrough(), looks, b"benchmark",
        by_clock=False, with_subject=False,
    )  # fmt: skip
    core._engine.push = watch.timed("engine", core._engine.push)  # type: ignore[method-assign]
    encoder, publisher, sink = core.encoder(), None, None
    source = open_source(workload.path, workload.schema.columns)
    with ExitStack() as stack:
        stack.callback(source.close)
        for name, owner, attribute in inner:
            timed = watch.timed(name, getattr(owner, attribute))
            stack.enter_context(mock.patch.object(owner, attribute, timed))
        chunks = iter(source)
        while True:
            with watch.part("reading"):
                chunk = next(chunks, None)
            if chunk is None:
                break
            with watch.part("encoding"):
                encoded = encoder.encode(chunk, 0.0)
            with watch.part("checks and figures"):
                departures = core.take_in(encoded, 0.0)
            assert departures is not None
            if publisher is None:
                publisher = make_publisher(workload.schema, looks, encoded.types)
                sink = open_sink(output, publisher.schema)
            with watch.part("labels"):
                release, _ = publisher.release(departures)
            with watch.part("writing"):
                sink.write(release.batch)
        with watch.part("writing"):
            sink.close()
    return {name: watch.seconds[name] for name in PARTS}
