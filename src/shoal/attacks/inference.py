"""Infer a sensitive value: the best guess from the group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from shoal.attacks.base import Attack
from shoal.attacks.bounds import value_bound
from shoal.attacks.guessing import best_guess, most_frequent, published_shares, votes_of
from shoal.attacks.knowledge import grades
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting
from shoal.attacks.shares import Share

__all__ = ["Inference"]


class Inference(Attack):
    """Guess the sensitive value of a known person.

    - **Knows**: the victim's quasi values, in the grades of *linking*; and that they have a row.
    - **Does**: takes the smallest box that covers what is known, and guesses the value that most of
      its rows have; where no box covers the victim, the value that is published most often.
    - **Bound**: k alone gives none. The share of the guessed value q is bounded by distinct
      l-diversity, q ≤ 1 - (l - 1)/n in a group of n rows; by entropy and recursive diversity; by
      basic likeness, q ≤ (1 + beta) p, the other likenesses, q ≤ (1 + min(beta, -ln p)) p,
      disclosure, q < p exp(delta), and t-closeness, q ≤ p + t/d, where p is the share in the window
      and d the least distance of two values. The bound is the mean over the victims.
    - **Baseline**: the value that is published most often.
    """

    name: ClassVar[str] = "inference"

    def misfit(self, setting: Setting) -> str | None:
        """Return why there is nothing to infer, or None."""
        return super().misfit(setting) or no_secret(setting)

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Guess each sensitive attribute, with each grade of knowledge."""
        for secrets in setting.secrets:
            random = setting.random(self.name)
            rows = setting.targets(random)
            truth, prior = secrets.original[rows], published_shares(setting, secrets)
            for knowledge, known in grades(setting, random, len(rows)):
                votes = votes_of(setting, secrets, setting.points[rows], known)
                guess = best_guess(votes, votes.count.astype(float), prior, truth)
                bound = value_bound(setting, secrets, votes, guess.value, prior)
                yield AttackResult(
                    self.name,
                    f"{knowledge}; guesses {secrets.name}",
                    Share(int(guess.is_right.sum()), len(rows)),
                    baseline=float((truth == most_frequent(prior)).mean()) if len(rows) else None,
                    bound=bound.rate,
                    bound_from=bound.source,
                )


def no_secret(setting: Setting) -> str | None:
    """Return why no sensitive value can be guessed, or None."""
    if not setting.schema.sensitive:
        return "the schema has no sensitive attribute"
    return None
