"""Infer a sensitive value that is more frequent in a group than elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.attempts import attempts, no_secret
from shoal.attacks.base import Attack
from shoal.attacks.bounds import value_bound
from shoal.attacks.guessing import Votes
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting

__all__ = ["Skewness"]


class Skewness(Attack):
    """Guess the value that a person's group adds most to.

    - **Knows**: all quasi values of the victim, or those of ``--known``; that they have a row.
    - **Does**: takes the smallest box that covers what is known, and guesses the value with the
      largest gain q/p: its share in the box, over its share of all published rows. This finds rare
      values, which are never the best guess.
    - **Bound**: as for *inference*, for the guessed values. Likeness and disclosure bound the gain
      itself; l-diversity hardly does.
    - **Baseline**: the mean share p of the guessed values.
    """

    name: ClassVar[str] = "skewness"

    def misfit(self, setting: Setting) -> str | None:
        """Return why there is nothing to infer, or None."""
        return super().misfit(setting) or no_secret(setting)

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Guess each sensitive attribute by its gain."""
        for secrets in setting.secrets:
            for made in attempts(setting, self.name, secrets, by_gain):
                value, prior = made.guess.value, made.prior
                bound = value_bound(setting, secrets, made.votes, value, prior)
                yield made.result(self.name, secrets.name, prior[value], bound)


def by_gain(votes: Votes, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weigh values by their share in the boxes of the target, over that of all published rows."""
    share: NDArray[np.float64] = votes.count / votes.total[votes.target]
    return share / prior[votes.value]
