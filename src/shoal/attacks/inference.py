"""Infer a sensitive value: the best guess from the group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from shoal.attacks.attempts import attempts, by_count, no_secret
from shoal.attacks.base import Attack
from shoal.attacks.bounds import value_bound
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Setting

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
            for made in attempts(setting, self.name, secrets, by_count, in_part=True):
                bound = value_bound(setting, secrets, made.votes, made.guess.value, made.prior)
                yield made.result(self.name, secrets.name, made.by_most_frequent, bound)
