"""The IoT anonymization of Otgonbayar and others, slowly, reconstructed from IDEA's section 2.2.

As K-VARP, but the next partition is the most similar and biggest one, at random among equals.
"""

from __future__ import annotations

from tests.naive.k_varp import NaiveKVarp
from tests.naive.partitions import Valid, attribute_distance
from tests.naive.space import Row

__all__ = ["NaiveIot"]


class NaiveIot(NaiveKVarp):
    """One run of it; ``radius`` has no meaning here."""

    def next_partition(self, t: Row, others: dict[Valid, list[Row]]) -> Valid:
        mine = self.partition_of(t)

        def rank(valid: Valid) -> tuple[float, int]:
            return attribute_distance(mine, valid), -len(others[valid])

        best = min(rank(valid) for valid in others)
        equal = [valid for valid in others if rank(valid) == best]
        return equal[self.draw(len(equal))] if len(equal) > 1 else equal[0]
