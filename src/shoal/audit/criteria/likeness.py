"""beta-likeness in four forms: how much more frequent values are in a group (thesis, §4.2).

A value with the share q in a group and p in its window has gained q / p - 1. The basic form bounds
gains by beta, the others by -ln p too: of values, of nodes of a hierarchy, of runs of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.audit.criteria.measured import SLACK, Counts, Judge, Measure, check_attributes
from shoal.audit.criteria.registry import checks
from shoal.audit.evidence import Evidence
from shoal.audit.report import Verdict
from shoal.spec.hierarchy import Domain, Hierarchy
from shoal.spec.policy import (
    BasicLikeness,
    BetaLikeness,
    EnhancedLikeness,
    RangeLikeness,
    SemanticLikeness,
)

__all__ = ["check_basic", "check_enhanced", "check_range", "check_semantic"]

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]
_Judged: TypeAlias = tuple[NDArray[np.bool_], _Floats]


@checks(BasicLikeness)
def check_basic(evidence: Evidence, criterion: BasicLikeness) -> list[Verdict]:
    """Compare the gain of every value with beta."""

    def judge(inside: Counts, beside: Counts) -> _Judged:
        sides = inside, beside, _total(inside), _total(beside)
        return _of_all(_gained(*sides, criterion.beta, capped=False))

    return _check(evidence, criterion, lambda domain, places: judge, or_less="")


@checks(EnhancedLikeness)
def check_enhanced(evidence: Evidence, criterion: EnhancedLikeness) -> list[Verdict]:
    """Compare the gain of every value with beta and -ln p."""

    def judge(inside: Counts, beside: Counts) -> _Judged:
        return _of_all(_gained(inside, beside, _total(inside), _total(beside), criterion.beta))

    return _check(evidence, criterion, lambda domain, places: judge)


@checks(SemanticLikeness)
def check_semantic(evidence: Evidence, criterion: SemanticLikeness) -> list[Verdict]:
    """Compare the gain of every value, and of every node from the level downwards."""

    def judge_of(domain: Domain | None, places: _Floats) -> Judge:
        first, stop = _nodes(domain, places, criterion.level)

        def judge(inside: Counts, beside: Counts) -> _Judged:
            one, other = (_sums(counts) for counts in (inside, beside))
            return _of_all(
                _gained(
                    one[:, stop] - one[:, first],
                    other[:, stop] - other[:, first],
                    one[:, -1:],
                    other[:, -1:],
                    criterion.beta,
                )
            )

        return judge

    return _check(evidence, criterion, judge_of)


@checks(RangeLikeness)
def check_range(evidence: Evidence, criterion: RangeLikeness) -> list[Verdict]:
    """Compare the gain of every run of neighbouring values that isn't longer than epsilon."""

    def judge_of(domain: Domain | None, places: _Floats) -> Judge:
        def judge(inside: Counts, beside: Counts) -> _Judged:
            one, other = _sums(inside), _sums(beside)
            holds, most = np.ones(len(inside), dtype=np.bool_), np.zeros(len(inside))
            for group, first, last in _runs(inside, places, criterion):
                held, gain = _gained(
                    one[group, last + 1] - one[group, first],
                    other[group, last + 1] - other[group, first],
                    one[group, -1],
                    other[group, -1],
                    criterion.beta,
                )
                holds[group[~held]] = False
                np.maximum.at(most, group, gain)
            return holds, most

        return judge

    return _check(evidence, criterion, judge_of)


def _check(
    evidence: Evidence,
    criterion: BetaLikeness,
    judge_of: Callable[[Domain | None, _Floats], Judge],
    or_less: str = " or -ln p",
) -> list[Verdict]:
    breach = f"a gain above {criterion.beta:g}{or_less}"
    measure = Measure("gain", ("beta", criterion.beta), breach, judge_of)
    return check_attributes(evidence, criterion, measure)


def _gained(
    inside: _Ints,
    beside: _Ints,
    n_inside: _Ints,
    n_beside: _Ints,
    beta: float,
    *,
    capped: bool = True,
) -> _Judged:
    """Return whether each gain is allowed, and the gain; a value on neither side has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(beside > 0, (inside * n_beside) / (beside * n_inside), 0.0)
        room = np.minimum(beta, -np.log(beside / n_beside)) if capped else beta
    return ratio <= (1.0 + room) * (1.0 + SLACK), ratio - 1.0


def _of_all(judged: _Judged) -> _Judged:
    """Return whether all gains of a group are allowed, and its largest gain."""
    held, gain = judged
    return np.asarray(held.all(axis=1)), np.asarray(gain.max(axis=1))


def _total(counts: Counts) -> _Ints:
    return np.asarray(counts.sum(axis=1, keepdims=True), dtype=np.int64)


def _sums(counts: Counts) -> _Ints:
    """Return the cumulative counts of values, from none to all of them."""
    sums = np.zeros((len(counts), counts.shape[1] + 1), dtype=np.int64)
    np.cumsum(counts, axis=1, out=sums[:, 1:])
    return sums


def _nodes(domain: Domain | None, places: _Floats, level: int) -> tuple[_Ints, _Ints]:
    """Return where the leaves of each protected node begin and stop among the values that occur.

    Every value is one of these nodes, at any level; a node with one value only adds nothing.
    """
    first, stop = np.arange(len(places)), np.arange(len(places)) + 1
    assert isinstance(domain, Hierarchy)  # else the policy doesn't fit the schema
    depths = np.zeros(len(domain.parents), dtype=np.int64)
    for node in range(1, len(depths)):
        depths[node] = depths[domain.parents[node]] + 1
    low = np.searchsorted(places, domain.lows)
    high = np.searchsorted(places, domain.highs, side="right")
    inner = (depths >= level) & (high - low > 1)
    return np.concatenate([first, low[inner]]), np.concatenate([stop, high[inner]])


def _runs(
    inside: Counts, places: _Floats, criterion: RangeLikeness
) -> Iterator[tuple[_Ints, _Ints, _Ints]]:
    """Yield the groups, the first and the last value of all runs that are short enough.

    A value at the end of a run that the group lacks only adds to what is allowed, so runs from one
    value of the group to another are enough.
    """
    group, value = np.nonzero(inside)
    first, step = np.arange(len(group)), 0
    while len(first):
        yield group[first], value[first], value[first + step]
        step += 1
        first = first[first + step < len(group)]
        low, high = places[value[first]], places[value[first + step]]
        longest = criterion.epsilon * low if criterion.relative else criterion.epsilon
        # 0.8 is 0.1 more than 0.7, though not in the last bit.
        short = high - low <= longest + 1e-15 * (np.abs(low) + np.abs(high))
        # If a run is too long, or extends beyond its group, so does every longer one.
        first = first[(group[first] == group[first + step]) & short]
