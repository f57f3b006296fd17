"""The R-tree family, slowly: Zhou et al. (EDBT 2009), sections 4.1 to 4.4.

Held rows are in leaves of an R-tree, and a leaf is published at random: the more likely the less it
loses (Algorithm 1), the longer it would wait for a split (section 4.2), and without rows that are
expected to lose less later (Algorithm 2). Numbered deviations (``docs/deviations.md``) are
flags: all on is what Shoal does, one off is the paper in that point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from shoal.engine.kernels import rng
from shoal.engine.waiting import MANY
from shoal.spec.hierarchy import Range
from tests.naive.castle import Decision
from tests.naive.chains import NaiveChains
from tests.naive.forcing import NaiveForcing, When
from tests.naive.rtree import Leaf, NaiveRTree, halves
from tests.naive.space import Row, by_arrival, covers, n_subjects, total

__all__ = ["Deviations", "NaiveTreeBasic", "NaiveTreeDensity", "NaiveTreeFull", "uniform"]


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves the paper: tree-1 to tree-6, in this order."""

    current: bool = True
    counted: bool = True
    not_itself: bool = True
    once: bool = True
    bounded: bool = True
    finite: bool = True


def uniform(random: Any) -> float:
    """A random number from 0 to less than 1, of 53 bits."""
    a, b = int(rng.word(random)) >> 5, int(rng.word(random)) >> 6
    return (a * 67108864 + b) / 9007199254740992.0


