"""Whole tables, slowly: rows are held until the end, and parted then, measured against all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from shoal.spec.hierarchy import Domain
from tests.naive.measured import Promises
from tests.naive.on_deadline import Decision, Group, NaiveOnDeadline, Placed, When
from tests.naive.parts import Part, Partition
from tests.naive.space import Row, Space, by_arrival, n_subjects

__all__ = ["NaiveWholeTable"]

#: Makes a partition of a space, promises, and a source of random numbers.
Make = Callable[[Space, Promises, Callable[[int], int]], Partition]


class NaiveWholeTable(NaiveOnDeadline):
    """One run of an algorithm for whole tables, given how it parts rows.

    Nothing is kept and nothing is reused: only the verbs are those of the other twins.
    """

    def __init__(
        self,
        domains: Sequence[Domain],
        weights: Sequence[float],
        promises: Promises,
        make: Make,
        *,
        delay_seconds: float | None = None,
        loss: str = "glm",
        missing: str = "quarantine",
        seed: bytes = b"",
    ) -> None:
        super().__init__(
            domains, weights, k=promises.promise.k, delay_seconds=delay_seconds, kept=0,
            loss=loss, missing=missing, seed=seed,
        )  # fmt: skip
        self.promises = promises
        self.rows: list[Row] = []
        self.partition = make(self.space, promises, self.draw)

    def took_in(self, row: Row) -> None:
        self.rows.append(row)

    def after_arrival(self, when: When) -> list[Decision]:
        return []

    def end(self) -> Iterator[list[Decision]]:
        when, n = (self.n_rows, self.clock), self.n_rows
        pool = list(self.held.values())
        if pool:
            yield self.leave(self.partition(pool, self.rows), n, when)
        yield self.suppress_all(self.held.values(), when)

    def leave(self, parts: Sequence[Part], window: int, when: When) -> list[Decision]:
        """Publish parts as groups, in their order."""
        decisions: list[Decision] = []
        for part in parts:
            group = Group(part.box, self.space.loss(part.box), n_subjects(part.rows), since=when[0])
            placed = Placed("group", group, by_arrival(part.rows))
            decisions += [
                replace(decision, window=window if self.promises.measures else None)
                for decision in self.publish(placed, when)
            ]
        return decisions

    def suppress_all(self, rows: Iterable[Row], when: When) -> list[Decision]:
        """Suppress rows, in order of arrival."""
        return [decision for row in by_arrival(rows) for decision in self.suppress(row, when)]
