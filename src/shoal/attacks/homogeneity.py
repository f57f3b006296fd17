"""Infer a sensitive value with certainty: the group agrees on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.attempts import no_secret
from shoal.attacks.base import Attack
from shoal.attacks.bounds import certainty_bound
from shoal.attacks.guessing import published_shares, votes_of
from shoal.attacks.knowledge import grades
from shoal.attacks.result import NO_TRACE, AttackResult
from shoal.attacks.setting import Secrets, Setting
from shoal.attacks.shares import Share

__all__ = ["Homogeneity"]


class Homogeneity(Attack):
    """Learn the sensitive value of a known person for certain.

    - **Knows**: all quasi values of the victim, or those of ``--known``; that they have a row. If
      the job keeps columns: the box of that row (by when it left, say), and the kept columns.
    - **Does**: takes *all* boxes that cover what is known. If their rows agree on the value, the
      victim has it, whichever row is theirs. With kept columns: the rows of the box that have the
      same.
    - **Bound**: 0 where every group must have two values: l-diversity with l ≥ 2, disclosure, and
      every likeness but the basic one. k, t and basic likeness give none, and nothing bounds what
      kept columns add.
    - **Baseline**: 0 where more than one value is published: marginals make nothing certain.
    """

    name: ClassVar[str] = "homogeneity"

    def misfit(self, setting: Setting) -> str | None:
        """Return why there is nothing to infer, or None."""
        return super().misfit(setting) or no_secret(setting)

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Look for agreement about each sensitive attribute."""
        for secrets in setting.secrets:
            random = setting.random(self.name)
            rows = setting.targets(random)
            prior = published_shares(setting, secrets)
            for knowledge, known in grades(setting, random, len(rows), in_part=False):
                votes = votes_of(setting, secrets, setting.points[rows], known, tightest=False)
                n_values = np.bincount(votes.target, minlength=len(rows))
                agreed = np.full(len(rows), -1, dtype=np.int64)
                agreed[votes.target] = votes.value
                is_right = (n_values == 1) & (agreed == secrets.original[rows])
                bound = certainty_bound(setting, secrets.name)
                yield AttackResult(
                    self.name,
                    f"{knowledge}; learns {secrets.name}",
                    Share(int(is_right.sum()), len(rows)),
                    baseline=float(np.count_nonzero(prior) == 1),
                    bound=bound.rate,
                    bound_from=bound.source,
                )
            if setting.kept is not None:
                yield self._by_kept_columns(setting, setting.kept, secrets, rows, prior)

    def _by_kept_columns(
        self,
        setting: Setting,
        kept: Secrets,
        secrets: Secrets,
        rows: NDArray[np.int64],
        prior: NDArray[np.float64],
    ) -> AttackResult:
        """Look for agreement among the rows of the victim's box that share the kept columns."""
        knowledge = f"the box, and {kept.name} (kept); learns {secrets.name}"
        if setting.trace is None:
            return AttackResult(self.name, knowledge, unverifiable=NO_TRACE)
        box, owner = setting.boxes.of_row, setting.owner
        # Rows that look alike, in their box and their kept columns, have one number: the next
        # free one, so that the numbers of large releases don't overflow.
        shown = np.flatnonzero(box >= 0)
        both = box[shown] * (1 + int(kept.published.max(initial=0))) + kept.published[shown]
        _, inverse = np.unique(both, return_inverse=True)
        alike, width = inverse.reshape(-1), 1 + int(secrets.published.max(initial=0))
        pairs = np.unique(alike * width + secrets.published[shown])
        n_values = np.bincount(pairs // width)
        certain = shown[(n_values[alike] == 1) & (owner[shown] >= 0)]
        subjects = setting.subjects
        n_people = len(np.unique(subjects[owner[certain]]))
        return AttackResult(
            self.name,
            knowledge,
            Share(int(np.isin(rows, owner[certain]).sum()), len(rows)),
            baseline=float(np.count_nonzero(prior) == 1),
            notes=(
                f"with {kept.name}, {secrets.name} is certain in at least one row of {n_people:,} "
                f"of {len(np.unique(subjects)):,} people",
            ),
        )