class NaiveTreeBasic(NaiveForcing):
    """One run of Algorithm 1.

    ``instant`` is how many seconds the paper's instant has (0: each row is one), ``clock`` the
    quasi attribute that is the time of arrival, if there is one. With ``due = "drawn"``, or without
    tree-1, the due time of a leaf is drawn once.
    """

    #: Over how many rows the mean gap between two of them is taken.
    remembered = 10_000

    def __init__(
        self,
        *args: Any,
        instant: float = 0.0,
        due: str = "current",
        clock: int | None = None,
        fan_out: int = 64,
        deviations: Deviations | None = None,
        **options: Any,
    ) -> None:
        self.deviations = deviations or Deviations()
        super().__init__(*args, bounded=self.deviations.bounded, **options)
        self.instant, self.time_side = instant, clock
        self.draws_once = due == "drawn" or not self.deviations.current
        self.people = self.promise.people
        self.tree = NaiveRTree(self.space, self.people, self.meets, fan_out)
        #: The deadline of a row's first holding, in instants.
        self.until: dict[int, float] = {}
        self.gap = 0.0
        self.before: float | None = None

    # -- rows come -------------------------------------------------------------------------------

    def took_in(self, row: Row, when: When) -> list[Decision]:
        self._mind_the_gap(row)
        self.sampled(row)
        self.until[row.number] = math.inf
        self.tree.insert(row)
        if self.instant:
            return []
        if self.draws_once:
            return self._those_due(when)
        leaf = self.drawn()
        return [] if leaf is None else self.publish(leaf, when)

    def sampled(self, row: Row) -> None:
        """Let samples move on."""

    def _mind_the_gap(self, row: Row) -> None:
        """The mean time between two rows."""
        if self.before is not None and row.time is not None:
            n = min(row.number, self.remembered)
            self.gap += (row.time - self.before - self.gap) / n
        self.before = row.time

    # -- the publishing queue ----------------------------------------------------------------------

    def mature(self, leaf: Leaf) -> bool:
        return len(leaf.rows) >= self.promise.k and self.meets(leaf.rows)

    def weights(self) -> list[tuple[Leaf, float]]:
        """Mature leaves, by number, and how likely each is to be published next to the others."""
        return [(leaf, self.weight(leaf)) for leaf in self.tree.leaves if self.mature(leaf)]

    def weight(self, leaf: Leaf) -> float:
        """1 / loss(C)."""
        return 1 / self.loss(leaf)

    def loss(self, leaf: Leaf) -> float:
        """loss(C) of Definition 3, which grows with time where time is one of the attributes."""
        lost = self.space.spread(leaf.box)
        side = None if self.time_side is None else leaf.box[self.time_side]
        if side is not None and self.time_side is not None and self.now is not None:
            domain = self.space.domains[self.time_side]
            assert isinstance(domain, Range)
            unit = self.space.weights[self.time_side] / (domain.hi - domain.lo)
            lost += unit * max(0.0, min(self.now, domain.hi) - side[1])
        if self.deviations.finite:
            lost = max(lost, 1e-9)
        return len(leaf.rows) * lost

    def drawn(self) -> Leaf | None:
        """The leaf that is due at this instant, if any is: by one draw for all of them."""
        weighted = self.weights()
        if not weighted:
            return None
        rows = total(len(leaf.rows) * w for leaf, w in weighted)  # 1 / beta, 1 / gamma
        return self._at(weighted, uniform(self.random) * rows)

    @staticmethod
    def _at(weighted: list[tuple[Leaf, float]], place: float) -> Leaf | None:
        """The leaf at a place, where leaves lie side by side and are as wide as their weights."""
        cumulated = 0.0
        for leaf, weight in weighted:
            cumulated += weight
            if cumulated > place:
                return leaf
        return None

    def changed(self) -> None:
        """Where instants are seconds: draw when the next leaf is due."""
        if not self.instant:
            return
        self.due = math.inf
        if self.draws_once:
            self._draw_dues()
            first = self._first_due()
            self.due = math.inf if first is None or first.due is None else first.due
            return
        weighted = self.weights() if self.gap > 0 else []
        if not weighted:
            return
        assert self.now is not None
        rows = total(len(leaf.rows) * w for leaf, w in weighted)
        rate = 1 / self.gap * total(w for _, w in weighted) / rows
        self.due = self.now - math.log(1 - uniform(self.random)) / rate

    def fell_due(self, when: When) -> list[Decision]:
        if self.draws_once:
            first = self._first_due()
            assert first is not None
            return self.publish(first, when)
        weighted = self.weights()
        place = uniform(self.random) * total(w for _, w in weighted)
        leaf = self._at(weighted, place)
        assert leaf is not None
        return self.publish(leaf, when)

    def _those_due(self, when: When) -> list[Decision]:
        """Algorithm 1, line 8: publish all leaves that are due; none changes its time before.

        Rows that are held back may form new leaves, which may be due at once.
        """
        decisions: list[Decision] = []
        while True:
            self._draw_dues()
            leaf = self._first_due()
            if leaf is None or leaf.due is None or leaf.due > when[0]:
                return decisions
            decisions += self.publish(leaf, when)

    def _draw_dues(self) -> None:
        """Algorithm 1, lines 4 to 6: flip a leaf's coins when it is formed, and never again.

        A leaf that isn't mature is not to be scheduled (section 4.1).
        """
        for leaf in self.tree.leaves:
            if not self.mature(leaf):
                leaf.due = None
        if self.instant and self.gap == 0:
            return
        weighted = self.weights()
        rows = total(len(leaf.rows) * w for leaf, w in weighted)
        for leaf, weight in weighted:
            if leaf.due is not None:
                continue
            if self.instant:
                assert self.now is not None
                rate = 1 / self.gap * (weight / rows)
                leaf.due = self.now - math.log(1 - uniform(self.random)) / rate
            else:
                leaf.due = self.n_rows - 1 + self._flips(weight / rows)

    def _first_due(self) -> Leaf | None:
        """The leaf that is due first; of several, the one with the lowest number."""
        known = [leaf for leaf in self.tree.leaves if leaf.due is not None]
        return min(known, key=lambda leaf: (leaf.due, leaf.number), default=None)

    def _flips(self, chance: float) -> int:
        """How many coins fall on the wrong side before one doesn't."""
        if chance >= 1:
            return 0
        return int(math.log(1 - uniform(self.random)) / math.log1p(-chance))

    # -- leaves go ---------------------------------------------------------------------------------

    def publish(self, leaf: Leaf, when: When) -> list[Decision]:
        """A leaf is due."""
        kept_back = self.held_back(leaf, when)
        self.tree.remove(leaf)
        decisions = self.released([row for row in leaf.rows if row not in kept_back], when)
        for row in by_arrival(kept_back):
            self.tree.insert(row)
        return decisions

    def held_back(self, leaf: Leaf, when: When) -> list[Row]:
        """Rows of a leaf that are to wait."""
        return []

    def force(self, row: Row, when: When) -> list[Decision]:
        leaf = self.tree.leaf_of(row)
        if self.mature(leaf):
            self.tree.remove(leaf)
            return self.released(leaf.rows, when)
        merged = self.merged(leaf)
        if merged is None:
            self.tree.drop(row)
            return self.suppressed(row, when)
        return self.publish_all(merged, when)

    def merged(self, leaf: Leaf) -> list[Leaf] | None:
        """A leaf and those nearest to it, as many as keep the promise; None if they never do."""
        if n_subjects(self.held.values()) < self.people:
            return None
        union = [leaf]
        others = [other for other in self.tree.leaves if other is not leaf]
        box = leaf.box

        def lost(other: Leaf) -> tuple[float, int]:
            return self.space.spread(self.space.join([box, other.box])), other.birth

        for _ in range(MANY):
            if not others:
                return None
            nearest = min(others, key=lost)
            others.remove(nearest)
            union.append(nearest)
            box = self.space.join([part.box for part in union])
            if self.meets([row for part in union for row in part.rows]):
                return union
        tested = sum(len(part.rows) for part in union)
        for other in sorted(others, key=lost):
            union.append(other)
            rows = [row for part in union for row in part.rows]
            if len(rows) >= 2 * tested or len(union) == len(others) + MANY + 1:
                tested = len(rows)
                if self.meets(rows):
                    return union
        return None

    def publish_all(self, leaves: list[Leaf], when: When) -> list[Decision]:
        """Publish leaves together, or as two groups if there is enough for two."""
        rows = by_arrival(row for leaf in leaves for row in leaf.rows)
        for leaf in sorted(leaves, key=lambda leaf: leaf.number):
            self.tree.remove(leaf)
        if n_subjects(rows) >= 2 * self.people:
            parts = halves(self.space, [row.box for row in rows], self.people)
            groups = [[rows[i] for i in part] for part in parts]
            if all(self.meets(group) for group in groups):
                return [decision for group in groups for decision in self.released(group, when)]
        return self.released(rows, when)

    def ends(self, when: When) -> list[Decision]:
        decisions: list[Decision] = []
        while True:
            unmature = [leaf for leaf in self.tree.leaves if not self.mature(leaf)]
            if not unmature:
                return decisions
            merged = self.merged(min(unmature, key=lambda leaf: leaf.birth))
            if merged is None:
                return decisions
            decisions += self.publish_all(merged, when)


