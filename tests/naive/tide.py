"""TIDE, slowly: groups of all held rows at once, or a group around the row that is due.

Losses are whole numbers, computed from scratch for each set of rows. Random numbers, and the order
in which equals are looked at, are those of the kernels.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from shoal.engine.kernels import rng
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from tests.naive.centres import Centres
from tests.naive.measured import Measure
from tests.naive.on_deadline import Decision, NaiveOnDeadline, Placed, When
from tests.naive.parts import merge
from tests.naive.space import Row, Space, by_arrival, n_subjects
from tests.naive.tide_cuts import Cuts

__all__ = ["Losses", "NaiveRolling", "NaiveTide", "Prices"]

SCALE = 2**26
#: The nearest rows are found by a histogram with this many bins.
BINS = 256
POOLED, BESIDE, CHUNK, NEAR_BY = 3, 32, 256, 128
#: Rows are cut into at most 2**FINEST blocks, for at most MORE further groups.
FINEST, MORE = 8, 2
#: How groups are formed again.
WAYS = ("grow", "shares", "cut")


class Losses:
    """What rows lose as one group, in whole numbers."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def is_number(self, d: int) -> bool:
        return self.space.kind == "uncertainty" or isinstance(self.space.domains[d], Range)

    def end(self, d: int, value: float) -> int:
        """A number as its distance from the lowest one, a category as its leaf."""
        domain, weight = self.space.domains[d], self.space.weights[d]
        if isinstance(domain, Range):
            return math.floor((value - domain.lo) * (weight / (domain.hi - domain.lo) * SCALE))
        if self.is_number(d):
            highest = len(domain) - 1
            return math.floor(value * (weight / highest * SCALE)) if highest else 0
        return int(value)

    def side(self, d: int, rows: Sequence[Row]) -> int:
        """What rows lose in one attribute; more if only some of them have a value."""
        sides = [row.box[d] for row in rows if row.box[d] is not None]
        if not sides:
            return 0
        lo, hi = min(s[0] for s in sides), max(s[1] for s in sides)  # type: ignore[index]
        if self.is_number(d):
            loss = self.end(d, hi) - self.end(d, lo)
        else:
            domain = self.space.domains[d]
            assert isinstance(domain, Hierarchy)
            node = domain.cover(int(lo), int(hi))
            both = domain.lows[node], domain.highs[node]
            loss = math.floor(self.space._side(d, *both) * SCALE)
        mixing = math.floor(self.space.weights[d] * (SCALE // 4))
        return loss + (mixing if len(sides) < len(rows) else 0)

    def is_general(self, d: int, rows: Sequence[Row]) -> bool:
        """Whether rows that are categories have more than one leaf between them."""
        sides = [row.box[d] for row in rows if row.box[d] is not None]
        return not self.is_number(d) and len({end for side in sides for end in side or ()}) > 1

    def growth(self, rows: Sequence[Row], row: Row, shares: Sequence[int]) -> int:
        """What one more row costs, where only a share of what categories lose counts."""
        cost = 0
        for d, share in enumerate(shares):
            more = self.side(d, [*rows, row]) - self.side(d, rows)
            have = [r.box[d] is not None for r in rows]
            if not self.is_number(d) and row.box[d] is not None and any(have):
                more = more * share // 256
            cost += more
        return cost

    def loss(self, rows: Sequence[Row]) -> int:
        return sum(self.side(d, rows) for d in range(len(self.space.domains)))

    def added(self, rows: Sequence[Row], row: Row) -> int:
        return self.loss([*rows, row]) - self.loss(rows)

    def total(self, rows: Sequence[Row]) -> int:
        return len(rows) * self.loss(rows)


@dataclass
class Prices:
    """What rows cost a group, by their features."""

    losses: Losses
    base: int = 3 * SCALE // 10
    mean: int = 3 * SCALE // 10
    price: dict[Any, int] = field(default_factory=dict)
    power: dict[Any, int] = field(default_factory=dict)

    def features(self, row: Row) -> list[tuple[Any, Any]]:
        return [self._pair(d, row) for d in range(len(row.box))]

    def _pair(self, d: int, row: Row) -> tuple[Any, Any]:
        side, domain = row.box[d], self.losses.space.domains[d]
        other = (d, "other", 0)
        if side is None:
            return other, other
        if self.losses.is_number(d):
            span = math.floor(self.losses.space.weights[d] * SCALE) + 1
            lo = self.losses.end(d, side[0])
            return (d, "fine", min(63, lo * 64 // span)), (d, "coarse", min(7, lo * 8 // span))
        if side[0] != side[1]:
            return other, other
        assert isinstance(domain, Hierarchy)
        leaf = domain.leaf_nodes[int(side[0])]
        return (d, "node", leaf), (d, "node", domain.parents[leaf])

    def of(self, row: Row) -> int:
        return self.base + sum(
            self.price.get(feature, 0) for pair in self.features(row) for feature in pair
        )

    def learn(self, rows: Sequence[Row], loss: int) -> None:
        """Move the prices of a group's rows towards what the group lost."""
        n = len(rows)
        error = loss - sum(self.of(row) for row in rows) // n
        self.base += error // 1000
        self.mean += (loss - self.mean) // 50
        found = [[f for pair in self.features(row) for f in pair] for row in rows]
        columns = zip(*found, strict=True)
        for column in columns:
            for feature in dict.fromkeys(column):
                self.step(feature, error * column.count(feature) // n)

    def step(self, feature: Any, change: int) -> None:
        power = self.power.get(feature, 429_497)
        small = change >> 10
        self.power[feature] = power = power + small * small - (power >> 12)
        root = max(1, math.isqrt(power))
        self.price[feature] = self.price.get(feature, 0) + (change << 16) // root // 100


class NaiveTide(NaiveOnDeadline):
    """One run of TIDE that releases batches.

    ``ahead`` is how many seconds it takes for a row, and for one of a group that is measured.
    """

    ahead = 2e-5, 5e-4

    def __init__(
        self, domains: Sequence[Domain], weights: Sequence[float], *, effort: int = 20,
        capacity: int = 0, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(domains, weights, **{**options, "kept": 0})
        self.losses = Losses(self.space)
        self.effort, self.capacity = effort, capacity
        #: How much of the loss of each category counts in growth, in parts of 256.
        self.shares = [256] * len(self.space.domains)

    # -- when rows leave -------------------------------------------------------------------------

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

    # -- a batch ---------------------------------------------------------------------------------

    def groups_of(self, rows: list[Row]) -> list[list[Row]]:
        firsts = list({row.subject: row for row in reversed(rows)}.values())[::-1]
        firsts = by_arrival(firsts)
        start = self.start(firsts)
        if self.measures:
            start = min(start, self.cuts(rows)(firsts), key=self.lost)
        groups = self.ordered(start)
        if len(groups) > 1 and self.effort:
            groups = self.repair_all(groups)
        home = {row.subject: g for g, group in enumerate(groups) for row in group}
        sizes = [list(group) for group in groups]
        for row in rows:
            if row not in firsts:
                first = max(0, home[row.subject] - NEAR_BY)
                near = sizes[first : home[row.subject] + NEAR_BY + 1]
                near[self.cheapest(near, row)].append(row)
        return [by_arrival(group) for group in sizes]

    def start(self, rows: list[Row]) -> list[list[Row]]:
        """Groups grown from the oldest row that is left; a rest joins them."""
        groups: list[list[Row]] = []
        left = list(rows)
        general = [0] * len(self.shares)
        while len(left) >= self.promise.people:
            group = self.around(left[0], left, dict.fromkeys(left, 0))
            if not group:
                break
            groups.append(group)
            for d in range(len(general)):
                general[d] += self.losses.is_general(d, group)
                self.shares[d] = 256 - 102 * general[d] // (len(groups) + 2)
            left = [row for row in left if row not in group]
        self.shares = [256] * len(general)
        if not groups:
            return [left]
        for row in left:
            groups[self.cheapest(groups, row)].append(row)
        return groups

    @property
    def measures(self) -> list[Measure]:
        return [m for m in self.latest.measures if isinstance(m, Measure)]

    def cuts(self, rows: Sequence[Row]) -> Cuts:
        """Cuts of some of these rows."""
        return Cuts(self.losses, self.measures, self.promise.people, self.meets, rows)

    def lost(self, groups: list[list[Row]]) -> int:
        """What groups lose; everything, if they break the promise."""
        return sum(
            self.losses.total(group) if self.meets(group) else SCALE * len(group)
            for group in groups
        )

    def cheapest(self, groups: Sequence[list[Row]], row: Row) -> int:
        """The group where a row costs all rows least."""
        return min(
            range(len(groups)),
            key=lambda g: (
                self.losses.loss(groups[g])
                + (len(groups[g]) + 1) * self.losses.added(groups[g], row)
            ),
        )

    def ordered(self, groups: list[list[Row]]) -> list[list[Row]]:
        """Groups along the Hilbert curve, with their rows in order of arrival."""
        centres = Centres(self.space)

        def place(group: list[Row]) -> int:
            return centres.hilbert(Row(0, self.space.box(group), None, ()))

        return [by_arrival(group) for group in sorted(groups, key=place)]

    # -- growth ----------------------------------------------------------------------------------

    def around(self, seed: Row, rows: Sequence[Row], bias: dict[Row, int]) -> list[Row]:
        """A group around a row, among the rows nearest to it or else among all; or none."""
        others = [row for row in rows if row is not seed]
        cost = {row: bias[row] + self.losses.growth([seed], row, self.shares) for row in others}
        people = self.promise.people
        few = self.nearest(cost, (32 if people <= 20 else 16) * people)
        return self.grow(seed, few, bias) or self.grow(seed, others, bias)

    def nearest(self, cost: dict[Row, int], wanted: int) -> list[Row]:
        if wanted >= len(cost):
            return list(cost)
        least, most, shift = min(cost.values()), max(cost.values()), 0
        while (most - least) >> shift >= BINS:
            shift += 1
        bins = [(c - least) >> shift for c in cost.values()]
        last = next(b for b in range(BINS) if sum(x <= b for x in bins) >= wanted)
        return [row for row, b in zip(cost, bins, strict=True) if b <= last]

    def grow(self, seed: Row, rows: Sequence[Row], bias: dict[Row, int]) -> list[Row]:
        """The group of a row, by the rows that it costs least, one of each subject; or none."""
        group, left = [seed], [row for row in rows if row is not seed]
        asked, step = self.promise.people, max(1, self.promise.k // 4)
        while True:
            if len(group) >= asked:
                if self.meets(group):
                    return group
                asked = len(group) + max(step, len(group) // 8)
            others = {row.subject for row in group}
            left = [row for row in left if row.subject not in others]
            if not left:
                break
            best = min(
                left, key=lambda row: bias[row] + self.losses.growth(group, row, self.shares)
            )
            left.remove(best)
            group.append(best)
        return group if len(group) >= self.promise.people and self.meets(group) else []

    # -- repair ----------------------------------------------------------------------------------

    def repair_all(self, groups: list[list[Row]]) -> list[list[Row]]:
        """Repair chunks of groups, and again chunks that begin half a chunk later."""
        shifts = [0] if len(groups) < 2 * CHUNK else [0, CHUNK // 2]
        for shift in shifts:
            cuts = range(shift or CHUNK, len(groups) - CHUNK // 2 + 1, CHUNK)
            ends = [0, *cuts, len(groups)]
            chunks = [groups[a:b] for a, b in pairwise(ends) if a < b]
            groups = []
            for chunk in chunks:
                times = self.effort * len(chunk) // (POOLED * len(shifts))
                groups += self.repair(chunk, times, rng.forked(self.random))
        return groups

    def repair(self, groups: list[list[Row]], times: int, draws: Any) -> list[list[Row]]:
        groups = [by_arrival(group) for group in groups]
        rows = by_arrival(row for group in groups for row in group)
        cuts = self.cuts(rows) if self.measures else None
        for _ in range(times):
            g, h = (int(rng.below(draws, len(groups))) for _ in range(2))
            if self.losses.loss(groups[h]) > self.losses.loss(groups[g]):
                g = h
            chosen = self.neighbours(groups, g, draws)
            way = WAYS[int(rng.below(draws, 3))] if self.measures else "grow"
            pool = [row for c in chosen for row in groups[c]]
            before = sum(self.losses.total(groups[c]) for c in chosen)
            if way == "shares":
                formed = self.regrow_in_shares(pool, before, len(chosen), draws)
            elif way == "cut":
                assert cuts
                formed = cuts(pool)
                formed = formed if sum(map(self.losses.total, formed)) < before else []
            else:
                formed = self.regrow(pool, before, draws)
            if formed and all(self.meets(group) for group in formed):
                self.replace(groups, chosen, [[r for r in pool if r in new] for new in formed])
        return groups

    def neighbours(self, groups: list[list[Row]], g: int, draws: Any) -> list[int]:
        """A group and the two with which it would lose least more."""
        n = len(groups)
        others = list(range(n))
        if n > 2 * BESIDE:
            others = [(g - BESIDE // 2 + j) % n for j in range(BESIDE)]
            others += [int(rng.below(draws, n)) for _ in range(BESIDE)]

        def growth(h: int) -> int:
            one, other = groups[g], groups[h]
            both = self.losses.loss([*one, *other]) * (len(one) + len(other))
            return both - self.losses.total(one) - self.losses.total(other)

        chosen = [g]
        for h in sorted(others, key=growth):
            if h not in chosen and len(chosen) < POOLED:
                chosen.append(h)
        return chosen

    def regrow(self, pool: list[Row], before: int, draws: Any) -> list[list[Row]]:
        """Other groups of the same rows that lose less; or none."""
        left, formed, nothing = list(pool), [], dict.fromkeys(pool, 0)
        total = 0
        while len(left) >= self.promise.people:
            group = list(left)
            if len(left) > self.promise.people:
                group = self.grow(left[int(rng.below(draws, len(left)))], left, nothing)
            if not group:
                break
            formed.append(group)
            total += self.losses.total(group)
            if total >= before:
                return []
            left = [row for row in left if row not in group]
        if not formed:
            return []
        for row in left:
            formed[self.cheapest(formed, row)].append(row)
        return formed if sum(self.losses.total(group) for group in formed) < before else []

    def regrow_in_shares(
        self, pool: list[Row], before: int, n_before: int, draws: Any
    ) -> list[list[Row]]:
        """Other groups that lose less, none of which has more than its share of a block; or none.

        A block is of rows that are beside each other by the value of the first measured attribute.
        """
        most = n_before + int(rng.below(draws, MORE + 1))
        n_groups = min(most, len(pool) // self.promise.people)
        n_blocks = 2 << int(rng.below(draws, FINEST))
        j = min(measure.j for measure in self.measures)
        values: list[Any] = sorted(row.sensitive[j] for row in pool)  # type: ignore[type-var]
        block = {row: values.index(row.sensitive[j]) * n_blocks // len(pool) for row in pool}
        left, formed = list(pool), list[list[Row]]()
        for n_left in range(n_groups, 0, -1):
            seed = left[int(rng.below(draws, len(left)))]
            shares = {b: -(-n // n_left) for b, n in Counter(block[r] for r in left).items()}
            formed.append(self.grow_in_shares(seed, left, block, shares, -(-len(left) // n_left)))
            if sum(self.losses.total(group) for group in formed) >= before:
                return []
            left = [row for row in left if row not in formed[-1]]
        return formed

    def grow_in_shares(
        self, seed: Row, rows: list[Row], block: dict[Row, int], shares: dict[int, int], size: int
    ) -> list[Row]:
        """The group of a row, by the rows that it costs least among those that it may take."""
        group = [seed]
        while len(group) < size:
            shares[block[group[-1]]] -= 1
            may = [row for row in rows if row not in group and shares[block[row]] > 0]
            group.append(min(may, key=lambda row: self.losses.growth(group, row, self.shares)))
        return group

    def replace(self, groups: list[list[Row]], chosen: list[int], formed: list[list[Row]]) -> None:
        """Put groups into the places of others; the last groups move into places that are free."""
        for place, group in zip(chosen, formed, strict=False):
            groups[place] = group
        groups += formed[len(chosen) :]
        for free in sorted(chosen[len(formed) :], reverse=True):
            last = groups.pop()
            if free < len(groups):
                groups[free] = last


class NaiveRolling(NaiveTide):
    """One run of TIDE that releases group by group."""

    ahead = 0.0, 0.0

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
