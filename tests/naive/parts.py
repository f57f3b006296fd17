"""What the twins that part a whole window have in common: parts, and merging those that fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.naive.measured import Promises
from tests.naive.space import Box, Row, Space

__all__ = ["Part", "Partition", "merge"]


@dataclass(frozen=True)
class Part:
    """Rows that become a group, and the box they would be published with."""

    rows: list[Row]
    box: Box


class Partition(Protocol):
    """Parts the rows of a pool so that each part keeps what is promised against the window."""

    space: Space
    promises: Promises

    def __call__(self, pool: Sequence[Row], window: Sequence[Row]) -> list[Part]: ...


def merge(
    space: Space, groups: Sequence[list[Row]], good: Callable[[list[Row]], bool]
) -> list[list[Row]]:
    """Merge every group that isn't good with its nearest ones, until it is (§3.6 and §4.3.4).

    Groups are looked at in their order. The nearest is the one with which it loses least more; of
    equals the first. The merged group stays in the place of the one that failed. If not even all
    rows together are good, the groups that are good are let alone. Those that never are, are left
    out.
    """
    left = [list(rows) for rows in groups]
    fine = [good(rows) for rows in left]
    barred = [False] * len(left)
    if not good([row for rows in left for row in rows]):
        barred = list(fine)
    for at in range(len(left)):
        while left[at] and not fine[at]:
            mine = space.box(left[at])
            others = [i for i in range(len(left)) if left[i] and i != at and not barred[i]]
            if not others:
                break
            nearest = min(others, key=lambda i: space.enlargement(mine, space.box(left[i])))
            left[at], left[nearest] = left[at] + left[nearest], []
            fine[at] = good(left[at])
    return [rows for rows, is_fine in zip(left, fine, strict=True) if rows and is_fine]
