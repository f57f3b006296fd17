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
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Secrets, Setting
from shoal.attacks.shares import Share

__all__ = ["Homogeneity"]


class Homogeneity(Attack):
    """Learn the sensitive value of a known person for certain.

    - **Knows**: all quasi values of the victim, or those of ``--known``; that they have a row. If
      the job keeps columns, then also all quasi values and the kept columns of that row.
    - **Does**: takes *all* boxes that cover what is known, and of their rows those with the same
      kept columns. If they agree on the value, the victim has it, whichever row is theirs.
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
            baseline = float(np.count_nonzero(published_shares(setting, secrets)) == 1)
            bound = certainty_bound(setting, secrets.name)
            for knowledge, known in grades(setting, random, len(rows), in_part=False):
                certain = _is_certain(setting, secrets, rows, known, None)
                yield AttackResult(
                    self.name,
                    f"{knowledge}; learns {secrets.name}",
                    Share(int(certain.sum()), len(rows)),
                    baseline=baseline,
                    bound=bound.rate,
                    bound_from=bound.source,
                )
            kept = setting.kept
            if kept is not None:
                certain = _is_certain(setting, secrets, rows, setting.knows(len(rows)), kept)
                yield AttackResult(
                    self.name,
                    f"all quasi values, and {kept.name} (kept); learns {secrets.name}",
                    Share(int(certain.sum()), len(rows)),
                    baseline=baseline,
                )


def _is_certain(
    setting: Setting,
    secrets: Secrets,
    rows: NDArray[np.int64],
    known: NDArray[np.bool_],
    kept: Secrets | None,
) -> NDArray[np.bool_]:
    """Return for which targets all rows that may be theirs have one value, and it is right.

    Where kept columns are known, only rows with the same values in these may be theirs.
    """
    n_values = 1 + int(max(secrets.published.max(initial=0), secrets.original.max(initial=0)))
    both = secrets if kept is None else _paired(kept, secrets, n_values)
    votes = votes_of(setting, both, setting.points[rows], known, tightest=False)
    target, value = votes.target, votes.value % n_values
    if kept is not None:
        fits = votes.value // n_values == kept.original[rows][target]
        target, value = target[fits], value[fits]
    agreed = np.full(len(rows), -1, dtype=np.int64)
    agreed[target] = value
    n_found = np.bincount(target, minlength=len(rows))
    is_certain: NDArray[np.bool_] = (n_found == 1) & (agreed == secrets.original[rows])
    return is_certain


def _paired(kept: Secrets, secrets: Secrets, n_values: int) -> Secrets:
    """Return a number for each pair of values of both."""
    return Secrets(
        secrets.name,
        kept.published * n_values + secrets.published,
        kept.original * n_values + secrets.original,
    )
