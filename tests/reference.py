"""Reference pages that are written from the code: keys of a job, help of commands, public names.

`tests/generated.py` writes them.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import typer
from typer.testing import CliRunner

from shoal.cli.app import app
from shoal.job.descriptions import KNOBS
from shoal.job.json_schema import job_schema

__all__ = ["commands", "job_keys", "names"]

TYPES = {
    "string": "text", "integer": "whole number", "number": "number", "boolean": "true or false",
    "object": "table",
}  # fmt: skip
PLURALS = {"text": "texts", "whole number": "whole numbers", "number": "numbers"}


def job_keys() -> Iterator[str]:
    """Yield a table of keys for each section of the job file, and one of all knobs."""
    for section, table in job_schema()["properties"].items():
        yield f"## {section}"
        yield ""
        if section == "algorithm":
            yield from _knobs(table)
        else:
            yield "| key | takes | default | meaning |"
            yield "|---|---|---|---|"
            for key, node, is_required in _keys(table, ""):
                default = "**required**" if is_required else _value(node.get("default"))
                link = f"[`{key}`](job.md#{_anchor(section, key)})"
                meaning = _cell(node.get("description", ""))
                yield f"| {link} | {_type(node)} | {default} | {meaning} |"
        yield ""


def _keys(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield the keys of a table with what they take, those of inner tables after them."""
    for key, node in table.get("properties", {}).items():
        yield f"{prefix}{key}", node, key in table.get("required", ())
        for inner in (node, *node.get("anyOf", ())):
            yield from _keys(inner, f"{prefix}{key}.")
            if isinstance(columns := inner.get("additionalProperties"), dict):
                yield from _keys(columns, f"{prefix}{key}.COLUMN.")


def _anchor(section: str, key: str) -> str:
    """Return the anchor of the section of `docs/job.md` that explains a key."""
    if ".COLUMN." in key:
        return "schemaquasi" if key.endswith("weight") else "domains"
    if key.startswith("keep"):
        return "schemakeepcolumns"
    return section + key.partition(".")[0]


def _knobs(table: dict[str, Any]) -> Iterator[str]:
    yield "| key | takes | default | algorithms | meaning |"
    yield "|---|---|---|---|---|"
    name = "[`name`](job.md#algorithm)"
    yield f"| {name} | one of [these](algorithms/index.md) | **required** | all | The algorithm. |"
    schemas = {each["title"]: each["properties"] for each in table["oneOf"]}
    for knob in sorted(KNOBS):
        users = {name: nodes[knob] for name, nodes in schemas.items() if knob in nodes}
        defaults: dict[str, list[str]] = {}
        for algorithm, node in users.items():
            defaults.setdefault(_value(node.get("default")), []).append(algorithm)
        shown = next(iter(defaults))
        if len(defaults) > 1:
            shown = "; ".join(f"{value} ({', '.join(of)})" for value, of in defaults.items())
        links = "all"
        if len(users) < len(schemas):
            links = ", ".join(f"[`{name}`](algorithms/{name}.md#knobs)" for name in users)
        kind = _type(next(iter(users.values())))
        yield f"| `{knob}` | {kind} | {shown} | {links} | {_cell(KNOBS[knob])} |"


def _type(node: dict[str, Any]) -> str:
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(map(_type, node["anyOf"])))
    if "enum" in node:
        return ", ".join(_value(each) for each in node["enum"])
    if "const" in node:
        return _value(node["const"])
    if node.get("type") == "array":
        inner = _type(node["items"])
        return f"list of {PLURALS.get(inner, inner)}"
    return TYPES[node["type"]]


def _value(value: object) -> str:
    return "" if value is None or value == {} else f"`{json.dumps(value)}`"


def _cell(text: str) -> str:
    # A star would begin italics, a bar another cell.
    return text.replace("|", "\\|").replace("*", "\\*")


def commands() -> Iterator[str]:
    """Yield the help of the program and of each command."""
    root: Any = typer.main.get_command(app)
    yield from _help([])
    for name, command in root.commands.items():
        yield from _help([name])
        for inner in getattr(command, "commands", ()):
            yield from _help([name, inner])


def _help(words: list[str]) -> Iterator[str]:
    environment = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    done = CliRunner().invoke(app, [*words, "--help"], prog_name="shoal", env=environment)
    assert done.exit_code == 0, done.output
    command = " ".join(["shoal", *words])
    yield f"## {command}"
    yield ""
    yield "```text"
    yield from (line.rstrip() for line in done.output.strip().splitlines())
    yield "```"
    yield ""


def names() -> Iterator[str]:
    """Yield the public names of the modules that users import from."""
    yield from _names("shoal")
    yield from _names("shoal.algorithms")
    yield from _tools()


def _names(module: str) -> Iterator[str]:
    yield f"## {module}"
    yield ""
    yield "| name | what it is |"
    yield "|---|---|"
    package = importlib.import_module(module)
    for name in dir(package):
        if not name.startswith("_"):
            yield f"| `{name}` | {_summary(getattr(package, name))} |"
    yield ""


def _tools() -> Iterator[str]:
    package = importlib.import_module("shoal.testing")
    yield "## shoal.testing"
    yield ""
    yield "| module | what it is for | names |"
    yield "|---|---|---|"
    for found in pkgutil.iter_modules(package.__path__, "shoal.testing."):
        if found.name.rpartition(".")[2].startswith("_"):
            continue
        module = importlib.import_module(found.name)
        names = ", ".join(f"`{name}`" for name in getattr(module, "__all__", ()))
        yield f"| `{found.name}` | {_summary(module)} | {names} |"
    yield ""


def _summary(found: Any) -> str:
    if isinstance(found, ModuleType) and callable(found):
        found = found._function()
    text, _, _ = (inspect.getdoc(found) or "").partition("\n\n")
    return _cell(re.sub(r"``(.*?)``", r"`\1`", " ".join(text.split())))
