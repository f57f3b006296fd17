"""z-anonymity, slowly: N. Jha et al., "Practical anonymization for data streams" (2023).

This is the executable specification of ``shoal.algorithms.z_anonymity``: Algorithm 1 of Appendix A
(numbers in comments are its lines), with what section 7 hints at: values that are generalized
instead of hidden, and a z that follows the stream. Where the paper is unclear or unsafe there is a
numbered deviation (``docs/deviations.md``), each a flag: all on is what Shoal does, one off is the
paper in that point. Every decision is computed from scratch, from all rows in the window.

A row is (time, subject, cells); a cell is the labels of its value from fine to coarse, or None
where it is missing. A value is a leaf of a tree for each attribute, and a node of that tree is the
attribute, the level above the leaves, and the labels from there to the coarsest.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Decision", "Deviations", "Estimate", "NaiveZAnonymity", "Row", "run"]

#: From fine to coarse.
Labels = tuple[str, ...]
Row = tuple[float | None, Hashable, Sequence[Labels | None]]
#: Attribute, level, and the labels from that level to the coarsest.
Node = tuple[int, int, Labels]
Crowds = dict[Node, set[Hashable]]


@dataclass(frozen=True)
class Deviations:
    """Where Shoal leaves the paper: z-1 to z-3, in this order."""

    late_rows_are_of_the_latest_time: bool = True
    values_are_forgotten: bool = True
    parents_count_the_residual: bool = True


@dataclass(frozen=True)
class Decision:
    """The decisions about the cells of one row.

    ``levels`` is None where a cell is hidden or missing; ``n_behind`` are the subjects that a
    published cell stands for, 0 where there is none; ``z`` is the one in force.
    """

    levels: tuple[int | None, ...]
    n_behind: tuple[int, ...]
    z: int


@dataclass(frozen=True)
class Estimate:
    """The share of subjects in the window that are alike with k - 1 others, and the adapted z.

    ``share`` and ``entropy`` (of the sizes of those crowds, in nats) are those under ``z_after``.
    """

    row: int
    time: float | None
    z_before: int
    z_after: int
    n_subjects: int
    share: float
    entropy: float


class NaiveZAnonymity:
    """One run; for the parameters see ``shoal.algorithms.z_anonymity.ZAnonymizer``."""

    def __init__(
        self,
        z: int,
        *,
        window_rows: int | None = None,
        window_seconds: float | None = None,
        count: str = "residual",
        probability: float = 0.0,
        k: int = 2,
        estimates: int = 4,
        deviations: Deviations | None = None,
    ) -> None:
        if (window_rows is None) == (window_seconds is None):
            raise ValueError("a window is in rows or in seconds")
        if count == "plain" and probability > 0:
            raise ValueError("z follows the stream under the residual count alone")
        self.deviations = deviations or Deviations()
        self.residual = count == "residual" and self.deviations.parents_count_the_residual
        self.promised = self.z = z
        self.window_rows, self.window_seconds = window_rows, window_seconds
        self.probability, self.k, self.per_window = probability, k, estimates
        #: H: for each leaf its LRU, (u, t) by last use, the longest ago first.
        self.exposed: dict[Node, dict[Hashable, float]] = {}
        #: Of those, the leaves and subjects of which a cell was published as it is.
        self.shown: set[tuple[Node, Hashable]] = set()
        self.estimates: list[Estimate] = []
        self.n_rows = 0
        self.latest: float | None = None
        self.begin: float | None = None
        self.last_slot = -1

    @property
    def n_exposures(self) -> int:
        """How many pairs of a subject and a value are remembered."""
        return sum(len(users) for users in self.exposed.values())

    @property
    def n_values(self) -> int:
        """How many values are remembered, with or without subjects."""
        return len(self.exposed)

    # -- one row ---------------------------------------------------------------------------------

    def push(self, row: Row) -> Decision:
        """Decide the cells of one row, at once (Algorithm 1)."""
        time, subject, cells = row
        now = self.move_on(time)
        leaves = [None if labels is None else (a, 0, labels) for a, labels in enumerate(cells)]
        present = [leaf for leaf in leaves if leaf is not None]
        self.forget(now, present)
        if self.is_due(now):
            self.estimate(now)
        crowds = self.crowds(now, self.z, residual=self.residual)
        nodes = [
            None if leaf is None else published(leaf, subject, crowds, self.z) for leaf in leaves
        ]
        # Only now is the row counted: whichever leaf it has, a parent stands for the same people.
        for leaf in present:
            self.expose(leaf, subject, now)
        self.n_rows += 1
        self.shown |= {(node, subject) for node in nodes if node is not None and node[1] == 0}
        return Decision(
            levels=tuple(None if node is None else node[1] for node in nodes),
            n_behind=tuple(
                0 if node is None else len(crowds.get(node, set()) | {subject})  # 23, 24
                for node in nodes
            ),
            z=self.z,
        )

    def move_on(self, time: float | None) -> float:
        """The clock of the next row: its time, or its number where the window is in rows."""
        if time is not None:
            late = self.latest is not None and time < self.latest
            if not (late and self.deviations.late_rows_are_of_the_latest_time):
                self.latest = time
        if self.window_rows is not None:
            return self.n_rows
        assert self.latest is not None
        return self.latest

    def expose(self, leaf: Node, subject: Hashable, now: float) -> None:
        """Note who exposed what, as the latest use (lines 2 to 16)."""
        users = self.exposed.setdefault(leaf, {})
        users.pop(subject, None)
        users[subject] = now

    # -- the window ------------------------------------------------------------------------------

    def is_stale(self, when: float, now: float) -> bool:
        """Whether what was exposed then has left the window by now."""
        if self.window_rows is not None:
            return when <= now - self.window_rows
        assert self.window_seconds is not None
        return when < now - self.window_seconds  # 18

    def alive(self, leaf: Node, now: float) -> dict[Hashable, float]:
        """The LRU of a leaf without the uses that are stale, from its end to the first that isn't.

        With the times in order (z-1) those are all that are stale.
        """
        users = self.exposed[leaf].items()
        return dict(itertools.dropwhile(lambda use: self.is_stale(use[1], now), users))  # 18-22

    def forget(self, now: float, leaves: Iterable[Node]) -> None:
        """Evict what has left the window; in the paper, of the values that the row exposes."""
        everything = self.deviations.values_are_forgotten
        for leaf in list(self.exposed if everything else leaves):
            if leaf in self.exposed:
                self.exposed[leaf] = self.alive(leaf, now)
                if everything and not self.exposed[leaf]:
                    del self.exposed[leaf]
        self.shown = {(leaf, who) for leaf, who in self.shown if who in self.exposed.get(leaf, ())}

    def leaves(self, now: float) -> Crowds:
        """The subjects of each leaf that is exposed in the window."""
        found = {leaf: set(self.alive(leaf, now)) for leaf in self.exposed}
        return {leaf: subjects for leaf, subjects in found.items() if subjects}

    def crowds(self, now: float, z: int, *, residual: bool) -> Crowds:
        """R: the subjects that each node stands for, from the leaves up.

        Those of a parent are the subjects of its children. Under the residual count, of those
        children that couldn't be published with one subject more either, and without the subjects
        of a leaf that were published with it: everybody knows that they are there.
        """
        level = self.leaves(now)
        found = dict(level)
        while level:
            above: Crowds = {}
            for (attribute, height, labels), subjects in level.items():
                if len(labels) > 1:
                    crowd = above.setdefault((attribute, height + 1, labels[1:]), set())
                    if not residual:
                        crowd |= subjects
                    elif len(subjects) <= z - 2:
                        node = attribute, height, labels
                        crowd |= {who for who in subjects if (node, who) not in self.shown}
            found |= above
            level = above
        return found

    # -- a z that follows the stream -------------------------------------------------------------

    def is_due(self, now: float) -> bool:
        """Whether the clock has come to a further part of a window, after the first whole one."""
        if self.begin is None:
            self.begin = now
        width = self.window_rows if self.window_rows is not None else self.window_seconds
        assert width is not None
        slot = math.floor((now - self.begin - width) / (width / self.per_window))
        if slot < 0 or slot <= self.last_slot:
            return False
        self.last_slot = slot
        return True

    def estimate(self, now: float) -> None:
        """Move z to where the share is as wanted, never below the promised one."""
        before = self.z
        n_subjects = len(self.published_sets(now, self.promised))
        self.z = self.promised
        if self.probability > 0 and self.share(now, self.promised) < self.probability:
            low, high = self.promised, n_subjects + 1
            while high - low > 1:
                middle = (low + high) // 2
                if self.share(now, middle) >= self.probability:
                    high = middle
                else:
                    low = middle
            self.z = max(high, self.promised)
        share, entropy = self.share(now, self.z), self.entropy(now, self.z)
        self.estimates.append(
            Estimate(self.n_rows, self.latest, before, self.z, n_subjects, share, entropy)
        )

    def published_sets(self, now: float, z: int) -> dict[Hashable, set[Node]]:
        """For each subject of the window, the nodes at which its values would be published now."""
        crowds = self.crowds(now, z, residual=True)
        sets: dict[Hashable, set[Node]] = {}
        for leaf, subjects in self.leaves(now).items():
            for subject in subjects:
                node = published(leaf, subject, crowds, z)
                sets.setdefault(subject, set()).update([] if node is None else [node])
        return sets

    def alike(self, now: float, z: int) -> list[int]:
        """How many subjects each crowd with equal sets has, those with nothing included."""
        return list(Counter(map(frozenset, self.published_sets(now, z).values())).values())

    def share(self, now: float, z: int) -> float:
        """The share of subjects in crowds of at least k; 1 if there is nobody."""
        alike = self.alike(now, z)
        return sum(n for n in alike if n >= self.k) / sum(alike) if alike else 1.0

    def entropy(self, now: float, z: int) -> float:
        """The entropy of being in one of the crowds, in nats."""
        alike = self.alike(now, z)
        return math.fsum(-n / sum(alike) * math.log(n / sum(alike)) for n in alike)


def published(leaf: Node, subject: Hashable, crowds: Crowds, z: int) -> Node | None:
    """The finest node from a leaf up that stands for z subjects, its own included, or None."""
    attribute, _, labels = leaf
    path = [(attribute, level, labels[level:]) for level in range(len(labels))]
    return next((n for n in path if len(crowds.get(n, set()) | {subject}) >= z), None)


def run(
    rows: Iterable[Row],
    *,
    z: int,
    window_rows: int | None = None,
    window_seconds: float | None = None,
    count: str = "residual",
    probability: float = 0.0,
    k: int = 2,
    estimates: int = 4,
    deviations: Deviations | None = None,
) -> tuple[list[Decision], list[Estimate]]:
    """Decide a whole stream."""
    twin = NaiveZAnonymity(
        z,
        window_rows=window_rows,
        window_seconds=window_seconds,
        count=count,
        probability=probability,
        k=k,
        estimates=estimates,
        deviations=deviations,
    )
    return [twin.push(row) for row in rows], twin.estimates
