"""Maybe-match: how many published rows agree with each one wherever both have a label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.columns import combined_codes
from shoal.audit.evidence import Evidence

__all__ = ["n_matching"]


def n_matching(evidence: Evidence) -> NDArray[np.int64]:
    """Return for each published row of a group how many rows match it, itself included.

    Two rows match if they have the same label in every attribute where both have one. All rows of a
    group match each other, so a row that fewer than k rows match is in no group of k.
    """
    grouped = np.flatnonzero(evidence.in_group)
    _, first, inverse, weights = np.unique(
        evidence.box[grouped], return_index=True, return_inverse=True, return_counts=True
    )
    rows, sides = grouped[first], evidence.sides
    gaps = np.column_stack([side.gap[rows] for side in sides])
    pattern = combined_codes(*(gap.astype(np.int64) for gap in gaps.T))
    members = [np.flatnonzero(pattern == p) for p in range(int(pattern.max(initial=-1)) + 1)]
    matching = np.zeros(len(rows), dtype=np.int64)
    for some in members:
        for others in members:
            shared = np.flatnonzero(~gaps[some[0]] & ~gaps[others[0]])
            if not len(shared):
                matching[some] += weights[others].sum()
                continue
            joint = np.concatenate((rows[some], rows[others]))
            box = combined_codes(*(sides[s].labels[joint] for s in shared))
            counts = np.zeros(int(box.max()) + 1, dtype=np.int64)
            np.add.at(counts, box[len(some) :], weights[others])
            matching[some] += counts[box[: len(some)]]
    return np.asarray(matching[inverse], dtype=np.int64)
