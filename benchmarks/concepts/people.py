"""Ten made-up people, published by Shoal under one promise after the other, and attacked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from shoal import anonymize, audit
from shoal.attacks import AttackResult, Setting, attack
from shoal.metrics import exposure
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import (
    Criterion,
    Delay,
    DistinctLDiversity,
    EnhancedLikeness,
    KAnonymity,
    Policy,
    TCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = [
    "AGES", "ARRIVALS", "ATTACKS", "DELAYS", "DIAGNOSES", "DISTRICTS", "PARTS", "PEOPLE",
    "PROMISES", "Group", "Person", "Release", "Stay", "diagnoses_of", "published",
    "seen_of", "stays", "table", "values_at_once",
]  # fmt: skip


class Person(NamedTuple):
    """A row of the input."""

    name: str
    age: int
    district: str
    diagnosis: str


PEOPLE = (
    Person("Ada", 24, "Mill", "Asthma"),
    Person("Ben", 27, "Mill", "Asthma"),
    Person("Cem", 29, "Quay", "Asthma"),
    Person("Dora", 36, "Quay", "Flu"),
    Person("Eli", 38, "Mill", "Asthma"),
    Person("Fay", 41, "Quay", "Flu"),
    Person("Gus", 52, "Park", "Diabetes"),
    Person("Hana", 55, "Fort", "HIV"),
    Person("Ivo", 58, "Fort", "Flu"),
    Person("Jun", 63, "Park", "Diabetes"),
)
#: In which order they come.
ARRIVALS = ("Ada", "Gus", "Dora", "Jun", "Ben", "Eli", "Hana", "Cem", "Fay", "Ivo")
AGES = (20, 70)
#: The parts of the city, and their districts.
PARTS = {"Riverside": ["Mill", "Quay"], "Hill": ["Fort", "Park"]}
DISTRICTS = tuple(district for part in PARTS.values() for district in part)
_ILLNESSES = {"Lung": ["Asthma", "Flu"], "Other": ["Diabetes", "HIV"]}
DIAGNOSES = tuple(each for kind in _ILLNESSES.values() for each in kind)

_DOMAINS = {
    "age": Range(*AGES, step=1),
    "district": Hierarchy.from_dict({"City": PARTS}),
    "diagnosis": Hierarchy.from_dict({"Any": _ILLNESSES}),
}
_QUASI = [Quasi("age", _DOMAINS["age"]), Quasi("district", _DOMAINS["district"])]
SCHEMA = Schema("name", _QUASI, [Sensitive("diagnosis", _DOMAINS["diagnosis"])])

#: The promises, in the order of the page; each but the first is made together with k = 3.
PROMISES: dict[str, tuple[Criterion, ...]] = {
    "nothing": (KAnonymity(1),),
    "k = 3": (KAnonymity(3),),
    "l = 2": (KAnonymity(3), DistinctLDiversity(2)),
    "t = 0.2": (KAnonymity(3), TCloseness(0.2)),
    "beta = 1": (KAnonymity(3), EnhancedLikeness(1)),
}
#: The attacks that are made, and which of their grades of knowledge is shown.
ATTACKS = {
    "linking": 0, "homogeneity": 0, "inference": 0, "skewness": 0, "similarity": 0,
    "singling-out": 1, "edges": 0,
}  # fmt: skip
DELAYS = (2, 4, 6)
SEED = 1


class Group(NamedTuple):
    """A published group: who is in it, the labels of its box, and its loss."""

    people: tuple[str, ...]
    age: str
    district: str
    loss: float

    @property
    def ages(self) -> tuple[int, int]:
        """The edges of the box in years."""
        numbers = [int(number) for number in re.findall(r"\d+", self.age)]
        return numbers[0], numbers[-1]

    @property
    def districts(self) -> tuple[int, int]:
        """The first and the last district of the box, as positions."""
        if self.district in PARTS:
            inside = PARTS[self.district]
            return DISTRICTS.index(inside[0]), DISTRICTS.index(inside[-1])
        if self.district in DISTRICTS:
            return DISTRICTS.index(self.district), DISTRICTS.index(self.district)
        return 0, len(DISTRICTS) - 1

    @property
    def diagnoses(self) -> dict[str, int]:
        """How many have which diagnosis."""
        return diagnoses_of(self.people)


@dataclass(frozen=True)
class Release:
    """What was published under one promise, and what it is worth."""

    groups: tuple[Group, ...]
    loss: float
    closeness: float
    likeness: float
    verdict: str
    attacks: dict[str, AttackResult]


class Stay(NamedTuple):
    """How long a row was held, in rows; the group is None if it was suppressed."""

    name: str
    arrived: int
    left: int
    group: int | None
    loss: float


def diagnoses_of(names: Sequence[str]) -> dict[str, int]:
    """How many of these people have which diagnosis."""
    own = [person.diagnosis for person in PEOPLE if person.name in names]
    return {each: own.count(each) for each in DIAGNOSES}


def table(names: Sequence[str] = ARRIVALS) -> pa.Table:
    """The people in this order."""
    rows = [next(person for person in PEOPLE if person.name == name) for name in names]
    return pa.table({field: [getattr(row, field) for row in rows] for field in Person._fields})


@cache
def published(promise: str) -> Release:
    """Publish the ten as one table under a promise; audit and attack the result."""
    rows, policy = table(), Policy(*PROMISES[promise], window="all")
    result = anonymize(rows, SCHEMA, policy, "tide-table", seed=SEED, trace=True)
    lines = result.trace.to_pylist()
    worst = exposure(SCHEMA, rows, result.trace)["diagnosis"]
    assert worst.closeness is not None
    judged = audit(SCHEMA, policy, result.frame, trace=result.trace, original=rows)
    made = attack(Setting(SCHEMA, policy, result.frame, rows, result.trace), list(ATTACKS))
    return Release(
        tuple(sorted(_groups(lines, result.frame), key=lambda group: group.ages)),
        sum(line["loss"] for line in lines) / len(lines),
        worst.closeness,
        worst.likeness,
        judged.verdict,
        {name: made.of(name)[grade] for name, grade in ATTACKS.items()},
    )


def _groups(lines: list[dict[str, Any]], frame: pa.Table) -> Iterator[Group]:
    rows = frame.to_pylist()
    for number in sorted({line["group"] for line in lines}):
        own = [line for line in lines if line["group"] == number]
        box = rows[own[0]["seq"]]
        names = tuple(sorted(line["subject"] for line in own))
        yield Group(names, box["age"], box["district"], own[0]["loss"])


@cache
def stays(delay: int) -> tuple[Stay, ...]:
    """Publish the ten as a stream under k = 3, by CASTLE, with a delay in rows."""
    policy = Policy(KAnonymity(3), delay=Delay(rows=delay))
    result = anonymize(table(), SCHEMA, policy, "castle", seed=SEED, trace=True)
    return tuple(
        Stay(line["subject"], line["arrived"], line["published"], line["group"], line["loss"])
        for line in result.trace.to_pylist()
    )


@cache
def values_at_once(z: int) -> tuple[tuple[str | None, str | None], ...]:
    """Publish district and diagnosis of the ten as they come, under z; hidden ones are None."""
    schema = Schema("name", [Quasi(name, _DOMAINS[name]) for name in ("district", "diagnosis")])
    policy = Policy(ZAnonymity(z), window=Window(rows=len(PEOPLE)))
    rows = table()
    result = anonymize(rows, schema, policy, seed=SEED, trace=True, suppressed="root")
    judged = audit(
        schema, policy, result.frame, trace=result.trace, original=rows, suppressed="root"
    )
    assert judged.verdict == "kept"
    return tuple((row["district"], row["diagnosis"]) for row in result.frame.to_pylist())


def seen_of(name: str, promise: str) -> Group:
    """The group that somebody is in, which an attacker who knows their values finds."""
    return next(group for group in published(promise).groups if name in group.people)
