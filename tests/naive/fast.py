"""FAST, slowly: FADS by several workers, in rounds ("FAST", section 4).

A round happens whenever every worker has a full block of rows, and when a deadline strikes before.
In it each worker places those of its rows whose deadline comes before the next round. With a
capacity it happens when there is no room for another row, and each worker places its oldest one.
Here the workers come one after another; what one does in a round doesn't reach the others before
its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.engine.kernels import rng
from tests.naive import fads
from tests.naive.fads import NaiveFads
from tests.naive.on_deadline import Decision, Placed, When
from tests.naive.space import Row

__all__ = ["Deviations", "NaiveFast"]


@dataclass(frozen=True)
class Deviations(fads.Deviations):
    """Where Shoal leaves the paper: fast-1 to fast-5, after those of FADS."""

    all_in_danger_are_served: bool = True
    rounds_read_a_frozen_set: bool = True
    left_over_rows_meet_everybody: bool = True
    who_can_wait_waits: bool = True
    only_the_best_is_renewed: bool = True


class NaiveFast(NaiveFads):
    """One run of FAST.

    Parameters
    ----------
    workers
        How many there are (MaxNumThread).
    block
        How many rows in a row go to one worker (delta); None derives it from the delay.
    timing
        The order in which the workers get to run; by their numbers, if None.
    """

    deviations: Deviations

    def __init__(
        self,
        *args: Any,
        workers: int = 2,
        block: int | None = None,
        timing: Sequence[int] | None = None,
        seed: bytes = b"",
        **options: Any,
    ) -> None:
        super().__init__(*args, seed=seed, **options)
        self.workers = workers
        if block is None:
            block = 250 if self.delay_rows is None else max(1, self.delay_rows // (2 * workers))
        self.block = block
        self.timing = range(workers) if timing is None else timing
        self.randoms = [rng.seeded(seed, f"worker {w}") for w in range(workers)]
        #: By capacity, the worker of each row that was dealt; the others wait for a round.
        self.dealt: dict[int, int] = {}
        self.last_round: float | None = None
        self.estimate: float | None = None

    @staticmethod
    def all_deviations() -> Deviations:
        return Deviations()

    # -- when there is a round ---------------------------------------------------------------------

    def after_arrival(self, when: When) -> list[Decision]:
        by_position = self.deviations.deadlines_by_position and self.delay_rows is not None
        is_due = by_position and when[0] - self.delay_rows in self.held
        if not is_due and not (self.is_full or self._makes_a_round(when[0])):
            return []
        return self.round(when)

    def _makes_a_round(self, number: int) -> bool:
        if self.capacity:
            return False
        return (number + 1) % (self.workers * self.block) == 0

    def _overdue(self, *, published: int) -> list[Decision]:
        return (
            super()._overdue(published=published) if self.deviations.deadlines_by_position else []
        )

    def due(self, t: Row, when: When) -> list[Decision]:
        return self.round(when)

    def flush(self) -> list[Decision]:
        return self.round((self.n_rows, self.clock), at_end=True)

    # -- who is in danger --------------------------------------------------------------------------

    def _estimate_round_time(self, now: float | None) -> None:
        if now is None:
            return
        if self.last_round is not None:
            last = now - self.last_round
            self.estimate = (
                last if self.estimate is None else self.estimate + (last - self.estimate) / 4
            )
        self.last_round = now

    def in_danger(self, row: Row, now: float | None) -> bool:
        """Whether a row's deadline comes before the next round (section 4.2)."""
        if self.delay_rows is not None:
            upcoming = self.n_rows
            if self.capacity:
                # While there is no room, rounds follow one another; else as with blocks.
                upcoming += 0 if self.is_full else self.delay_rows // 2
            while not self.capacity and not self._makes_a_round(upcoming):
                upcoming += 1
            if row.number + self.delay_rows < upcoming:
                return True
        if self.delay_seconds is None or now is None:
            return False
        assert row.time is not None
        # In this order, so that what is due now is in danger whatever the rounding.
        return row.time + self.delay_seconds <= now + (self.estimate or 0.0)

    # -- the round ---------------------------------------------------------------------------------

    def round(self, when: When, *, at_end: bool = False) -> list[Decision]:
        """All workers place their rows in danger; then what is left over is placed together."""
        if self.delay_seconds is not None and self.deviations.deadlines_by_position:
            # A tick may have gone by while a row was on its way, and its time with it.
            deadlines = [row.time + self.delay_seconds for row in self.held.values()]
            when = (when[0], min([when[1], *deadlines]))
        self._estimate_round_time(when[1])
        if self.capacity:
            self._deal()
        first = self._oldest_of_each() if self.is_full else []
        danger = [
            row for row in self.held.values()
            if at_end or row.number in first or self.in_danger(row, when[1])
        ]  # fmt: skip
        decisions: list[Decision] = []
        done: dict[int, list[Placed]] = {}
        for worker in self.timing:
            done[worker] = self.work(worker, danger, when)
            if not self.deviations.rounds_read_a_frozen_set:
                # Synchronized(Set_kc): the first worker changes what the next one sees
                decisions += self._merge(done.pop(worker), when)
        for worker in sorted(done):
            decisions += self._merge(done[worker], when)
        for t in danger:
            if t.number in self.held:
                decisions += self._left_over(t, when, at_end=at_end)
        self.instant += 1
        return decisions

    def work(self, worker: int, danger: Sequence[Row], when: When) -> list[Placed]:
        """Return what one worker finds for its rows in danger, alone."""
        mine = [row for row in self.held.values() if self._worker_of(row) == worker]
        groups = list(self.kept)
        found: list[Placed] = []
        for t in danger:
            if t not in mine:
                continue
            placed = self.place(
                t, groups, self._among(t, mine), when, self._draw_of(worker),
                no_joins=True,
            )  # fmt: skip
            if placed is not None:
                found.append(placed)
                mine = [row for row in mine if row not in placed.rows]
                if placed.outcome == "group" and self.max_kept:
                    groups = [*groups, placed.group][-self.max_kept :]
            if not self.deviations.all_in_danger_are_served:
                break  # Algorithm 2: one row for each thread
        return found

    def _deal(self) -> None:
        """Deal the new rows, each to the worker with the fewest rows."""
        self.dealt = {number: self.dealt[number] for number in self.held if number in self.dealt}
        for number in self.held:
            if number not in self.dealt:
                owners = [*self.dealt.values()]
                self.dealt[number] = min(range(self.workers), key=owners.count)

    def _oldest_of_each(self) -> set[int]:
        """The number of each worker's oldest row (Algorithm 2: the first tuple of its set)."""
        first: dict[int, int] = {}
        for row in self.held.values():
            first.setdefault(self._worker_of(row), row.number)
        return set(first.values())

    def _worker_of(self, row: Row) -> int:
        if self.capacity:
            return self.dealt[row.number]
        return row.number // self.block % self.workers

    def _draw_of(self, worker: int) -> Callable[[int], int]:
        return lambda n: int(rng.below(self.randoms[worker], n))

    def _among(self, t: Row, rows: Sequence[Row]) -> Callable[[], list[Row] | None]:
        return lambda: self.group_among(t, rows, self.distance)

    def _merge(self, found: Sequence[Placed], when: When) -> list[Decision]:
        return [decision for placed in found for decision in self.publish(placed, when)]

    def _left_over(self, t: Row, when: When, *, at_end: bool) -> list[Decision]:
        served = self.deviations.all_in_danger_are_served
        if not (served and self.deviations.left_over_rows_meet_everybody):
            return self.suppress(t, when)
        placed = self.place(
            t, self.kept, lambda: self.rest(at_end) or self.form(t), when, self.draw
        )
        if placed is not None:
            return self.publish(placed, when)
        can_wait = not at_end and not self._is_due(t, when[1])
        return [] if can_wait and self.deviations.who_can_wait_waits else self.suppress(t, when)

    def _is_due(self, t: Row, now: float | None) -> bool:
        if self.is_full:
            return True
        if self.delay_rows is not None and t.number + self.delay_rows < self.n_rows:
            return True
        if self.delay_seconds is None or now is None or t.time is None:
            return False
        return t.time + self.delay_seconds <= now

    def publish(self, placed: Placed, when: When) -> list[Decision]:
        # Algorithm 3: "Update C_k-best publish time"
        if self.reuse == "best" or not self.deviations.only_the_best_is_renewed:
            placed.group.since = self.moment(when)
        return super().publish(placed, when)
