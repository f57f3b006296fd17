"""The policy: the promised criteria, the window and the delay, as plain values.

A policy is independent of algorithms. An engine enforces it at the moment of release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from shoal.errors import JobError, ParameterError, Problem, check_choice
from shoal.spec.criteria import (
    BasicLikeness,
    BetaLikeness,
    Closeness,
    Criterion,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    EuclideanCloseness,
    JensenShannonCloseness,
    KAnonymity,
    LDiversity,
    Measured,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    VariationalCloseness,
    ZAnonymity,
    misfits,
    number,
    whole,
)
from shoal.spec.hierarchy import Range
from shoal.spec.schema import Schema

__all__ = [
    "BasicLikeness",
    "BetaLikeness",
    "Closeness",
    "Criterion",
    "Delay",
    "DeltaDisclosure",
    "DistinctLDiversity",
    "EnhancedLikeness",
    "EntropyLDiversity",
    "EuclideanCloseness",
    "JensenShannonCloseness",
    "KAnonymity",
    "LDiversity",
    "Measured",
    "Missing",
    "Policy",
    "RangeLikeness",
    "RecursiveLDiversity",
    "SemanticLikeness",
    "TCloseness",
    "VariationalCloseness",
    "Window",
    "ZAnonymity",
]


#: The meaning of a missing quasi value.
Missing: TypeAlias = Literal["quarantine", "extended", "maybe"]
#: The clocks by which a delay may be measured.
CLOCKS = ("stream", "wall")


@dataclass(frozen=True, slots=True)
class Window:
    """The latest rows, decided or not, against which z, t, beta and disclosure are measured.

    It has ``rows`` rows, or, for z only, the rows of the latest ``seconds``. ``advance`` is the
    number of rows by which it moves, for the algorithms that publish window by window; the others
    measure against the latest rows at the moment of a release.

    >>> Window(rows=20_000, advance=5_000).rows
    20000
    >>> Window(seconds=3600).seconds
    3600
    """

    rows: int = 0
    advance: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            number("Window.seconds", self.seconds, above=0.0)
            if self.rows or self.advance is not None:
                raise ParameterError(
                    "Window.seconds", "doesn't go with rows or an advance", fix="Keep one of them"
                )
            return
        whole("Window.rows", self.rows, 1)
        if self.advance is not None:
            whole("Window.advance", self.advance, 1)
            if self.rows % self.advance:
                raise ParameterError(
                    "Window.rows",
                    "must be a multiple of the advance, else rows fall between two windows",
                    got=f"{self.rows} rows and an advance of {self.advance}",
                    fix=f"For example rows = {(self.rows // self.advance + 1) * self.advance}",
                )


@dataclass(frozen=True, slots=True)
class Delay:
    """The longest that a row may be held: in further rows, in seconds, or whichever is first.

    ``clock`` says by which clock: ``"stream"``, the times of rows, or ``"wall"``, the time at which
    a row arrives. By default the stream's, if it has a time.

    >>> Delay(rows=10_000, seconds=30)
    Delay(rows=10000, seconds=30, clock=None)
    """

    rows: int | None = None
    seconds: float | None = None
    clock: Literal["stream", "wall"] | None = None

    def __post_init__(self) -> None:
        if self.rows is None and self.seconds is None:
            raise ParameterError(
                "Delay", "needs rows, seconds or both", fix="For example rows = 10000"
            )
        if self.rows is not None:
            whole("Delay.rows", self.rows, 1)
        if self.seconds is not None:
            number("Delay.seconds", self.seconds, above=0.0)
        if self.clock is not None:
            check_choice("Delay.clock", self.clock, CLOCKS)
        if self.clock is not None and self.seconds is None:
            raise ParameterError(
                "Delay.clock", "tells whose seconds", got="no seconds", fix="Set seconds too"
            )

    def by_wall(self, schema: Schema) -> bool:
        """Whether seconds are counted by the wall clock and not by the stream."""
        return self.seconds is not None and (self.clock == "wall" or schema.time is None)


class Policy:
    """What is promised about the output.

    Parameters
    ----------
    criteria
        The criteria that hold for every group.
    delay
        The longest that a row may be held.
    lateness
        The most seconds by which the time of a row may be before the latest time so far. A row that
        is later is a bad row. None: rows are never too late, and count as of the latest time.
    ahead
        The most seconds by which the time of a row may be after its arrival, by the clock of the
        machine. A row from further in the future is a bad row: it would make every row after it
        late, or move it to its own time. None: any time is accepted.
    missing
        The meaning of a missing quasi value. ``"quarantine"``: the row is bad. ``"extended"``:
        any value of the domain, and published as such, so that nobody in a group can be told apart
        by missing values. ``"maybe"``: it stays missing and matches every value; an attacker who
        knows which values are missing can tell the members of a group apart.
    window
        What t, beta and disclosure are measured against: a `Window` of the latest rows, or
        ``"all"`` for a table that is published at once.

    >>> policy = Policy(KAnonymity(10), DistinctLDiversity(3), delay=Delay(rows=1000))
    >>> policy.k
    10
    """

    __slots__ = ("ahead", "criteria", "delay", "lateness", "missing", "window")

    criteria: tuple[Criterion, ...]
    delay: Delay | None
    lateness: float | None
    ahead: float | None
    missing: Missing
    window: Window | Literal["all"] | None

    def __init__(
        self,
        *criteria: Criterion,
        delay: Delay | None = None,
        lateness: float | None = None,
        ahead: float | None = None,
        missing: Missing = "quarantine",
        window: Window | Literal["all"] | None = None,
    ) -> None:
        problems = _wrong_types(criteria, delay, window)
        if len(problems) > 1:
            raise JobError(problems)
        for problem in problems:
            raise ParameterError(problem.key, problem.what, got=problem.got, fix=problem.fix)
        if sum(isinstance(criterion, KAnonymity) for criterion in criteria) > 1:
            raise ParameterError("Policy", "has two values of k", fix="Keep the larger one")
        if len(criteria) > 1 and any(isinstance(c, ZAnonymity) for c in criteria):
            raise ParameterError(
                "Policy.z",
                "goes with no other promise: values that leave one by one are in no group",
                fix="Promise z alone, or leave it out",
            )
        if lateness is not None:
            number("Policy.lateness", lateness)
        if ahead is not None:
            number("Policy.ahead", ahead)
        check_choice("Policy.missing", missing, get_args(Missing))
        self.criteria = tuple(criteria)
        self.delay = delay
        self.lateness = lateness
        self.ahead = ahead
        self.missing = missing
        self.window = window
        self._check_window()

    def _check_window(self) -> None:
        """Refuse measured criteria without a window, and a window without such criteria."""
        if self.measured and self.window is None:
            raise ParameterError(
                "Policy.window",
                f"is missing: {self.measured[0].name} is measured against it",
                fix='Set it, for example { rows = 20000, advance = 5000 }, or "all" for a table',
            )
        if self.z:
            self._check_z()
        elif isinstance(self.window, Window) and self.window.seconds is not None:
            raise ParameterError(
                "Policy.window.seconds",
                "is for z-anonymity only",
                fix="Count the window in rows, for example { rows = 20000, advance = 5000 }",
            )
        if isinstance(self.window, Window) and not self.measured and not self.z:
            raise ParameterError(
                "Policy.window",
                "isn't used: no promise is measured against it",
                fix="Promise z, t, beta or disclosure, or leave the window out",
            )
        if self.window == "all" and self.delay is not None:
            raise ParameterError(
                "Policy.delay",
                "can't be kept for a table that is published at once",
                fix='Leave the delay out, or set a window other than "all"',
            )

    def _check_z(self) -> None:
        """Refuse a window or a delay that z-anonymity can't have."""
        if not isinstance(self.window, Window):
            raise ParameterError(
                "Policy.window",
                "is missing: z-anonymity counts who exposed a value in it"
                if self.window is None
                else "never ends: z-anonymity counts who exposed a value in the latest one",
                fix="Set it, for example { seconds = 3600 }, or { rows = 500000 }",
            )
        if self.window.advance is not None:
            raise ParameterError(
                "Policy.window.advance",
                "isn't used: a value is decided against the window that ends with it",
                fix="Leave it out",
            )
        if self.delay is not None:
            raise ParameterError(
                "Policy.delay",
                "can't be given: under z-anonymity no row is held",
                fix="Leave the delay out",
            )

    def __repr__(self) -> str:
        parts = [repr(criterion) for criterion in self.criteria]
        parts.append(f"delay={self.delay!r}")
        if self.lateness is not None:
            parts.append(f"lateness={self.lateness!r}")
        if self.ahead is not None:
            parts.append(f"ahead={self.ahead!r}")
        if self.missing != "quarantine":
            parts.append(f"missing={self.missing!r}")
        if self.window is not None:
            parts.append(f"window={self.window!r}")
        return f"Policy({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return self.criteria, self.delay, self.lateness, self.ahead, self.missing, self.window

    @property
    def k(self) -> int:
        """The promised k; 1 if there is none."""
        return next((c.k for c in self.criteria if isinstance(c, KAnonymity)), 1)

    @property
    def z(self) -> int:
        """The promised z; 0 if rows are published in groups instead."""
        return next((c.z for c in self.criteria if isinstance(c, ZAnonymity)), 0)

    @property
    def per_value(self) -> bool:
        """Whether each value is decided on its own (z-anonymity), not rows in groups."""
        return bool(self.z)

    @property
    def diversity(self) -> tuple[LDiversity, ...]:
        """The criteria of l-diversity."""
        return tuple(c for c in self.criteria if isinstance(c, LDiversity))

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The criteria that are measured against a window."""
        return tuple(c for c in self.criteria if isinstance(c, Measured))

    def compared(self, schema: Schema) -> frozenset[str]:
        """Return the sensitive attributes whose values are compared with those of a window."""
        return frozenset(
            attribute.name
            for attribute in schema.sensitive
            for criterion in self.measured
            if criterion.attribute in (None, attribute.name)
        )

    def in_place(self, schema: Schema) -> frozenset[str]:
        """Return the sensitive attributes in which no value may be missing.

        Their criteria need an order or a hierarchy. Elsewhere a missing value counts as one more
        value.
        """
        return frozenset(
            attribute.name
            for attribute in schema.sensitive
            for criterion in self.measured
            if criterion.places and criterion.attribute in (None, attribute.name)
        )

    def check(self, schema: Schema) -> None:
        """Raise `JobError` if the policy doesn't fit the schema."""
        names = [attribute.name for attribute in schema.sensitive]
        problems = []
        concerned_with: tuple[LDiversity | Measured, ...] = (*self.diversity, *self.measured)
        for criterion in concerned_with:
            key = criterion.key
            if not names:
                problems.append(
                    Problem(
                        f"policy.{key}",
                        f"{criterion.name} needs a sensitive attribute and the schema has none",
                        None,
                        "Name one under [schema.sensitive]",
                    )
                )
            elif criterion.attribute is not None and criterion.attribute not in names:
                problems.append(
                    Problem(
                        f"policy.{key}.{criterion.attribute}",
                        "isn't a sensitive attribute of the schema",
                        None,
                        f"Sensitive: {', '.join(names)}",
                    )
                )
        for measured in self.measured:
            for attribute in schema.sensitive:
                if measured.attribute in (None, attribute.name):
                    problems += misfits(measured, attribute)
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
        problems += _misfits_of_values(schema) if self.per_value else _misfits_of_groups(schema)
        if schema.time is None:
            problems += self._need_time()
        if problems:
            raise JobError(problems)

    def _need_time(self) -> list[Problem]:
        """Return the problems of settings that need rows with a time."""
        fix = "Name the column under schema.time"
        asked = {
            "policy.delay.clock": self.delay is not None and self.delay.clock == "stream",
            "policy.lateness": self.lateness is not None,
            "policy.ahead": self.ahead is not None,
            "policy.window.seconds": isinstance(self.window, Window)
            and self.window.seconds is not None,
        }
        return [
            Problem(key, "needs rows that have a time", None, fix)
            for key, is_asked in asked.items()
            if is_asked
        ]


