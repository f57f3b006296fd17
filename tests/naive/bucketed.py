"""What the twins of SABRE and BUREL share: groups that take rows of each bucket, and merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.naive.buckets import Bucket
from tests.naive.fill_groups import GroupFiller
from tests.naive.measured import Promises
from tests.naive.parts import Part, merge
from tests.naive.sizes import Sizes, dichotomize
from tests.naive.space import Row, Space

__all__ = ["NaiveBucketed"]


class NaiveBucketed:
    """A partition by buckets. A subclass tells which attribute is put in them, and plans."""

    #: What Shoal does.
    all_deviations: Callable[[], Any]

    def __init__(
        self,
        space: Space,
        promises: Promises,
        *,
        draw: Callable[[int], int],
        look: int | None = 8,
        deviations: Any = None,
    ) -> None:
        self.space, self.promises = space, promises
        self.taking = GroupFiller(space, look, draw)
        self.deviations = deviations or self.all_deviations()

    @property
    def j(self) -> int | None:
        """The attribute that is put in buckets; None if nothing is asked of any."""
        raise NotImplementedError

    def plan(self, pool: Sequence[Row], window: Sequence[Row]) -> tuple[list[Bucket], list[Sizes]]:
        """The buckets, and how many rows of each make up a group."""
        raise NotImplementedError

    def __call__(self, pool: Sequence[Row], window: Sequence[Row]) -> list[Part]:
        if self.j is None:
            rows_of = [list(pool)]
            sizes = dichotomize([len(pool)], lambda sizes: True, self.promises.needed)
        else:
            buckets, sizes = self.plan(pool, window)
            rows_of = [[row for row in pool if row.sensitive[self.j] in b] for b in buckets]
        groups = self.taking.groups(rows_of, sizes)
        if self.deviations.failing_groups_merge:
            groups = merge(self.space, groups, lambda rows: self.promises.hold(rows, window))
        return [Part(rows, self.space.box(rows)) for rows in groups]
