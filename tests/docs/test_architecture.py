"""The page on the architecture matches the code: its picture, its layers, its names."""

from __future__ import annotations

import importlib
import importlib.util
import operator
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
#: The changelog isn't among them: it names what was moved, too.
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


@cache
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "draw_architecture", ROOT / "docs" / "draw_architecture.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables(page: Path, *columns: str) -> Iterator[dict[str, str]]:
    """The rows of all tables that have these columns, by the name of the column."""
    head: list[str] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            head = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not head:
            head = cells
        elif set(columns) <= set(head) and set(line) - set("|-"):
            yield dict(zip(head, cells, strict=True))


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def test_the_picture_shows_the_real_imports() -> None:
    again = "redraw it: .venv/bin/python docs/draw_architecture.py"
    assert drawing().draw() == drawing().PICTURE.read_text(encoding="utf-8"), again


def test_the_table_of_packages_lists_the_real_imports() -> None:
    real = drawing().imports()
    shown = {}
    for row in tables(PAGE, "package", "imports"):
        (package,) = quoted(row["package"])
        names = quoted(row["imports"])
        if row["imports"].startswith("everything but"):
            names = sorted(set(real) - {package, *names})
        shown[package] = set(names)
    assert shown == real


def test_the_layers_hold_every_package_once() -> None:
    rows = drawing().layers()
    names = [name for row in rows for name in row]
    assert sorted(names) == sorted(drawing().imports())


def test_there_are_three_kinds_of_contracts() -> None:
    assert {contract["type"] for contract in contracts()} == {"layers", "forbidden", "independence"}


def test_the_audit_may_import_nothing_but_spec_and_errors() -> None:
    contract = next(one for one in contracts() if one.get("source_modules") == ["shoal.audit"])
    packages = {f"shoal.{name}" for name in drawing().imports()}
    allowed = {"shoal.audit", "shoal.spec", "shoal.errors"}
    assert set(contract["forbidden_modules"]) == packages - allowed | {"numba"}


STEPS = [
    (quoted(row["module"])[0], name)
    for row in tables(PAGE, "module", "function")
    for name in quoted(row["function"])
]


def test_all_four_walks_are_there() -> None:
    assert len(STEPS) > 40


@pytest.mark.parametrize(("module", "function"), STEPS, ids=map(".".join, STEPS))
def test_a_step_of_a_walk_exists(module: str, function: str) -> None:
    operator.attrgetter(function)(importlib.import_module(module))


def is_there(dotted: str) -> bool:
    """Whether a dotted name is a module, or a name inside one."""
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        try:
            return n == len(parts) or bool(operator.attrgetter(".".join(parts[n:]))(found))
        except AttributeError:
            return False
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_and_path_exists(page: Path) -> None:
    names = quoted(re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S))
    dotted = {name for name in names if re.fullmatch(r"shoal(\.\w+)+", name)}
    paths = {
        name
        for name in names
        if re.fullmatch(r"(src|tests|docs|benchmarks|examples)/[\w./-]*", name)
        # A name of the reader's own.
        and not re.search(r"([/_]x|first[-_]come)\.(py|md)$", name)
        and not (ROOT / name).exists()
    }
    assert not paths
    assert sorted(name for name in dotted if not is_there(name)) == []
