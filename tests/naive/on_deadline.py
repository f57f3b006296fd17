"""What the twins of FADS, FAST, IDEA, K-VARP and IoT share: rows are decided at their deadline.

A row at its deadline joins a group that was published before, or a group is formed around it, or
it is suppressed. The algorithms differ in how the group is formed. Numbered deviations
(``docs/deviations.md``) are flags: all on is what Shoal does, one off is the papers in that point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from shoal.engine.kernels import rng
from shoal.spec.hierarchy import Domain
from tests.naive.criteria import Promise
from tests.naive.recent_rows import Measure, RecentRows
from tests.naive.space import Box, Row, Space, by_arrival, covers, gaps_of, n_subjects

__all__ = ["Decision", "Deviations", "Group", "NaiveOnDeadline"]


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves the papers: on-deadline-1 to on-deadline-5, in this order."""

    deadlines_by_position: bool = True
    groups_count_people: bool = True
    groups_are_diverse: bool = True
    reuse_is_checked: bool = True
    end_takes_the_rest: bool = True


@dataclass(frozen=True)
class Decision:
    """The decision about one row.

    An empty side of the box is None in both ``lo`` and ``hi``. ``loss`` is that of the row, over
    the attributes it has; ``box_loss`` that of the box. ``n_subjects`` counts the group at its
    release, without the rows that reused it since. Group and box are None, ``n_subjects`` is 0 and
    both losses are 1 for a suppressed row. ``window`` is the one that the group was measured
    against, by how many rows had come; None if nothing is measured.
    """

    row: int
    outcome: str
    group: int | None
    lo: tuple[float | None, ...] | None
    hi: tuple[float | None, ...] | None
    loss: float
    box_loss: float
    n_subjects: int
    published: int
    published_s: float | None
    instant: int
    window: int | None = None


@dataclass(eq=False)
class Group:
    """A group; ``members`` is empty unless a further row could break the promise.

    ``since`` is the row count or the round from which its age counts; ``number`` is -1 until it is
    published.
    """

    box: Box
    loss: float
    n_subjects: int
    since: int
    number: int = -1
    members: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Placed:
    """What was found for a row: a kept group to join, or a new one with its rows.

    ``company`` are other rows that join kept groups at the same instant.
    """

    outcome: str
    group: Group
    rows: list[Row]
    company: list[Placed] = field(default_factory=list)


#: When a decision falls: the number of the row that caused it, and the second.
When = tuple[int, float | None]


