"""t-closeness, beta-likeness and delta-disclosure, by their definitions, with fractions."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction

from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    Closeness,
    DeltaDisclosure,
    EnhancedLikeness,
    EuclideanCloseness,
    JensenShannonCloseness,
    Measured,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
)
from shoal.spec.hierarchy import Domain, Hierarchy
from shoal.testing.definitions.registry import Group, defines

__all__ = ["code_of", "keeps", "number_of"]

#: How far a figure may lie beyond its threshold, relatively, by rounding.
SLACK = Fraction(1, 10**9)
#: How far a divergence may lie beyond its threshold: a kernel adds up terms that nearly cancel out.
ROUNDING = Fraction(1, 10**14)
#: Logarithms have so many digits.
DIGITS = Context(prec=50)
#: All bits except the sign.
MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF


#: What is drawn of each form, easy ones first.
BETAS = (10.0, 2.0, 0.5)
DRAWN: tuple[Measured, ...] = (
    *(TCloseness(t) for t in (1.0, 0.4, 0.15, 0.0)),
    *(EuclideanCloseness(t) for t in (1.5, 0.5, 0.2, 0.0)),
    *(VariationalCloseness(t) for t in (1.0, 0.4, 0.15, 0.0)),
    *(JensenShannonCloseness(t) for t in (1.0, 0.5, 0.25, 0.0)),
    *(BasicLikeness(beta) for beta in BETAS),
    *(EnhancedLikeness(beta) for beta in BETAS),
    *(SemanticLikeness(beta, level=level) for level in (2, 1) for beta in BETAS),
    *(RangeLikeness(beta, epsilon=epsilon) for epsilon in (0.0, 1.0, 20.0) for beta in BETAS),
    *(RangeLikeness(beta, epsilon=0.2, relative=True) for beta in BETAS),
    *(DeltaDisclosure(delta) for delta in (5.0, 2.0, 0.7)),
)


def code_of(number: float) -> int:
    """Return the code of a sensitive number; codes are ordered as numbers are.

    >>> code_of(-2.5) < code_of(-1) < code_of(0) < code_of(1e300)
    True
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", number + 0.0))
    return int(bits if bits >= 0 else bits ^ MAGNITUDE)


def number_of(code: int) -> float:
    """Return the sensitive number that has a code.

    >>> number_of(code_of(-2.5))
    -2.5
    """
    (number,) = struct.unpack("<d", struct.pack("<q", code if code >= 0 else code ^ MAGNITUDE))
    return float(number)


def keeps(
    criterion: Measured, domain: Domain | None, group: Sequence[int], window: Sequence[int]
) -> bool:
    """Return whether the values of a group, as codes, keep a criterion against their window.

    >>> keeps(BasicLikeness(1.0), None, [5, 6], [5, 6, 6, 6])
    True
    >>> keeps(BasicLikeness(0.9), None, [5, 6], [5, 6, 6, 6])
    False
    >>> keeps(BasicLikeness(9.0), None, [7], [5, 6, 6, 6])
    False
    """
    here, there = _shares(group), _shares(window)
    if here.keys() - there.keys():
        return False
    if isinstance(criterion, Closeness):
        return _is_close(criterion, domain, here, there)
    if isinstance(criterion, DeltaDisclosure):
        return all(
            value in here and abs(math.log(here[value] / share)) < criterion.delta * (1 + SLACK)
            for value, share in there.items()
        )
    if not isinstance(criterion, BetaLikeness):
        raise TypeError(f"{criterion.name} has no definition")
    return all(
        _sum(here, values) <= _most(criterion, _sum(there, values)) * (1 + SLACK)
        for values in _together(criterion, domain, sorted(there))
    )


@defines(Measured, DRAWN)
def _measured(criterion: Measured, group: Group) -> bool:
    return keeps(criterion, group.domain, group.values, group.window)


