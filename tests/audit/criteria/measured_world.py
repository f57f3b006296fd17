"""Runs with windows, written by hand, and the criteria by their definitions: slow, in fractions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa

from shoal.audit import Report, audit
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.policy import (
    BetaLikeness,
    Criterion,
    Delay,
    DeltaDisclosure,
    Measured,
    Missing,
    Policy,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    Window,
)
from shoal.spec.schema import Quasi, Schema, Sensitive

PLACES = [f"p{i}" for i in range(10)]
DISEASES = Hierarchy.from_dict(
    {
        "respiratory and digestive diseases": {
            "respiratory diseases": ["SARS", "pneumonia", "bronchitis"],
            "digestive diseases": ["intestinal cancer", "gastric flu", "gastric ulcer"],
        }
    }
)
SARS, PNEUMONIA, BRONCHITIS, CANCER, FLU, ULCER = DISEASES.leaves
NUMBERS = Range(0, 1000)
CLOSE = 1e-9
EMPTY = pa.schema([("place", pa.string()), ("disease", pa.string())])


@dataclass
class Row:
    """A row of the input and what became of it; without a group it was suppressed.

    Below are the ways to tell of it what isn't so, and what is rare.
    """

    value: Any
    group: int | None = None
    published: int = 0
    window: int | None = None
    joins: bool = False
    subject: Any = None
    outcome: str | None = None
    place: int | None = None
    second: Any = None
    shown: Any = None
    seq: int | None = None
    arrived: int | None = None
    root: bool = False
    gap: bool = False
    shard: int | None = None
    never_arrived: bool = False


def table(groups: Sequence[Sequence[Any]], rest: Sequence[Any] = ()) -> list[Row]:
    """A table that is published at once: these groups, and the rest suppressed."""
    n = sum(len(group) for group in groups) + len(rest)
    rows = [Row(v, g, n, n) for g, values in enumerate(groups) for v in values]
    return rows + [Row(v, None, n) for v in rest]


def run(
    rows: list[Row],
    *criteria: Criterion,
    domain: Domain | None = DISEASES,
    second: Domain | Literal["none"] | None = "none",
    window: Window | Literal["all"] = "all",
    each_row: bool = True,
    trace: bool = True,
    original: bool = True,
    missing: Missing = "quarantine",
    delay: Delay | None = None,
    drop: tuple[str, ...] = (),
    n_lost: int = 0,
    **options: Any,
) -> Report:
    """Audit rows that arrived in this order; the output lacks the last ``n_lost``."""
    sensitive = [Sensitive("disease", domain)]
    if second != "none":
        sensitive.append(Sensitive("other", second))
    schema = Schema(
        subject=None if each_row else "person",
        quasi=[Quasi("place", Hierarchy.flat(PLACES))],
        sensitive=sensitive,
    )
    lines, published, given = [], [], []
    arrived = 0
    for i, row in enumerate(rows):
        who = i if row.subject is None else row.subject
        shown = row.group is not None
        outcome = row.outcome or (("reuse" if row.joins else "group") if shown else "suppressed")
        valid = outcome != "quarantined" and not row.never_arrived
        place: str | None = PLACES[row.place if row.place is not None else (row.group or 0)]
        if row.root or row.gap:
            place = "*" if row.root else None
        seq = len(published) if row.seq is None else row.seq
        lines.append(
            {
                "row": i,
                "subject": str(who),
                "outcome": outcome,
                "arrived": row.arrived or (arrived if valid else None),
                "published": row.published if shown or outcome == "suppressed" else None,
                "arrived_s": None,
                "published_s": None,
                "group": row.group,
                "window": row.window,
                "seq": seq if shown else None,
            }
            | ({} if row.shard is None else {"shard": row.shard})
        )
        arrived += valid
        values = {"disease": row.value} | ({} if second == "none" else {"other": row.second})
        given.append({"person": str(who), "place": PLACES[0], **values})
        if row.shown is not None:
            values = {**values, "disease": row.shown}
        if shown:
            published.append({"place": place, **values})
    return audit(
        schema,
        Policy(*criteria, window=window, missing=missing, delay=delay),
        pa.Table.from_pylist(published, schema=None if published else EMPTY).drop_columns(
            list(drop)
        )[: len(published) - n_lost],
        trace=pa.Table.from_pylist(lines) if trace else None,
        original=pa.Table.from_pylist(given) if original else None,
        **options,
    )


# -- by the definitions ----------------------------------------------------------------------------


def shares(values: Sequence[Any]) -> dict[Any, Fraction]:
    return {value: Fraction(n, len(values)) for value, n in Counter(values).items()}


def ordered_distance(inside: Sequence[Any], beside: Sequence[Any]) -> Fraction:
    q, p = shares(inside), shares(beside)
    domain = sorted(p)
    work, carried = Fraction(0), Fraction(0)
    for value in domain[:-1]:
        carried += q.get(value, Fraction(0)) - p[value]
        work += abs(carried)
    return work / max(len(domain) - 1, 1)


def tree_distance(inside: Sequence[Any], beside: Sequence[Any], tree: Hierarchy) -> Fraction:
    """By edges: what a node has too much or too little of goes through the edge above it."""
    q, p = shares(inside), shares(beside)
    height = dict.fromkeys(range(len(tree.labels)), 0)
    for node in range(len(tree.labels) - 1, 0, -1):
        above = tree.parents[node]
        height[above] = max(height[above], height[node] + 1)
    work = Fraction(0)
    for node in range(1, len(tree.labels)):
        under = tree.leaves[tree.lows[node] : tree.highs[node] + 1]
        extra = sum((q.get(v, Fraction(0)) - p.get(v, Fraction(0)) for v in under), Fraction(0))
        work += abs(extra) * (height[tree.parents[node]] - height[node]) / 2
    return work / max(height[0], 1)


def depth(tree: Hierarchy, node: int) -> int:
    return 0 if node == 0 else 1 + depth(tree, tree.parents[node])


def protected(
    criterion: BetaLikeness, beside: Sequence[Any], domain: Domain | None
) -> Iterator[set[Any]]:
    """Every set of values whose gain is bounded."""
    there = sorted(set(beside))
    yield from ({value} for value in there)
    if isinstance(criterion, SemanticLikeness):
        assert isinstance(domain, Hierarchy)
        for node in range(len(domain.labels)):
            if depth(domain, node) >= criterion.level:
                yield set(domain.leaves[domain.lows[node] : domain.highs[node] + 1])
    if isinstance(criterion, RangeLikeness):
        for i, a in enumerate(there):
            for j in range(i, len(there)):
                length = (there[j] - a) / a if criterion.relative else there[j] - a
                if length <= criterion.epsilon:
                    yield set(there[i : j + 1])


def gains(
    criterion: BetaLikeness, inside: Sequence[Any], beside: Sequence[Any], domain: Domain | None
) -> list[tuple[float, float]]:
    """The gain of each set, and how much is allowed."""
    q, p = shares(inside), shares(beside)
    found = []
    for values in protected(criterion, beside, domain):
        before = sum((p.get(v, Fraction(0)) for v in values), Fraction(0))
        after = sum((q.get(v, Fraction(0)) for v in values), Fraction(0))
        if before:
            room = criterion.beta
            if criterion.name != "basic beta-likeness":
                room = min(room, -math.log(before))
            found.append((float(after / before - 1), room))
    return found


def disclosure(inside: Sequence[Any], beside: Sequence[Any]) -> float:
    q, p = shares(inside), shares(beside)
    if set(p) - set(q):
        return math.inf
    return max(abs(math.log(q[value] / p[value])) for value in p)


def holds(
    criterion: Measured, inside: Sequence[Any], beside: Sequence[Any], domain: Domain | None
) -> bool:
    if set(inside) - set(beside):
        return False
    if isinstance(criterion, TCloseness):
        if isinstance(domain, Hierarchy):
            return tree_distance(inside, beside, domain) <= criterion.t * (1 + CLOSE)
        return ordered_distance(inside, beside) <= criterion.t * (1 + CLOSE)
    if isinstance(criterion, DeltaDisclosure):
        return disclosure(inside, beside) < criterion.delta * (1 + CLOSE)
    assert isinstance(criterion, BetaLikeness)
    return all(
        1 + gain <= (1 + room) * (1 + CLOSE)
        for gain, room in gains(criterion, inside, beside, domain)
    )
