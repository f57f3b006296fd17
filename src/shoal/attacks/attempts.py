"""Guess the sensitive values of people, grade by grade of knowledge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.bounds import Bound
from shoal.attacks.guessing import (
    Guess,
    Votes,
    best_guess,
    most_frequent,
    published_shares,
    votes_of,
)
from shoal.attacks.knowledge import grades
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Secrets, Setting
from shoal.attacks.shares import Share

__all__ = ["Attempt", "attempts", "by_count", "no_secret"]


class Attempt(NamedTuple):
    """A guess of the value of each target, by an attacker of one grade of knowledge."""

    knowledge: str
    truth: NDArray[np.int64]
    prior: NDArray[np.float64]
    votes: Votes
    guess: Guess

    @property
    def by_most_frequent(self) -> NDArray[np.float64]:
        """The success of the baseline that guesses the value published most often."""
        is_right: NDArray[np.bool_] = self.truth == most_frequent(self.prior)
        return is_right.astype(np.float64)

    def result(
        self, attack: str, what: str, baseline: NDArray[np.float64], bound: Bound
    ) -> AttackResult:
        """Return what the guesses achieved; ``baseline`` is the chance for each target."""
        n = len(self.truth)
        return AttackResult(
            attack,
            f"{self.knowledge}; guesses {what}",
            Share(int(self.guess.is_right.sum()), n),
            baseline=float(baseline.mean()) if n else None,
            bound=bound.rate,
            bound_from=bound.source,
        )


def attempts(
    setting: Setting,
    name: str,
    secrets: Secrets,
    weigh: Callable[[Votes, NDArray[np.float64]], NDArray[np.float64]],
    *,
    in_part: bool = False,
) -> Iterator[Attempt]:
    """Guess a value for each target from the smallest box that covers them, grade by grade.

    Parameters
    ----------
    setting, secrets
        The release, and the values that are guessed.
    name
        The name of the attack, which the targets are drawn by.
    weigh
        The weight of each line of votes, given the published shares: the largest is guessed.
    in_part
        Whether half of the quasi values are a grade of knowledge.
    """
    random = setting.random(name)
    rows = setting.targets(random)
    truth, prior = secrets.original[rows], published_shares(setting, secrets)
    for knowledge, known in grades(setting, random, len(rows), in_part=in_part):
        votes = votes_of(setting, secrets, setting.points[rows], known)
        guess = best_guess(votes, weigh(votes, prior), prior, truth)
        yield Attempt(knowledge, truth, prior, votes, guess)


def by_count(votes: Votes, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weigh values by how many rows have them."""
    return votes.count.astype(np.float64)


def no_secret(setting: Setting) -> str | None:
    """Return why no sensitive value can be guessed, or None."""
    if not setting.schema.sensitive:
        return "the schema has no sensitive attribute"
    return None
