"""What the demo shows: some rows, followed from their arrival to the box they leave in.

The threads of a run report to a `Watcher`, and the view reads a `Scene` from it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow.release import Release
from shoal.metrics import Summary
from shoal.spec.schema import Schema

__all__ = ["Card", "Figures", "Followed", "Scene", "Watcher"]

#: The most followed rows and cards that are kept: more than any terminal has lines.
REMEMBERED = 128
#: The rows per second that are followed: as fast as one can read.
FOLLOWED_PER_SECOND = 2.5
#: The new points of a curve per second, and its length.
POINTS_PER_SECOND, POINTS = 4, 240


@dataclass(frozen=True, slots=True, repr=False)
class Followed:
    """A followed row: its number on the screen, its values, and its decision."""

    number: int
    values: tuple[str, ...]
    hue: int | None = None
    """That of its card; None while it is held, and if it was suppressed."""
    decided_at: float | None = None
    """In seconds from the beginning."""


@dataclass(frozen=True, slots=True, repr=False)
class Card:
    """The published view of a group that has a followed row."""

    hue: int
    """A serial number, which selects the colour."""
    box: tuple[str, ...]
    sensitive: tuple[str, ...]
    """The different sensitive values of the group; none for a reuse."""
    n_subjects: int | None
    """The number of people in the group; None if the row joined a published group."""
    numbers: tuple[int, ...]
    shown_at: float = 0.0


class Figures(NamedTuple):
    """The figures of a run."""

    n_in: int = 0
    n_published: int = 0
    n_suppressed: int = 0
    n_held: int = 0
    n_groups: int = 0
    smallest: int | None = None
    """The least number of subjects of a group."""
    loss: float | None = None
    waited_rows: float | None = None
    """The mean delay of published rows, in rows."""


NO_FIGURES = Figures()


@dataclass(frozen=True, slots=True, repr=False)
class Scene:
    """One moment of the demo; the newest rows and cards are last."""

    elapsed: float
    figures: Figures = NO_FIGURES
    rows_per_second: float = 0.0
    came: tuple[Followed, ...] = ()
    cards: tuple[Card, ...] = ()
    losses: tuple[float, ...] = ()
    """The loss of published rows, for each of the last quarters of a second."""
    groups: tuple[int, ...] = ()
    """The number of published groups, likewise."""


@dataclass(slots=True)
class _Curves:
    """Sums of the current quarter of a second, and the points of those before."""

    begin: float = 0.0
    losses: deque[float] = field(default_factory=lambda: deque(maxlen=POINTS))
    groups: deque[int] = field(default_factory=lambda: deque(maxlen=POINTS))
    loss_sum: float = 0.0
    n_rows: int = 0
    n_groups: int = 0

    def advance(self, now: float) -> None:
        while now >= self.begin + 1 / POINTS_PER_SECOND:
            if self.n_rows:
                self.losses.append(self.loss_sum / self.n_rows)
            elif self.losses:
                self.losses.append(self.losses[-1])
            if self.losses:
                self.groups.append(self.n_groups)
            self.loss_sum, self.n_rows, self.n_groups = 0.0, 0, 0
            self.begin += 1 / POINTS_PER_SECOND


class Watcher:
    """Collect what the view shows. Its methods are called by the threads of a run.

    Parameters
    ----------
    schema
        The columns.
    rate
        Rows per second.
    clock
        Returns the time in seconds; the demo begins now.
    """

    def __init__(
        self, schema: Schema, rate: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._quasi = tuple(attribute.name for attribute in schema.quasi)
        self._sensitive = schema.sensitive[0].name
        self._every = max(1, round(rate / FOLLOWED_PER_SECOND))
        self._clock = clock
        self._begin = clock()
        self._lock = Lock()
        self._figures = NO_FIGURES
        self._arrivals: deque[tuple[float, int]] = deque([(0.0, 0)])
        self._came: dict[int, Followed] = {}
        self._held: dict[int, Followed] = {}
        self._cards: dict[int, Card] = {}
        self._n_cards = 0
        self._curves = _Curves()
        self._lines: pa.RecordBatch | None = None
        self.example: tuple[Followed, Card] | None = None
        """The latest followed row that left in a group of its own release, and its card."""

    def _now(self) -> float:
        return self._clock() - self._begin

    def came(self, batch: pa.RecordBatch, first: int) -> None:
        """Take arriving rows; the first is row ``first`` of the input."""
        offset = -first % self._every
        with self._lock:
            for i in range(offset, batch.num_rows, self._every):
                values = tuple(
                    str(batch.column(name)[i]) for name in (*self._quasi, self._sensitive)
                )
                row = first + i
                followed = Followed(row // self._every + 1, values)
                self._came[row] = self._held[row] = followed
            while len(self._came) > REMEMBERED:
                del self._came[next(iter(self._came))]

    def counted(self, summary: Summary) -> None:
        """Take the figures after a batch."""
        smallest = summary.groups.subjects.least
        figures = Figures(
            summary.n_in,
            summary.n_published,
            summary.suppression.count,
            summary.n_held,
            summary.groups.count,
            None if smallest is None else int(smallest),
            summary.loss.published,
            summary.delay.rows.mean,
        )
        now = self._now()
        with self._lock:
            self._curves.advance(now)
            self._curves.n_groups += figures.n_groups - self._figures.n_groups
            self._figures = figures
            self._arrivals.append((now, figures.n_in))
            # The rate is that of the last second.
            while now - self._arrivals[1][0] > 1.0:
                self._arrivals.popleft()

    def traced(self, lines: pa.RecordBatch) -> None:
        """Take lines of the trace; the release of the same rows comes next."""
        self._lines = lines

    def released(self, release: Release) -> None:
        """Take a release, and find the followed rows in it."""
        lines = self._lines
        if lines is None:
            return
        row = np.asarray(lines.column("row"))
        now = self._now()
        with self._lock:
            loss = np.asarray(lines.column("loss"))
            self._curves.advance(now)
            self._curves.loss_sum += float(loss.sum())
            self._curves.n_rows += len(loss)
            for i in np.flatnonzero(np.isin(row, list(self._held))):
                followed = self._held.pop(int(row[i]))
                group = lines.column("group")[i].as_py()
                if group is not None:
                    card = self._card(int(i), group, followed.number, lines, release)
                    followed = replace(followed, hue=card.hue)
                    if card.n_subjects is not None:
                        self.example = followed, card
                    # The newest card is the last one.
                    self._cards.pop(group, None)
                    self._cards[group] = replace(card, shown_at=now)
                if int(row[i]) in self._came:
                    self._came[int(row[i])] = replace(followed, decided_at=now)
            while len(self._cards) > REMEMBERED:
                del self._cards[next(iter(self._cards))]

    def _card(
        self, i: int, group: int, number: int, lines: pa.RecordBatch, release: Release
    ) -> Card:
        """Return the card for the group of a followed row, which is line ``i`` of the trace."""
        if group in self._cards:
            card = self._cards[group]
            return replace(card, numbers=(*card.numbers, number))
        hue, self._n_cards = self._n_cards, self._n_cards + 1
        at = lines.column("seq")[i].as_py() - release.first
        box = tuple(str(release.batch.column(name)[at]) for name in self._quasi)
        if str(lines.column("outcome")[i]) == "reuse":
            return Card(hue, box, (), None, (number,))
        # A reuse may join a group in the same release in which the group leaves.
        is_member = pc.and_(
            pc.equal(lines.column("group"), group), pc.equal(lines.column("outcome"), "group")
        )
        members = lines.filter(is_member)
        places = np.asarray(members.column("seq")) - release.first
        sensitive = release.batch.column(self._sensitive).take(pa.array(places))
        return Card(
            hue,
            box,
            tuple(sorted(map(str, sensitive.unique()))),
            len(members.column("subject").unique()),
            (number,),
        )

    def scene(self) -> Scene:
        """Return the current scene."""
        now = self._now()
        with self._lock:
            self._curves.advance(now)
            (since, n_before), (until, n_now) = self._arrivals[0], self._arrivals[-1]
            return Scene(
                now,
                self._figures,
                (n_now - n_before) / (until - since) if until > since else 0.0,
                tuple(self._came.values()),
                tuple(self._cards.values()),
                tuple(self._curves.losses),
                tuple(self._curves.groups),
            )
