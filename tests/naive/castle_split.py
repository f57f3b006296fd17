"""How CASTLE cuts a large cluster into groups: split^k, split^l and generateBuckets of the paper.

The deviations are listed here because this is where most of them are; ``docs/deviations.md`` says
what each one fixes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from tests.naive.criteria import Promise, matching
from tests.naive.space import Box, Row, Space, by_arrival, total


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves the paper: castle-1 to castle-15, in this order."""

    every_row_expires: bool = True
    merge_counts_people: bool = True
    rows_of_one_subject_differ: bool = True
    whole_shares: bool = True
    diverse_representatives: bool = True
    diversity_counts_people: bool = True
    parts_are_checked: bool = True
    reuse_is_checked: bool = True
    perfect_groups_are_kept: bool = True
    kept_is_bounded: bool = True
    end_keeps_the_promise: bool = True
    merges_reach_diversity: bool = True
    decided_rows_leave: bool = True
    joins_have_company: bool = True
    plain_split_first: bool = True


@dataclass(frozen=True)
class Split:
    """The functions that split, over what they need to know; ``draw(n)`` is random, below n."""

    space: Space
    promise: Promise
    deviations: Deviations
    draw: Callable[[int], int]

    @property
    def people(self) -> int:
        """How many subjects a part is made of: max(k, l); k alone in the paper."""
        return self.promise.people if self.deviations.whole_shares else self.promise.k

    def nearest(self, parts: Sequence[list[Row]], box: Box) -> list[Row]:
        """The part that grows least by a box."""
        return min(parts, key=lambda part: self.space.enlargement(self.space.box(part), box))

    def split_k(self, rows: Sequence[Row], people: int) -> list[list[Row]]:
        """Cut rows into parts of k subjects each, by nearest neighbours."""
        differ = self.deviations.rows_of_one_subject_differ
        by_subject: dict[Hashable, list[Row]] = {}
        for row in rows:
            by_subject.setdefault(row.subject, []).append(row)
        buckets = list(by_subject.values())  # 2
        parts: list[list[Row]] = []
        while len(buckets) >= people:  # 3
            bucket = buckets[self.draw(len(buckets))]  # 4
            x = bucket.pop(0)  # 5

            def distance(y: Row, x: Row = x) -> tuple[float, int]:
                return self.space.loss(self.space.join([x.box, y.box])), y.number

            others = [other for other in buckets if other is not bucket]
            near = [min(other, key=distance) if differ else other[0] for other in others]  # 9, 10
            near = sorted(near, key=distance)[: people - 1]  # 8-12
            parts.append([x, *near])  # 13-20
            taken = {row.number for row in near}
            buckets = [[row for row in b if row.number not in taken] for b in buckets]
            buckets = [b for b in buckets if b]
        if differ:
            for row in by_arrival(row for b in buckets for row in b):
                self.nearest(parts, row.box).append(row)
        else:
            for bucket in buckets:  # 21
                self.nearest(parts, bucket[0].box).extend(bucket)  # 22-24
        return parts

    def split_whole_subjects(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Cut as split^k does, with the box around all rows of a subject in place of its rows."""
        of: dict[Hashable, list[Row]] = {}
        for row in rows:
            of.setdefault(row.subject, []).append(row)
        people = [
            dataclasses.replace(mine[0], box=self.space.box(mine)) if len(mine) > 1 else mine[0]
            for mine in of.values()
        ]
        parts = self.split_k(people, self.people)
        return [by_arrival(row for one in part for row in of[one.subject]) for part in parts]

    def loss(self, parts: Sequence[list[Row]]) -> float:
        """The loss of all rows in the boxes of their parts, added in order of arrival."""
        lost = {row.number: self.space.loss(self.space.box(part)) for part in parts for row in part}
        return total(lost[number] for number in sorted(lost))

    def generate_buckets(self, rows: Sequence[Row], j: int) -> list[list[Row]]:
        """One row for each subject, gathered by their value of the sensitive attribute j."""
        matched: dict[Hashable, Hashable] = {}
        if self.deviations.diverse_representatives:
            matched = matching(rows, j, self.promise.l_needed[j])
        chosen: dict[Hashable, Row] = {}
        for row in rows:
            fits = row.subject not in matched or matched[row.subject] == row.sensitive[j]
            if fits and row.subject not in chosen:
                chosen[row.subject] = row
        buckets: dict[Hashable, list[Row]] = {}
        for row in by_arrival(chosen.values()):
            buckets.setdefault(row.sensitive[j], []).append(row)
        return list(buckets.values())

    def split_l(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Cut rows into parts that each hold their share of every sensitive value."""
        j = self.promise.widest
        buckets = self.generate_buckets(rows, j)  # 1
        parts: list[list[Row]] = []
        while (
            len(buckets) >= self.promise.l_needed[j]
            and sum(len(bucket) for bucket in buckets) >= self.people
        ):  # 3
            first = self.draw(len(buckets))  # 4
            shares = self._shares(buckets, first, j)
            part = [buckets[first].pop(0)]  # 5
            for bucket, share in zip(buckets, shares, strict=True):  # 6
                nearest = self._by_enlargement(bucket, self.space.box(part))[:share]  # 7-10
                part += nearest  # 11
                bucket[:] = [row for row in bucket if row not in nearest]
            buckets = [bucket for bucket in buckets if bucket]  # 12, 13
            parts.append(part)  # 14
        if not parts:
            # As written, no row finds a part to join, and the rows of the cluster are lost.
            return [list(rows)] if self.deviations.diverse_representatives else []
        return self._with_their_representatives(rows, parts, buckets)

    def _by_enlargement(self, rows: Sequence[Row], box: Box) -> list[Row]:
        return sorted(rows, key=lambda y: (self.space.enlargement(box, y.box), y.number))

    def _with_their_representatives(
        self, rows: Sequence[Row], parts: list[list[Row]], buckets: Sequence[list[Row]]
    ) -> list[list[Row]]:
        """Lines 15 to 23 of split^l: all rows of a subject follow the one that stands for it."""
        for bucket in buckets:  # 15
            for row in bucket:  # 16
                self.nearest(parts, row.box).append(row)  # 17, 18
        follow = {row.subject: n for n, part in enumerate(parts) for row in part}
        return [[row for row in rows if follow[row.subject] == n] for n in range(len(parts))]

    def _shares(self, buckets: Sequence[list[Row]], first: int, j: int) -> list[int]:
        """How many rows each bucket gives to a part, besides the first row of ``first``."""
        counts = [len(bucket) for bucket in buckets]
        everyone = sum(counts)
        if not self.deviations.whole_shares:
            # Line 10: the row of line 5 has left its bucket already, but counts in the sum.
            return [
                int(self.promise.k * (n - (i == first)) / everyone) for i, n in enumerate(counts)
            ]
        wanted = self.promise.people
        seats = [0] * len(buckets)
        seats[first] = 1
        others = sorted((i for i in range(len(buckets)) if i != first), key=lambda i: -counts[i])
        for i in others[: self.promise.l_needed[j] - 1]:
            seats[i] = 1
        while sum(seats) < wanted:
            free = [i for i in range(len(buckets)) if seats[i] < counts[i]]
            seats[max(free, key=lambda i: wanted * counts[i] / everyone - seats[i])] += 1
        seats[first] -= 1
        return seats
