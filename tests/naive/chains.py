"""Chain sampling, row by row and chain by chain, as described in the paper.

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
    """Independent chains over the latest ``span`` rows.

    Parameters
    ----------
    samples, span
        The number of chains, and of latest rows.
    coins_rest
        Whether a coin is ignored at the row at which the sample expires. If it counts there too,
        the newest row is favoured.
    n_links
        The most links of a chain.
    """

    def __init__(
        self, samples: int, span: int, *, coins_rest: bool = True, n_links: int = 20
    ) -> None:
        self.span, self.coins_rest, self.n_links = span, coins_rest, n_links
        self.chains = [Chain() for _ in range(samples)]

    def arrives(self, random: Any, position: int, box: Box) -> list[int]:
        """Process a row; return the chains that get a new sample. Each must be renewed."""
        row = (position, box)
        changed = []
        for c, chain in enumerate(self.chains):
            leaves = chain.current is not None and chain.current[0] + self.span == position
            is_selected = chain.selected == position
            if is_selected and not (leaves and self.coins_rest):
                chain.links = [row]
                chain.awaited = position + 1 + int(below(random, self.span))
                changed.append(c)
            else:
                if chain.awaited == position:
                    if len(chain.links) == self.n_links:
                        chain.links.pop()
                    chain.links.append(row)
                    chain.awaited = position + 1 + int(below(random, self.span))
                if leaves:
                    changed.append(c)
            if is_selected:
                chain.selected = self._next_selected(random, position + 1) - 1
        return changed

    def _next_selected(self, random: Any, n: int) -> int:
        """The number, counted from 1, of the next row that a coin selects after number n."""
        if self.span == 1:
            return n + 1
        if n < self.span:
            reached = n / (1.0 - uniform(random))
            if reached < self.span:
                return math.floor(reached) + 1
            n = self.span
        tosses = math.log(1.0 - uniform(random)) / math.log(1.0 - 1.0 / self.span)
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
