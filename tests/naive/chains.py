"""Chain sampling, row by row and chain by chain, as it is told in the paper.

Source: B. Babcock, M. Datar, R. Motwani, "Sampling from a moving window over streaming data", SODA
2002; B. Zhou et al., EDBT 2009, section 4.2. Only the coin isn't tossed for each row: the next row
that it selects is drawn, which is the same in distribution (`test_chains` shows it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from shoal.engine.kernels.rng import below, uniform
from tests.naive.space import Box

__all__ = ["NaiveChains"]


@dataclass
class Chain:
    """A current sample and the links behind it, each a position and a box."""

    current: tuple[int, Box] | None = None
    links: list[tuple[int, Box]] = field(default_factory=list)
    awaited: int = -1
    selected: int = 0


class NaiveChains:
    """Independent chains over the latest ``window`` rows.

    Parameters
    ----------
    samples, window
        How many chains, over how many rows.
    coins_rest
        Whether a coin counts for nothing at the row at which the sample leaves the window. If it
        counts there too, the newest row is favoured.
    n_links
        How many links a chain has room for.
    """

    def __init__(
        self, samples: int, window: int, *, coins_rest: bool = True, n_links: int = 20
    ) -> None:
        self.window, self.coins_rest, self.n_links = window, coins_rest, n_links
        self.chains = [Chain() for _ in range(samples)]

    def arrives(self, random: Any, position: int, box: Box) -> list[int]:
        """A row comes: the chains that get another sample. Each must be renewed."""
        row = (position, box)
        changed = []
        for c, chain in enumerate(self.chains):
            leaves = chain.current is not None and chain.current[0] + self.window == position
            is_selected = chain.selected == position
            if is_selected and not (leaves and self.coins_rest):
                chain.links = [row]
                chain.awaited = position + 1 + int(below(random, self.window))
                changed.append(c)
            else:
                if chain.awaited == position:
                    if len(chain.links) == self.n_links:
                        chain.links.pop()
                    chain.links.append(row)
                    chain.awaited = position + 1 + int(below(random, self.window))
                if leaves:
                    changed.append(c)
            if is_selected:
                chain.selected = self._next_selected(random, position + 1) - 1
        return changed

    def _next_selected(self, random: Any, n: int) -> int:
        """The number, counted from 1, of the next row that a coin selects after number n."""
        if self.window == 1:
            return n + 1
        if n < self.window:
            reached = n / (1.0 - uniform(random))
            if reached < self.window:
                return math.floor(reached) + 1
            n = self.window
        tosses = math.log(1.0 - uniform(random)) / math.log(1.0 - 1.0 / self.window)
        return n + math.floor(tosses) + 1

    def renew(self, c: int) -> None:
        """The next link becomes the current sample."""
        self.chains[c].current = self.chains[c].links.pop(0)

    def position(self, c: int) -> int:
        """The position of the current sample."""
        current = self.chains[c].current
        assert current is not None
        return current[0]

    def box(self, c: int) -> Box:
        """The box of the current sample."""
        current = self.chains[c].current
        assert current is not None
        return current[1]
