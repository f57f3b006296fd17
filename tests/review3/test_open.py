"""What a hostile review found and left open: each test fails, and says what should be."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa

from shoal.io.base import Mark
from shoal.policy import Delay, DistinctLDiversity, KAnonymity, Policy
from shoal.testing.clocks import ManualClock

from ..test_recovery import Sheet, Shelf, World
from ..world import people


class Slow(Shelf):
    """A sink that takes ten seconds for everything that it is given."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(forgets=False)
        self._clock = clock

    def open(self, schema: pa.Schema, mark: Mark | None) -> Sheet:
        sheet = super().open(schema, mark)
        write = sheet.write

        def slowly(batch: pa.RecordBatch) -> None:
            self._clock.advance(10.0)
            write(batch)

        sheet.write = slowly  # type: ignore[method-assign]
        return sheet


def test_rows_that_a_slow_sink_is_handed_too_late_are_counted_as_late(tmp_path):
    # docs/live.md: the delay lasts "from when a row is read until it is handed to the sink". Late
    # is what was decided late; what then waits for a sink (a broker that is away) isn't counted.
    clock = ManualClock(0.0)
    policy = Policy(
        KAnonymity(3), DistinctLDiversity(2), delay=Delay(rows=20, seconds=5.0, clock="wall")
    )
    world = World(tmp_path, people(60), policy=policy, clock=clock, every=1e6)
    world.output = Slow(clock)
    # All rows come, and are decided, at one instant; they are handed over seconds later.
    world._lengths = lambda: iter(lambda: 60, 0)
    summary = world.run().go()
    assert clock() >= 10.0
    assert summary.n_late > 0


class Waiting(Shelf):
    """A sink whose broker is away until it is told to stop."""

    def __init__(self) -> None:
        super().__init__(forgets=False)
        self.waits, self.told = threading.Event(), threading.Event()

    def open(self, schema: pa.Schema, mark: Mark | None) -> Any:
        sheet: Any = super().open(schema, mark)

        def wait(batch: pa.RecordBatch) -> None:
            self.waits.set()
            self.told.wait(30)
            raise OSError

        sheet.write, sheet.stop = wait, self.told.set
        return sheet


def test_a_stop_reaches_a_sink_that_waits_for_its_broker(tmp_path):
    # KafkaSink.stop is there for it, and nobody calls it: SIGTERM while the output's broker is away
    # waits for ever. It should end, after a time of grace, with the checkpoint before.
    world = World(tmp_path, people(60), every=1e6)
    world.output = Waiting()
    run = world.run()

    def go() -> None:
        try:
            run.go()
        except OSError:
            return

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    assert world.output.waits.wait(20)
    run.stop()
    thread.join(5)
    is_alive = thread.is_alive()
    world.output.told.set()
    thread.join(20)
    assert not is_alive
