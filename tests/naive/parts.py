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
    """Parts the rows of a pool so that each part keeps what is promised against the window.

    It is called for a pool that keeps the promise as a whole.
    """

    space: Space
    promises: Promises

    def __call__(self, pool: Sequence[Row], window: Sequence[Row]) -> list[Part]: ...


def merge(
    space: Space, groups: Sequence[list[Row]], good: Callable[[list[Row]], bool]
) -> list[list[Row]]:
    """Merge every group that isn't good with its nearest ones, until it is (§3.6 and §4.3.4).

    Groups are looked at in their order. The nearest is the one with which it loses least more; of
    equals the first. The merged group stays in the place of the one that failed.
    """
    left = [list(rows) for rows in groups]
    at = 0
    while at < len(left):
        while not good(left[at]) and len(left) > 1:
            mine = space.box(left[at])
            others = [i for i in range(len(left)) if i != at]
            nearest = min(others, key=lambda i: space.enlargement(mine, space.box(left[i])))
            left[at] = left[at] + left[nearest]
            del left[nearest]
            at -= nearest < at
        at += 1
    return left
