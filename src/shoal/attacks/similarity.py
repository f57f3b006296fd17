"""Infer what a sensitive value is like: its parent in the hierarchy, or a range of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.attempts import attempts, by_count, no_secret
from shoal.attacks.base import Attack
from shoal.attacks.bounds import NOTHING, Bound, likeness_bound, window_shares
from shoal.attacks.guessing import Guess, Votes
from shoal.attacks.result import AttackResult
from shoal.attacks.setting import Secrets, Setting
from shoal.audit.columns import column
from shoal.audit.coordinates import coordinates
from shoal.spec.criteria import RangeLikeness, SemanticLikeness
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.schema import Sensitive

__all__ = ["Similarity"]

#: How many ranges of equal length the domain of a number is cut into.
N_RANGES = 10


class Similarity(Attack):
    """Guess what the sensitive value of a known person is like.

    - **Knows**: all quasi values of the victim, or those of ``--known``; that they have a row.
    - **Does**: replaces each value by its parent in the hierarchy, or by one of ten ranges of equal
      length (with range-based likeness: ranges of length epsilon), and guesses the one that most
      rows of the smallest box have. Ten different diseases of the stomach are diverse, and tell
      where it hurts.
    - **Bound**: semantic likeness bounds the parents that it protects, range-based likeness the
      ranges: q ≤ (1 + min(beta, -ln p)) p. Nothing else bounds this attack.
    - **Baseline**: the parent or range that is published most often.
    """

    name: ClassVar[str] = "similarity"

    def misfit(self, setting: Setting) -> str | None:
        """Return why nothing is alike, or None."""
        reason = super().misfit(setting) or no_secret(setting)
        if reason is None and not any(map(_has_kinds, setting.schema.sensitive)):
            return "no sensitive attribute is a number, or has a hierarchy of several levels"
        return reason

    def run(self, setting: Setting) -> Iterator[AttackResult]:
        """Guess each sensitive attribute that has an order or a hierarchy."""
        for attribute in filter(_has_kinds, setting.schema.sensitive):
            secrets = _kinds(setting, attribute)
            if secrets is None:
                continue
            what = "range" if isinstance(attribute.domain, Range) else "parent"
            for made in attempts(setting, self.name, secrets, by_count):
                bound = _bound(setting, attribute, secrets, made.votes, made.guess)
                yield made.result(
                    self.name, f"the {what} of {secrets.name}", made.by_most_frequent, bound
                )


def _has_kinds(attribute: Sensitive) -> bool:
    domain = attribute.domain
    return isinstance(domain, Range) or (isinstance(domain, Hierarchy) and domain.depth > 2)


def _kinds(setting: Setting, attribute: Sensitive) -> Secrets | None:
    """Return the values of an attribute as parents or ranges, in both tables."""
    domain = attribute.domain
    assert domain is not None
    arrays = [column(table, attribute.name) for table in (setting.published, setting.original)]
    if any(array is None for array in arrays):
        return None
    places = [coordinates(array, domain) for array in arrays]
    if isinstance(domain, Range):
        length = _length(setting, attribute, domain)
        found = [np.floor((place - domain.lo) / length) for place in places]
    else:
        parents = np.array([domain.parents[node] for node in domain.leaf_nodes], dtype=np.float64)
        found = [_taken(parents, place) for place in places]
    # What is missing, or outside of the domain, is a kind of its own.
    codes = [
        np.where(np.isnan(each), 0, np.maximum(each, -1) + 2).astype(np.int64) for each in found
    ]
    return Secrets(attribute.name, codes[0], codes[1])


def _taken(of_code: NDArray[np.float64], codes: NDArray[np.float64]) -> NDArray[np.float64]:
    known = ~np.isnan(codes)
    found = np.full(len(codes), np.nan)
    found[known] = of_code[codes[known].astype(np.int64)]
    return found


def _length(setting: Setting, attribute: Sensitive, domain: Range) -> float:
    promised = [each.epsilon for each in _range_likeness(setting, attribute) if each.epsilon > 0]
    return min(promised, default=(domain.hi - domain.lo) / N_RANGES)


def _range_likeness(setting: Setting, attribute: Sensitive) -> list[RangeLikeness]:
    return [
        each
        for each in setting.policy.criteria
        if isinstance(each, RangeLikeness)
        and not each.relative
        and each.attribute in (None, attribute.name)
    ]


def _bound(
    setting: Setting, attribute: Sensitive, secrets: Secrets, votes: Votes, guess: Guess
) -> Bound:
    """Return the bound of a likeness that protects these kinds, if one does."""
    betas = [each.beta for each in _range_likeness(setting, attribute)]
    source = RangeLikeness.name
    if isinstance(attribute.domain, Hierarchy):
        least = _least_level(attribute.domain)
        betas = [
            each.beta
            for each in setting.policy.criteria
            if isinstance(each, SemanticLikeness)
            and each.attribute in (None, attribute.name)
            and each.level <= least
        ]
        source = SemanticLikeness.name
    shares = window_shares(setting, secrets, votes, guess.value) if len(guess.value) else None
    if not betas or shares is None:
        return NOTHING
    return Bound(float(likeness_bound(min(betas), shares).mean()), source)


def _least_level(domain: Domain) -> int:
    """Return the level of the highest parent of a leaf; the root is level 0."""
    assert isinstance(domain, Hierarchy)

    def level(node: int) -> int:
        return 0 if node == 0 else 1 + level(domain.parents[node])

    return min(level(domain.parents[node]) for node in domain.leaf_nodes)
