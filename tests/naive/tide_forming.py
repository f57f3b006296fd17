"""How TIDE forms groups, slowly: they grow, are repaired, and take the further rows of people.

Random numbers, and the order in which equals are looked at, are those of the kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from shoal.engine.kernels import rng
from shoal.spec.hierarchy import Domain
from tests.naive.centres import Centres
from tests.naive.measured import Measure
from tests.naive.on_deadline import NaiveOnDeadline
from tests.naive.space import Row, by_arrival
from tests.naive.tide_cuts import Cuts
from tests.naive.tide_losses import SCALE, Losses

__all__ = ["Forming"]

#: The nearest rows are found by a histogram with this many bins.
BINS = 256
POOLED, BESIDE, NEAR_BY = 3, 32, 128
CELL, CHUNK = 16_384, 256
#: Rows are cut into at most 2**FINEST blocks, for at most MORE further groups.
FINEST, MORE = 8, 2
#: How groups are formed again.
WAYS = ("grow", "shares", "cut")


class Forming(NaiveOnDeadline):
    """A run that forms groups of many rows at once."""

    takes_equals = True

    def __init__(
        self, domains: Sequence[Domain], weights: Sequence[float], *, effort: int = 20,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(domains, weights, **{**options, "kept": 0})
        self.losses, self.effort = Losses(self.space), effort
        #: How much of the loss of each category counts in growth, in parts of 256.
        self.shares = [256] * len(self.space.domains)

    def groups_of(self, rows: list[Row]) -> list[list[Row]]:
        firsts = list({row.subject: row for row in reversed(rows)}.values())[::-1]
        firsts = by_arrival(firsts)
        start, draws = self.start(firsts), rng.forked(self.random)
        if self.measures:
            start = min(start, self.cuts(rows)(firsts), key=self.lost)
        groups = self.ordered(start)
        if len(groups) > 1 and self.effort:
            groups = self.repair_all(groups, draws)
        home = {row.subject: g for g, group in enumerate(groups) for row in group}
        sizes = [list(group) for group in groups]
        for row in rows:
            if row not in firsts:
                first = max(0, home[row.subject] - NEAR_BY)
                near = sizes[first : home[row.subject] + NEAR_BY + 1]
                near[self.cheapest(near, row)].append(row)
        return [by_arrival(group) for group in sizes]

    def start(self, rows: list[Row]) -> list[list[Row]]:
        """Groups that grow cell by cell; a rest joins those of its cell."""
        groups: list[list[Row]] = []
        for cell in self.cells(rows, CELL):
            formed, rest = self.grown(cell)
            if not formed:
                formed, rest = [rest], []
            for row in rest:
                formed[self.cheapest(formed, row)].append(row)
            groups += formed
        return groups

    def cells(self, rows: Sequence[Row], most: int) -> list[list[Row]]:
        """As few cells of about the same size along the Hilbert curve as have this many rows."""
        n, centres = -(-len(rows) // most), Centres(self.space)
        if n <= 1:
            return [list(rows)]
        along = sorted(by_arrival(rows), key=centres.hilbert)
        ends = [0]
        for c in range(n):
            ends.append(ends[-1] + len(rows) // n + (c < len(rows) % n))
        return [by_arrival(along[a:b]) for a, b in pairwise(ends)]

    def grown(self, rows: list[Row]) -> tuple[list[list[Row]], list[Row]]:
        """Groups grown from the oldest row that is left, and the rows that are left then."""
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
        return groups, left

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
                    return self.with_equals(group, left)
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

    def with_equals(self, group: list[Row], left: Sequence[Row]) -> list[Row]:
        """A group that lost nothing, with the others like it if they are no group of their own."""
        people = {row.subject for row in group}
        like = {
            row.subject: row
            for row in reversed(left)
            if row not in group and row.subject not in people
            and not self.losses.growth(group, row, self.shares)
        }  # fmt: skip
        more = [*group, *reversed(like.values())]
        if not self.takes_equals or self.losses.loss(group) or len(like) >= self.promise.people:
            return group
        return more if self.meets(more) else group

    # -- repair ----------------------------------------------------------------------------------

    def repair_all(self, groups: list[list[Row]], draws: Any) -> list[list[Row]]:
        """Repair chunks of groups, and again chunks that begin half a chunk later."""
        shifts = [0] if len(groups) < 2 * CHUNK else [0, CHUNK // 2]
        for shift in shifts:
            cuts = range(shift or CHUNK, len(groups) - CHUNK // 2 + 1, CHUNK)
            ends = [0, *cuts, len(groups)]
            chunks = [groups[a:b] for a, b in pairwise(ends) if a < b]
            groups = []
            for chunk in chunks:
                times = self.effort * len(chunk) // (POOLED * len(shifts))
                groups += self.repair(chunk, times, rng.forked(draws))
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
            first = int(rng.below(draws, n))
            others += [(first + j * n // BESIDE) % n for j in range(BESIDE)]

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
