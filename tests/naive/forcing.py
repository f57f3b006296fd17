"""What the twins of min-delay and of the R-tree family share: rows wait until somebody forces them.

Neither has a deadline in the paper. Here a row is forced out when the policy's delay is over or
when more rows are held than the capacity; a subclass says what it does with rows that come, and
what with one that is forced.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from shoal.engine.kernels import rng
from shoal.spec.hierarchy import Domain
from tests.naive.castle import Decision
from tests.naive.criteria import Promise
from tests.naive.space import Row, Space, by_arrival, gaps_of, n_subjects

__all__ = ["SPAN", "NaiveForcing", "When"]

#: When a decision falls: the number of the row that caused it, and the second.
When = tuple[int, float | None]
#: Where the policy sets no delay, no row waits for more rows than this times the capacity.
SPAN = 16


class NaiveForcing:
    """One run; ``capacity`` is how many rows may be held after each row (0: as many as there are).

    ``bounded`` is off where the paper is as it stands: no row is ever forced out.
    """

    def __init__(
        self,
        domains: Sequence[Domain],
        weights: Sequence[float],
        *,
        k: int,
        l_needed: Sequence[int] = (),
        entropy: Sequence[float] = (),
        recursive: Sequence[tuple[float, int]] = (),
        delay_rows: int | None = None,
        delay_seconds: float | None = None,
        capacity: int = 0,
        loss: str = "glm",
        missing: str = "quarantine",
        seed: bytes = b"",
        bounded: bool = True,
    ) -> None:
        self.space = Space(domains, weights, loss, missing)
        self.promise = Promise(k, l_needed, entropy, recursive)
        self.delay_rows, self.delay_seconds = delay_rows, delay_seconds
        if delay_rows is None and delay_seconds is None and capacity:
            self.delay_rows = SPAN * capacity
        self.capacity, self.bounded = capacity, bounded
        self.random = rng.seeded(seed, "decide")
        self.held: dict[int, Row] = {}
        self.n_rows = 0
        self.n_groups = 0
        self.clock: float | None = None
        self.arrived: float | None = None
        #: What time it is: between two rows, that of what happens there.
        self.now: float | None = None

    # -- the three verbs -------------------------------------------------------------------------

    def push(
        self,
        values: Sequence[float],
        subject: Hashable,
        sensitive: Sequence[Hashable] = (),
        time: float | None = None,
    ) -> list[Decision]:
        """Take one row, and decide what is due before it, by it, and at once with it."""
        timed = time is not None and not math.isnan(time)
        if timed:
            self.clock = time if self.clock is None else max(self.clock, time)
            self.arrived = time if self.arrived is None else max(self.arrived, time)
        number = self.n_rows
        decisions = self._overdue(published=number)
        self.now = self.clock
        row = Row(
            number,
            self.space.row_box(values),
            subject,
            tuple(sensitive),
            self.arrived if timed else None,
            gaps_of(values),
        )
        self.n_rows += 1
        self.held[number] = row
        when = (number, self.clock if timed else None)
        decisions += self.took_in(row, when)
        while self.bounded and 0 < self.capacity < len(self.held):
            decisions += self.force(self.oldest, when)
        self.changed()
        if self.bounded and self.delay_rows is not None and number - self.delay_rows in self.held:
            decisions += self.force(self.held[number - self.delay_rows], when)
            self.changed()
        # A row that was on its way while the clock went on may be overdue as it comes.
        return decisions + self._overdue(published=number)

    def advance(self, now: float) -> list[Decision]:
        """Decide what is due in seconds, though no row arrives."""
        self.clock = now if self.clock is None else max(self.clock, now)
        decisions = self._overdue(published=self.n_rows)
        self.now = self.clock
        return decisions

    def flush(self) -> list[Decision]:
        """Decide everything that is held: the stream has ended."""
        when = (self.n_rows, self.clock)
        decisions = self.ends(when)
        while self.held:
            decisions += self.force(self.oldest, when)
            self.changed()
        return decisions

    def _overdue(self, *, published: int) -> list[Decision]:
        """Between two rows: what the queue and the delay in seconds decide, by time."""
        decisions: list[Decision] = []
        while self.clock is not None:
            deadline = math.inf
            if self.bounded and self.delay_seconds is not None and self.held:
                assert self.oldest.time is not None
                deadline = self.oldest.time + self.delay_seconds
            at = min(self.due, deadline)
            if at > self.clock:
                break
            self.now = at if self.now is None else max(self.now, at)
            if self.due < deadline:
                decisions += self.fell_due((published, at))
            else:
                decisions += self.force(self.oldest, (published, at))
            self.changed()
        return decisions

    @property
    def oldest(self) -> Row:
        return next(iter(self.held.values()))

    # -- what a subclass says ----------------------------------------------------------------------

    def took_in(self, row: Row, when: When) -> list[Decision]:
        """A row has come."""
        raise NotImplementedError

    def force(self, row: Row, when: When) -> list[Decision]:
        """Decide a row, now."""
        raise NotImplementedError

    def ends(self, when: When) -> list[Decision]:
        """The stream ends; what is held after this is forced by age."""
        return []

    #: When the queue publishes next, if it goes by seconds.
    due = math.inf

    def fell_due(self, when: When) -> list[Decision]:
        """The queue publishes."""
        raise NotImplementedError

    def changed(self) -> None:
        """Rows have come or gone."""

    # -- the promise, and what is published --------------------------------------------------------

    def meets(self, rows: Sequence[Row]) -> bool:
        return n_subjects(rows) >= self.promise.k and self.promise.diverse(by_arrival(rows))

    def released(self, rows: Sequence[Row], when: When) -> list[Decision]:
        """Publish rows as one group."""
        box = self.space.public(self.space.box(rows))
        sides = [(math.inf, -math.inf) if side is None else side for side in box]
        group = self.n_groups
        self.n_groups += 1
        for row in rows:
            del self.held[row.number]
        return [
            Decision(
                row=row.number,
                outcome="group",
                group=group,
                lo=tuple(lo for lo, _ in sides),
                hi=tuple(hi for _, hi in sides),
                loss=self.space.loss(box),
                n_subjects=n_subjects(rows),
                published=when[0],
                published_s=when[1],
            )
            for row in by_arrival(rows)
        ]

    def suppressed(self, row: Row, when: When) -> list[Decision]:
        """Publish nothing of a row."""
        del self.held[row.number]
        return [Decision(row.number, "suppressed", None, None, None, 1.0, 0, *when)]
