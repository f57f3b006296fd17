"""What is promised: criteria and a delay, as plain values.

A policy knows nothing of algorithms. Whatever enforces it checks it at the moment of release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from shoal.errors import JobError, ParameterError, Problem, did_you_mean
from shoal.schema import Schema

__all__ = [
    "Criterion",
    "Delay",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "KAnonymity",
    "LDiversity",
    "Missing",
    "Policy",
    "RecursiveLDiversity",
]


#: What a quasi value that isn't there means.
Missing: TypeAlias = Literal["quarantine", "extended", "maybe"]
#: Whose seconds a delay may count.
CLOCKS = ("stream", "wall")
#: Nothing that is promised is larger than this, and nothing that is counted overflows.
MOST = 10**9


def _whole(key: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParameterError(key, f"must be a whole number of at least {least}", got=repr(value))
    _not_too_much(key, value)


def _not_too_much(key: str, value: float) -> None:
    if value > MOST:
        raise ParameterError(key, f"must be at most {MOST:,}", got=repr(value))


def _number(key: str, value: object, *, above: float | None = None, least: float = 0.0) -> None:
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
    """One promise about every group that is published."""

    name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class KAnonymity(Criterion):
    """Every group has rows of at least k different subjects (thesis, Definition 5.1).

    >>> KAnonymity(10)
    KAnonymity(k=10)
    """

    name: ClassVar[str] = "k-anonymity"
    k: int

    def __post_init__(self) -> None:
        _whole("KAnonymity.k", self.k, 1)


@dataclass(frozen=True, slots=True)
class LDiversity(Criterion):
    """Base of the three forms. ``attribute`` names one sensitive column; None means every one.

    All forms need l different subjects with l different values: a subject whose rows carry
    many values can stand for one of them only.
    """

    l: float  # noqa: E741 - the letter of the papers and of the job file
    attribute: str | None = None

    @property
    def needed(self) -> int:
        """How many different subjects with different values a group needs."""
        return math.ceil(self.l)


@dataclass(frozen=True, slots=True)
class DistinctLDiversity(LDiversity):
    """Every group has l different subjects with l different sensitive values."""

    name: ClassVar[str] = "distinct l-diversity"

    def __post_init__(self) -> None:
        _whole("DistinctLDiversity.l", self.l, 1)


@dataclass(frozen=True, slots=True)
class EntropyLDiversity(LDiversity):
    """The entropy of a group's sensitive values is at least log(l), over rows and over people.

    Over people means: over the different (subject, value) pairs, so that nobody's repetitions
    make a group look even.
    """

    name: ClassVar[str] = "entropy l-diversity"

    def __post_init__(self) -> None:
        _number("EntropyLDiversity.l", self.l, least=1.0)


@dataclass(frozen=True, slots=True)
class RecursiveLDiversity(LDiversity):
    """Counts r1 ≥ r2 ≥ … of a group obey r1 < c (r_l + r_(l+1) + …), over rows and over people."""

    name: ClassVar[str] = "recursive (c, l)-diversity"
    c: float = 1.0

    def __post_init__(self) -> None:
        _whole("RecursiveLDiversity.l", self.l, 1)
        _number("RecursiveLDiversity.c", self.c, above=0.0)


@dataclass(frozen=True, slots=True)
class Delay:
    """How long a row may be held: so many further rows, so many seconds, or whichever is first.

    ``clock`` tells whose seconds: those of the ``"stream"``, which are the times of its rows, or
    those of the ``"wall"``, by when a row arrives. Without it, the stream's where it has a time.

    >>> Delay(rows=10_000, seconds=30)
    Delay(rows=10000, seconds=30, clock=None)
    """

    rows: int | None = None
    seconds: float | None = None
    clock: Literal["stream", "wall"] | None = None

    def __post_init__(self) -> None:
        if self.rows is None and self.seconds is None:
            raise ParameterError(
                "Delay", "needs rows, seconds or both", mend="For example rows = 10000"
            )
        if self.rows is not None:
            _whole("Delay.rows", self.rows, 1)
        if self.seconds is not None:
            _number("Delay.seconds", self.seconds, above=0.0)
        if self.clock not in (None, *CLOCKS):
            raise ParameterError(
                "Delay.clock", f"must be one of {', '.join(CLOCKS)}", got=repr(self.clock)
            )
        if self.clock is not None and self.seconds is None:
            raise ParameterError(
                "Delay.clock", "tells whose seconds", got="no seconds", mend="Set seconds too"
            )

    def by_wall(self, schema: Schema) -> bool:
        """Whether seconds are those of the wall clock and not of the stream."""
        return self.seconds is not None and (self.clock == "wall" or schema.time is None)


class Policy:
    """All that is promised about a release.

    Parameters
    ----------
    criteria
        What holds for every group.
    delay
        How long a row may be held.
    lateness
        By how many seconds the time of a row may lie behind the latest before it. A row that is
        later is set apart as a bad row. None: any row may come, and counts as of the latest time.
    missing
        What a quasi value that isn't there means. ``"quarantine"``: the row is bad. ``"extended"``:
        any value of the domain, and published as such, so that nobody in a group can be told apart
        by what is missing. ``"maybe"``: it stays missing and matches every value; whoever knows
        which values are missing can tell the members of a group apart.

    >>> policy = Policy(KAnonymity(10), DistinctLDiversity(3), delay=Delay(rows=1000))
    >>> policy.k
    10
    """

    __slots__ = ("criteria", "delay", "lateness", "missing")

    criteria: tuple[Criterion, ...]
    delay: Delay | None
    lateness: float | None
    missing: Missing

    def __init__(
        self,
        *criteria: Criterion,
        delay: Delay | None = None,
        lateness: float | None = None,
        missing: Missing = "quarantine",
    ) -> None:
        if not criteria:
            raise ParameterError(
                "Policy", "promises nothing", mend="Give a criterion, such as KAnonymity(10)"
            )
        for criterion in criteria:
            if not isinstance(criterion, Criterion):
                raise ParameterError("Policy", "takes criteria", got=type(criterion).__name__)
        if sum(isinstance(criterion, KAnonymity) for criterion in criteria) > 1:
            raise ParameterError("Policy", "has two values of k", mend="Keep the larger one")
        if lateness is not None:
            _number("Policy.lateness", lateness)
        if missing not in get_args(Missing):
            raise ParameterError(
                "Policy.missing",
                f"must be one of {', '.join(get_args(Missing))}",
                got=repr(missing),
                mend=did_you_mean(str(missing), get_args(Missing)),
            )
        self.criteria = tuple(criteria)
        self.delay = delay
        self.lateness = lateness
        self.missing = missing

    def __repr__(self) -> str:
        parts = [repr(criterion) for criterion in self.criteria]
        parts.append(f"delay={self.delay!r}")
        if self.lateness is not None:
            parts.append(f"lateness={self.lateness!r}")
        if self.missing != "quarantine":
            parts.append(f"missing={self.missing!r}")
        return f"Policy({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[tuple[Criterion, ...], Delay | None, float | None, Missing]:
        return self.criteria, self.delay, self.lateness, self.missing

    @property
    def k(self) -> int:
        """The k that is promised; 1 if none is."""
        return next((c.k for c in self.criteria if isinstance(c, KAnonymity)), 1)

    @property
    def diversity(self) -> tuple[LDiversity, ...]:
        """The criteria of l-diversity."""
        return tuple(c for c in self.criteria if isinstance(c, LDiversity))

    def check(self, schema: Schema) -> None:
        """Refuse a policy that speaks of columns which the schema doesn't have."""
        names = [attribute.name for attribute in schema.sensitive]
        problems = []
        for criterion in self.diversity:
            if not names:
                problems.append(
                    Problem(
                        "policy.l",
                        f"{criterion.name} needs a sensitive attribute and the schema has none",
                        None,
                        "Name one under [schema.sensitive]",
                    )
                )
            elif criterion.attribute is not None and criterion.attribute not in names:
                problems.append(
                    Problem(
                        f"policy.l.{criterion.attribute}",
                        "isn't a sensitive attribute of the schema",
                        None,
                        f"Sensitive: {', '.join(names)}",
                    )
                )
        for name in names:
            concerned = [c for c in self.diversity if c.attribute in (None, name)]
            if sum(isinstance(c, RecursiveLDiversity) for c in concerned) > 1:
                problems.append(
                    Problem(
                        f"policy.l.{name}",
                        "has two recursive criteria",
                        None,
                        "Keep the stricter one",
                    )
                )
        if schema.time is None:
            problems += self._need_time()
        if problems:
            raise JobError(problems)

    def _need_time(self) -> list[Problem]:
        """What is promised and needs rows that have a time."""
        mend = "Name the column under schema.time"
        asked = {
            "policy.delay.clock": self.delay is not None and self.delay.clock == "stream",
            "policy.lateness": self.lateness is not None,
        }
        return [
            Problem(key, "needs rows that have a time", None, mend)
            for key, is_asked in asked.items()
            if is_asked
        ]
