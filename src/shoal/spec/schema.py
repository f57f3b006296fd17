"""The schema: the columns, their roles and their domains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from shoal.errors import JobError, ParameterError, Problem
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.ladder import AnyDomain, Grid

__all__ = ["Quasi", "Schema", "Sensitive"]


@dataclass(frozen=True, slots=True)
class Quasi:
    """An attribute an outsider may know; it is published as a side of a box.

    Under z-anonymity there are no boxes: it is published as a level of a ladder, or not at all.

    Parameters
    ----------
    name
        The column; of a `Grid`, the name under which its cells are published.
    domain
        A `Range` for numbers, a `Hierarchy` for categories; under z-anonymity also `Open`, `Path`
        or `Grid`.
    weight
        The weight of its loss among the quasi attributes.
    """

    name: str
    domain: AnyDomain
    weight: float = 1.0

    def __post_init__(self) -> None:
        _check_name("Quasi.name", self.name)
        if not isinstance(self.domain, get_args(AnyDomain)):
            raise ParameterError(
                "Quasi.domain",
                "must be a Range or a Hierarchy; or Open, Path or Grid for z-anonymity",
                got=_kind(self.domain),
                fix=_domain_for(self.domain),
            )

    @property
    def has_sides(self) -> bool:
        """Whether its values can be generalized to boxes."""
        return isinstance(self.domain, Hierarchy | Range)

    @property
    def sided(self) -> Domain:
        """The domain of an attribute that has sides, which `Policy.check` makes sure of."""
        assert isinstance(self.domain, Hierarchy | Range)
        return self.domain

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the attribute is read from."""
        domain = self.domain
        return (domain.latitude, domain.longitude) if isinstance(domain, Grid) else (self.name,)


