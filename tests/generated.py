"""What is written from the code: the stub for type checkers, tables and pages of the docs.

``python -m tests.generated`` writes all of it; `tests/test_generated.py` compares. In a page, the
generated lines stand between two comments.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from shoal.algorithms.registry import entries
from shoal.cli.algorithms import summary
from shoal.engine import Anonymizer
from shoal.job.changes import RULES
from shoal.spec.policy import BetaLikeness, Closeness, Criterion, DeltaDisclosure, TCloseness
from tests import reference

__all__ = ["GENERATED"]

ROOT = Path(__file__).parents[1]
COMMAND = "python -m tests.generated"
#: How an anonymizer publishes, in the order of the pages.
WAYS = {
    "rows": "streams, row by row",
    "windows": "streams, window by window",
    "values": "streams, value by value",
    "table": "whole tables",
}


def anonymizers() -> list[type[Anonymizer]]:
    """Return all of them, ordered by how they publish and by name."""
    found = [entry.load() for entry in entries()]
    return sorted(found, key=lambda each: list(WAYS).index(each.publishes))


def stub(_: str) -> str:
    """Write the stub of `shoal.algorithms`."""
    found = [(entry.module, entry.class_name) for entry in entries()]
    found += [("shoal.algorithms.registry", name) for name in ("check_support", "find", "names")]
    imports = [f"from {module} import {name} as {name}" for module, name in sorted(found)]
    lines = [f"# Written by `{COMMAND}`.", "", *imports]
    return "\n".join(lines) + "\n"


def between(page: str, lines: Iterator[str]) -> str:
    """Replace what stands between the two comments of a page."""
    begin, end = f"<!-- Written by `{COMMAND}`. -->\n", "<!-- End of what is written. -->"
    head, _, rest = page.partition(begin)
    _, found, tail = rest.partition(end)
    assert found, "the page lacks the comments that generated lines stand between"
    return head + begin + "\n".join(lines) + "\n" + end + tail


def job_table(page: str) -> str:
    """Write the algorithms of the job file, with the defaults of their knobs."""

    def lines() -> Iterator[str]:
        yield "| `name` | for | knobs and their defaults |"
        yield "|---|---|---|"
        for each in anonymizers():
            knobs = (f"`{_knob(field)}`" for field in dataclasses.fields(each))
            link = f"[`{each.name}`](algorithms/{each.name}.md#knobs)"
            yield f"| {link} | {WAYS[each.publishes]} | {', '.join(knobs)} |"

    return between(page, lines())


def _knob(field: dataclasses.Field[object]) -> str:
    # TOML has no null: what has no default is left out of a job.
    return field.name if field.default is None else f"{field.name} = {json.dumps(field.default)}"


def index_table(page: str) -> str:
    """Write the index of the algorithms' pages."""

    def lines() -> Iterator[str]:
        yield "| algorithm | what it is | for |"
        yield "|---|---|---|"
        for each in anonymizers():
            link = f"[`{each.name}`]({each.name}.md)"
            yield f"| {link} | {summary(each)} | {WAYS[each.publishes]} |"

    return between(page, lines())


def closeness_table(page: str) -> str:
    """Write which algorithms keep t, beta and disclosure."""
    kinds: dict[str, type[Criterion]] = {
        "t": TCloseness, "t, other distances": Closeness, "beta": BetaLikeness,
        "disclosure": DeltaDisclosure,
    }  # fmt: skip

    def lines() -> Iterator[str]:
        yield "| | " + " | ".join(_heading(kind) for kind in kinds) + " |"
        yield "|---" * (len(kinds) + 1) + "|"
        for way, words in WAYS.items():
            cells = [
                ", ".join(
                    f"[`{each.name}`](algorithms/{each.name}.md)"
                    for each in anonymizers()
                    if each.publishes == way and issubclass(criterion, each.enforces)
                )
                for criterion in kinds.values()
            ]
            if any(cells):
                yield f"| {words} | " + " | ".join(cells) + " |"

    return between(page, lines())


def change_table(page: str) -> str:
    """Write when each key of a job can change."""
    when = {
        "any time": "any time",
        "promise": "at a restart; if it promises less, with `--accept-weaker`",
        "restart": "at a restart",
        "never": "never",
    }

    def lines() -> Iterator[str]:
        yield "| key | can change | |"
        yield "|---|---|---|"
        for key, (rule, why) in RULES.items():
            yield f"| `{key}` | {when[rule]} | {why} |"

    return between(page, lines())


def _heading(kind: str) -> str:
    key, _, rest = kind.partition(", ")
    return f"`{key}`, {rest}" if rest else f"`{key}`"


GENERATED: dict[Path, Callable[[str], str]] = {
    ROOT / "src" / "shoal" / "algorithms" / "__init__.pyi": stub,
    ROOT / "docs" / "job.md": job_table,
    ROOT / "docs" / "job-keys.md": lambda page: between(page, reference.job_keys()),
    ROOT / "docs" / "commands.md": lambda page: between(page, reference.commands()),
    ROOT / "docs" / "api.md": lambda page: between(page, reference.names()),
    ROOT / "docs" / "algorithms" / "index.md": index_table,
    ROOT / "docs" / "closeness.md": closeness_table,
    ROOT / "docs" / "checkpoints.md": change_table,
}


if __name__ == "__main__":
    for path, write in GENERATED.items():
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(write(text), encoding="utf-8")
