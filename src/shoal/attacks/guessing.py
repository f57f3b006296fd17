"""Guess a sensitive value from the rows of the boxes that cover a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.boxes import Boxes, Matches
from shoal.attacks.setting import Secrets, Setting

__all__ = ["Guess", "Votes", "best_guess", "most_frequent", "published_shares", "votes_of"]


@dataclass(frozen=True, slots=True, repr=False)
class Votes:
    """How often each value is among the rows that may be a target's, one line for each pair.

    Parameters
    ----------
    target, value, count
        The target, the value, and how many rows of its boxes have it; sorted by target.
    total
        How many rows each target has.
    n_boxes
        How many boxes each target has.
    first_box
        One of the boxes of each target; -1: there is none.
    """

    target: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]
    total: NDArray[np.int64]
    n_boxes: NDArray[np.int64]
    first_box: NDArray[np.int64]


class Guess(NamedTuple):
    """One value for each target, and which of the guesses are right."""

    value: NDArray[np.int64]
    is_right: NDArray[np.bool_]


def votes_of(
    setting: Setting,
    secrets: Secrets,
    points: NDArray[np.float64],
    known: NDArray[np.bool_],
    *,
    tightest: bool = True,
) -> Votes:
    """Count the values in the boxes that cover what is known of each target: smallest or all."""
    boxes = setting.boxes
    matches = (boxes.tightest if tightest else boxes.covering)(points, known)
    n = len(points)
    starts, values, counts = _by_box(boxes, secrets)
    lengths = (starts[1:] - starts[:-1])[matches.box]
    target = np.repeat(matches.target, lengths)
    # The lines of each matched box, one after the other.
    offsets = np.arange(len(target)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    line = np.repeat(starts[matches.box], lengths) + offsets
    width = int(values.max(initial=0)) + 1
    keys, inverse = np.unique(target * width + values[line], return_inverse=True)
    count = np.bincount(inverse.reshape(-1), counts[line], minlength=len(keys)).astype(np.int64)
    found = keys // width
    return Votes(
        found,
        keys % width,
        count,
        np.bincount(found, count, minlength=n).astype(np.int64),
        np.bincount(matches.target, minlength=n),
        _first_box(matches, n),
    )


def _by_box(
    boxes: Boxes, secrets: Secrets
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the values of each box and their counts: where each box begins, values, counts."""
    rows = np.flatnonzero(boxes.of_row >= 0)
    width = int(secrets.published.max(initial=0)) + 1
    keys, counts = np.unique(
        boxes.of_row[rows] * width + secrets.published[rows], return_counts=True
    )
    starts = np.searchsorted(keys, np.arange(len(boxes) + 1) * width)
    return starts, keys % width, counts


def _first_box(matches: Matches, n: int) -> NDArray[np.int64]:
    first = np.full(n, -1, dtype=np.int64)
    # Written from the last to the first, so that the first one stays.
    first[matches.target[::-1]] = matches.box[::-1]
    return first


def published_shares(setting: Setting, secrets: Secrets) -> NDArray[np.float64]:
    """Return the share of each value among the published rows, which is the attacker's prior."""
    n_values = int(max(secrets.published.max(initial=0), secrets.original.max(initial=0))) + 1
    rows = setting.boxes.of_row >= 0
    counts = np.bincount(secrets.published[rows], minlength=n_values)
    return np.asarray(counts / max(1, counts.sum()), dtype=np.float64)


def most_frequent(shares: NDArray[np.float64]) -> int:
    """Return the value that is published most often."""
    return int(np.argmax(shares))


def best_guess(
    votes: Votes,
    weight: NDArray[np.float64],
    prior: NDArray[np.float64],
    truth: NDArray[np.int64],
) -> Guess:
    """Guess for each target the value of the largest weight; without a box, the most frequent one.

    Parameters
    ----------
    votes
        The values in the boxes of the targets.
    weight
        What is maximized, line by line of ``votes``. Of values of one weight the one that is
        published more often is taken.
    prior
        The share of each value among all published rows.
    truth
        The value of each target.
    """
    value = np.full(len(truth), most_frequent(prior), dtype=np.int64)
    order = np.lexsort((prior[votes.value], weight, votes.target))
    # The last line of each target has the largest weight.
    value[votes.target[order]] = votes.value[order]
    return Guess(value, value == truth)