def _wrong_types(criteria: tuple[object, ...], delay: object, window: object) -> list[Problem]:
    """Return the problems of parameters of a wrong type, with what to write instead."""
    problems = []
    if not criteria:
        fix = "Give a criterion, such as KAnonymity(10)"
        problems.append(Problem("Policy", "promises nothing", None, fix))
    for criterion in criteria:
        if not isinstance(criterion, Criterion):
            got, k = type(criterion).__name__, criterion if type(criterion) is int else 10
            fix = f"Write KAnonymity({k})"
            if isinstance(criterion, type) and issubclass(criterion, Criterion):
                got, fix = "a class", f"Call it: {criterion.__name__}(...)"
            problems.append(Problem("Policy", "takes criteria", got, fix))
    if not isinstance(delay, Delay | None):
        given = f"={delay!r}" if isinstance(delay, int | float) else "=..."
        fix = f"Write Delay(rows{given}) or Delay(seconds{given})"
        problems.append(Problem("Policy.delay", "must be a Delay", _shown(delay), fix))
    if not isinstance(window, Window | None) and window != "all":
        rows = repr(window) if isinstance(window, int) else "..."
        fix = f'Write Window(rows={rows}), or "all" for a table'
        problems.append(Problem("Policy.window", 'must be a Window or "all"', _shown(window), fix))
    return problems


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str | int | float) else type(value).__name__