@dataclass(frozen=True, slots=True)
class Sensitive:
    """An attribute nobody should learn about a subject; it is published as it is.

    Without a domain the set of values is open.
    """

    name: str
    domain: Domain | None = None

    def __post_init__(self) -> None:
        _check_name("Sensitive.name", self.name)
        if not isinstance(self.domain, Hierarchy | Range | None):
            raise ParameterError(
                "Sensitive.domain",
                "must be a Range, a Hierarchy, or None for any values",
                got=_kind(self.domain),
                fix=_domain_for(self.domain),
            )


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a stream and their roles. Columns that aren't named are never published.

    Parameters
    ----------
    subject
        The column that tells whom a row is about, or None: then each row is a subject of its own.
    quasi
        The attributes an outsider may know.
    sensitive
        The attributes nobody should learn.
    keep
        Columns published as they are.
    time
        The column with the time of arrival: seconds, or a timestamp. Never published,
        unless it is a quasi attribute too.

    >>> from shoal.spec.hierarchy import Hierarchy, Range
    >>> schema = Schema(
    ...     subject="person",
    ...     quasi=[Quasi("age", Range(17, 90, step=1)), Quasi("sex", Hierarchy.flat(["F", "M"]))],
    ...     sensitive=[Sensitive("diagnosis")],
    ... )
    >>> schema.columns
    ('person', 'age', 'sex', 'diagnosis')
    """

    subject: str | None
    quasi: Sequence[Quasi]
    sensitive: Sequence[Sensitive] = ()
    keep: Sequence[str] = ()
    time: str | None = None

    def __post_init__(self) -> None:
        problems = self._wrong_types()
        if not problems:
            for name in ("quasi", "sensitive", "keep"):
                object.__setattr__(self, name, tuple(getattr(self, name)))
            problems = self._problems()
        if problems:
            raise JobError(problems)

    def _wrong_types(self) -> list[Problem]:
        """Return the problems of parameters of a wrong type, with what to write instead."""
        problems = [
            Problem(f"schema.{name}", "must be the name of a column, or None", _kind(value))
            for name, value in (("subject", self.subject), ("time", self.time))
            if not isinstance(value, str | None)
        ]
        asked: tuple[tuple[str, type, str, str], ...] = (
            ("quasi", Quasi, "a list of Quasi", "Quasi({0}, Range(0, 120))"),
            ("sensitive", Sensitive, "a list of Sensitive", "Sensitive({0})"),
            ("keep", str, "a list of names of columns", "{0}"),
        )
        for name, kind, what, example in asked:
            given = getattr(self, name)
            single = isinstance(given, str | kind) or not isinstance(given, Iterable)
            wrong = [given] if single else [each for each in given if not isinstance(each, kind)]
            if wrong:
                first = wrong[0]
                shown = repr(first) if isinstance(first, str) else '"age"'
                fix = f"Write [{example.format(shown)}]"
                if isinstance(first, kind) and kind is not str:
                    fix = "Put it in a list"
                problems.append(Problem(f"schema.{name}", f"must be {what}", _kind(first), fix))
        return problems

    def _problems(self) -> list[Problem]:
        problems: list[Problem] = []
        if not self.quasi:
            problems.append(
                Problem("schema.quasi", "names no attribute", None, "Name at least one column")
            )
        roles: dict[str, str] = {}
        if self.subject is not None:
            roles[self.subject] = "subject"
        named = [
            *((name, "quasi") for attribute in self.quasi for name in attribute.columns),
            *((attribute.name, "sensitive") for attribute in self.sensitive),
            *((name, "keep") for name in self.keep),
        ]
        for name, role in named:
            if name == self.time and role != "quasi":
                problems.append(
                    Problem(
                        f"schema.{role}.{name}",
                        "is the time column, which would tell when a subject came",
                        None,
                        "Leave it out, or make it a quasi attribute",
                    )
                )
            if name in roles:
                both = f"{roles[name]} and {role}" if roles[name] != role else f"{role} twice"
                fix = (
                    "A subject is never published: leave it out"
                    if roles[name] == "subject"
                    else "Give each column one role"
                )
                problems.append(Problem(f"schema.{role}.{name}", f"is named as {both}", None, fix))
            roles[name] = role
        grids = [a.name for a in self.quasi if isinstance(a.domain, Grid)]
        problems += [
            Problem(
                f"schema.quasi.{name}",
                "is published under the name of another column",
                None,
                "Give the grid a name of its own",
            )
            for name in dict.fromkeys(grids)
            if name in (*roles, self.time) or grids.count(name) > 1
        ]
        if self.time is not None and self.time == self.subject:
            problems.append(Problem("schema.time", "is the subject column too"))
        problems.extend(
            Problem(
                f"schema.quasi.{a.name}.weight", "must be a finite number above 0", str(a.weight)
            )
            for a in self.quasi
            if not (_is_number(a.weight) and 0 < a.weight < math.inf)
        )
        return problems

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that must be read, in a fixed order, without repetition."""
        names = [self.subject, self.time, *(name for a in self.quasi for name in a.columns)]
        names += [*(a.name for a in self.sensitive), *self.keep]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers: those of ranges and grids."""
        quasi = [a for a in self.quasi if isinstance(a.domain, Range | Grid)]
        sensitive = [a.name for a in self.sensitive if isinstance(a.domain, Range)]
        return tuple(dict.fromkeys([*(n for a in quasi for n in a.columns), *sensitive]))

    @property
    def payload(self) -> tuple[str, ...]:
        """The columns that are published as they are: sensitive ones, then kept ones."""
        return (*(a.name for a in self.sensitive), *self.keep)

    @property
    def each_row(self) -> bool:
        """Whether each row is taken for a different subject."""
        return self.subject is None


def _check_name(key: str, name: object) -> None:
    if not isinstance(name, str):
        raise ParameterError(key, "must be the name of a column", got=_kind(name))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: object) -> str:
    """Return what a wrong parameter is, in words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, str | int | float | None):
        return repr(value)
    return f"a {type(value).__name__}"


def _domain_for(given: object) -> str:
    """Return what to write for a domain that is given as something else."""
    match given:
        case type():
            return f"Call it: {given.__name__}()"
        case (int() | float() as lo, int() | float() as hi):
            return f"Write Range({lo!r}, {hi!r})"
        case range():
            return f"Write Range({given.start}, {given.stop}, step={given.step})"
        case Mapping():
            return "Write Hierarchy.from_dict({...})"
        case list() | tuple() | set() | frozenset():
            return "Write Hierarchy.flat([...])"
    return "For example Range(0, 120), or Hierarchy.flat([...])"
