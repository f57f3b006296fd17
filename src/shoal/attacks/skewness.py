"""Infer a sensitive value that is more frequent in a group than elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from shoal.attacks.base import Attack
from shoal.attacks.bounds import value_bound
from shoal.attacks.guessing import best_guess, published_shares, votes_of
from shoal.attacks.inference import no_secret
from shoal.attacks.knowledge import grades
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

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
            random = setting.random(self.name)
            rows = setting.targets(random)
            truth, prior = secrets.original[rows], published_shares(setting, secrets)
            for knowledge, known in grades(setting, random, len(rows), in_part=False):
                votes = votes_of(setting, secrets, setting.points[rows], known)
                gain = votes.count / votes.total[votes.target] / prior[votes.value]
                guess = best_guess(votes, gain, prior, truth)
                bound = value_bound(setting, secrets, votes, guess.value, prior)
                yield AttackResult(
                    self.name,
                    f"{knowledge}; guesses {secrets.name}",
                    Share(int(guess.is_right.sum()), len(rows)),
                    baseline=float(prior[guess.value].mean()) if len(rows) else None,
                    bound=bound.rate,
                    bound_from=bound.source,
                )
