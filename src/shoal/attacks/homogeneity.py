"""Infer a sensitive value with certainty: the group agrees on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from shoal.attacks.attempts import no_secret
from shoal.attacks.base import Attack
from shoal.attacks.bounds import certainty_bound
from shoal.attacks.guessing import published_shares, votes_of
from shoal.attacks.knowledge import grades
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

__all__ = ["Homogeneity"]


class Homogeneity(Attack):
    """Learn the sensitive value of a known person for certain.

    - **Knows**: all quasi values of the victim, or those of ``--known``; that they have a row.
    - **Does**: takes *all* boxes that cover what is known. If their rows agree on the value, the
      victim has it, whichever row is theirs.
    - **Bound**: 0 where every group must have two values: l-diversity with l ≥ 2, disclosure, and
      every likeness but the basic one. k, t and basic likeness give none.
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
