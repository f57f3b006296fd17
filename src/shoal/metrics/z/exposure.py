"""What z-anonymity published: how much of each value, and how similar people look by it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrow.columns import one_text
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.errors import ParameterError
from shoal.metrics.trace_lines import decided_lines, numbers
from shoal.metrics.z.labels import label_codes
from shoal.spec.ladder import n_levels
from shoal.spec.policy import Policy, Window
from shoal.spec.schema import Schema

__all__ = ["ValueExposure", "value_exposure"]

#: Sets of labels are compared by two sums of random numbers, one for each label.
_SEED = 20230


@dataclass(frozen=True, slots=True, repr=False)
class ValueExposure:
    """What was exposed and what was published of it, in windows that follow each other.

    Parameters
    ----------
    k
        How many people with the same published values make one k-anonymous.
    n_cells
        How many cells there were that aren't missing.
    levels
        For each attribute the share of its cells that were published at each level, from fine to
        coarse. The rest is hidden.
    exposed_by_rank, published_by_rank
        For each value, the one that most subjects have exposed first: in which share of all pairs
        of a subject and a window it was exposed, and was published as it is.
    n_subjects
        For each window, how many subjects have exposed something in it.
    k_anonymous
        For each window, the share of its subjects of whom at least k - 1 others have the same set
        of published labels; the empty set is one, too.
    entropy, exposed_entropy
        For each window, the entropy in nats of the sets of published labels of its subjects, and
        that of the sets of values that they exposed.
    """

    k: int
    n_cells: int
    levels: Mapping[str, tuple[float, ...]]
    exposed_by_rank: Floats
    published_by_rank: Floats
    n_subjects: Ints
    k_anonymous: Floats
    entropy: Floats
    exposed_entropy: Floats

    def __repr__(self) -> str:
        return (
            f"ValueExposure({self.n_cells:,} cells, {len(self.n_subjects):,} windows, k={self.k})"
        )

    @property
    def information_loss(self) -> Floats:
        """For each window, the entropy of the exposed sets less that of the published ones."""
        return self.exposed_entropy - self.entropy

    def mean(self, figures: Floats) -> float | None:
        """Return the mean of a figure over windows, weighted by subjects; None without any."""
        n_all = int(self.n_subjects.sum())
        return float(np.dot(figures, self.n_subjects) / n_all) if n_all else None

    def as_dict(self) -> dict[str, object]:
        """Return all figures as plain values; of ranks 1, 2, 5, 10, 20, … and the last."""
        return {
            "k": self.k,
            "n_cells": self.n_cells,
            "n_windows": len(self.n_subjects),
            "k_anonymous": self.mean(self.k_anonymous),
            "entropy": self.mean(self.entropy),
            "exposed_entropy": self.mean(self.exposed_entropy),
            "information_loss": self.mean(self.information_loss),
            "levels": {name: list(shares) for name, shares in self.levels.items()},
            "ranks": [
                {
                    "rank": rank,
                    "exposed": float(self.exposed_by_rank[rank - 1]),
                    "published": float(self.published_by_rank[rank - 1]),
                }
                for rank in _some_ranks(len(self.exposed_by_rank))
            ],
            "windows": [
                {
                    "n_subjects": int(n),
                    "k_anonymous": float(share),
                    "entropy": float(entropy),
                    "exposed_entropy": float(exposed),
                }
                for n, share, entropy, exposed in zip(
                    self.n_subjects,
                    self.k_anonymous,
                    self.entropy,
                    self.exposed_entropy,
                    strict=True,
                )
            ],
        }

    def lines(self) -> list[str]:
        """Return the figures in words."""
        lines = [
            f"{self.n_cells:,} cells of {len(self.exposed_by_rank):,} values, "
            f"in {len(self.n_subjects):,} windows"
        ]
        for name, shares in self.levels.items():
            at = ", ".join(f"{share:.1%} at level {i}" for i, share in enumerate(shares))
            lines.append(f"{name}: {at}, {1 - math.fsum(shares):.1%} hidden")
        if self.n_cells:
            lines.append(f"{self.k}-anonymous: {self.mean(self.k_anonymous):.1%} of the subjects")
            lines.append(
                f"entropy: {self.mean(self.entropy):.3f} nats of "
                f"{self.mean(self.exposed_entropy):.3f} that were exposed"
            )
        return lines


class _Cells(NamedTuple):
    """Cells that aren't missing: subject, window, value, and the label shown (-1: none)."""

    attribute: Ints
    level: Ints
    exposed: Ints
    shown: Ints
    subject: Ints
    window: Ints