def _misfits_of_groups(schema: Schema) -> list[Problem]:
    """Return the problems of attributes that can't be generalized to boxes."""
    return [
        Problem(
            f"schema.quasi.{attribute.name}",
            "has values that can't be grouped: only z-anonymity publishes them one by one",
            type(attribute.domain).__name__.lower(),
            "Give it a range, a hierarchy, values or a mask; or promise z",
        )
        for attribute in schema.quasi
        if not attribute.has_sides
    ]


def _misfits_of_values(schema: Schema) -> list[Problem]:
    """Return the problems of columns that don't fit z-anonymity."""
    problems = [
        Problem(
            f"schema.sensitive.{attribute.name}",
            "can't be protected by a group: under z-anonymity there are none",
            None,
            "Name it under schema.quasi, so that it is decided as the others are",
        )
        for attribute in schema.sensitive
    ]
    problems += [
        Problem(
            f"schema.quasi.{attribute.name}",
            "needs a step: z-anonymity publishes the interval of a step that a number lies in",
            None,
            "Set step, or leave the domain open: {}",
        )
        for attribute in schema.quasi
        if isinstance(attribute.domain, Range) and attribute.domain.step is None
    ]
    problems += [
        Problem(f"schema.quasi.{attribute.name}.weight", "isn't used by z-anonymity")
        for attribute in schema.quasi
        if attribute.weight != 1.0
    ]
    if schema.each_row:
        problems.append(
            Problem(
                "schema.subject",
                "is missing: z-anonymity counts people, and if each row were one, somebody who "
                "comes back would be counted again",
                None,
                "Name the column that tells people apart",
            )
        )
    return problems
