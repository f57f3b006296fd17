"""TIDE, slowly: groups of all held rows at once, or a group around the row that is due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.naive.on_deadline import Decision, Placed, When
from tests.naive.parts import merge
from tests.naive.space import Row, by_arrival, n_subjects
from tests.naive.tide_forming import Forming
from tests.naive.tide_losses import Prices

__all__ = ["NaiveRolling", "NaiveTide"]


class NaiveTide(Forming):
    """One run of TIDE that releases batches.

    ``ahead`` is how many seconds it takes for a row, and for one of a group that is measured.
    """

    ahead = 2e-5, 5e-4

    def __init__(self, *args: Any, capacity: int = 0, **options: Any) -> None:
        super().__init__(*args, **options)
        self.capacity = capacity

    def after_arrival(self, when: When) -> list[Decision]:
        decisions: list[Decision] = []
        while self.capacity and len(self.held) > self.capacity:
            decisions += self.due(self.oldest, when)
        return decisions + super().after_arrival(when)

    def _overdue(self, *, published: int) -> list[Decision]:
        """What is due in seconds: earlier, the more rows are held, by a quarter at most."""
        decisions: list[Decision] = []
        while self.delay_seconds is not None and self.clock is not None and self.held:
            lead = min(self.delay_seconds / 4, len(self.held) * self.ahead[bool(self.measures)])
            assert self.oldest.time is not None
            assert self.arrived is not None
            deadline = self.oldest.time + (self.delay_seconds - lead)
            if deadline > self.clock:
                break
            # The row that made the deadline earlier may have come later than that.
            newest = next(reversed(self.held.values())).time
            assert newest is not None
            decisions += self.due(self.oldest, (published, max(deadline, newest)))
        return decisions

    def expire(self, t: Row, when: When, *, at_end: bool = False) -> list[Decision]:
        everything = list(self.held.values())
        due = everything if at_end else [t]
        if n_subjects(everything) < self.promise.people:
            return self.suppress_all(due, when)
        leaving = everything if at_end else self.without_the_youngest(everything)
        for rows in (leaving, everything):
            if self.meets(rows):
                return self.leave(rows, when)
        if not self.can_break:
            return self.suppress_all(due, when)
        if at_end:
            return self.leave(everything, when)
        around = self.around(t, everything, dict.fromkeys(everything, 0))
        return self.leave(by_arrival(around), when) if around else self.suppress_all(due, when)

    def without_the_youngest(self, rows: list[Row]) -> list[Row]:
        """All but the youngest rows, of as many people as a group needs."""
        n = len(rows)
        while n and n_subjects(rows[n:]) < self.promise.people:
            n -= 1
        return rows[:n] or rows

    def leave(self, rows: list[Row], when: When) -> list[Decision]:
        """Publish rows in groups, and suppress those that are in none."""
        decisions: list[Decision] = []
        groups = merge(self.space, self.groups_of(rows), lambda some: self.meets(some))
        for group in groups:
            placed = Placed("group", self.new_group(group, when), by_arrival(group))
            decisions += self.publish(placed, when)
        lost = [row for row in rows if row.number in self.held]
        return decisions + self.suppress_all(lost, when)

    def suppress_all(self, rows: Sequence[Row], when: When) -> list[Decision]:
        return [decision for row in list(rows) for decision in self.suppress(row, when)]


class NaiveRolling(NaiveTide):
    """One run of TIDE that releases group by group."""

    ahead = 0.0, 0.0
    takes_equals = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.prices = Prices(self.losses)
        self.price: dict[int, int] = {}

    def took_in(self, row: Row) -> None:
        self.price[row.number] = self.prices.of(row) // self.promise.people

    def expire(self, t: Row, when: When, *, at_end: bool = False) -> list[Decision]:
        everything, people = list(self.held.values()), self.promise.people
        n = n_subjects(everything)
        group = everything if at_end and people <= n < 2 * people else []
        if not (group and self.meets(group)) and n >= people:
            group = self.around(t, everything, {row: self.bias(row, when) for row in everything})
            if group:
                self.prices.learn(group, self.losses.loss(group))
        if group and self.meets(group):
            return self.publish(
                Placed("group", self.new_group(group, when), by_arrival(group)), when
            )
        return self.suppress(t, when)

    def end(self) -> Iterator[list[Decision]]:
        while self.held:
            yield self.expire(self.oldest, (self.n_rows, self.clock), at_end=True)

    def bias(self, row: Row, when: When) -> int:
        """What a row costs beside the growth of a box: less, the dearer and the older it is."""
        ages = [0]
        if longest := self.delay_rows or self.capacity:
            ages.append(((when[0] - row.number) * ((1024 << 20) // longest)) >> 20)
        if self.delay_seconds is not None:
            assert when[1] is not None
            assert row.time is not None
            ages.append(max(0, int((when[1] - row.time) / self.delay_seconds * 1024)))
        mean = self.prices.mean // self.promise.people
        age = max(min(age, 1024) for age in ages)
        return -(self.price[row.number] + (mean * age * age >> 20))
