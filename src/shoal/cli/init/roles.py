"""Give each column a role: by what its values mean, or as the caller asks.

The proposals are cautious. What may identify a person is left out, at most ten columns that an
outsider plausibly knows are generalized, and only columns that look sensitive are published as they
are. Columns without a role aren't published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import pyarrow as pa

from shoal.cli.init import words as w
from shoal.cli.init.columns import Column
from shoal.cli.init.meaning import Meaning, meaning_of
from shoal.cli.init.subjects import choose_subject, is_personal, known_by_attributes
from shoal.errors import JobError, Problem, did_you_mean

__all__ = ["UNKNOWN", "Asked", "Roles", "assign", "rank_by_name", "sensitive_by_name"]

#: The most quasi attributes that are proposed, and up to how many those without a telling name are.
MOST_QUASI, MOST_UNKNOWN = 10, 4
#: Ranks of columns whose names say nothing, and of those that aren't proposed at all.
UNKNOWN, NEVER = 3, 8
MOST_SENSITIVE = 5
#: Without a subject, a number that fewer than this many rows share may be one person's.
FINE = 20
#: From here on times are in order, so that they may be those of arrival.
IN_ORDER = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The roles that the caller asks for, by the options of the command line."""

    subject: str | None = None
    time: str | None = None
    quasi: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls, *, subject: str | None, time: str | None, **names: Sequence[str] | None
    ) -> Asked:
        """Read options, in which names may have commas between them.

        >>> Asked.parse(subject=None, time=None, quasi=["age,sex", "zip"]).quasi
        ('age', 'sex', 'zip')
        """
        split = {
            role: tuple(name.strip() for text in given or () for name in text.split(","))
            for role, given in names.items()
        }
        return cls(subject=subject, time=time, **split)

    def check(self, known: Sequence[str]) -> None:
        """Raise if a name isn't a column, or has two roles."""
        problems = [
            Problem(f"--{role}", f"{name} isn't a column of the data", None,
                    did_you_mean(name, known))
            for role, names in self._named()
            for name in names
            if name not in known
        ]  # fmt: skip
        for name in dict.fromkeys(name for _, names in self._named() for name in names):
            roles = [role for role, names in self._named() if name in names]
            # A time may be a quasi attribute too, but then its range has to be written by hand.
            if len(roles) > 1:
                given = " and ".join(f"--{role}" for role in roles)
                problems.append(
                    Problem(given, f"{name} can't have two roles", None, "Decide on one")
                )
        if problems:
            raise JobError(problems)

    def _named(self) -> list[tuple[str, tuple[str, ...]]]:
        found = []
        for role in fields(self):
            value = getattr(self, role.name)
            found.append((role.name, (value,) if isinstance(value, str) else tuple(value or ())))
        return found

    def role_of(self, name: str) -> str | None:
        """Return the role that is asked for a column, or None."""
        return next((role for role, names in self._named() if name in names), None)


@dataclass(slots=True)
class Roles:
    """The role of every column. A column in no list is left out of the job."""

    meanings: Mapping[str, Meaning]
    subject: Column | None = None
    subject_reason: str = ""
    time: Column | None = None
    candidates: list[Column] = field(default_factory=list)
    """Columns that may be the subject instead."""
    times: list[Column] = field(default_factory=list)
    """Time stamps that may be the time, but aren't in order or are missing somewhere."""
    quasi: list[Column] = field(default_factory=list)
    unknown: list[Column] = field(default_factory=list)
    """The quasi attributes whose name says nothing."""
    rest: list[Column] = field(default_factory=list)
    """Columns that could be quasi attributes, too."""
    sensitive: list[Column] = field(default_factory=list)
    keep: list[Column] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that aren't published, and why."""
    forced: list[Column] = field(default_factory=list)
    """Columns that identify people, and are published because the caller asks for it."""