def _is_close(
    criterion: Closeness,
    domain: Domain | None,
    here: Mapping[int, Fraction],
    there: Mapping[int, Fraction],
) -> bool:
    t = Fraction(criterion.t) * (1 + SLACK)
    gaps = [here.get(value, Fraction(0)) - share for value, share in there.items()]
    if isinstance(criterion, EuclideanCloseness):
        return sum((gap * gap for gap in gaps), Fraction(0)) <= t * t
    if isinstance(criterion, VariationalCloseness):
        return sum(map(abs, gaps), Fraction(0)) / 2 <= t
    if isinstance(criterion, JensenShannonCloseness):
        return _divergence(here, there) <= t * t + ROUNDING
    if not isinstance(criterion, TCloseness):
        raise TypeError(f"{criterion.name} has no definition")
    tree = isinstance(domain, Hierarchy)
    return (_by_tree(domain, here, there) if tree else _by_order(here, there)) <= t


def _divergence(here: Mapping[int, Fraction], there: Mapping[int, Fraction]) -> Fraction:
    """Return how far both are from the middle between them, on average, in bits."""
    found = Decimal(0)
    for value, p in there.items():
        q = here.get(value, Fraction(0))
        for share in (p, q):
            ratio = 2 * share / (p + q)
            if ratio:
                logarithm = DIGITS.divide(ratio.numerator, ratio.denominator).ln(DIGITS)
                weight = DIGITS.divide(share.numerator, 2 * share.denominator)
                found = DIGITS.add(found, DIGITS.multiply(weight, logarithm))
    return Fraction(DIGITS.divide(found, Decimal(2).ln(DIGITS)))


def _shares(values: Sequence[int]) -> dict[int, Fraction]:
    return {value: Fraction(n, len(values)) for value, n in Counter(values).items()}


def _sum(shares: Mapping[int, Fraction], values: Sequence[int]) -> Fraction:
    return sum((shares.get(value, Fraction(0)) for value in values), Fraction(0))


def _by_order(here: Mapping[int, Fraction], there: Mapping[int, Fraction]) -> Fraction:
    """Return what is moved from each value of the window to the next, over the longest distance."""
    values = sorted(there)
    ahead = (_sum(here, values[:i]) - _sum(there, values[:i]) for i in range(1, len(values)))
    return sum(map(abs, ahead), Fraction(0)) / max(1, len(values) - 1)


def _by_tree(
    tree: Domain | None, here: Mapping[int, Fraction], there: Mapping[int, Fraction]
) -> Fraction:
    """Return what is moved over each node, times its height, over the height of the root."""
    if not isinstance(tree, Hierarchy):
        raise TypeError("only a hierarchy has nodes")
    children: list[list[int]] = [[] for _ in tree.parents]
    for node in range(1, len(tree.parents)):
        children[tree.parents[node]].append(node)

    def height(node: int) -> int:
        return 1 + max(map(height, children[node])) if children[node] else 0

    def extra(node: int) -> Fraction:
        leaves = range(tree.lows[node], tree.highs[node] + 1)
        return _sum(here, leaves) - _sum(there, leaves)

    moved = Fraction(0)
    for node, below in enumerate(children):
        surplus = [extra(child) for child in below]
        met = min(sum(s for s in surplus if s > 0), -sum(s for s in surplus if s < 0))
        moved += height(node) * met
    return moved / max(1, height(0))


def _most(criterion: BetaLikeness, share: Fraction) -> Fraction:
    """Return the largest share in a group of what has this share in the window."""
    if share == 0:
        return share
    gain = criterion.beta
    if not isinstance(criterion, BasicLikeness):
        gain = min(gain, -math.log(share))
    return (1 + Fraction(gain)) * share


def _together(
    criterion: BetaLikeness, domain: Domain | None, values: Sequence[int]
) -> Iterator[Sequence[int]]:
    """Yield the values of a window one by one, and those that a criterion protects together."""
    yield from ([value] for value in values)
    if isinstance(criterion, SemanticLikeness) and isinstance(domain, Hierarchy):
        for node in range(len(domain.parents)):
            depth, above = 0, node
            while above:
                depth, above = depth + 1, domain.parents[above]
            if depth >= criterion.level:
                yield range(domain.lows[node], domain.highs[node] + 1)
    if isinstance(criterion, RangeLikeness):
        for i, first in enumerate(values):
            for n, last in enumerate(values[i + 1 :], start=2):
                low, high = number_of(first), number_of(last)
                longest = criterion.epsilon * (low if criterion.relative else 1.0)
                if high - low <= longest + 1e-15 * (abs(low) + abs(high)):
                    yield values[i : i + n]
