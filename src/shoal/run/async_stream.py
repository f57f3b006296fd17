"""A stream for ``asyncio``: some tasks push rows, another takes the releases, and deadlines fire.

Rows are decided by a `Stream` in a thread, one call after the other: the event loop isn't blocked,
not even while kernels are compiled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Unpack

from shoal.engine.base import Anonymizer
from shoal.errors import ParameterError
from shoal.io.base import BadRow
from shoal.metrics import Summary
from shoal.run.clock import lead
from shoal.run.stream import Stream, StreamOptions
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["AsyncStream"]

#: The most releases that wait to be taken before `AsyncStream.push` waits, too.
MOST_WAITING = 10_000


class AsyncStream:
    """Anonymize rows as they come, in an event loop.

    Any task may `push` rows; iteration gives the releases, as they leave: dictionaries if
    dictionaries were pushed, else frames. A delay in seconds by the wall clock is kept without any
    call. Where releases aren't taken, `push` waits: push and iterate in different tasks.

    When the ``async with`` block ends, the stream is flushed, and the iteration ends after the last
    release. When the block raises, the held rows are dropped and nothing of them is published.

    It belongs to one event loop. From another thread use `asyncio.run_coroutine_threadsafe`.

    Parameters
    ----------
    schema, policy, algorithm
        As for `Stream`.
    options
        The options of `Stream`.

    >>> from shoal import Delay, KAnonymity, Quasi, Range
    >>> schema = Schema(subject="name", quasi=[Quasi("age", Range(0, 120, step=1))])
    >>> policy = Policy(KAnonymity(2), delay=Delay(seconds=30))
    >>> async def main() -> None:
    ...     async with AsyncStream(schema, policy) as stream:
    ...         await stream.push({"name": "Ann", "age": 31})
    ...         await stream.push({"name": "Bob", "age": 33})
    ...     async for release in stream:
    ...         print(release)
    >>> asyncio.run(main())
    {'age': '[31, 33]'}
    {'age': '[31, 33]'}
    """

    def __init__(
        self,
        schema: Schema,
        policy: Policy,
        algorithm: Anonymizer | str | None = None,
        **options: Unpack[StreamOptions],
    ) -> None:
        self._stream = Stream(schema, policy, algorithm, **options)
        self._by_wall = policy.delay is not None and policy.delay.by_wall(schema)
        self._early = lead(None if policy.delay is None else policy.delay.seconds)
        # One call after the other, in the order in which they were made.
        self._turn = asyncio.Lock()
        self._news = asyncio.Condition()
        self._ready: deque[Any] = deque()
        self._taking: set[asyncio.Task[Any]] = set()
        self._calls: set[asyncio.Task[None]] = set()
        self._pushed = asyncio.Event()
        self._ticker: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._has_ended = False

    def __repr__(self) -> str:
        return f"Async{self._stream!r}"

    @property
    def summary(self) -> Summary:
        """The figures so far; see `Stream.summary`."""
        return self._stream.summary

    @property
    def n_held(self) -> int:
        """The number of rows that haven't left."""
        return self._stream.n_held

    @property
    def quarantined(self) -> list[BadRow]:
        """The rows that can't be used; see `Stream.quarantined`."""
        return self._stream.quarantined

    # -- rows in ---------------------------------------------------------------------------------

    async def push(self, rows: Any) -> None:
        """Take rows in, as `Stream.push` does; wait if too many releases wait to be taken."""
        async with self._news:
            await self._news.wait_for(lambda: len(self._ready) < MOST_WAITING or self._is_over)
        await self._call(lambda: self._stream.push(rows))

    async def advance(self, until: Any = None) -> None:
        """Let time pass without a row; see `Stream.advance`. Wall-clock deadlines don't need it."""
        await self._call(lambda: self._stream.advance(until))

    async def flush(self) -> None:
        """End the stream: decide all held rows, under the policy."""
        await self._call(self._stream.flush)
        await self._finish()

    async def close(self) -> None:
        """End the stream without publishing the held rows; do nothing if it has ended."""
        async with self._turn:
            self._stream.close()
        await self._finish()

    async def __aenter__(self) -> AsyncStream:
        self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is None and not self._is_over:
            await self.flush()
        await self.close()

    # -- releases out ----------------------------------------------------------------------------

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Any:
        task = asyncio.current_task()
        assert task is not None
        async with self._news:
            self._taking.discard(task)
            self._news.notify_all()
            await self._news.wait_for(lambda: self._ready or self._is_over)
            if not self._ready:
                if self._failure is not None:
                    raise self._failure
                raise StopAsyncIteration
            self._taking.add(task)
            self._news.notify_all()
            return self._ready.popleft()

    # -- snapshots -------------------------------------------------------------------------------

    async def snapshot(self, *, seal: str | None = None) -> bytes:
        """Return all that later releases depend on; see `Stream.snapshot`.

        It waits until all releases were taken, and the tasks that took them ask for the next: then
        they are published. Until then no row is taken in.
        """
        if asyncio.current_task() in self._taking:
            raise ParameterError(
                "snapshot",
                "waits until all releases are taken, and this task takes them",
                fix="Call it in another task",
            )
        async with self._turn:
            async with self._news:
                await self._news.wait_for(lambda: not self._ready and not self._in_hand)
            return await asyncio.to_thread(lambda: self._stream.snapshot(seal=seal))

    async def restore(self, snapshot: bytes, *, seal: str | None = None) -> None:
        """Continue from a snapshot, before the first row is pushed; see `Stream.restore`."""
        # The rows in it have deadlines, whether others come or not.
        self._start()
        async with self._turn:
            await asyncio.to_thread(lambda: self._stream.restore(snapshot, seal=seal))
        self._pushed.set()

    # -- inside ----------------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        return self._has_ended or self._failure is not None

    @property
    def _in_hand(self) -> bool:
        return any(not task.done() for task in self._taking)

    async def _call(self, verb: Callable[[], list[Any]]) -> None:
        """Run a verb of the stream; what it releases is kept even if the caller is cancelled."""
        self._start()
        call = asyncio.ensure_future(self._decide(verb))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        await asyncio.shield(call)

    async def _decide(self, verb: Callable[[], list[Any]]) -> None:
        async with self._turn:
            try:
                released = await asyncio.to_thread(verb)
            except Exception as error:
                if self._stream.has_failed:
                    await self._finish(error)
                raise
            async with self._news:
                self._ready.extend(released)
                self._news.notify_all()
        self._pushed.set()

    async def _finish(self, failure: BaseException | None = None) -> None:
        """Let waiting tasks know that no further release will come."""
        async with self._news:
            self._has_ended = True
            self._failure = self._failure or failure
            self._news.notify_all()
        if self._ticker is not None and self._ticker is not asyncio.current_task():
            self._ticker.cancel()

    def _start(self) -> None:
        if self._by_wall and self._ticker is None and not self._is_over:
            self._ticker = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        """Fire deadlines by the wall clock."""
        while not self._is_over:
            self._pushed.clear()
            async with self._turn:
                left = self._stream.seconds_left
            try:
                wait = None if left is None else max(0.0, left - self._early)
                await asyncio.wait_for(self._pushed.wait(), wait)
            except TimeoutError:
                try:
                    await self._decide(lambda: self._stream.fire(self._early))
                except Exception:
                    # `_finish` has passed it on; a stream that was ended meanwhile needs no tick.
                    return
