"""Take a missing row for a signal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.base import Attack
from shoal.attacks.guessing import most_frequent, published_shares
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

__all__ = ["Suppression"]


class Suppression(Attack):
    """Learn from a row that is missing: it was suppressed, or set apart as a bad row.

    - **Knows**: all quasi values of the victim, and that they have a row in the stream.
    - **Does**: looks for a box that covers the victim. Where none does, they were suppressed or
      quarantined, so they were among too few, or their row was bad. Then guesses the sensitive
      value of those who are missing: the most frequent one, which is the first that l-diversity
      finds too often.
    - **Bound**: none: no criterion is about rows that aren't published.
    - **Baseline**: for absence, the share of people who are published and whom no box covers (false
      alarms; 0 where boxes cover their rows). For values, the published share of the guess.
    - **Control**: somebody who never came looks the same as somebody who is missing.
    """

    name: ClassVar[str] = "suppression"
    needs_trace: ClassVar[bool] = True

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Look for those who are missing, and guess what they have."""
        random = setting.random(self.name)
        # In the release without the control, the control is missing.
        rows = setting.targets(random, setting.is_lost | (setting.outcome < 0))
        there = setting.targets(random, setting.is_published)
        seen = "all quasi values"
        if setting.suppressed == "root":
            seen += ", suppressed rows are visible"
        yield AttackResult(
            self.name,
            f"{seen}; learns who is missing",
            Share(int(_uncovered(setting, rows).sum()), len(rows)),
            baseline=float(_uncovered(setting, there).mean()) if len(there) else None,
            notes=(f"{int(setting.is_lost.sum()):,} rows were suppressed or quarantined",),
        )
        for secrets in setting.secrets:
            prior = published_shares(setting, secrets)
            guess = most_frequent(prior)
            yield AttackResult(
                self.name,
                f"who is missing; guesses {secrets.name}",
                Share(int((secrets.original[rows] == guess).sum()), len(rows)),
                baseline=float(prior[guess]),
            )


def _uncovered(setting: Setting, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which targets no box covers."""
    matches = setting.boxes.covering(setting.points[rows], setting.knows(len(rows)))
    found = np.ones(len(rows), dtype=np.bool_)
    found[matches.target] = False
    return found
