"""What a promise allows an attacker to infer about a sensitive value."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.guessing import Votes
from shoal.attacks.setting import Secrets, Setting
from shoal.audit.trace import QUARANTINED
from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    Criterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    LDiversity,
    Measured,
    RecursiveLDiversity,
    TCloseness,
    VariationalCloseness,
)
from shoal.spec.hierarchy import Hierarchy
from shoal.spec.policy import Window

__all__ = [
    "NOTHING",
    "Bound",
    "certainty_bound",
    "largest_share",
    "likeness_bound",
    "value_bound",
    "window_shares",
]


class Bound(NamedTuple):
    """The success that a promise allows, and where it comes from; None: it gives no bound."""

    rate: float | None
    source: str


NOTHING = Bound(None, "")


def value_bound(
    setting: Setting,
    secrets: Secrets,
    votes: Votes,
    guessed: NDArray[np.int64],
    prior: NDArray[np.float64],
) -> Bound:
    """Bound the success of guessing these values, averaged over targets.

    Each criterion bounds the share of the guessed value in the group of a target. Somebody whom no
    box covers is in no group: there it is the published share.
    """
    concerned = [each for each in setting.policy.criteria if _concerns(each, secrets.name)]
    if not concerned or not len(guessed):
        return NOTHING
    shares = window_shares(setting, secrets, votes, guessed)
    allowed = np.ones(len(guessed))
    sources = []
    for criterion in concerned:
        found = _allowed(setting, criterion, secrets, votes, shares)
        if found is not None:
            allowed = np.minimum(allowed, found)
            sources.append(criterion.name)
    if not sources:
        return NOTHING
    rate = float(np.where(votes.total > 0, allowed, prior[guessed]).mean())
    return Bound(rate, " and ".join(sources)) if rate < 1 else NOTHING


def certainty_bound(setting: Setting, name: str) -> Bound:
    """Bound the share of people in groups with one value only: 0, or none."""
    for each in setting.policy.criteria:
        if not _concerns(each, name):
            continue
        two_values = isinstance(each, LDiversity) and each.needed > 1
        # These keep q below 1 as long as p is.
        below_one = isinstance(each, DeltaDisclosure) or (
            isinstance(each, BetaLikeness) and not isinstance(each, BasicLikeness)
        )
        if two_values or below_one:
            return Bound(0.0, each.name)
    return NOTHING


def likeness_bound(beta: float, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest share q that enhanced likeness allows where the window has p.

    >>> likeness_bound(2.0, np.array([0.1, 0.5])).round(3).tolist()
    [0.3, 0.847]
    """
    with np.errstate(divide="ignore"):
        gain = np.minimum(beta, np.where(shares > 0, -np.log(shares), beta))
    return np.minimum(1.0, (1 + gain) * shares)


def largest_share(l: float, n_values: int) -> float:  # noqa: E741 - the letter of the papers
    """Return the largest share of one of n values whose entropy is at least log l.

    >>> round(largest_share(2, 2), 3), round(largest_share(2, 5), 3)
    (0.5, 0.829)
    """
    if n_values < 2 or l <= 1:
        return 1.0

    def entropy(p: float) -> float:
        rest = (1 - p) / (n_values - 1)
        own = -p * math.log(p)
        return own if rest <= 0 else own - (1 - p) * math.log(rest)

    low, high = 1 / n_values, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if entropy(middle) >= math.log(l):
            low = middle
        else:
            high = middle
    return high


def _concerns(criterion: Criterion, name: str) -> bool:
    if not isinstance(criterion, LDiversity | Measured):
        return False
    return criterion.attribute in (None, name)


def _allowed(
    setting: Setting,
    criterion: Criterion,
    secrets: Secrets,
    votes: Votes,
    shares: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """Return the largest share of a value in the group of each target; None: it isn't known."""
    n_values = len(np.unique(secrets.published))
    one = np.ones(len(votes.total))
    match criterion:
        case DistinctLDiversity(l=l):
            # In each box l - 1 people at least have other values.
            return one - (l - 1) * votes.n_boxes / np.maximum(1, votes.total)
        case EntropyLDiversity(l=l):
            return one * largest_share(l, n_values)
        case RecursiveLDiversity(l=l, c=c):
            rest = max(1.0, n_values - l + 1)
            return one * (c / (c + 1 + max(0.0, l - 2) / rest))
    if shares is None:
        return None
    match criterion:
        case BasicLikeness(beta=beta):
            return np.minimum(1.0, (1 + beta) * shares)
        case BetaLikeness(beta=beta):
            return likeness_bound(beta, shares)
        case DeltaDisclosure(delta=delta):
            return np.minimum(1.0, math.exp(delta) * shares)
        case TCloseness(t=t):
            return np.minimum(1.0, shares + t / _least_distance(setting, secrets))
        case VariationalCloseness(t=t) | EuclideanCloseness(t=t):
            # What one value has more, others have less: neither distance is less than q - p.
            return np.minimum(1.0, shares + t)
        case JensenShannonCloseness(t=t):
            # Pinsker's inequality: a divergence of D bits is at least the variation² / (2 ln 2).
            return np.minimum(1.0, shares + t * math.sqrt(2 * math.log(2)))
    return None


def _least_distance(setting: Setting, secrets: Secrets) -> float:
    """Return the least distance of two different values, as a share of the largest."""
    domain = next(a.domain for a in setting.schema.sensitive if a.name == secrets.name)
    if isinstance(domain, Hierarchy):
        return 1 / max(1, domain.depth - 1)
    return 1 / max(1, len(np.unique(secrets.original)) - 1)


def window_shares(
    setting: Setting, secrets: Secrets, votes: Votes, guessed: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Return the share of each guess in the window of its group; None if that isn't known."""
    window, trace = setting.policy.window, setting.lines
    if window == "all":
        good = setting.outcome != QUARANTINED
        counts = np.bincount(secrets.original[good], minlength=int(guessed.max()) + 1)
        return np.asarray(counts[guessed] / max(1, good.sum()), dtype=np.float64)
    if not isinstance(window, Window) or trace is None:
        return None
    arrived = np.flatnonzero(trace.arrived >= 0)
    arrived = arrived[np.argsort(trace.arrived[arrived])]
    at = setting.evidence.located(trace.row[arrived])
    values = np.where(at >= 0, secrets.original[at], -1)
    ends = _window_ends(setting, votes.first_box)
    shares = np.zeros(len(guessed))
    for i, (end, value) in enumerate(zip(ends, guessed, strict=True)):
        inside = values[max(0, end - window.rows) : end]
        shares[i] = np.mean(inside == value) if len(inside) else 0.0
    return shares


def _window_ends(setting: Setting, box: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the window of a box ends, as a count of rows; 0: there is no box."""
    trace, of_row = setting.lines, setting.boxes.of_row
    assert trace is not None
    known = np.flatnonzero((of_row >= 0) & (setting.evidence.line >= 0))
    end_of = np.zeros(len(setting.boxes) + 1, dtype=np.int64)
    end_of[of_row[known]] = trace.window[setting.evidence.line[known]]
    return end_of[box]