def assign(columns: Sequence[Column], sample: pa.Table, asked: Asked | None = None) -> Roles:
    """Assign a role to each column."""
    asked = asked or Asked()
    asked.check([column.name for column in columns])
    by_name = {column.name: column for column in columns}
    meanings = {column.name: meaning_of(column) for column in columns}
    roles = Roles(meanings | known_by_attributes(columns, meanings, sample))
    free = [column for column in columns if asked.role_of(column.name) is None]
    _choose_subject(roles, free, by_name, sample, asked)
    _choose_time(roles, free, by_name, asked)
    placed = {column.name for column in (roles.subject, roles.time) if column is not None}
    proposed: list[Column] = []
    for column in columns:
        role = asked.role_of(column.name)
        if column.name in placed:
            continue
        if role in ("quasi", "sensitive", "keep"):
            _force(column, role, roles)
        elif role == "drop":
            roles.left_out[column.name] = "as asked by --drop"
        else:
            _place(column, roles, sample, proposed, asked)
    proposed.sort(key=lambda column: _rank(column, roles.meanings[column.name]))
    ranks = [_rank(column, roles.meanings[column.name]) for column in proposed]
    n_known = sum(rank < UNKNOWN for rank in ranks)
    n_unknown = min(MOST_UNKNOWN, sum(rank < NEVER for rank in ranks))
    n_quasi = 0 if asked.quasi else min(MOST_QUASI, max(n_known, n_unknown))
    roles.rest = proposed[n_quasi:]
    chosen = proposed[:n_quasi]
    roles.quasi += chosen
    order = {column.name: i for i, column in enumerate(columns)}
    roles.quasi.sort(key=lambda column: order[column.name])
    roles.unknown = [c for c in chosen if _rank(c, roles.meanings[c.name]) >= UNKNOWN]
    return roles


def _choose_subject(
    roles: Roles,
    free: Sequence[Column],
    by_name: Mapping[str, Column],
    sample: pa.Table,
    asked: Asked,
) -> None:
    if asked.subject is not None:
        roles.subject, roles.subject_reason = by_name[asked.subject], "as asked by --subject"
    else:
        roles.subject, roles.subject_reason = choose_subject(free, roles.meanings, sample)
    # Who takes an id of rows for that of people counts rows: it is named only for want of another.
    ids = ("person id", "record id") if roles.subject is None else ("person id",)
    roles.candidates = [
        column
        for column in free
        if roles.meanings[column.name].sense in ids
        and column is not roles.subject
        and not column.few
    ]


def _choose_time(
    roles: Roles, free: Sequence[Column], by_name: Mapping[str, Column], asked: Asked
) -> None:
    """Choose the arrival time: times, dates or seconds that are in order, without gaps."""
    if asked.time is not None:
        roles.time = by_name[asked.time]
        if roles.time.kind not in ("time", "date", "number") or not roles.time.readable:
            what = f"{asked.time} has values that can't be read as times"
            fix = "Give seconds, or times such as 2026-03-01 06:24:00"
            raise JobError(Problem("--time", what, None, fix))
        return
    scores = {
        column.name: _time_score(column, roles.meanings[column.name])
        for column in free
        if column is not roles.subject
    }
    named = {name: score for name, score in scores.items() if score > 0}
    for name in sorted(named, key=lambda name: -named[name]):
        column = by_name[name]
        usable = column.ordered >= IN_ORDER and not (column.n_missing or column.n_marks)
        if usable and roles.time is None:
            roles.time = column
        elif roles.meanings[name].sense == "time":
            roles.times.append(column)


def _time_score(column: Column, meaning: Meaning) -> int:
    if w.BIRTH.match(column.name) or column.n_distinct < 2 or not column.readable:
        return 0
    by_name = w.INSTANT.match(column.name)
    if meaning.sense == "time":
        return 4 if by_name else 3 if w.CALENDAR.match(column.name) else 2
    if column.kind == "date":
        return 1 if column.rising and column.form == "%Y-%m-%d" else 0
    return 4 if column.kind == "number" and by_name and column.rising and not column.few else 0


def _force(column: Column, role: str, roles: Roles) -> None:
    """Give a column the role that is asked for; say so if it identifies people."""
    meaning = roles.meanings[column.name]
    if role == "quasi" and meaning.sense in ("nothing", "time"):
        what = f"{column.name} can't be generalized: {meaning.reason}"
        raise JobError(Problem("--quasi", what, None, "Leave it out"))
    if meaning.identifies:
        roles.forced.append(column)
    {"quasi": roles.quasi, "sensitive": roles.sensitive, "keep": roles.keep}[role].append(column)


