"""A small run with z, decided by the slowest reading of the rule; all of it right.

Tests change one thing and look at what the audit finds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.audit import Report, audit
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Grid, Open, Path, level_labels
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema

Row = dict[str, Any]
Node = tuple[str, ...]
#: Who exposed, or was shown with, which leaf; a leaf is all of its labels.
Exposed = Set[tuple[str, Node]]

FOODS = Hierarchy.from_dict(
    {"*": {"fruit": {"citrus": ["lime", "yuzu"], "fig": None}, "oat": None}}
)
SCHEMA = Schema(
    subject="who",
    quasi=[
        Quasi("page", Open()),
        Quasi("area", Path("*", levels=3)),
        Quasi("food", FOODS),
        Quasi("age", Range(0, 99, step=10)),
        Quasi("cell", Grid("lat", "lon", [1000, 5000])),
    ],
    keep=["note"],
    time="at",
)
TRACE = pa.schema(
    [
        ("row", pa.int64()),
        ("subject", pa.string()),
        ("attribute", pa.string()),
        ("outcome", pa.string()),
        ("arrived", pa.int64()),
        ("published", pa.int64()),
        ("arrived_s", pa.float64()),
        ("published_s", pa.float64()),
        ("group", pa.int64()),
        ("window", pa.int64()),
        ("level", pa.int64()),
        ("z", pa.int64()),
        ("loss", pa.float64()),
        ("seq", pa.int64()),
    ]
)


def ladder(quasi: Quasi, row: Row) -> tuple[str, ...] | None:
    """The labels of a cell, None if it is missing."""
    given = [row[name] for name in quasi.columns]
    if any(value is None for value in given):
        return None
    return level_labels(quasi.domain, tuple(given) if len(given) > 1 else given[0])


def behind(
    node: Node, exposed: Exposed, n: int, z: int, plain: bool, shown: Exposed = frozenset()
) -> set[str]:
    """R(node), as it is defined; a node is its labels from its own to the coarsest."""
    if len(node) == n:
        return {who for who, labels in exposed if labels == node}
    children = {labels[-len(node) - 1 :] for _, labels in exposed if labels[-len(node) :] == node}
    found: set[str] = set()
    for child in children:
        subjects = behind(child, exposed, n, z, plain, shown)
        if plain:
            found |= subjects
        elif len(subjects) <= z - 2:
            found |= {who for who in subjects if (who, child) not in shown}
    return found


def decided(
    own: Node, who: str, exposed: Exposed, z: int, plain: bool, shown: Exposed
) -> int | None:
    """The level at which a cell is published, None if it is hidden."""
    for level in range(len(own)):
        subjects = behind(own[level:], exposed, len(own), z, plain, shown)
        if len(subjects | {who}) >= z:
            return level
    return None


@dataclass
class CellWorld:
    schema: Schema = SCHEMA
    policy: Policy = field(default_factory=lambda: Policy(ZAnonymity(2), window=Window(seconds=10)))
    original: list[Row] = field(default_factory=list)
    published: list[Row] = field(default_factory=list)
    trace: list[Row] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, z: Sequence[int] | None = None) -> CellWorld:
        """Decide all rows that have all that they need; z of each valid row, if it moves."""
        self.published, self.trace = [], []
        plain = self.settings.get("count") == "plain"
        root = self.settings.get("suppressed") == "root"
        valid: list[tuple[float, Row, list[tuple[str, ...] | None]]] = []
        as_is: list[set[tuple[str, Node]]] = [set() for _ in self.schema.quasi]
        clock = -math.inf
        for number, row in enumerate(self.original):
            ladders = [ladder(quasi, row) for quasi in self.schema.quasi]
            late = self.policy.lateness is not None and row["at"] < clock - self.policy.lateness
            lacks = self.policy.missing == "quarantine" and None in ladders
            line = dict.fromkeys(TRACE.names) | {"row": number, "subject": row["who"]}
            if row["who"] is None or late or lacks:
                self.trace.append(line | {"outcome": "quarantined"})
                continue
            arrived = len(valid)
            clock = max(clock, row["at"])
            valid.append((clock, row, ladders))
            window = self.policy.window
            assert isinstance(window, Window)
            if window.seconds is None:
                inside = valid[max(0, arrived + 1 - window.rows) :]
            else:
                inside = [one for one in valid if one[0] >= clock - window.seconds]
            now = self.policy.z if z is None else z[arrived]
            line |= {"arrived": arrived, "published": arrived, "z": now}
            line |= {"arrived_s": clock, "published_s": clock}
            shown: Row = {}
            lines = []
            for a, (quasi, own) in enumerate(zip(self.schema.quasi, ladders, strict=True)):
                # The row itself isn't counted yet. Pairs that had left are new if they come again.
                exposed = {(r["who"], all_[a]) for _, r, all_ in inside[:-1] if all_[a] is not None}
                as_is[a] &= exposed
                cell = line | {"attribute": quasi.name, "outcome": "missing"}
                shown[quasi.name] = None
                if own is not None:
                    level = decided(own, row["who"], exposed, now, plain, as_is[a])
                    cell |= {"outcome": "suppressed", "loss": 1.0}
                    if level is not None:
                        cell |= {"outcome": "group", "level": level, "loss": level / len(own)}
                        shown[quasi.name] = own[level]
                    if level == 0:
                        as_is[a].add((row["who"], own))
                lines.append(cell)
            has_any = any(cell["outcome"] == "group" for cell in lines)
            seq = len(self.published) if has_any or root else None
            self.trace += [cell | {"seq": seq} for cell in lines]
            if seq is not None:
                shown |= {name: row[name] if has_any else None for name in self.schema.keep}
                if self.settings.get("time") is not None:
                    step = self.settings["time"]
                    at = math.floor(clock / step) * step if step else clock
                    shown["at"] = at if has_any else None
                if self.settings.get("pseudonym"):
                    unit = arrived if window.seconds is None else clock
                    period = math.floor(unit / self.settings["rotate"])
                    hidden = f"{'abcdefghijklmnop'[period]}{ord(row['who'][0]):x}"
                    shown = {"pseudonym": hidden if has_any else None} | shown
                self.published.append(shown)
        return self

    def table(self) -> pa.Table:
        names = [quasi.name for quasi in self.schema.quasi] + [*self.schema.keep]
        if self.settings.get("pseudonym"):
            names.insert(0, "pseudonym")
        if self.settings.get("time") is not None:
            names.append("at")
        extra = [name for row in self.published for name in row if name not in names]
        names += dict.fromkeys(extra)
        return pa.table({name: [row.get(name) for row in self.published] for name in names})

    def lines(self) -> pa.Table:
        return pa.Table.from_pylist(self.trace, TRACE)

    def input(self) -> pa.Table:
        return pa.table(
            {name: [row[name] for row in self.original] for name in self.schema.columns}
        )

    def report(
        self, *, trace: bool = True, original: bool | pa.Table = True, **given: Any
    ) -> Report:
        """The audit of the run; a table stands in for the original."""
        if isinstance(original, bool):
            original = self.input() if original else None
        settings = {"trace": self.lines() if trace else None, "original": original}
        table = given.pop("published", self.table())
        return audit(self.schema, self.policy, table, **(settings | self.settings | given))

    def broken(self, **given: Any) -> set[str]:
        report = self.report(**given)
        return {verdict.name for verdict in report.verdicts if verdict.verdict == "broken"}

    def line(self, row: int, attribute: str | None = None) -> Row:
        """The line of a cell, or of a quarantined row."""
        return next(
            line for line in self.trace if line["row"] == row and line["attribute"] == attribute
        )

    def cells(self, outcome: str, *, least: int = 0) -> list[Row]:
        """The lines with an outcome, in order; published ones of at least that level."""
        found = [line for line in self.trace if line["outcome"] == outcome]
        return [line for line in found if (line["level"] or 0) >= least]


def stream(seed: int, n_rows: int = 60, *, gaps: float = 0.0, jitter: float = 0.0) -> list[Row]:
    """Rows of a few people, close enough for some cells to be published at each level."""
    random = np.random.default_rng(seed)
    places = [(45.070, 7.686), (45.071, 7.687), (45.085, 7.700), (40.0, 7.0)]
    areas = ["it*to*centro", "it*to*lingotto", "it*mi", "fr", "it*to"]
    rows: list[Row] = []
    for i in range(n_rows):
        lat, lon = places[random.choice(4, p=[0.4, 0.3, 0.2, 0.1])]
        row: Row = {
            "who": "abcdefgh"[random.integers(8)],
            "page": "xyzuvw"[random.integers(6)],
            "area": areas[random.integers(5)],
            "food": ["lime", "yuzu", "fig", "oat"][random.integers(4)],
            "age": float(random.integers(0, 60)),
            "lat": lat,
            "lon": lon,
            "note": f"n{i}",
        }
        for name in ("page", "area", "food", "age", "lat"):
            if random.random() < gaps:
                row[name] = None
        row["at"] = float(i) - round(jitter * random.random(), 3)
        rows.append(row)
    return rows
