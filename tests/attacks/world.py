"""Small releases written by hand, for attacks that must succeed on them, or can't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from shoal.attacks import AttackResult, Setting, find
from shoal.spec.criteria import Criterion
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema, Sensitive

CITIES = Hierarchy.from_dict({"Any": {"North": ["Oslo", "Turku"], "South": ["Rome", "Bari"]}})
DISEASES = Hierarchy.from_dict(
    {"Any": {"Lung": ["flu", "cold", "asthma"], "Skin": ["rash", "acne", "wart"]}}
)
SCHEMA = Schema(
    subject="person",
    quasi=[Quasi("age", Range(0, 99, step=1)), Quasi("city", CITIES)],
    sensitive=[Sensitive("disease", DISEASES)],
)

#: person, age, city, disease, and the box that it was published in; None: suppressed.
Row = tuple[str, int, str, str, tuple[str, str] | None]


def crowd(
    n_groups: int, size: int, diseases: Sequence[str] = ("flu", "cold", "rash"), spread: int = 1
) -> list[Row]:
    """Groups of people, each in a box of its own; ages are ``spread`` years apart."""
    rows: list[Row] = []
    for group in range(n_groups):
        begin = group * size * spread
        box = (f"[{begin}, {begin + (size - 1) * spread}]", "North")
        rows += [
            (
                f"p{group}-{i}",
                begin + i * spread,
                "Oslo",
                diseases[(group + i) % len(diseases)],
                box,
            )
            for i in range(size)
        ]
    return rows


def setting(
    rows: Sequence[Row],
    *criteria: Criterion,
    schema: Schema = SCHEMA,
    traced: bool = True,
    **options: Any,
) -> Setting:
    """The setting of a release; rows leave in the order in which they came, group by group."""
    policy = options.pop("policy", None) or Policy(
        *(criteria or (KAnonymity(2),)), delay=Delay(rows=1000)
    )
    names = ("person", "age", "city", "disease")
    original = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    out = [(i, row) for i, row in enumerate(rows) if row[4] is not None]
    boxes = [row[4] for _, row in out if row[4] is not None]
    published = pa.table(
        {
            "age": pa.array([box[0] for box in boxes], pa.string()),
            "city": pa.array([box[1] for box in boxes], pa.string()),
            "disease": pa.array([row[3] for _, row in out], pa.string()),
        }
    )
    seq = {i: at for at, (i, _) in enumerate(out)}
    groups = {box: number for number, box in enumerate(dict.fromkeys(boxes))}
    n = len(rows)
    trace = pa.table(
        {
            "row": list(range(n)),
            "subject": [row[0] for row in rows],
            "outcome": ["group" if row[4] else "suppressed" for row in rows],
            "arrived": list(range(n)),
            "published": [n] * n,
            "arrived_s": pa.array([None] * n, pa.float64()),
            "published_s": pa.array([None] * n, pa.float64()),
            "group": [groups[row[4]] if row[4] else None for row in rows],
            "window": [n] * n,
            "seq": [seq.get(i) for i in range(n)],
        }
    )
    return Setting(schema, policy, published, original, trace if traced else None, **options)


def made(name: str, given: Setting) -> list[AttackResult]:
    """Make one attack."""
    return list(find(name)().run(given))


def rate(result: AttackResult) -> float:
    """The success of a result."""
    assert result.success is not None
    assert result.success.rate is not None
    return result.success.rate