def value_exposure(
    schema: Schema, policy: Policy, original: pa.Table, trace: pa.Table, *, k: int = 2
) -> ValueExposure:
    """Measure a run with z by its trace: what it published, and how similar people look in it.

    Windows follow each other without overlap, and are as long as the one of the policy: by the
    latest time so far since the first row, or by the number of valid rows.

    Parameters
    ----------
    schema, policy
        Those of the run.
    original
        The rows that were read.
    trace
        The outcome of each cell.
    k
        How many people with the same published values make one k-anonymous.

    >>> from shoal.spec.ladder import Open
    >>> from shoal.spec.policy import ZAnonymity
    >>> from shoal.spec.schema import Quasi
    >>> schema = Schema(subject="who", quasi=[Quasi("page", Open())])
    >>> policy = Policy(ZAnonymity(2), window=Window(rows=4))
    >>> original = pa.table({"who": ["a", "b", "c", "b"], "page": ["x", "x", "y", "x"]})
    >>> trace = pa.table(
    ...     {
    ...         "row": [0, 1, 2, 3], "subject": ["a", "b", "c", "b"], "attribute": ["page"] * 4,
    ...         "outcome": ["suppressed", "group", "suppressed", "group"],
    ...         "arrived": [0, 1, 2, 3], "arrived_s": [None] * 4, "level": [None, 0, None, 0],
    ...     }
    ... )
    >>> for line in value_exposure(schema, policy, original, trace).lines():
    ...     print(line)
    4 cells of 2 values, in 1 windows
    page: 50.0% at level 0, 50.0% hidden
    2-anonymous: 66.7% of the subjects
    entropy: 0.637 nats of 0.637 that were exposed
    """
    if not policy.z or not isinstance(policy.window, Window):
        raise ParameterError("policy", "doesn't promise z", fix="Give the policy of the run")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ParameterError("k", "must be a whole number of at least 1", got=repr(k))
    cells = _read(schema, policy.window, original, trace)
    n_labels = int(max(cells.exposed.max(initial=-1), cells.shown.max(initial=-1))) + 1
    people = int(cells.subject.max(initial=0)) + 1
    pairs, pair = np.unique(cells.window * people + cells.subject, return_inverse=True)
    _, window = np.unique(pairs // people, return_inverse=True)
    shown = cells.shown >= 0
    exposed_sets = _label_sets(_distinct(pair, cells.exposed, n_labels), window, n_labels)
    shown_sets = _label_sets(_distinct(pair[shown], cells.shown[shown], n_labels), window, n_labels)
    ranks = _ranks(cells, pair, n_labels)
    n_subjects = np.bincount(window).astype(np.int64)
    is_alike = (shown_sets.n_subjects >= k)[shown_sets.label_set]
    return ValueExposure(
        k=k,
        n_cells=len(pair),
        levels=_levels(schema, cells),
        exposed_by_rank=ranks[0] / max(1, len(pairs)),
        published_by_rank=ranks[1] / max(1, len(pairs)),
        n_subjects=n_subjects,
        k_anonymous=np.bincount(window, is_alike) / n_subjects,
        entropy=shown_sets.entropy(n_subjects),
        exposed_entropy=exposed_sets.entropy(n_subjects),
    )


def _read(schema: Schema, window: Window, original: pa.Table, trace: pa.Table) -> _Cells:
    """Return the decided cells of a trace; labels of different attributes have different codes."""
    lines = decided_lines(trace, "row", "subject", "attribute", "arrived", "arrived_s", "level")
    rows = numbers(lines, "row").astype(np.int64)
    if rows.max(initial=-1) >= original.num_rows:
        raise ParameterError(
            "trace",
            "has lines of rows that the input doesn't have",
            got=f"rows up to {rows.max()} of {original.num_rows:,}",
            fix="Give the input and the trace of one run",
        )
    names = np.asarray(lines.column("attribute").to_numpy(), dtype=object)
    levels = numbers(lines, "level")
    level = np.where(np.isnan(levels), -1, levels).astype(np.int64)
    attribute, exposed, shown = (np.full(len(rows), -1, np.int64) for _ in range(3))
    n_before = 0
    for a, quasi in enumerate(schema.quasi):
        chosen = np.flatnonzero(names == quasi.name)
        found = label_codes(quasi, original)
        value = found.value[rows[chosen]]
        if (value < 0).any() or (level[chosen] >= n_levels(quasi.domain)).any():
            n_wrong = np.count_nonzero((value < 0) | (level[chosen] >= n_levels(quasi.domain)))
            raise ParameterError(
                "trace",
                f"has cells of {quasi.name} whose values or levels the input doesn't have",
                got=f"{n_wrong:,} cells",
                fix="Give the input and the trace of one run",
            )
        attribute[chosen] = a
        exposed[chosen] = found.labels[value, 0] + n_before
        at = found.labels[value, level[chosen]] + n_before
        shown[chosen] = np.where(level[chosen] >= 0, at, -1)
        n_before += int(found.labels.max(initial=-1)) + 1
    if (attribute < 0).any():
        raise ParameterError(
            "trace",
            "has cells of attributes that the schema doesn't have",
            got=f"{np.count_nonzero(attribute < 0):,} cells",
            fix="Give the schema and the trace of one run",
        )
    subject = one_text(lines.column("subject").combine_chunks()).dictionary_encode()
    people = np.asarray(subject.indices).astype(np.int64)
    return _Cells(attribute, level, exposed, shown, people, _windows(lines, window))


def _windows(lines: pa.Table, window: Window) -> Ints:
    if window.seconds is None:
        return numbers(lines, "arrived").astype(np.int64) // window.rows
    times = numbers(lines, "arrived_s")
    if np.isnan(times).any():
        raise ParameterError("trace", "has cells without a time, and the window is one of seconds")
    first = float(times.min(initial=np.inf))
    return np.floor((times - first) / window.seconds).astype(np.int64)


def _distinct(pair: Ints, label: Ints, n_labels: int) -> tuple[Ints, Ints]:
    """Return the different pairs of a subject in a window and a label."""
    joint = np.unique(pair * n_labels + label)
    return joint // max(1, n_labels), joint % max(1, n_labels)


class _Sets(NamedTuple):
    """The set of labels of each pair of a subject and a window, with its window and subjects."""

    label_set: Ints
    window: Ints
    n_subjects: Ints

    def entropy(self, n_subjects: Ints) -> Floats:
        """Return the entropy of the sets of each window, given its number of subjects."""
        share = self.n_subjects / n_subjects[self.window]
        terms = share * np.log(share)
        sums = np.bincount(self.window, terms, minlength=len(n_subjects))
        return np.asarray(0.0 - sums, np.float64)


def _label_sets(has: tuple[Ints, Ints], window: Ints, n_labels: int) -> _Sets:
    """Group the subjects with the same set of labels in a window."""
    random = np.random.default_rng(_SEED)
    keys = [window.astype(np.uint64)]
    pair, label = has
    begins = np.flatnonzero(np.diff(pair, prepend=-1))
    for _ in range(2):
        of_label = random.integers(2**64, size=n_labels, dtype=np.uint64)
        sums = np.zeros(len(window), np.uint64)
        if len(begins):
            sums[pair[begins]] = np.add.reduceat(of_label[label], begins)
        keys.append(sums)
    order = np.lexsort(keys[::-1])
    new: Bools = np.zeros(len(order), np.bool_)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    label_set = np.empty(len(order), np.int64)
    label_set[order] = np.cumsum(new)
    window_of = np.zeros(int(label_set.max(initial=-1)) + 1, np.int64)
    window_of[label_set] = window
    return _Sets(label_set, window_of, np.bincount(label_set).astype(np.int64))


def _ranks(cells: _Cells, pair: Ints, n_labels: int) -> tuple[Floats, Floats]:
    """Return in how many pairs each value was exposed, and published as it is, by rank."""
    by_people = np.bincount(_distinct(cells.subject, cells.exposed, n_labels)[1])
    order = np.argsort(-by_people, kind="stable")[: np.count_nonzero(by_people)]
    as_is = cells.level == 0
    found = []
    for chosen in (slice(None), as_is):
        of_value = _distinct(pair[chosen], cells.exposed[chosen], n_labels)[1]
        found.append(np.bincount(of_value, minlength=n_labels)[order].astype(np.float64))
    return found[0], found[1]


def _levels(schema: Schema, cells: _Cells) -> dict[str, tuple[float, ...]]:
    found = {}
    for a, quasi in enumerate(schema.quasi):
        level = cells.level[cells.attribute == a]
        counts = np.bincount(level + 1, minlength=n_levels(quasi.domain) + 1)[1:]
        found[quasi.name] = tuple((counts / max(1, len(level))).tolist())
    return found


def _some_ranks(n: int) -> list[int]:
    """Return 1, 2, 5, 10, 20, … up to n, and n.

    >>> _some_ranks(30)
    [1, 2, 5, 10, 20, 30]
    """
    decades = range(len(str(n)))
    ranks = [m * 10**e for e in decades for m in (1, 2, 5) if m * 10**e < n]
    return [*ranks, n] if n else []
