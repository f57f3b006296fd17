"""The writing thread: what it does when an output or a trace fails, or stands still."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from shoal.arrow.release import Publish
from shoal.errors import ResourceError
from shoal.run.writer import QUEUE, PlainSinkFactory, Writer
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Quasi, Schema
from tests.world import Kept

SCHEMA = Schema(subject="person", quasi=[Quasi("age", Range(0, 9))], keep=["ward"])
TYPES = pa.schema([("person", pa.int64()), ("ward", pa.string())])


class Closing(Kept):
    """A sink that records when it is closed."""

    n_closed = 0

    def close(self) -> None:
        self.n_closed += 1


class Full(Kept):
    """A sink that can't be finished."""

    def close(self) -> None:
        raise ResourceError("out: the disk is full.")


def refuse(schema: pa.Schema) -> Kept:
    raise ResourceError("out: can't be written.")


def opening(sinks: list[Closing]) -> Callable[[pa.Schema], Closing]:
    def opened(schema: pa.Schema) -> Closing:
        sinks.append(Closing(schema))
        return sinks[-1]

    return opened


@pytest.mark.parametrize("open_sink", [Full, refuse])
def test_a_failure_at_the_end_is_reported_and_the_trace_is_finished(open_sink):
    traces: list[Closing] = []
    writer = Writer(
        SCHEMA, Publish(), PlainSinkFactory(open_sink), PlainSinkFactory(opening(traces)), None
    )
    with pytest.raises(ResourceError, match="out: "):
        writer.close(TYPES)
    assert [trace.n_closed for trace in traces] == [1]


def test_a_failed_opening_leaves_nothing_open():
    traces: list[Closing] = []
    writer = Writer(
        SCHEMA, Publish(), PlainSinkFactory(refuse), PlainSinkFactory(opening(traces)), None
    )
    with pytest.raises(ResourceError):
        writer.open(TYPES)
    writer.close(TYPES)
    assert [trace.n_closed for trace in traces] == [1]


def test_a_subject_that_does_not_fit_its_column_is_traced_as_missing():
    traces: list[Closing] = []
    writer = Writer(
        SCHEMA, Publish(), PlainSinkFactory(Kept), PlainSinkFactory(opening(traces)), None
    )
    writer.open(TYPES)
    writer.quarantined([3, 4, 5, 6], [17, "CANARY", None, 2**70])
    writer.close(TYPES)
    assert traces[0].table["row"].to_pylist() == [3, 4, 5, 6]
    assert traces[0].table["subject"].to_pylist() == [17, None, None, None]


def test_a_sink_that_stands_still_stops_who_decides_and_figures_are_still_shown() -> None:
    writer = Writer(SCHEMA, Publish(), PlainSinkFactory(Kept), None, None)
    writer.open(TYPES)
    goes_on, shown, done = threading.Event(), [], []

    def show() -> None:
        shown.append((writer.n_waiting, writer.blocked_seconds))
        if len(shown) == 3:
            goes_on.set()

    def stand_still(seq: int, marks: object) -> None:
        assert goes_on.wait(60)
        done.append(seq)

    writer.while_blocked(show)
    # One is being written, some wait, and one more has to wait for its place.
    for _ in range(QUEUE + 2):
        writer.barrier(stand_still)
    writer.close(TYPES)
    assert len(done) == QUEUE + 2
    # With the one that is being written.
    assert [n for n, _ in shown] == [QUEUE + 1] * 3
    seconds = [blocked for _, blocked in shown]
    assert 0 < seconds[0] < seconds[1] < seconds[2] <= writer.blocked_seconds


class Standing(Kept):
    """A sink that can't be finished before somebody reads."""

    reads = threading.Event()
    n_closed = 0

    def close(self) -> None:
        assert self.reads.wait(60)
        self.n_closed += 1


@pytest.mark.parametrize("n_tasks", [1, QUEUE + 1])
@pytest.mark.parametrize("is_drained", [True, False])
def test_figures_are_shown_while_the_end_waits_for_the_sink(n_tasks, is_drained) -> None:
    writer = Writer(SCHEMA, Publish(), PlainSinkFactory(Kept), None, None)
    writer.open(TYPES)
    goes_on, shown = threading.Event(), []

    def show() -> None:
        shown.append((writer.n_waiting, writer.blocked_seconds))
        if len(shown) == 3:
            goes_on.set()

    writer.while_blocked(show)
    for _ in range(n_tasks):
        writer.barrier(lambda seq, marks: goes_on.wait(60))
    if is_drained:
        writer.drain()
    writer.close(TYPES)
    assert goes_on.is_set()
    assert all(n >= n_tasks for n, _ in shown[:3])
    seconds = [blocked for _, blocked in shown]
    assert 0 < seconds[0] < seconds[1] < seconds[2] <= writer.blocked_seconds


def test_figures_are_shown_while_a_sink_is_closed() -> None:
    sinks: list[Standing] = []

    def opened(schema: pa.Schema) -> Standing:
        sinks.append(Standing(schema))
        return sinks[-1]

    writer = Writer(SCHEMA, Publish(), PlainSinkFactory(opened), None, None)
    writer.open(TYPES)
    shown: list[int] = []

    def show() -> None:
        shown.append(writer.n_waiting)
        if len(shown) == 3:
            Standing.reads.set()

    writer.while_blocked(show)
    writer.close(TYPES)
    assert shown[:3] == [1] * 3
    assert [sink.n_closed for sink in sinks] == [1]


def test_what_has_room_in_the_queue_blocks_nobody() -> None:
    writer = Writer(SCHEMA, Publish(), PlainSinkFactory(Kept), None, None)
    writer.open(TYPES)
    for _ in range(QUEUE):
        writer.barrier(lambda seq, marks: None)
    writer.close(TYPES)
    assert writer.blocked_seconds == 0
