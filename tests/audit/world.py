"""A small run written by hand: the input, the output and the trace, all of it right.

Tests change one thing and look at what the audit finds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from shoal.audit import Report, audit
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import (
    Criterion,
    Delay,
    DistinctLDiversity,
    KAnonymity,
    Missing,
    Policy,
    Window,
)
from shoal.spec.schema import Quasi, Schema, Sensitive

CITIES = Hierarchy.from_dict({"Any": {"North": ["Oslo", "Turku"], "South": ["Rome", "Bari"]}})

SCHEMA = Schema(
    subject="person",
    quasi=[Quasi("age", Range(0, 99, step=5)), Quasi("city", CITIES)],
    sensitive=[Sensitive("disease")],
    keep=["visits"],
    time="at",
)
EACH_ROW = Schema(
    subject=None,
    quasi=SCHEMA.quasi,
    sensitive=SCHEMA.sensitive,
    keep=SCHEMA.keep,
    time="at",
)

# person, age, city, disease, visits; the ages of row 7 can't be read, so it is quarantined.
_ORIGINAL = [
    ("ann", "21", "Oslo", "flu", 1),
    ("bob", "25", "Turku", "cold", 2),
    ("cid", "29", "Oslo", "flu", 3),
    ("dan", "41", "Rome", "flu", 4),
    ("eve", "49", "Rome", "gout", 5),
    ("dan", "22", "Turku", "cold", 6),
    ("fay", "80", "Bari", "gout", 7),
    ("gus", "?", "Bari", "gout", 8),
    ("hal", "60", "Oslo", "cold", 9),
    ("ida", "45", "Rome", "cold", 10),
    ("jon", "44", "Rome", "flu", 11),
]
# row, outcome, arrived, published, group, box; the order is that of the output.
_DECISIONS = [
    (1, "group", 1, 2, 0, ("[20, 30]", "North")),
    (0, "group", 0, 2, 0, ("[20, 30]", "North")),
    (2, "group", 2, 2, 0, ("[20, 30]", "North")),
    (3, "group", 3, 6, 1, ("[40, 50]", "Rome")),
    (4, "group", 4, 6, 1, ("[40, 50]", "Rome")),
    (5, "reuse", 5, 7, 0, ("[20, 30]", "North")),
    (10, "group", 9, 10, 2, ("[40, 50]", "Rome")),
    (9, "group", 8, 10, 2, ("[40, 50]", "Rome")),
]
_OTHERS = [
    (6, "suppressed", 6, 10),
    (7, "quarantined", None, None),
    (8, "held", 7, None),
]


@dataclass
class World:
    """The three tables as lists of dictionaries, and how to audit them."""

    published: list[dict[str, Any]]
    trace: list[dict[str, Any]]
    original: list[dict[str, Any]]
    schema: Schema = SCHEMA
    criteria: list[Criterion] = field(
        default_factory=lambda: [KAnonymity(2), DistinctLDiversity(2)]
    )
    delay: Delay | None = field(default_factory=lambda: Delay(rows=4, seconds=40.0))
    missing: Missing = "quarantine"
    window: Window | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def report(self, *, trace: bool = True, original: bool = True) -> Report:
        return audit(
            self.schema,
            Policy(*self.criteria, delay=self.delay, missing=self.missing, window=self.window),
            pa.Table.from_pylist(self.published) if self.published else EMPTY,
            trace=pa.Table.from_pylist(self.trace) if trace else None,
            original=pa.Table.from_pylist(self.original) if original else None,
            **self.options,
        )

    def broken(self, **given: bool) -> set[str]:
        return {v.name for v in self.report(**given).verdicts if v.verdict == "broken"}

    def line(self, row: int) -> dict[str, Any]:
        return next(line for line in self.trace if line["row"] == row)

    def shown(self, row: int) -> dict[str, Any]:
        return self.published[self.line(row)["seq"]]

    def append(self, shown: dict[str, Any], /, **trace: Any) -> None:
        """Put one more row at the end of the output, with a new row of the input behind it."""
        shown = {**self.published[0], **shown}
        row = len(self.original)
        arrived = sum(line["arrived"] is not None for line in self.trace)
        line = {
            **self.trace[0],
            "row": row,
            "subject": f"new{row}",
            "arrived": arrived,
            "published": arrived,
            "arrived_s": 10.0 * arrived,
            "published_s": 10.0 * arrived,
            "seq": len(self.published),
            **trace,
        }
        original = {**self.original[0], "person": line["subject"], "at": line["arrived_s"]}
        for name in ("disease", "visits"):
            original[name] = shown[name]
        self.published.append(shown)
        self.trace.append(line)
        self.original.append(original)


EMPTY = (
    pa.table({"age": pa.array([], pa.string()), "city": pa.array([], pa.string())})
    .append_column("disease", pa.array([], pa.string()))
    .append_column("visits", pa.array([], pa.int64()))
)


def _line(
    row: int,
    outcome: str,
    arrived: int | None,
    published: int | None,
    group: int | None,
    seq: int | None,
) -> dict[str, Any]:
    return {
        "row": row,
        "subject": _ORIGINAL[row][0],
        "outcome": outcome,
        "arrived": arrived,
        "published": published,
        "arrived_s": None if arrived is None else 10.0 * arrived,
        "published_s": None if published is None else 10.0 * published,
        "group": group,
        "window": None,
        # Losses depend on labels, which tests change; `tests.audit.test_loss` has true ones.
        "loss": None,
        "seq": seq,
    }


def world() -> World:
    """A run that keeps all its promises."""
    original = [
        {
            "person": person,
            "age": age,
            "city": city,
            "disease": disease,
            "visits": visits,
            # Every ten seconds a row that can be used comes.
            "at": 10.0 * (row - (row >= 7)),
        }
        for row, (person, age, city, disease, visits) in enumerate(_ORIGINAL)
    ]
    published, trace = [], []
    for seq, (row, outcome, arrived, at, group, (age, city)) in enumerate(_DECISIONS):
        disease, visits = _ORIGINAL[row][3:]
        published.append({"age": age, "city": city, "disease": disease, "visits": visits})
        trace.append(_line(row, outcome, arrived, at, group, seq))
    trace += [_line(row, outcome, arrived, at, None, None) for row, outcome, arrived, at in _OTHERS]
    return copy.deepcopy(World(published, trace, original))
