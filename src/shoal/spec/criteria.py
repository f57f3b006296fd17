"""The criteria that can be promised about the output, as plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from shoal.errors import ParameterError, Problem
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.schema import Sensitive

__all__ = [
    "BasicLikeness",
    "BetaLikeness",
    "Closeness",
    "Criterion",
    "DeltaDisclosure",
    "DistinctLDiversity",
    "EnhancedLikeness",
    "EntropyLDiversity",
    "EuclideanCloseness",
    "JensenShannonCloseness",
    "KAnonymity",
    "LDiversity",
    "Measured",
    "RangeLikeness",
    "RecursiveLDiversity",
    "SemanticLikeness",
    "TCloseness",
    "VariationalCloseness",
    "ZAnonymity",
    "criteria",
    "described",
]

#: The largest parameter of a criterion, so that no count overflows.
MOST = 10**9


def whole(key: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParameterError(key, f"must be a whole number of at least {least}", got=repr(value))
    _not_too_much(key, value)


def _not_too_much(key: str, value: float) -> None:
    if value > MOST:
        raise ParameterError(key, f"must be at most {MOST:,}", got=repr(value))


def number(key: str, value: object, *, above: float | None = None, least: float = 0.0) -> None:
    low = above if above is not None else least
    good = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (value > low if above is not None else value >= low)
    )
    if not good:
        bound = f"above {low:g}" if above is not None else f"of at least {low:g}"
        raise ParameterError(key, f"must be a finite number {bound}", got=repr(value))
    _not_too_much(key, value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Criterion:
    """One promise about every group that is published.

    Job files and listings are made from what a class says of itself: its ``name`` in reports, its
    ``key`` in the ``[policy]`` of a job, and what stands behind the key in an ``example``. Where a
    ``family`` has several forms, each has a ``form``, and one is the ``default`` that a bare number
    means. ``needs`` are the options that a job must give, though Python has a default.
    ``aliases`` are names by which others know the form; messages point from them to it.
    """

    name: ClassVar[str]
    key: ClassVar[str]
    example: ClassVar[str]
    family: ClassVar[str] = ""
    form: ClassVar[str] = ""
    default: ClassVar[bool] = False
    needs: ClassVar[Sequence[str]] = ()
    aliases: ClassVar[Sequence[str]] = ()


@dataclass(frozen=True, slots=True)
class KAnonymity(Criterion):
    """Every group has rows of at least k different subjects (thesis, Definition 5.1).

    >>> KAnonymity(10)
    KAnonymity(k=10)
    """

    name: ClassVar[str] = "k-anonymity"
    key: ClassVar[str] = "k"
    example: ClassVar[str] = "10"
    k: int

    def __post_init__(self) -> None:
        whole("KAnonymity.k", self.k, 1)


@dataclass(frozen=True, slots=True)
class ZAnonymity(Criterion):
    """Every published value was exposed by at least z subjects in the window before it.

    Each value of a row is decided on its own and at once (Jha et al., Definitions 1 and 2). It says
    nothing about how many people share all published values of a person; see `shoal.models.z` for
    the probability of that.

    >>> ZAnonymity(20)
    ZAnonymity(z=20)
    """

    name: ClassVar[str] = "z-anonymity"
    key: ClassVar[str] = "z"
    example: ClassVar[str] = "20"
    z: int

    def __post_init__(self) -> None:
        whole("ZAnonymity.z", self.z, 1)


@dataclass(frozen=True, slots=True)
class LDiversity(Criterion):
    """Base of the three forms. ``attribute`` names one sensitive column; None means every one.

    All forms need l different subjects with l different values: a subject whose rows carry
    many values can stand for one of them only.
    """

    key: ClassVar[str] = "l"
    family: ClassVar[str] = "l-diversity"
    l: float  # noqa: E741 - the letter of the papers and of the job file
    attribute: str | None = None

    @property
    def needed(self) -> int:
        """The number of different subjects with different values that a group needs."""
        return math.ceil(self.l)


@dataclass(frozen=True, slots=True)
class DistinctLDiversity(LDiversity):
    """Every group has l different subjects with l different sensitive values."""

    name: ClassVar[str] = "distinct l-diversity"
    form: ClassVar[str] = "distinct"
    example: ClassVar[str] = "3"
    default: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole("DistinctLDiversity.l", self.l, 1)


@dataclass(frozen=True, slots=True)
class EntropyLDiversity(LDiversity):
    """The entropy of a group's sensitive values is at least log(l), over rows and over people.

    Over people means: over the different (subject, value) pairs, so that repeated rows of one
    person don't make a group look even.
    """

    name: ClassVar[str] = "entropy l-diversity"
    form: ClassVar[str] = "entropy"
    example: ClassVar[str] = "3"

    def __post_init__(self) -> None:
        number("EntropyLDiversity.l", self.l, least=1.0)


@dataclass(frozen=True, slots=True)
class RecursiveLDiversity(LDiversity):
    """Counts r1 ≥ r2 ≥ … of a group obey r1 < c (r_l + r_(l+1) + …), over rows and over people."""

    name: ClassVar[str] = "recursive (c, l)-diversity"
    form: ClassVar[str] = "recursive"
    example: ClassVar[str] = "3, c = 2"
    c: float = 1.0

    def __post_init__(self) -> None:
        whole("RecursiveLDiversity.l", self.l, 1)
        number("RecursiveLDiversity.c", self.c, above=0.0)


@dataclass(frozen=True, slots=True)
class Measured(Criterion):
    """Base of the criteria that compare the sensitive values of a group with those of its window.

    ``attribute`` names one sensitive column; None means every one. Each compares the share q of a
    value among the rows of a group with its share p among the rows of the window that the group is
    measured against (see `Window`). The domain consists of the values in the window: a group with
    a value that its window lacks meets no such criterion. Where a criterion needs the ``places``
    of values in their domain, none may be missing.
    """

    places: ClassVar[bool] = False

    attribute: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Closeness(Measured):
    """Base of the four forms: the values of a group are within t of those of its window.

    They differ in the distance of two distributions (thesis, §3.2 and §3.6). For all of them a
    union of two groups is no farther from the window than the farther of the two.
    """

    key: ClassVar[str] = "t"
    family: ClassVar[str] = "t-closeness"
    t: float

    def __post_init__(self) -> None:
        number(f"{type(self).__name__}.t", self.t)


@dataclass(frozen=True, slots=True)
class TCloseness(Closeness):
    """The values of a group are within t of those of its window, by the Earth Mover's Distance.

    For numbers (a `Range`) the distance of two values is how many values of the window lie between
    them; for categories it is the height of their lowest common ancestor; both are shares of the
    largest distance there is (thesis, §3.2).

    >>> TCloseness(0.2, attribute="salary")
    TCloseness(attribute='salary', t=0.2)
    """

    name: ClassVar[str] = "t-closeness"
    form: ClassVar[str] = "emd"
    places: ClassVar[bool] = True
    example: ClassVar[str] = "0.2"
    default: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class EuclideanCloseness(Closeness):
    """The shares of values differ by at most t as vectors: √Σ(q - p)² ≤ t.

    No order or hierarchy counts. The distance is less than √2.
    """

    name: ClassVar[str] = "Euclidean t-closeness"
    form: ClassVar[str] = "euclid"
    example: ClassVar[str] = "0.1"


@dataclass(frozen=True, slots=True)
class VariationalCloseness(Closeness):
    """At most a share t of the rows of a group would need another value: ½Σ|q - p| ≤ t.

    It is the Earth Mover's Distance if any two different values are equally far from each other;
    no order or hierarchy counts, and values may be missing.
    """

    name: ClassVar[str] = "variational t-closeness"
    form: ClassVar[str] = "variation"
    aliases: ClassVar[Sequence[str]] = ("hamming",)
    example: ClassVar[str] = "0.2"


@dataclass(frozen=True, slots=True)
class JensenShannonCloseness(Closeness):
    """The root of the Jensen-Shannon divergence in bits, from 0 to 1, is at most t.

    With m = (p + q) / 2 the divergence is ½Σ p log2(p / m) + ½Σ q log2(q / m). A value that is rare
    in the window and frequent in a group counts more than in the other forms. No order or hierarchy
    counts.
    """

    name: ClassVar[str] = "Jensen-Shannon t-closeness"
    form: ClassVar[str] = "jensen-shannon"
    example: ClassVar[str] = "0.2"


@dataclass(frozen=True, slots=True)
class BetaLikeness(Measured):
    """Base of the four forms: no value is more frequent in a group than its window allows."""

    key: ClassVar[str] = "beta"
    family: ClassVar[str] = "beta-likeness"
    beta: float

    def __post_init__(self) -> None:
        number(f"{type(self).__name__}.beta", self.beta, above=0.0)


@dataclass(frozen=True, slots=True)
class BasicLikeness(BetaLikeness):
    """No value gains more than beta: q ≤ (1 + beta) p (thesis, Definition 4.2).

    A value with p > 1 / (1 + beta) may fill a whole group; `EnhancedLikeness` doesn't allow that.
    """

    name: ClassVar[str] = "basic beta-likeness"
    form: ClassVar[str] = "basic"
    example: ClassVar[str] = "2"


@dataclass(frozen=True, slots=True)
class EnhancedLikeness(BetaLikeness):
    """No value gains more than beta or -ln p, whichever is less (thesis, Definition 4.3)."""

    name: ClassVar[str] = "enhanced beta-likeness"
    form: ClassVar[str] = "enhanced"
    example: ClassVar[str] = "2"
    default: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class SemanticLikeness(BetaLikeness):
    """Enhanced likeness for every value, and for every node of its hierarchy (Definition 4.4).

    ``level`` is the highest protected level; the root is level 0, and needs no protection.
    """

    name: ClassVar[str] = "semantic beta-likeness"
    form: ClassVar[str] = "semantic"
    places: ClassVar[bool] = True
    example: ClassVar[str] = "2, level = 1"
    level: int = 1

    def __post_init__(self) -> None:
        # Without arguments `super` doesn't find the class of a dataclass with slots.
        super(SemanticLikeness, self).__post_init__()
        whole("SemanticLikeness.level", self.level, 1)


@dataclass(frozen=True, slots=True)
class RangeLikeness(BetaLikeness):
    """Enhanced likeness for every interval of values that is no longer than epsilon (Def. 4.5).

    An interval from a to b has the length b - a, or (b - a) / a where ``relative``.
    """

    name: ClassVar[str] = "range-based beta-likeness"
    form: ClassVar[str] = "range"
    places: ClassVar[bool] = True
    example: ClassVar[str] = "2, epsilon = 5000"
    # Without a length only single values are protected, which is the enhanced form already.
    needs: ClassVar[Sequence[str]] = ("epsilon",)
    epsilon: float = 0.0
    relative: bool = False

    def __post_init__(self) -> None:
        super(RangeLikeness, self).__post_init__()
        number("RangeLikeness.epsilon", self.epsilon)
        if not isinstance(self.relative, bool):
            raise ParameterError(
                "RangeLikeness.relative", "must be true or false", got=repr(self.relative)
            )


@dataclass(frozen=True, slots=True)
class DeltaDisclosure(Measured):
    """Every value of the window is in the group, and |ln(q / p)| < delta for each of them."""

    name: ClassVar[str] = "delta-disclosure"
    key: ClassVar[str] = "disclosure"
    example: ClassVar[str] = "0.7"
    delta: float

    def __post_init__(self) -> None:
        number("DeltaDisclosure.delta", self.delta, above=0.0)


def criteria(base: type[Criterion] = Criterion) -> list[type[Criterion]]:
    """Return the criteria of this module that are of one base, in the order of their definition."""
    return [
        found
        for found in globals().values()
        if isinstance(found, type) and issubclass(found, base) and hasattr(found, "name")
    ]


def described(kind: type[Criterion]) -> str:
    """Return the name of a criterion, or what a base has: its families and their forms.

    >>> described(KAnonymity), described(LDiversity)
    ('k-anonymity', 'l-diversity (distinct, entropy, recursive)')
    """
    if hasattr(kind, "name"):
        return kind.name
    forms: dict[str, list[str]] = {}
    for each in criteria(kind):
        forms.setdefault(each.family or each.name, []).append(each.form)
    return ", ".join(
        f"{family} ({', '.join(found)})" if found != [""] else family
        for family, found in forms.items()
    )


def misfits(criterion: Measured, attribute: Sensitive) -> list[Problem]:
    """Return the problem of a criterion that doesn't fit the domain of an attribute, if any."""
    domain = attribute.domain
    key = f"policy.{criterion.key}"
    if isinstance(criterion, TCloseness) and domain is None:
        what = f"needs an order or a hierarchy of {attribute.name}, and its domain is open"
        fix = f"Give schema.sensitive.{attribute.name} a range, a hierarchy or values"
    elif isinstance(criterion, SemanticLikeness) and not isinstance(domain, Hierarchy):
        what = f"{criterion.name} needs a hierarchy of {attribute.name}"
        fix = f'Set schema.sensitive.{attribute.name} = {{ hierarchy = "..." }}'
    elif isinstance(criterion, RangeLikeness) and not isinstance(domain, Range):
        what = f"{criterion.name} needs {attribute.name} to be a number"
        fix = f"Set schema.sensitive.{attribute.name} = {{ range = [lowest, highest] }}"
    elif isinstance(criterion, RangeLikeness) and criterion.relative and _begins_low(domain):
        what = f"relative lengths need numbers above 0, and those of {attribute.name} begin lower"
        fix = "Leave relative out, or begin the range above 0"
    else:
        return []
    return [Problem(key, what, None, fix)]


def _begins_low(domain: Domain | None) -> bool:
    return isinstance(domain, Range) and domain.lo <= 0
