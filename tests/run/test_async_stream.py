"""Streams in an event loop: deadlines fire by themselves, and no release is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from shoal import AsyncStream, Delay, KAnonymity, Policy, Stream, anonymize
from shoal.errors import DataError, ParameterError, PromiseError
from shoal.run import async_stream
from shoal.run.core import RunCore
from tests.run.test_stream import AGES, PAIR, POLICY, SCHEMA
from tests.world import people

ROWS = [{"name": "a", "age": 31}, {"name": "b", "age": 33}]
LONG = Policy(KAnonymity(2), delay=Delay(rows=100))


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 60))


async def taken(stream: AsyncStream) -> list[Any]:
    return [release async for release in stream]


def test_the_releases_are_those_of_a_table() -> None:
    table = people(60)

    async def main() -> list[Any]:
        async with AsyncStream(SCHEMA, POLICY, "castle", seed=4) as stream:
            taking = asyncio.create_task(taken(stream))
            for row in table.to_pylist():
                await stream.push(row)
        return await taking

    assert run(main()) == anonymize(table, SCHEMA, POLICY, "castle", seed=4).frame.to_pylist()


def test_releases_can_be_taken_after_the_block() -> None:
    async def main() -> list[Any]:
        async with AsyncStream(AGES, LONG, "castle") as stream:
            await stream.push(ROWS)
            assert stream.n_held == 2
        return await taken(stream)

    assert run(main()) == [{"age": "[31, 33]"}] * 2


def test_a_deadline_in_seconds_fires_by_itself() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(seconds=0.5))

    async def main() -> tuple[list[Any], float, int]:
        async with AsyncStream(AGES, policy, "castle") as stream:
            begin = time.monotonic()
            await stream.push(ROWS)
            first = [await anext(stream), await anext(stream)]
            seconds = time.monotonic() - begin
            # Once more, after a silence.
            await stream.push(ROWS)
            await anext(stream)
            await anext(stream)
            return first, seconds, stream.summary.n_in

    first, seconds, n_in = run(main())
    assert first == [{"age": "[31, 33]"}] * 2
    assert seconds > 0.3
    assert n_in == 4


def test_leaving_with_an_exception_publishes_nothing() -> None:
    async def main() -> list[Any]:
        with pytest.raises(KeyError):
            async with AsyncStream(AGES, LONG, "castle") as stream:
                await stream.push(ROWS)
                raise KeyError
        with pytest.raises(ParameterError, match="has ended"):
            await stream.push(ROWS)
        return await taken(stream)

    assert run(main()) == []


def test_a_cancelled_push_loses_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    push = Stream.push

    def slow(stream: Stream, rows: Any) -> Any:
        time.sleep(0.2)
        return push(stream, rows)

    monkeypatch.setattr(Stream, "push", slow)

    async def main() -> tuple[list[Any], int]:
        async with AsyncStream(AGES, PAIR, "castle") as stream:
            await stream.push(ROWS[0])
            cancelled = asyncio.create_task(stream.push(ROWS[1]))
            await asyncio.sleep(0.05)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        return await taken(stream), stream.summary.n_in

    assert run(main()) == ([{"age": "[31, 33]"}] * 2, 2)


def test_push_waits_where_releases_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_stream, "MOST_WAITING", 1)

    async def main() -> list[Any]:
        async with AsyncStream(AGES, PAIR, "castle") as stream:
            await stream.push(ROWS)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stream.push(ROWS), 0.1)
            assert stream.summary.n_in == 2
            taking = asyncio.create_task(taken(stream))
            await stream.push(ROWS)
        return await taking

    assert len(run(main())) == 4


def test_bad_rows_are_those_of_the_stream() -> None:
    async def main() -> None:
        async with AsyncStream(AGES, PAIR, "castle") as stream:
            await stream.push({"name": "a", "age": "CANARY"})
            assert [bad.reason for bad in stream.quarantined] == ["age isn't a number"]
            assert "CANARY" not in repr(stream)
            assert repr(stream).startswith("AsyncStream('castle': 1 rows in, ")
        async with AsyncStream(AGES, PAIR, "castle", bad_rows="stop") as stream:
            with pytest.raises(DataError, match="age isn't a number"):
                await stream.push({"name": "a", "age": "CANARY"})
            await stream.push(ROWS)
        assert len(await taken(stream)) == 2

    run(main())


@pytest.mark.parametrize("delay", [Delay(rows=1), Delay(seconds=0.1)])
def test_a_broken_promise_reaches_who_takes_the_releases(
    delay: Delay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def guard(core: RunCore, decisions: Any) -> None:
        raise PromiseError("a bug")

    monkeypatch.setattr(RunCore, "_guard", guard)

    async def main() -> None:
        stream = AsyncStream(AGES, Policy(KAnonymity(2), delay=delay), "castle")
        taking = asyncio.create_task(taken(stream))
        if delay.rows:
            with pytest.raises(PromiseError):
                await stream.push(ROWS)
        else:
            await stream.push(ROWS)
        with pytest.raises(PromiseError):
            await taking
        await stream.close()

    run(main())


def test_a_snapshot_waits_until_what_left_is_taken() -> None:
    async def main() -> list[Any]:
        async with AsyncStream(AGES, PAIR, "castle", seed=1) as stream:
            await stream.push([*ROWS, {"name": "c", "age": 50}])
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stream.snapshot(), 0.1)
            taking = asyncio.create_task(taken(stream))
            saved = await stream.snapshot()
            await stream.push({"name": "d", "age": 51})
        first = await taking
        async with AsyncStream(AGES, PAIR, "castle") as again:
            await again.restore(saved)
            await again.push({"name": "d", "age": 51})
        return [first, await taken(again)]

    first, again = run(main())
    assert len(first) == 4
    assert again == first[2:]


def test_a_snapshot_in_the_task_that_takes_releases_is_refused() -> None:
    async def main() -> None:
        async with AsyncStream(AGES, PAIR, "castle") as stream:
            await stream.push(ROWS)
            await anext(stream)
            with pytest.raises(ParameterError, match="this task takes them"):
                await stream.snapshot()

    run(main())


def test_time_of_the_stream_is_advanced_by_hand() -> None:
    schema = type(AGES)("name", AGES.quasi, time="at")

    async def main() -> list[Any]:
        stream = AsyncStream(schema, Policy(KAnonymity(2), delay=Delay(seconds=30)), "castle")
        await stream.push([row | {"at": 0} for row in ROWS])
        await stream.advance(30.0)
        first = [await anext(stream), await anext(stream)]
        await stream.flush()
        return first + await taken(stream)

    assert len(run(main())) == 2


def test_deadlines_of_restored_rows_fire_before_any_row_is_pushed() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(seconds=0.2))
    before = Stream(AGES, policy, "castle")
    before.push(ROWS)

    async def main() -> list[Any]:
        stream = AsyncStream(AGES, policy, "castle")
        await stream.restore(before.snapshot())
        found = [await asyncio.wait_for(anext(stream), 10) for _ in ROWS]
        await stream.close()
        return found

    assert len(run(main())) == 2
