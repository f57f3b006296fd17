"""The twins of the on-deadline family by name, and short streams for them."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.spec.hierarchy import Range
from tests.naive.fads import NaiveFads
from tests.naive.fast import NaiveFast
from tests.naive.idea import NaiveIdea
from tests.naive.iot import NaiveIot
from tests.naive.k_varp import NaiveKVarp
from tests.naive.on_deadline import Decision, NaiveOnDeadline

TWINS: dict[str, type[NaiveOnDeadline]] = {
    "fads": NaiveFads, "fast": NaiveFast, "idea": NaiveIdea, "k-varp": NaiveKVarp, "iot": NaiveIot,
}  # fmt: skip
#: Those in which every due row is an instant of its own.
ON_DEADLINE = ["fads", "idea", "k-varp", "iot"]


def line(name: str, k: int, **options: Any) -> NaiveOnDeadline:
    """A twin over one number from 0 to 100."""
    return TWINS[name]([Range(0, 100)], [1.0], k=k, **options)


def feed(
    twin: NaiveOnDeadline, rows: Sequence[tuple[Any, ...]], *, end: bool = True
) -> list[Decision]:
    """Push (value or values, subject, sensitive values…) and end the stream."""
    decisions = []
    for value, subject, *sensitive in rows:
        values = value if isinstance(value, tuple) else [value]
        decisions += twin.push(values, subject, sensitive)
    return decisions + twin.flush() if end else decisions


def groups(decisions: Sequence[Decision]) -> dict[int, set[int]]:
    """The rows of each group, reuses included."""
    found = defaultdict(set)
    for decision in decisions:
        if decision.group is not None:
            found[decision.group].add(decision.row)
    return dict(found)


def both(name: str, flag: str, **others: bool) -> tuple[Any, Any]:
    """The paper in one point, and Shoal; ``others`` are the same in both."""
    kind = type(TWINS[name].all_deviations())
    return kind(**{flag: False, **others}), kind(**{flag: True, **others})


def flags_of(kind: type) -> list[str]:
    """The flags that a class of deviations has by itself, without those it inherits."""
    inherited = {flag.name for base in kind.__bases__ if dataclasses.is_dataclass(base)
                 for flag in dataclasses.fields(base)}  # fmt: skip
    return [flag.name for flag in dataclasses.fields(kind) if flag.name not in inherited]


def check_section(title: str, prefix: str, flags: Sequence[str]) -> None:
    """A section of the page on deviations has a line for each flag, and names tests that exist."""
    here = Path(__file__)
    page = (here.parents[2] / "docs" / "deviations.md").read_text(encoding="utf-8")
    section = page[page.index(f"\n## {title}\n") + 1 :].split("\n## ")[0]
    table = re.findall(rf"^\| \[{prefix}-(\d+)\]\(.*?\) \| `(\w+)`", section, re.MULTILINE)
    assert table == [(str(n), flag) for n, flag in enumerate(flags, start=1)]
    for n, _ in table:
        assert f"\n### {prefix}-{n}: " in section
    tests = "".join(p.read_text(encoding="utf-8") for p in here.parents[1].rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", section)
    assert named
    for name in named:
        assert f"def {name}(" in tests
