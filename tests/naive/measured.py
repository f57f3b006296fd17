"""t-closeness, beta-likeness and delta-disclosure for the naive twins, by their definitions.

A sensitive value is a code: the number of a leaf, `order_code` of a number, or anything where the
domain is open. Shares are fractions; what is nearer to a threshold than one in 10^12 lies on it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    DeltaDisclosure,
    EuclideanCloseness,
    JensenShannonCloseness,
    Measured,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
)
from shoal.spec.hierarchy import Domain, Hierarchy
from shoal.spec.policy import EntropyLDiversity, Policy, RecursiveLDiversity
from shoal.spec.schema import Schema
from tests.naive.criteria import Promise
from tests.naive.emd import emd, shares
from tests.naive.space import Row, n_subjects

__all__ = ["ABOVE", "BELOW", "Measure", "Promises", "divergence", "gain", "number_of", "order_code"]

#: A threshold is met, or missed, if so much more, or less, would be.
ABOVE = 1 + Fraction(1, 10**12)
BELOW = 1 - Fraction(1, 10**12)


def order_code(number: float) -> int:
    """The code of a number: its bits, the lower 63 turned round where it is negative."""
    (bits,) = struct.unpack("<q", struct.pack("<d", number + 0.0))
    return int(bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF)


def number_of(code: int) -> float:
    """The number that has a code."""
    bits = code if code >= 0 else code ^ 0x7FFF_FFFF_FFFF_FFFF
    (number,) = struct.unpack("<d", struct.pack("<q", bits))
    return float(number)


def gain(criterion: BetaLikeness, p: Fraction) -> float:
    """By how much of its share a value may be more frequent: beta, or -ln p if that is less."""
    if isinstance(criterion, BasicLikeness):
        return criterion.beta
    return min(criterion.beta, -math.log(p))


@dataclass(frozen=True)
class Measure:
    """One criterion about the j-th sensitive attribute, and the domain of that."""

    criterion: Measured
    j: int
    domain: Domain | None

    def holds(self, rows: Sequence[Row], window: Sequence[Row]) -> bool:
        """Whether it holds for some rows, measured against their window."""
        return self.allows(self.values(rows), self.values(window))

    def values(self, rows: Sequence[Row]) -> list[Any]:
        """The sensitive values of some rows."""
        return [row.sensitive[self.j] for row in rows]

    def allows(self, group: Sequence[Hashable], window: Sequence[Hashable]) -> bool:
        """Whether it holds for the values of a group, measured against those of a window."""
        q, p = shares(group), shares(window)
        if not q.keys() <= p.keys():
            return False
        criterion = self.criterion
        if isinstance(criterion, TCloseness):
            distance = emd(self.domain, group, window)
            return distance is not None and distance <= Fraction(criterion.t) * ABOVE
        extra = [q.get(value, Fraction(0)) - p[value] for value in p]
        if isinstance(criterion, EuclideanCloseness):
            return sum(x * x for x in extra) <= (Fraction(criterion.t) * ABOVE) ** 2
        if isinstance(criterion, VariationalCloseness):
            return sum(x for x in extra if x > 0) <= Fraction(criterion.t) * ABOVE
        if isinstance(criterion, JensenShannonCloseness):
            return divergence(p, q) <= (criterion.t * float(ABOVE)) ** 2
        if isinstance(criterion, DeltaDisclosure):
            most = Fraction(math.exp(criterion.delta))
            return all(
                value in q
                and q[value] < most * p[value] * BELOW
                and p[value] < most * q[value] * BELOW
                for value in p
            )
        assert isinstance(criterion, BetaLikeness)
        return all(
            after <= (1 + Fraction(gain(criterion, before))) * before * ABOVE
            for before, after in (
                (_sum(p, together), _sum(q, together)) for together in self._related(criterion, p)
            )
            if before
        )

    def _related(
        self, criterion: BetaLikeness, p: dict[Any, Fraction]
    ) -> Iterator[Sequence[Hashable]]:
        """Return the sets of values that are protected: each single value, and related ones."""
        for value in p:
            yield [value]
        if isinstance(criterion, SemanticLikeness):
            tree = self.domain
            assert isinstance(tree, Hierarchy)
            for node in range(len(tree.labels)):
                if node not in tree.leaf_nodes and depth(tree, node) >= criterion.level:
                    yield range(tree.lows[node], tree.highs[node] + 1)
        if isinstance(criterion, RangeLikeness):
            codes = sorted(p)
            for i in range(len(codes)):
                for j in range(i + 1, len(codes)):
                    a, b = number_of(codes[i]), number_of(codes[j])
                    most = criterion.epsilon * (a if criterion.relative else 1.0)
                    if b - a <= most + 1e-15 * (abs(a) + abs(b)):
                        yield codes[i : j + 1]


def divergence(p: dict[Any, Fraction], q: dict[Any, Fraction]) -> float:
    """The Jensen-Shannon divergence in bits (thesis, §3.6); exactly 0 for equal shares."""
    terms = []
    for value, before in p.items():
        after = q.get(value, Fraction(0))
        middle = (before + after) / 2
        terms += [
            float(share) * math.log2(share / middle) for share in (before, after) if share > 0
        ]
    return math.fsum(terms) / 2


def depth(tree: Hierarchy, node: int) -> int:
    """How far a node is from the root."""
    return 0 if node == 0 else 1 + depth(tree, tree.parents[node])


def _sum(parts: dict[Hashable, Fraction], values: Sequence[Hashable]) -> Fraction:
    return sum((parts.get(value, Fraction(0)) for value in values), Fraction(0))


@dataclass(frozen=True)
class Promises:
    """All that a policy promises about a group."""

    promise: Promise
    measures: Sequence[Measure] = ()

    @classmethod
    def of(cls, schema: Schema, policy: Policy) -> Promises:
        """Those of a policy for the sensitive attributes of a schema."""
        needed, entropy, recursive, measures = [], [], [], []
        for j, attribute in enumerate(schema.sensitive):
            asked = [c for c in policy.diversity if c.attribute in (None, attribute.name)]
            needed.append(max((c.needed for c in asked), default=1))
            entropy.append(
                max((c.l for c in asked if isinstance(c, EntropyLDiversity)), default=0.0)
            )
            shapes = [(c.c, c.needed) for c in asked if isinstance(c, RecursiveLDiversity)]
            recursive.append(shapes[0] if shapes else (0.0, 0))
            measures += [
                Measure(criterion, j, attribute.domain)
                for criterion in policy.measured
                if criterion.attribute in (None, attribute.name)
            ]
        return cls(Promise(policy.k, needed, entropy, recursive), measures)

    @property
    def needed(self) -> int:
        """The fewest subjects that a group can have."""
        return self.promise.people

    @property
    def is_monotone(self) -> bool:
        """Whether what holds for two groups holds for both together.

        Entropy and recursive diversity count pairs of subject and value, some of which two groups
        may have in common.
        """
        return not self.promise.can_break

    def hold(self, rows: Sequence[Row], window: Sequence[Row]) -> bool:
        """Whether all of it holds for some rows, measured against their window."""
        return (
            n_subjects(rows) >= self.promise.k
            and self.promise.diverse(rows)
            and all(measure.holds(rows, window) for measure in self.measures)
        )