class NaiveOnDeadline:
    """One run of an algorithm of this family; a subclass says how a group is formed.

    ``age`` is the maximum age of a kept group, in rows or in rounds by ``age_unit``; None: there is
    none. ``capacity`` is how many rows are held at most (0: any number).
    """

    deviations: Deviations

    def __init__(
        self,
        domains: Sequence[Domain],
        weights: Sequence[float],
        *,
        k: int,
        l_needed: Sequence[int] = (),
        entropy: Sequence[float] = (),
        recursive: Sequence[tuple[float, int]] = (),
        measures: Sequence[Measure] = (),
        window: int = 0,
        delay_rows: int | None = None,
        delay_seconds: float | None = None,
        capacity: int = 0,
        kept: int = 1000,
        age: int | None = None,
        age_unit: str = "rows",
        reuse: str = "random",
        joins: str = "together",
        loss: str = "glm",
        missing: str = "quarantine",
        seed: bytes = b"",
        deviations: Deviations | None = None,
    ) -> None:
        self.space = Space(domains, weights, loss, missing)
        self.promise = Promise(k, l_needed, entropy, recursive)
        self.latest = RecentRows(measures, window)
        if capacity and delay_rows is None and delay_seconds is None:
            delay_rows = 16 * capacity
        self.delay_rows, self.delay_seconds, self.capacity = delay_rows, delay_seconds, capacity
        self.age_unit = age_unit
        self.max_kept, self.age, self.reuse, self.joins = kept, age, reuse, joins
        self.deviations = deviations or self.all_deviations()
        self.random = rng.seeded(seed, "decide")
        self.held: dict[int, Row] = {}
        self.kept: list[Group] = []
        self.n_rows = 0
        self.n_groups = 0
        self.instant = 0
        self.clock: float | None = None
        self.arrived: float | None = None

    @staticmethod
    def all_deviations() -> Deviations:
        """What Shoal does."""
        return Deviations()

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
        arrived = self.arrived if timed else None
        row = Row(
            number, self.space.row_box(values), subject, tuple(sensitive), arrived, gaps_of(values)
        )
        self.n_rows += 1
        self.held[number] = row
        self.latest.took_in(row)
        self.took_in(row)
        decisions += self.after_arrival((number, self.clock if timed else None))
        # A tick may be later than the time of a row, which is then overdue when it arrives.
        return decisions + self._overdue(published=number)

    def advance(self, now: float) -> list[Decision]:
        """Decide what is due in seconds, though no row arrives."""
        self.clock = now if self.clock is None else max(self.clock, now)
        return self._overdue(published=self.n_rows)

    def flush(self) -> list[Decision]:
        """Decide everything that is held: the stream has ended."""
        decisions = list(chain.from_iterable(self.end()))
        self.instant += 1
        return decisions

    def end(self) -> Iterator[list[Decision]]:
        """End the stream, step by step; all steps are one instant."""
        while self.held:
            yield self.expire(self.oldest, (self.n_rows, self.clock), at_end=True)

    # -- when rows are due -----------------------------------------------------------------------

    @property
    def oldest(self) -> Row:
        return next(iter(self.held.values()))

    def took_in(self, row: Row) -> None:
        """Hook for subclasses: a row has arrived."""

    def after_arrival(self, when: When) -> list[Decision]:
        """Decide the row that is due because another one has arrived."""
        return self.due(self.oldest, when) if self.is_due_by(when[0]) else []

    def is_due_by(self, number: int) -> bool:
        """Whether the oldest row is due because another one has arrived."""
        if self.is_full:
            return True
        if self.delay_rows is None:
            return False
        if not self.deviations.deadlines_by_position:
            return len(self.held) >= self.delay_rows  # IDEA, Algorithm 1, line 6
        return number - self.delay_rows in self.held

    @property
    def is_full(self) -> bool:
        """Whether more rows are held than there is room for."""
        return 0 < self.capacity < len(self.held)

    def _overdue(self, *, published: int) -> list[Decision]:
        decisions: list[Decision] = []
        while self.delay_seconds is not None and self.clock is not None and self.held:
            assert self.oldest.time is not None
            deadline = self.oldest.time + self.delay_seconds
            if deadline > self.clock:
                break
            decisions += self.due(self.oldest, (published, deadline))
        return decisions

    def due(self, t: Row, when: When) -> list[Decision]:
        """Decide a row at its deadline before the end: a separate instant."""
        decisions = self.expire(t, when)
        self.instant += 1
        return decisions

    def expire(self, t: Row, when: When, *, at_end: bool = False) -> list[Decision]:
        """Decide the row t, now."""
        placed = self.place(
            t, self.kept, lambda: self.rest(at_end) or self.form(t), when, self.draw
        )
        return self.suppress(t, when) if placed is None else self.publish(placed, when)

    def draw(self, n: int) -> int:
        """A random number from 0 to n - 1."""
        return int(rng.below(self.random, n))

    # -- how a row is placed ---------------------------------------------------------------------

    def place(
        self,
        t: Row,
        kept: Sequence[Group],
        form: Callable[[], list[Row] | None],
        when: When,
        draw: Callable[[int], int],
        *,
        no_joins: bool = False,
    ) -> Placed | None:
        """Find a group for t: a kept one, or one that is formed; None if there is neither.

        With ``no_joins`` also None if t is to join a kept group in company.
        """
        together = self.joins == "together"
        covering = [group for group in kept if self.can_join(t, group, when)]
        if covering and self.reuse == "random":
            if no_joins and together:
                return None
            joined = self.joined(t, kept, when, draw, "enough" if together else "alone")
            if joined is not None:
                return joined
        rows = form()
        new = None if rows is None else self.new_group(rows, when)
        loss = math.inf if new is None else new.loss
        if self.reuse == "best" and any(group.loss < loss for group in covering):
            if together and no_joins:
                return None
            joined = self.joined(t, kept, when, draw, "enough" if together else "alone", loss)
            if joined is not None:
                return joined
        if new is not None and rows is not None:
            return Placed("group", new, by_arrival(rows))
        if together and not no_joins:
            return self.joined(t, kept, when, draw, "any")
        return None

    def joined(
        self,
        t: Row,
        kept: Sequence[Group],
        when: When,
        draw: Callable[[int], int],
        least: str,
        loss: float = math.inf,
    ) -> Placed | None:
        """Find a kept group for t, and others who join at the same instant, by ``least``.

        Nobody ("alone"), enough to be a group ("enough"), or as many as there are ("any").
        """
        found: list[Placed] = []
        alone = least == "alone"
        enough = 1 if alone else self.promise.people
        others = [] if alone else [row for row in self.held.values() if row is not t]
        for row in [t, *others]:
            if any(row.subject == placed.rows[0].subject for placed in found):
                continue
            group = self._kept_group_of(row, kept, found, when, draw, math.inf if found else loss)
            if group is None and row is t:
                return None
            if group is None:
                continue
            found.append(Placed("reuse", group, [row]))
            if len(found) == enough:
                if alone or self.meets([placed.rows[0] for placed in found]):
                    return Placed("reuse", found[0].group, [t], found[1:])
                enough += max(1, len(found) // 8)
        return Placed("reuse", found[0].group, [t], found[1:]) if least == "any" else None

    def _kept_group_of(
        self,
        row: Row,
        kept: Sequence[Group],
        found: Sequence[Placed],
        when: When,
        draw: Callable[[int], int],
        loss: float,
    ) -> Group | None:
        """The kept group that a row joins, after those that were found before."""
        covering = [
            group
            for group in kept
            if self.can_join(row, group, when, [p.rows[0] for p in found if p.group is group])
        ]
        if self.reuse == "random":
            return covering[draw(len(covering))] if covering else None
        better = [group for group in covering if group.loss < loss]
        return min(better, key=lambda group: group.loss, default=None)  # the oldest of equals

    def can_join(self, t: Row, group: Group, when: When, others: Sequence[Row] = ()) -> bool:
        """Whether a kept group covers t, and keeps the promise with it and with others."""
        if self.age is not None and self.moment(when) - group.since > self.age:
            return False
        if not covers(group.box, t.box):
            return False
        if not (self.can_break and self.deviations.reuse_is_checked):
            return True
        members = [*group.members, *others]
        return len(members) < self._room and self.meets([*members, t])

    def moment(self, when: When) -> int:
        """By what groups get older: the rows that have arrived, or the rounds so far."""
        return self.instant if self.age_unit == "rounds" else when[0]

    @property
    def _room(self) -> int:
        """How many members a kept group may have where they must be remembered."""
        return max(4 * self.promise.people, 64 if self.latest.measures else 0)

    def form(self, t: Row) -> list[Row] | None:
        """The rows of a new group around t, or None."""
        raise NotImplementedError

    def rest(self, at_end: bool) -> list[Row] | None:
        """All held rows, where the stream ends and they can't make two groups, but one."""
        everything = list(self.held.values())
        if (
            at_end
            and self.deviations.end_takes_the_rest
            and n_subjects(everything) < 2 * self.promise.people
            and self.meets(everything)
        ):
            return everything
        return None

    def group_among(
        self, t: Row, rows: Iterable[Row], distance: Callable[[Row, Row], float]
    ) -> list[Row] | None:
        """The group of t: with its nearest others, as few as keep the promise."""
        near = self.candidates(t, rows, distance)
        if len(near) < self.promise.people - 1:
            return self.too_few([t, *near])
        group = [t, *near[: self.promise.people - 1]]
        while self._must_grow(group):
            if len(group) > len(near):
                return None
            further = max(1, len(group) // 8)
            group = [t, *near[: len(group) - 1 + further]]
        return group

    def candidates(
        self, t: Row, rows: Iterable[Row], distance: Callable[[Row, Row], float]
    ) -> list[Row]:
        """The rows that can join t, nearest first: one of each other subject."""
        near = sorted(
            (row for row in rows if row is not t), key=lambda row: (distance(t, row), row.number)
        )
        if not self.deviations.groups_count_people:
            return near
        first: dict[Hashable, Row] = {}
        for row in near:
            first.setdefault(row.subject, row)
        first.pop(t.subject, None)
        return list(first.values())

    def too_few(self, rows: list[Row]) -> list[Row] | None:
        """The group where fewer rows can be had than it needs: none."""
        return None

    def _must_grow(self, group: Sequence[Row]) -> bool:
        asked = self.promise.is_diverse or bool(self.latest.measures)
        return asked and self.deviations.groups_are_diverse and not self.meets(group)

    def meets(self, rows: Sequence[Row]) -> bool:
        return n_subjects(rows) >= self.promise.k and self.diverse(rows)

    def diverse(self, rows: Sequence[Row]) -> bool:
        """Whether all holds that is promised about sensitive values."""
        return self.promise.diverse(rows) and self.latest.holds(rows)

    @property
    def can_break(self) -> bool:
        """Whether a further row may break what held."""
        return self.promise.can_break or bool(self.latest.measures)

    def new_group(self, rows: Sequence[Row], when: When) -> Group:
        box = self.space.public(self.space.box(rows))
        return Group(box, self.space.loss(box), n_subjects(rows), since=self.moment(when))

    # -- what becomes of it ----------------------------------------------------------------------

    def publish(self, placed: Placed, when: When) -> list[Decision]:
        """Publish what was found, and keep it for others where it is good."""
        group = placed.group
        if placed.outcome == "group":
            group.number = self.n_groups
            self.n_groups += 1
            self.keep(group, placed.rows)
        elif group.members:
            group.members += placed.rows
        for row in placed.rows:
            del self.held[row.number]
        decisions = [self._published(row, placed.outcome, group, when) for row in placed.rows]
        return decisions + [d for other in placed.company for d in self.publish(other, when)]

    def is_good(self, group: Group) -> bool:
        """Whether a group is worth being kept."""
        return True

    def keep(self, group: Group, rows: Sequence[Row]) -> None:
        if not self.is_good(group):
            return
        if self.can_break and self.deviations.reuse_is_checked:
            if len(rows) > self._room:
                return
            group.members = list(rows)
        self.kept.append(group)
        self.kept = self.kept[max(0, len(self.kept) - self.max_kept) :]

    def suppress(self, t: Row, when: When) -> list[Decision]:
        del self.held[t.number]
        return [
            Decision(t.number, "suppressed", None, None, None, 1.0, 1.0, 0, *when, self.instant)
        ]

    def _published(self, row: Row, outcome: str, group: Group, when: When) -> Decision:
        box = self.space.public(group.box)
        return Decision(
            row=row.number,
            outcome=outcome,
            group=group.number,
            lo=tuple(None if side is None else side[0] for side in box),
            hi=tuple(None if side is None else side[1] for side in box),
            loss=self.space.loss_of_row(box, row.gaps),
            box_loss=self.space.loss(box),
            n_subjects=group.n_subjects,
            published=when[0],
            published_s=when[1],
            instant=self.instant,
            window=self.latest.number,
        )
