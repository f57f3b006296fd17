"""k-anonymity and l-diversity for the naive twins, straight from their definitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tests.naive.space import Row


@dataclass(frozen=True)
class Promise:
    """What must hold for the rows of a group; for each sensitive attribute an entry in each list.

    ``l_needed`` (1: nothing), ``entropy`` (0: nothing), ``recursive`` as (c, l) (c = 0: nothing).
    """

    k: int
    l_needed: Sequence[int] = ()
    entropy: Sequence[float] = ()
    recursive: Sequence[tuple[float, int]] = ()

    @property
    def people(self) -> int:
        """How many subjects a group needs at least: max(k, l)."""
        return max(self.k, *self.l_needed, 1)

    @property
    def can_break(self) -> bool:
        """Whether a further row may break what held: so with entropy and recursive diversity."""
        return any(least > 0 for least in self.entropy) or any(c > 0 for c, _ in self.recursive)

    @property
    def is_diverse(self) -> bool:
        """Whether anything is promised about sensitive values."""
        return self.can_break or any(needed > 1 for needed in self.l_needed)

    @property
    def widest(self) -> int:
        """The sensitive attribute that needs the most values; the first of them."""
        return max(range(len(self.l_needed)), key=lambda j: self.l_needed[j])

    def diverse(self, rows: Sequence[Row], *, by_people: bool = True) -> bool:
        """Whether every sensitive attribute is diverse enough in these rows."""
        for j, needed in enumerate(self.l_needed):
            found = (
                len(matching(rows, j, needed))
                if by_people
                else len({row.sensitive[j] for row in rows})
            )
            if found < needed:
                return False
        for j, least in enumerate(self.entropy):
            for counts in rows_and_people(rows, j):
                if least and entropy(counts) < math.log(least) - 1e-12:
                    return False
        for j, (c, nth) in enumerate(self.recursive):
            for counts in rows_and_people(rows, j):
                if c and not recursive(counts, c, nth):
                    return False
        return True


def rows_and_people(rows: Sequence[Row], j: int) -> tuple[list[int], list[int]]:
    """How often each value occurs: over rows, and over different (subject, value) pairs."""
    pairs = {(row.subject, row.sensitive[j]) for row in rows}
    return (
        list(Counter(row.sensitive[j] for row in rows).values()),
        list(Counter(value for _, value in pairs).values()),
    )


def entropy(counts: Sequence[int]) -> float:
    """The entropy of the shares, in nats."""
    n = sum(counts)
    return -math.fsum(count / n * math.log(count / n) for count in counts)


def recursive(counts: Sequence[int], c: float, nth: int) -> bool:
    """Whether the commonest value is rarer than c times all from the nth commonest on."""
    falling = sorted(counts, reverse=True)
    return falling[0] < c * sum(falling[nth - 1 :])


def matching(rows: Sequence[Row], j: int, wanted: int) -> dict[Hashable, Hashable]:
    """Give different subjects different values of theirs: as many pairs as can be, up to wanted.

    Kuhn's algorithm. Subjects, and the values of each, come in order of arrival.
    """
    values_of: dict[Hashable, list[Hashable]] = {}
    for row in rows:
        values = values_of.setdefault(row.subject, [])
        if row.sensitive[j] not in values:
            values.append(row.sensitive[j])
    owner: dict[Hashable, Hashable] = {}

    def place(subject: Hashable, visited: set[Hashable]) -> bool:
        for value in values_of[subject]:
            if value in visited:
                continue
            visited.add(value)
            if value not in owner or place(owner[value], visited):
                owner[value] = subject
                return True
        return False

    for subject in values_of:
        if len(owner) >= wanted:
            break
        place(subject, set())
    return {subject: value for value, subject in owner.items()}
