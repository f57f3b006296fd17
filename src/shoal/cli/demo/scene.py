"""What the demo shows: some rows followed from their arrival to the box they leave in.

The threads of a run tell a `Watcher` what happens; whoever draws asks it for a `Scene`.
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

#: How many followed rows and cards are remembered: more than any terminal has lines.
REMEMBERED = 128
#: How often in a second a row is picked out to be followed: as fast as one can read.
FOLLOWED_PER_SECOND = 2.5
#: How often in a second the curves get a new point, and how many points there are.
POINTS_PER_SECOND, POINTS = 4, 240


@dataclass(frozen=True, slots=True, repr=False)
class Followed:
    """A row that is followed: its number on the screen, its values, and what became of it."""

    number: int
    values: tuple[str, ...]
    hue: int | None = None
    """That of the card it left in; None while it is held, and if it was suppressed."""
    decided_at: float | None = None
    """When, in seconds from the beginning."""


@dataclass(frozen=True, slots=True, repr=False)
class Card:
    """A group in which at least one followed row left, as anybody can see it."""

    hue: int
    """A running number, from which the colour follows."""
    box: tuple[str, ...]
    sensitive: tuple[str, ...]
    """The different sensitive values of the rows that left with it; none for a reuse."""
    n_subjects: int | None
    """How many people left in the group; None if the row joined a group that was out already."""
    numbers: tuple[int, ...]
    shown_at: float = 0.0


class Figures(NamedTuple):
    """How a run stands."""

    n_in: int = 0
    n_published: int = 0
    n_suppressed: int = 0
    n_held: int = 0
    n_groups: int = 0
    smallest: int | None = None
    """The fewest subjects that a group had."""
    loss: float | None = None
    waited_rows: float | None = None
    """How long published rows were held, on average."""


NO_FIGURES = Figures()


@dataclass(frozen=True, slots=True, repr=False)
class Scene:
    """One moment of the demo; newest followed rows and cards last."""

    elapsed: float
    figures: Figures = NO_FIGURES
    rows_per_second: float = 0.0
    came: tuple[Followed, ...] = ()
    cards: tuple[Card, ...] = ()
    losses: tuple[float, ...] = ()
    """The loss of what was published lately, quarter of a second by quarter of a second."""
    groups: tuple[int, ...] = ()
    """How many groups were published, likewise."""


@dataclass(slots=True)
class _Curves:
    """What happened in the current quarter of a second, and in those before."""

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
    """Remember what is worth showing. Its methods are called from the threads of a run.

    Parameters
    ----------
    schema
        Which columns are public.
    rate
        How many rows come in a second.
    clock
        Tells the time in seconds; the demo begins now.
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
        """The latest followed row that left in a group whose people are known, and it."""

    def _now(self) -> float:
        return self._clock() - self._begin

    def came(self, batch: pa.RecordBatch, first: int) -> None:
        """Rows arrive, of which the first is row ``first`` of the input."""
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
        """A batch was decided on."""
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
        """Lines of the trace were written; the release of the same rows comes next."""
        self._lines = lines

    def released(self, release: Release) -> None:
        """A release was written: look whom of the followed rows it has."""
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
        """The card of the group that a followed row, line ``i`` of the trace, left in."""
        if group in self._cards:
            card = self._cards[group]
            return replace(card, numbers=(*card.numbers, number))
        hue, self._n_cards = self._n_cards, self._n_cards + 1
        at = lines.column("seq")[i].as_py() - release.first
        box = tuple(str(release.batch.column(name)[at]) for name in self._quasi)
        if str(lines.column("outcome")[i]) == "reuse":
            return Card(hue, box, (), None, (number,))
        # A reuse may join a group in the very release that the group leaves in.
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
        """This moment."""
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
