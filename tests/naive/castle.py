"""CASTLE, slowly: J. Cao's thesis (NUS, 2010), chapter 5, as literally as it can be read.

This is the executable specification of ``shoal.algorithms.castle``. Functions bear the names of
the paper's, numbers in comments are the paper's lines. Where the paper is wrong, unclear or unsafe
there is a numbered deviation (``docs/deviations.md``), each a flag: all on is what Shoal does, one
off is the paper in that point. Boxes are computed from the rows whenever they are needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from shoal.engine.kernels import rng
from shoal.spec.hierarchy import Domain
from tests.naive.castle_split import Deviations, Split
from tests.naive.criteria import Promise
from tests.naive.recent_rows import Measure, RecentRows
from tests.naive.space import Box, Row, Space, by_arrival, covers, n_subjects, total

__all__ = ["Decision", "Deviations", "NaiveCastle"]


@dataclass(frozen=True)
class Decision:
    """The decision about one row.

    ``n_subjects`` counts the group at its release, without the rows that reused it since. Group
    and box are None, ``n_subjects`` is 0 and the loss is 1 for a suppressed row. ``window`` is the
    one that the group was measured against, by how many rows had come; None if nothing is measured.
    """

    row: int
    outcome: str
    group: int | None
    lo: tuple[float, ...] | None
    hi: tuple[float, ...] | None
    loss: float
    n_subjects: int
    published: int
    published_s: float | None
    window: int | None = None


@dataclass(eq=False)
class Cluster:
    """An open cluster: rows that are held together, in order of arrival."""

    rows: list[Row]


@dataclass(eq=False)
class Group:
    """A published group; ``members`` is empty unless a further row could break the promise."""

    number: int
    box: Box
    loss: float
    n_subjects: int
    members: list[Row] = field(default_factory=list)


#: When a decision falls: the number of the row that caused it, and the second.
When = tuple[int, float | None]


class NaiveCastle:
    """One run of CASTLE; for the parameters see ``shoal.algorithms.castle.Castle``."""

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
        clusters: int = 50,
        recent: int = 100,
        kept: int = 1000,
        reuse: str = "random",
        joins: str = "together",
        loss: str = "glm",
        seed: bytes = b"",
        deviations: Deviations | None = None,
    ) -> None:
        self.space = Space(domains, weights, loss)
        self.promise = Promise(k, l_needed, entropy, recursive)
        self.latest = RecentRows(measures, window)
        self.delay_rows, self.delay_seconds = delay_rows, delay_seconds
        self.max_clusters, self.n_recent, self.max_kept = clusters, recent, kept
        self.reuse, self.joins = reuse, joins
        self.deviations = deviations or Deviations()
        self.random = rng.seeded(seed, "decide")
        self.split = Split(self.space, self.promise, self.deviations, self.draw)
        self.held: dict[int, Row] = {}
        self.open: list[Cluster] = []
        self.kept: list[Group] = []
        self.recent: list[float] = []
        self.tau = 0.0
        self.n_rows = 0
        self.n_groups = 0
        self.clock: float | None = None
        self.arrived: float | None = None

    # -- the three verbs -------------------------------------------------------------------------

    def push(
        self,
        values: Sequence[float],
        subject: Hashable,
        sensitive: Sequence[Hashable] = (),
        time: float | None = None,
    ) -> list[Decision]:
        """Take one row (Algorithm CASTLE, lines 5 to 13)."""
        if time is not None:
            self.clock = time if self.clock is None else max(self.clock, time)
            self.arrived = time if self.arrived is None else max(self.arrived, time)
        number = self.n_rows
        decisions = self._overdue(self.clock, published=number)
        x = Row(number, self.space.row_box(values), subject, tuple(sensitive), self.arrived)
        self.n_rows += 1
        self.held[number] = x
        self.latest.took_in(x)
        cluster = self.best_selection(x)  # 6
        if cluster is None:  # 7
            self.open.append(Cluster([x]))  # 8
        else:
            cluster.rows.append(x)  # 10
        if (
            self.delay_rows is not None
            and number - self.delay_rows in self.held  # 11, 12
            and (cluster is not None or self.deviations.every_row_expires)
        ):
            old = self.held[number - self.delay_rows]
            decisions += self.delay_constraint(old, (number, self.clock))  # 13
        # A tick may be later than the time of a row, which is then overdue when it arrives.
        return decisions + self._overdue(self.clock, published=number)

    def advance(self, now: float) -> list[Decision]:
        """Decide what is due in seconds, though no row arrives."""
        self.clock = now if self.clock is None else max(self.clock, now)
        return self._overdue(self.clock, published=self.n_rows)

    def _overdue(self, now: float | None, *, published: int) -> list[Decision]:
        decisions: list[Decision] = []
        while self.delay_seconds is not None and now is not None and self.held:
            oldest = next(iter(self.held.values()))
            assert oldest.time is not None
            deadline = oldest.time + self.delay_seconds
            if deadline > now:
                break
            decisions += self.delay_constraint(oldest, (published, deadline))
        return decisions

    def flush(self) -> list[Decision]:
        """Decide everything that is held: the stream has ended."""
        when = (self.n_rows, self.clock)
        if not self.deviations.end_keeps_the_promise:
            return self._end_of_the_experiments(when)
        decisions: list[Decision] = []
        while self.held:
            oldest = next(iter(self.held.values()))
            decisions += self.delay_constraint(oldest, when, at_end=True)
        return decisions

    def _end_of_the_experiments(self, when: When) -> list[Decision]:
        """Section 5.7.3: full clusters, then reuse, then all the rest as one cluster."""
        decisions: list[Decision] = []
        for cluster in list(self.open):
            if self.meets(cluster.rows):
                decisions += self.output_cluster([cluster], when)
        for x in list(self.held.values()):
            decisions += self._reuse(x, when)
        if self.held:
            decisions += self.output_cluster(list(self.open), when)
        return decisions

    def draw(self, n: int) -> int:
        """A random number from 0 to n - 1."""
        return int(rng.below(self.random, n))

    # -- the promise -----------------------------------------------------------------------------

    def diverse(self, rows: Sequence[Row]) -> bool:
        by_people = self.deviations.diversity_counts_people
        return self.promise.diverse(rows, by_people=by_people) and self.latest.holds(rows)

    @property
    def can_break(self) -> bool:
        """Whether a further row may break what held."""
        return self.promise.can_break or bool(self.latest.measures)

    def meets(self, rows: Sequence[Row]) -> bool:
        return n_subjects(rows) >= self.promise.k and self.diverse(rows)

    # -- the paper's functions -------------------------------------------------------------------

    def best_selection(self, x: Row) -> Cluster | None:
        """The open cluster that x goes to, or None for a new one."""
        if not self.open:
            return None
        boxes = [self.space.box(cluster.rows) for cluster in self.open]
        grown = [self.space.loss(self.space.join([box, x.box])) for box in boxes]
        enlargements = [g - self.space.loss(b) for g, b in zip(grown, boxes, strict=True)]  # 2-4
        least = min(enlargements)  # 5
        nearest = [i for i, e in enumerate(enlargements) if e == least]  # 6
        good = [i for i in nearest if grown[i] <= self.tau]  # 7-10
        if not good:  # 11
            if len(self.open) < self.max_clusters:  # 12
                return None  # 15
            good = nearest  # 13
        # min takes the first of equals, and clusters are in order of birth
        return self.open[min(good, key=lambda i: n_subjects(self.open[i].rows))]  # 17

    def delay_constraint(self, x: Row, when: When, *, at_end: bool = False) -> list[Decision]:
        """Decide the row x, now."""
        cluster = next(c for c in self.open if x in c.rows)  # 1
        if self.meets(cluster.rows):  # 2
            merged = [cluster]
        else:
            together = self.joins == "together" and self.deviations.joins_have_company
            reused = self._reuse(x, when, "enough" if together else "alone")  # 5-9
            if reused:
                return reused
            found = self.merge_clusters(cluster) if self._may_merge() else None  # 10, 13
            if found is None and together:
                reused = self._reuse(x, when, "any")
            if reused:
                return reused
            if found is None:
                self._decided(x)
                published, published_s = when
                return [
                    Decision(
                        x.number, "suppressed", None, None, None, 1.0, 0, published, published_s
                    )
                ]  # 11, 12
            merged = found
        if at_end:
            merged = self._with_the_rest(merged)
        return self.output_cluster(merged, when)  # 3, 14

    def _reuse(self, x: Row, when: When, least: str = "alone") -> list[Decision]:
        """Publish x in a kept group that covers it, and others with it: ``least`` says how many.

        Nobody ("alone"), enough to be a group ("enough"), or as many as there are ("any").
        """
        found: list[tuple[Row, Group]] = []
        alone = least == "alone"
        enough = 1 if alone else self.promise.people
        small = [cluster for cluster in self.open if not self.meets(cluster.rows)]
        candidates = [x] if alone else by_arrival(row for cluster in small for row in cluster.rows)
        for row in candidates:
            if any(row.subject == other.subject for other, _ in found):
                continue
            group = self._kept_group_of(row, found)
            if group is None and not found:
                return []
            if group is None:
                continue
            found.append((row, group))
            if len(found) == enough:
                if alone or self.meets([row for row, _ in found]):
                    return self._join(found, when)
                enough += max(1, len(found) // 8)
        return self._join(found, when) if least == "any" else []

    def _join(self, found: Sequence[tuple[Row, Group]], when: When) -> list[Decision]:
        for row, group in found:
            if group.members:
                group.members.append(row)
            self._decided(row)
        return [self._published(row, "reuse", group, when) for row, group in found]

    def _kept_group_of(self, x: Row, found: Sequence[tuple[Row, Group]]) -> Group | None:
        """The kept group that x joins, after those that were found before."""
        covering = [
            group
            for group in self.kept
            if self._can_join(x, group, [row for row, joined in found if joined is group])
        ]
        if self.reuse == "best":
            return min(covering, key=lambda g: g.loss, default=None)
        return covering[self.draw(len(covering))] if covering else None

    def _can_join(self, x: Row, group: Group, others: Sequence[Row]) -> bool:
        if not covers(group.box, x.box):
            return False
        if not (self.can_break and self.deviations.reuse_is_checked):
            return True
        members = [*group.members, *others]
        return len(members) < self._room and self.meets([*members, x])

    @property
    def _room(self) -> int:
        """How many members a kept group may have where they must be remembered."""
        return max(4 * self.promise.people, 64 if self.latest.measures else 0)

    def _decided(self, x: Row) -> None:
        """Remove a row that was decided alone from its cluster."""
        del self.held[x.number]
        if self.deviations.decided_rows_leave:
            for cluster in self.open:
                cluster.rows = [row for row in cluster.rows if row is not x]
            self.open = [cluster for cluster in self.open if cluster.rows]

    def _may_merge(self) -> bool:
        """Line 10 of delayConstraint, as section 5.5.2 extends it, where merging relies on it."""
        everything = [row for cluster in self.open for row in cluster.rows]
        return self.deviations.merges_reach_diversity or self.diverse(everything)

    def merge_clusters(self, cluster: Cluster) -> list[Cluster] | None:
        """Add the nearest open cluster until there is enough; None if there never is."""
        merged = [cluster]
        others = [other for other in self.open if other is not cluster]
        while not self._is_enough(merged):
            if not others:
                return None
            box = self.space.box(row for c in merged for row in c.rows)
            nearest = min(others, key=lambda c: self.space.enlargement(box, self.space.box(c.rows)))
            others.remove(nearest)
            merged.append(nearest)
        return merged

    def _is_enough(self, merged: Sequence[Cluster]) -> bool:
        rows = by_arrival(row for cluster in merged for row in cluster.rows)
        if self.deviations.merge_counts_people:
            people = n_subjects(rows)
        else:
            people = sum(n_subjects(cluster.rows) for cluster in merged)
        if people < self.promise.k:
            return False
        return self.diverse(rows) if self.deviations.merges_reach_diversity else True

    def _with_the_rest(self, merged: list[Cluster]) -> list[Cluster]:
        """At the end: take along what would otherwise be too little to be published."""
        rest = by_arrival(row for c in self.open if c not in merged for row in c.rows)
        everything = by_arrival(row for c in self.open for row in c.rows)
        if (
            rest
            and n_subjects(rest) < 16 * self.promise.people
            and not self.meets(rest)
            and self.meets(everything)
        ):
            return list(self.open)
        return merged

    def output_cluster(self, merged: Sequence[Cluster], when: When) -> list[Decision]:
        """Publish all rows of some clusters, split where there are enough of them."""
        rows = by_arrival(row for cluster in merged for row in cluster.rows)
        self.open = [cluster for cluster in self.open if cluster not in merged]  # 12
        parts = [rows]  # 4
        if n_subjects(rows) >= 2 * self.split.people:  # 1
            parts = self._parts(rows)  # 2
        for row in rows:
            self.held.pop(row.number, None)
        decisions: list[Decision] = []
        for part in parts:  # 5
            box = self.space.public(self.space.box(part))
            group = Group(self.n_groups, box, self.space.loss(box), n_subjects(part))
            self.n_groups += 1
            decisions += [self._published(row, "group", group, when) for row in part]  # 6
            self.recent = [*self.recent, group.loss][-self.n_recent :]
            self.tau = total(self.recent) / len(self.recent)  # 7
            self._keep(group, part)  # 8-11
        return decisions

    def _parts(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Split a cluster: plainly, or by values as §5.5.2 does where diversity is promised."""
        if not self.promise.is_diverse:
            return self._checked(self.split.split_k(rows, self.promise.k))
        if not self.deviations.plain_split_first:
            return self._checked(self.split.split_l(rows))
        plain = self.split.split_whole_subjects(rows)
        if all(self.meets(part) for part in plain):
            return plain
        mixed = self._checked(self.split.split_l(rows))
        plain = self._checked(plain)
        return min(plain, mixed, key=lambda parts: (self.split.loss(parts), -len(parts)))

    def _checked(self, parts: list[list[Row]]) -> list[list[Row]]:
        """Merge every part that breaks the promise into the part nearest to it."""
        while len(parts) > 1 and self.deviations.parts_are_checked:
            bad = next((part for part in parts if not self.meets(part)), None)
            if bad is None:
                break
            others = [part for part in parts if part is not bad]
            box = self.space.box(bad)
            nearest = min(others, key=lambda p: self.space.enlargement(box, self.space.box(p)))
            parts = [by_arrival([*p, *bad]) if p is nearest else p for p in others]
        return parts

    def _keep(self, group: Group, part: list[Row]) -> None:
        good = group.loss < self.tau
        if self.deviations.perfect_groups_are_kept:
            good = group.loss <= self.tau
        if good and self.can_break and self.deviations.reuse_is_checked:
            good = len(part) <= self._room
            group.members = list(part)
        if good:
            self.kept.append(group)
        if self.deviations.kept_is_bounded:
            self.kept = self.kept[max(0, len(self.kept) - self.max_kept) :]

    def _published(self, row: Row, outcome: str, group: Group, when: When) -> Decision:
        box = self.space.public(group.box)
        return Decision(
            row=row.number,
            outcome=outcome,
            group=group.number,
            lo=tuple(lo for lo, _ in box),
            hi=tuple(hi for _, hi in box),
            loss=self.space.loss(box),
            n_subjects=group.n_subjects,
            published=when[0],
            published_s=when[1],
            window=self.latest.number,
        )