class NaiveTreeDensity(NaiveTreeBasic):
    """One run of section 4.2: leaves that won't split soon don't wait.

    ``samples`` rows stand for the latest ``sampled`` (omega and W); ``alpha`` is how much a row
    loses by each instant that it waits.
    """

    def __init__(
        self,
        *args: Any,
        alpha: float = 0.001,
        samples: int = 3000,
        sampled: int = 10_000,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.alpha, self.samples, self.n_sampled = alpha, samples, sampled
        self.remembered = sampled
        self.chains = NaiveChains(samples, sampled)

    def sampled(self, row: Row) -> None:
        for c in self.chains.arrives(self.random, row.number, row.box):
            self.chains.renew(c)
            for leaf in self.tree.leaves:
                leaf.copies.discard(c)
                if covers(leaf.box, self.chains.box(c)):
                    leaf.copies.add(c)

    def samples_in(self, leaf: Leaf) -> list[int]:
        """samp(C), by number."""
        known = range(self.samples) if self.deviations.counted else sorted(leaf.copies)
        return [c for c in known if covers(leaf.box, self.chains.box(c))]

    def weight(self, leaf: Leaf) -> float:
        """(1 + alpha) ** (what it waits for a split) / loss(C)."""
        n_samples: float = len(self.samples_in(leaf))
        if self.deviations.finite:
            n_samples = max(n_samples, 0.5)
        wait = math.log(1 + self.alpha) * max(0, 2 * self.people - len(leaf.rows))
        wait = wait / (n_samples / self.samples)
        if self.instant:
            wait = wait / (1 / self.gap * self.instant)
        if self.deviations.finite:
            wait = min(wait, 100.0)
        return math.exp(wait) / self.loss(leaf)


class NaiveTreeFull(NaiveTreeDensity):
    """One run of Algorithm 2: rows in dense areas are held when their leaf is published."""

    def held_back(self, leaf: Leaf, when: When) -> list[Row]:
        """Section 4.3: the rows that would lose less later, at most all but k."""
        now: float = self.n_rows - 1
        if self.instant:
            assert when[1] is not None
            now = when[1] / self.instant
        lost = self.space.spread(leaf.box)
        hopes: list[tuple[float, int, Row]] = []
        for row in leaf.rows:
            hope = self.hope(leaf, row)
            once = self.until[row.number] > now or not self.deviations.once
            if hope is not None and once and hope * (1 + self.alpha) < lost:
                hopes.append((hope, -row.number, row))
        kept_back: list[Row] = []
        for hope, _, row in sorted(hopes, key=lambda item: item[:2]):
            others = [r for r in leaf.rows if r is not row and r not in kept_back]
            if len(others) < self.promise.k or not self.meets(others):
                break
            kept_back.append(row)
            if self.until[row.number] == math.inf or not self.deviations.once:
                self.until[row.number] = now + self._worth_waiting(lost, hope)
        return kept_back

    def _worth_waiting(self, lost: float, hope: float) -> float:
        """For how many instants a row may wait until it loses as much as now."""
        if hope == 0 or self.alpha == 0:
            return math.inf
        return math.log(lost / hope) / math.log(1 + self.alpha)

    def hope(self, leaf: Leaf, row: Row) -> float | None:
        """loss(SC(t)), found greedily; None if there are too few samples."""
        left = [
            c
            for c in self.samples_in(leaf)
            if self.chains.position(c) != row.number or not self.deviations.not_itself
        ]
        # Of k = 1 nobody else is needed; but then every row would hope for nothing to lose.
        needed = max(1, -(-(self.promise.k - 1) * self.samples // self.n_sampled))
        if len(left) < needed:
            return None
        box = row.box
        for _ in range(needed):
            joined = [self.space.join([box, self.chains.box(c)]) for c in left]
            losses = [self.space.spread(candidate) for candidate in joined]
            best = losses.index(min(losses))
            box = joined[best]
            del left[best]
        return self.space.spread(box)
