"""Small streams with releases written by hand, and the settings of attacks on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from shoal.attacks import Attack, AttackResult, Setting
from shoal.spec.hierarchy import Range
from shoal.spec.policy import Delay, KAnonymity, Policy
from shoal.spec.schema import Quasi, Schema, Sensitive

__all__ = ["SCHEMA", "Row", "by_knowledge", "groups", "joining_alone", "stream"]

SCHEMA = Schema(
    subject="person", quasi=[Quasi("age", Range(0, 99, step=1))], sensitive=[Sensitive("disease")]
)


class Row(NamedTuple):
    """A row of the input, when it left and in which box; they come one after another."""

    person: str
    age: int
    left: int
    box: tuple[int, int]
    disease: str = "flu"
    outcome: str = "group"


def groups(n: int = 8) -> list[Row]:
    """Return groups of two people each, of boxes that don't overlap; each leaves at once."""
    return [
        Row(f"p{i}", 10 * (i // 2) + 2 * (i % 2), i | 1, (10 * (i // 2), 10 * (i // 2) + 2))
        for i in range(2 * n)
    ]


def joining_alone(rows: Sequence[Row], n: int = 40, *, delay: int = 4) -> list[Row]:
    """Return more rows, each of which joins a group of `groups` alone when it is due."""
    n_groups, first = len(rows) // 2, len(rows)
    return [
        Row(
            f"alone{i}", 10 * (i % n_groups) + 1, first + i + delay,
            (10 * (i % n_groups), 10 * (i % n_groups) + 2), outcome="reuse",
        )
        for i in range(n)
    ]  # fmt: skip


def stream(
    rows: Sequence[Row], *, k: int = 2, delay: int = 4, order: Sequence[int] = (), **given: Any
) -> Setting:
    """Return the setting of rows that left in the order of ``order``, or of their moments."""
    shown = list(order) or sorted(range(len(rows)), key=lambda i: (rows[i].left, rows[i].box, i))
    groups: dict[Any, int] = {}
    lines = [
        {
            "row": i, "subject": rows[i].person, "outcome": rows[i].outcome, "arrived": i,
            "published": rows[i].left, "arrived_s": None, "published_s": None,
            "group": groups.setdefault(rows[i].box, len(groups)),
            "seq": seq,
        }
        for seq, i in enumerate(shown)
    ]  # fmt: skip
    boxes = [rows[i].box for i in shown]
    return Setting(
        SCHEMA,
        Policy(KAnonymity(k), delay=Delay(rows=delay)),
        pa.table(
            {
                "age": [f"[{lo}, {hi}]" if lo < hi else str(lo) for lo, hi in boxes],
                "disease": [rows[i].disease for i in shown],
            }
        ),
        pa.Table.from_pylist(
            [{"person": row.person, "age": row.age, "disease": row.disease} for row in rows]
        ),
        pa.Table.from_pylist(lines),
        **given,
    )


def by_knowledge(attack: Attack, setting: Setting) -> dict[str, AttackResult]:
    """Make an attack; return its results by what the attacker knows."""
    assert attack.misfit(setting) is None
    return {result.knowledge: result for result in attack.run(setting)}