def _place(
    column: Column, roles: Roles, sample: pa.Table, proposed: list[Column], asked: Asked
) -> None:
    """Assign a role to a column that is neither subject nor time."""
    meaning = roles.meanings[column.name]
    if meaning.identifies or meaning.sense == "nothing":
        roles.left_out[column.name] = meaning.reason
    elif meaning.sense == "time":
        roles.left_out[column.name] = "time stamps: exact times identify people"
        if not column.readable:
            roles.left_out[column.name] += (
                '. For schema.time they must have the form "YYYY-MM-DD hh:mm:ss"'
            )
    elif _identifies_people(column, meaning, roles, sample):
        roles.left_out[column.name] = (
            f"{column.n_distinct:,} values, nearly each of which belongs to one person only"
        )
    elif _looks_sensitive(column, meaning):
        if asked.sensitive:
            roles.left_out[column.name] = "it looks sensitive, and --sensitive doesn't name it"
        else:
            _place_sensitive(column, roles)
    else:
        proposed.append(column)


def _identifies_people(column: Column, meaning: Meaning, roles: Roles, sample: pa.Table) -> bool:
    """Return whether a column whose name says nothing tells people apart as their ids do."""
    if (
        roles.subject is None
        or _rank(column, meaning) < UNKNOWN
        or meaning.sense in ("date", "place")
    ):
        return False
    if _looks_sensitive(column, meaning):
        return False
    return is_personal(column, sample[column.name], sample[roles.subject.name])


def _looks_sensitive(column: Column, meaning: Meaning) -> bool:
    if meaning.sense == "diagnosis":
        return True
    # "Number of medications" is a count, and no medication.
    return sensitive_by_name(column.name) and meaning.sense not in ("count", "date", "band")


def _place_sensitive(column: Column, roles: Roles) -> None:
    """Propose a column as sensitive, unless its values find people or there are too many such."""
    most = (column.n_present if roles.subject is None else roles.subject.n_distinct) / 2
    if roles.subject is None and column.kind == "number":
        # An exact amount that a person has in several rows would link them.
        most = column.n_present / FINE
    if not column.few and column.n_distinct >= most:
        roles.left_out[column.name] = (
            "it looks sensitive, but nearly everybody has a value of their own, and sensitive "
            "values are published as they are: anyone who knows one finds the row. Make it "
            "coarser, then name it under [schema.sensitive]"
        )
    elif len(roles.sensitive) >= MOST_SENSITIVE:
        roles.left_out[column.name] = (
            f"it looks sensitive as well as {MOST_SENSITIVE} others do; to publish it, name it "
            "under [schema.sensitive]"
        )
    else:
        roles.sensitive.append(column)


def _rank(column: Column, meaning: Meaning) -> int:
    """Return how plausibly an outsider knows a column, 0 most; from `UNKNOWN` on by its values.

    Many texts or whole numbers whose name says nothing may be ids after all: they are never
    proposed.
    """
    if (by_name := rank_by_name(column.name)) < UNKNOWN:
        return by_name
    if meaning.sense in ("band", "date", "place"):
        return UNKNOWN
    if not column.few and (column.kind == "text" or column.whole) and not meaning.by_name:
        return NEVER
    return {"category": 4, "code": 5, "count": 6}.get(meaning.sense, 7)


def rank_by_name(name: str) -> int:
    """Return how plausibly an outsider knows a column by its name; `UNKNOWN`: it says nothing."""
    if w.WELL_KNOWN.match(name) or w.BIRTH.match(name) or w.POSTCODE.match(name):
        return 0
    if w.PLACE.match(name) or w.CATEGORY.match(name):
        return 1
    return 2 if w.QUASI.match(name) else UNKNOWN


def sensitive_by_name(name: str) -> bool:
    """Return whether a column's name is that of what nobody should learn."""
    return w.SENSITIVE.match(name) and not w.WELL_KNOWN.match(name)
