"""Whether a group keeps what is measured against a window, straight from the definitions.

In plain slow Python with fractions. It shares no code with `kernels.measured`, which it is to
catch when that is wrong.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    DeltaDisclosure,
    Measured,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
)
from shoal.spec.hierarchy import Domain, Hierarchy

__all__ = ["code_of", "keeps", "number_of"]

#: How far what is published may lie beyond a threshold, of its own size: rounding, and no more.
BEYOND = Fraction(1, 10**9)
#: All bits but the sign.
MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF


def code_of(number: float) -> int:
    """The code of a sensitive number; codes are ordered as numbers are.

    >>> code_of(-2.5) < code_of(-1) < code_of(0) < code_of(1e300)
    True
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", number + 0.0))
    return int(bits if bits >= 0 else bits ^ MAGNITUDE)


def number_of(code: int) -> float:
    """The sensitive number that has a code.

    >>> number_of(code_of(-2.5))
    -2.5
    """
    (number,) = struct.unpack("<d", struct.pack("<q", code if code >= 0 else code ^ MAGNITUDE))
    return float(number)


def keeps(
    criterion: Measured, domain: Domain | None, group: Sequence[int], window: Sequence[int]
) -> bool:
    """Whether the values of a group, as codes, keep a criterion against those of their window.

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
    if isinstance(criterion, TCloseness):
        tree = isinstance(domain, Hierarchy)
        moved = _by_tree(domain, here, there) if tree else _by_order(here, there)
        return moved <= Fraction(criterion.t) * (1 + BEYOND)
    if isinstance(criterion, DeltaDisclosure):
        return all(
            value in here and abs(math.log(here[value] / share)) < criterion.delta * (1 + BEYOND)
            for value, share in there.items()
        )
    if not isinstance(criterion, BetaLikeness):
        raise TypeError(f"nobody has defined {criterion.name} here")
    return all(
        _sum(here, values) <= _most(criterion, _sum(there, values)) * (1 + BEYOND)
        for values in _together(criterion, domain, sorted(there))
    )


def _shares(values: Sequence[int]) -> dict[int, Fraction]:
    return {value: Fraction(n, len(values)) for value, n in Counter(values).items()}


def _sum(shares: Mapping[int, Fraction], values: Sequence[int]) -> Fraction:
    return sum((shares.get(value, Fraction(0)) for value in values), Fraction(0))


def _by_order(here: Mapping[int, Fraction], there: Mapping[int, Fraction]) -> Fraction:
    """What is moved from each value of the window to the next, as a share of the longest way."""
    values = sorted(there)
    ahead = (_sum(here, values[:i]) - _sum(there, values[:i]) for i in range(1, len(values)))
    return sum(map(abs, ahead), Fraction(0)) / max(1, len(values) - 1)


def _by_tree(
    tree: Domain | None, here: Mapping[int, Fraction], there: Mapping[int, Fraction]
) -> Fraction:
    """What is moved over each node, as high as it is, as a share of the root's height."""
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
    """The largest share that what has such a share of the window may have in a group."""
    if share == 0:
        return share
    gain = criterion.beta
    if not isinstance(criterion, BasicLikeness):
        gain = min(gain, -math.log(share))
    return (1 + Fraction(gain)) * share


def _together(
    criterion: BetaLikeness, domain: Domain | None, values: Sequence[int]
) -> Iterator[Sequence[int]]:
    """The values of a window one by one, and those that a criterion protects together."""
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
